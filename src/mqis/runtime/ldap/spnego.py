"""SASL GSS-SPNEGO towards Active Directory (MS-ADTS 5.1.1.1.2): NTLM or Kerberos.

Outside TLS everything after the logon is encrypted, or signed if that is what was asked for.
Inside TLS servers refuse a second protection; there the logon is bound to the certificate of the
server, so that nobody in between can pass it on (channel binding). Active Directory negotiates no
layer as RFC 4752 does: what the security context was granted is what is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from spnego import ContextProxy, ContextReq
from spnego._context import GSSMech
from spnego.channel_bindings import GssChannelBindings

from mqis.protocol.authentication import AuthenticationError, CallerTicket
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.account import nt_hash
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmInitiator
from mqis.wire.security.tokens import check_spnego

_SERVICE = "ldap"
_INTEGRITY = ContextReq.integrity | ContextReq.replay_detect | ContextReq.sequence_detect


class SpnegoMechanism(Enum):
    """The mechanisms that are offered to the server."""

    NEGOTIATE = "negotiate"
    NTLM = "ntlm"
    KERBEROS = "kerberos"


@dataclass(frozen=True, slots=True)
class SpnegoUser:
    """A user by ``DOMAIN\\name`` or ``name@domain``.

    With a password, or for Kerberos with a ticket cache, a keytab, or the ticket of a caller.
    """

    user: str
    password: str | None = field(default=None, repr=False)
    ccache: str | None = None
    keytab: str | None = None
    ticket: CallerTicket | None = None

    @property
    def ntlm_name(self) -> tuple[str, str]:
        """Domain and name as NTLM sends them."""
        domain, slash, name = self.user.rpartition("\\")
        return (domain, name) if slash else ("", self.user)

    @property
    def principal(self) -> str:
        domain, name = self.ntlm_name
        if "@" in name:
            name, _, domain = name.rpartition("@")
        # A NetBIOS name is no realm; without one the default of krb5.conf is taken.
        return f"{name}@{domain.upper()}" if "." in domain else name


class SpnegoExchange:
    """The steps of one logon. Kerberos talks to the KDC and blocks: call it outside the loop."""

    def __init__(
        self,
        user: SpnegoUser,
        host: str,
        *,
        protection: LdapProtection,
        mechanism: SpnegoMechanism = SpnegoMechanism.NEGOTIATE,
        binding: bytes | None = None,
    ) -> None:
        self._protection = protection
        self._binding = GssChannelBindings(application_data=binding) if binding else None
        mechanisms = self._mechanisms(user, host, mechanism)
        self._context: ContextProxy = Negotiate("initiate", mechanisms, dce_style=False)

    @property
    def complete(self) -> bool:
        return self._context.complete

    def step(self, token: bytes | None) -> bytes | None:
        try:
            if token:
                check_spnego(token)
            return self._context.step(token, channel_bindings=self._binding)
        except AuthenticationError:
            raise
        except Exception as error:  # a provider's errors are of any kind, and all mean the same
            raise AuthenticationError(f"the logon fails: {kerberos.reason_of(error)}") from error

    def layer(self) -> SpnegoLayer | None:
        """The protection of what follows; None if none was asked for."""
        if not self.complete:
            raise AuthenticationError("the server ended the logon before it proved who it is")
        if self._protection is LdapProtection.NONE:
            return None
        granted = self._context.context_attr
        sealed = bool(granted & ContextReq.confidentiality)
        if not granted & ContextReq.integrity:
            raise AuthenticationError("the server does not agree to signing")
        if self._protection is LdapProtection.SEAL and not sealed:
            raise AuthenticationError("the server does not agree to encryption")
        return SpnegoLayer(self._context, sealed=sealed)

    def _mechanisms(
        self, user: SpnegoUser, host: str, wanted: SpnegoMechanism
    ) -> dict[GSSMech, ContextProxy]:
        found: dict[GSSMech, ContextProxy] = {}
        reason: AuthenticationError | None = None
        if wanted is not SpnegoMechanism.NTLM:
            try:
                found[GSSMech.kerberos] = self._kerberos(user, host)
            except AuthenticationError as error:
                reason = error
        if wanted is not SpnegoMechanism.KERBEROS and user.password is not None:
            found[GSSMech.ntlm] = self._ntlm(user, user.password, host)
        if not found:
            raise reason or AuthenticationError(f"{user.user}: NTLM needs a password")
        return found

    def _ntlm(self, user: SpnegoUser, password: str, host: str) -> NtlmInitiator:
        domain, name = user.ntlm_name
        return NtlmInitiator(
            domain,
            name,
            nt_hash(password),
            host=host,
            service=_SERVICE,
            signing=self._protection is not LdapProtection.NONE,
            sealing=self._protection is LdapProtection.SEAL,
            layered=self._protection is not LdapProtection.NONE,
        )

    def _kerberos(self, user: SpnegoUser, host: str) -> kerberos.KerberosInitiator:
        none = self._protection is LdapProtection.NONE
        request = ContextReq.mutual_auth | (ContextReq.no_integrity if none else _INTEGRITY)
        try:
            return kerberos.KerberosInitiator(
                user.principal,
                user.password,
                user.ccache,
                host=host,
                service=_SERVICE,
                sealing=self._protection is LdapProtection.SEAL,
                request=request,
                keytab=user.keytab,
                ticket=user.ticket,
            )
        except AuthenticationError:
            raise
        except Exception as error:  # GSSAPI's, which may not even be installed
            raise AuthenticationError(
                f"Kerberos: no ticket: {kerberos.reason_of(error)}"
            ) from error


class SpnegoLayer:
    """``protocol.ldap.ldap_client.SecurityLayer`` by the context of a logon.

    NTLM encrypts on LDAP even if only signing was agreed; Windows and Samba expect that.
    """

    def __init__(self, context: ContextProxy, *, sealed: bool) -> None:
        self._context = context
        self._sealed = sealed

    def wrap(self, data: bytes) -> bytes:
        return self._context.wrap(data, encrypt=self._sealed).data

    def unwrap(self, token: bytes) -> bytes:
        try:
            result = self._context.unwrap(token)
        except Exception as error:
            raise AuthenticationError(f"a message was changed on its way: {error}") from error
        if self._sealed and not result.encrypted:
            raise AuthenticationError("a message is not encrypted")
        return result.data


# --- The protection of what is said after a SASL logon --------------------------------------------


class LdapProtection(Enum):
    """The protection that a connection without TLS gets by the logon itself."""

    NONE = "none"
    SIGN = "sign"
    SEAL = "seal"
