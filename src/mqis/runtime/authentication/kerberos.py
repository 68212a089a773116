"""Kerberos, where the extra ``mqis[kerberos]`` (gssapi, krb5) is installed.

pyspnego finds a server's key through KRB5_KTNAME; a keytab given here goes to GSSAPI directly.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from spnego import ContextReq, KerberosCCache, Password
from spnego._gss import GSSAPI_IMP_ERR, HAS_GSSAPI, HAS_IOV, GSSAPIProxy

from mqis.protocol.authentication import AuthenticationError, Identity
from mqis.runtime.authentication.account import Accounts, resolve

#: MS-RPCE 2.2.3.4: GSS runs in DCE style, which makes Kerberos three legs long.
_REQUEST = (
    ContextReq.mutual_auth
    | ContextReq.replay_detect
    | ContextReq.sequence_detect
    | ContextReq.integrity
    | ContextReq.dce_style
)


def available() -> bool:
    return HAS_GSSAPI and HAS_IOV


def _check_available() -> None:
    if not available():
        reason = GSSAPI_IMP_ERR or "gssapi has no IOV functions"
        raise AuthenticationError(f"Kerberos needs the extra mqis[kerberos]: {reason}")


class _Kerberos(GSSAPIProxy):
    """What both sides have in common: a ``context.Mechanism``."""

    signs_whole: ClassVar[bool] = False
    identity: Identity | None = None

    @property
    def signing(self) -> bool:
        return bool(self.context_attr & ContextReq.integrity)

    @property
    def sealing(self) -> bool:
        return self.signing and bool(self.context_attr & ContextReq.confidentiality)

    def signature_size(self, sealed: bool) -> int:
        if sealed:
            return self.query_message_sizes().header
        raw = import_module("gssapi.raw")  # an extra
        iov = raw.IOV(raw.IOVBufferType.mic_token, b"", std_layout=False)
        raw.get_mic_iov_length(self._context, iov)
        return len(iov[0].value or b"")


class KerberosAcceptor(_Kerberos):
    """The server's side. The caller is the account that its principal names, if there is one."""

    def __init__(self, accounts: Accounts, own_names: tuple[str, ...], keytab: str | None) -> None:
        _check_available()
        options: dict[str, Any] = {}
        if keytab is not None:
            gssapi = import_module("gssapi")  # an extra
            store = {"keytab": keytab}
            options["_gssapi_credential"] = gssapi.Credentials(usage="accept", store=store)
        super().__init__(usage="accept", protocol="kerberos", context_req=_REQUEST, **options)
        self._accounts = accounts
        self._own_names = own_names

    @property
    def identity(self) -> Identity | None:  # type: ignore[override]
        principal = self.client_principal if self.complete else None
        if principal is None:
            return None
        name, _, realm = principal.rpartition("@")
        account = resolve(self._accounts, self._own_names, realm, name)
        if account is None:  # a realm's short name is its first label, by custom
            account = self._accounts.find(realm.partition(".")[0], name)
        return account.identity if account is not None else Identity(realm, name)


class KerberosInitiator(_Kerberos):
    """The client's side, from a password or a ticket cache."""

    def __init__(
        self,
        principal: str,
        password: str | None,
        ccache: str | None,
        *,
        host: str,
        service: str,
        sealing: bool,
    ) -> None:
        _check_available()
        credential: Password | KerberosCCache | None = None
        if ccache is not None:
            credential = KerberosCCache(ccache, principal or None)
        elif password is not None:
            credential = Password(principal, password)
        request = _REQUEST | (ContextReq.confidentiality if sealing else ContextReq.none)
        super().__init__(username=credential, hostname=host, service=service, context_req=request)
