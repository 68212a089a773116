"""The client's side: security contexts from a user's credentials."""

from __future__ import annotations

from spnego import ContextProxy
from spnego._context import GSSMech

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthLevel,
    AuthType,
    SecurityContext,
    auth_type_name,
)
from mqis.runtime.authentication import kerberos
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmInitiator
from mqis.runtime.authentication.spnego_context import ProviderContext, check_level

DEFAULT_SERVICE = "host"


class PyspnegoInitiator:
    """``protocol.authentication.Initiator`` for real clients.

    Where Kerberos is installed, ``initiator`` and the first step of a Kerberos or Negotiate context
    talk to the KDC and may block for seconds: call them outside the event loop's thread. NTLM
    never blocks.
    """

    def __init__(self, credentials: LogonCredentials) -> None:
        self._credentials = credentials

    def initiator(self, auth_type: int, level: int, target: str) -> SecurityContext:
        """Begins a security context with the service of a host."""
        service, slash, host = target.rpartition("/")
        service = service if slash else DEFAULT_SERVICE
        level = check_level(level)
        if auth_type == AuthType.NTLM:
            ntlm = self._ntlm(level, service, host)
            return ProviderContext(auth_type, level, ntlm, lambda: ntlm)
        if auth_type == AuthType.KERBEROS:
            ticket = self._kerberos(level, service, host)
            return ProviderContext(auth_type, level, ticket, lambda: ticket)
        if auth_type == AuthType.SPNEGO:
            negotiate = Negotiate("initiate", self._mechanisms(level, service, host))
            return ProviderContext(auth_type, level, negotiate, lambda: negotiate.mechanism)
        raise AuthenticationError(f"{auth_type_name(auth_type)} is not supported")

    def _mechanisms(self, level: int, service: str, host: str) -> dict[GSSMech, ContextProxy]:
        """The mechanisms of SPNEGO: Kerberos if a ticket can be had, then NTLM with a secret."""
        mechanisms: dict[GSSMech, ContextProxy] = {}
        reason: AuthenticationError | None = None
        try:
            mechanisms[GSSMech.kerberos] = self._kerberos(level, service, host)
        except AuthenticationError as error:
            reason = error
        if self._credentials.ntlm_secret is not None:
            mechanisms[GSSMech.ntlm] = self._ntlm(level, service, host)
        if not mechanisms and reason is not None:
            raise reason
        return mechanisms

    def _ntlm(self, level: int, service: str, host: str) -> NtlmInitiator:
        secret = self._credentials.ntlm_secret
        if secret is None:
            raise AuthenticationError("NTLM needs a password or an NT hash")
        return NtlmInitiator(
            self._credentials.domain,
            self._credentials.name,
            secret,
            host=host,
            service=service,
            signing=level > AuthLevel.CONNECT,
            sealing=level == AuthLevel.PRIVACY,
        )

    def _kerberos(self, level: int, service: str, host: str) -> kerberos.KerberosInitiator:
        credentials = self._credentials
        if credentials.password is None and credentials.ccache is None:
            raise AuthenticationError("Kerberos needs a password or a ticket cache")
        try:
            return kerberos.KerberosInitiator(
                credentials.principal,
                credentials.password,
                credentials.ccache,
                host=host,
                service=service,
                sealing=level == AuthLevel.PRIVACY,
            )
        except AuthenticationError:
            raise
        except Exception as error:  # GSSAPI's, which may not even be installed
            raise AuthenticationError(f"Kerberos: no ticket: {error}") from error
