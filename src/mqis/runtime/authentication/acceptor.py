"""The server's side: creates the security provider for a caller, with the accounts it uses.

pyspnego is a sixth of what a server would load at its start. It is loaded for the first caller who
logs on, so that a server to which nobody does needs neither its time nor its memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mqis.protocol.authentication import (
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthType,
    auth_type_name,
)
from mqis.runtime.authentication.account import Accounts, Claim, any_claim
from mqis.runtime.authentication.target import OwnNames

if TYPE_CHECKING:
    from mqis.runtime.authentication.delegation import ServiceTickets
    from mqis.runtime.authentication.kerberos import KerberosAcceptor
    from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor
    from mqis.runtime.authentication.spnego_context import ProviderContext


class PyspnegoAuthenticator:
    """``protocol.authentication.Authenticator`` for real servers.

    ``server`` and ``domain`` are the names that NTLM sends to the client. A client that names the
    server it means is refused unless that name is one of these, of the computer's, or of ``names``.
    ``keytab`` enables Kerberos, where it is installed; with ``service`` the server may act as those
    who log on by it. An anonymous logon gives a caller without identity, as no authentication does;
    its signatures prove nothing, since the key is public.
    """

    def __init__(
        self,
        accounts: Accounts,
        server: str,
        domain: str = "",
        *,
        names: Iterable[str] = (),
        keytab: str | None = None,
        service: ServiceTickets | None = None,
        allow_anonymous: bool = True,
    ) -> None:
        self.accounts = accounts
        self._server = server
        self._domain = domain
        self._names = OwnNames.of(server, domain, names)
        self._keytab = keytab
        self._service = service
        self._allow_anonymous = allow_anonymous

    def acceptor(
        self,
        auth_type: int,
        level: int,
        addresses: Addresses = NOWHERE,
        *,
        claim: Claim = any_claim,
    ) -> ProviderContext:
        """A context for a caller; ``claim`` is called before NTLM checks an account's password."""
        from mqis.runtime.authentication.spnego_context import ProviderContext  # noqa: PLC0415

        if auth_type == AuthType.NTLM:
            ntlm = self._ntlm(addresses, claim)
            return ProviderContext(auth_type, level, ntlm, lambda: ntlm)
        if auth_type == AuthType.KERBEROS:
            ticket = self._kerberos()
            return ProviderContext(auth_type, level, ticket, lambda: ticket)
        if auth_type == AuthType.SPNEGO:
            return self._negotiate(level, addresses, claim)
        raise AuthenticationError(f"{auth_type_name(auth_type)} is not supported")

    def _negotiate(self, level: int, addresses: Addresses, claim: Claim) -> ProviderContext:
        from spnego import ContextProxy  # noqa: PLC0415
        from spnego._context import GSSMech  # noqa: PLC0415

        from mqis.runtime.authentication import kerberos  # noqa: PLC0415
        from mqis.runtime.authentication.negotiate import Negotiate  # noqa: PLC0415
        from mqis.runtime.authentication.spnego_context import ProviderContext  # noqa: PLC0415

        mechanisms: dict[GSSMech, ContextProxy] = {}
        if self._keytab is not None and kerberos.available():
            mechanisms[GSSMech.kerberos] = self._kerberos()
        mechanisms[GSSMech.ntlm] = self._ntlm(addresses, claim)
        negotiate = Negotiate("accept", mechanisms)
        return ProviderContext(AuthType.SPNEGO, level, negotiate, lambda: negotiate.mechanism)

    def _ntlm(self, addresses: Addresses, claim: Claim) -> NtlmAcceptor:
        from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor  # noqa: PLC0415

        return NtlmAcceptor(
            self.accounts,
            self._server,
            self._domain,
            allow_anonymous=self._allow_anonymous,
            names=self._names,
            addresses=addresses,
            claim=claim,
        )

    def _kerberos(self) -> KerberosAcceptor:
        from mqis.runtime.authentication.kerberos import KerberosAcceptor  # noqa: PLC0415

        own_names = (self._domain, self._server)
        try:
            join = None if self._service is None else self._service.joined
            return KerberosAcceptor(self.accounts, own_names, self._keytab, join)
        except AuthenticationError:
            raise
        except Exception as error:  # GSSAPI's, which may not even be installed
            raise AuthenticationError(f"Kerberos cannot be offered: {error}") from error
