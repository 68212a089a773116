"""Kerberos, where the extra ``mqis[kerberos]`` (gssapi, krb5) is installed.

pyspnego would find a server's key through KRB5_KTNAME. Here only the keytab of the server's
configuration is used, and it is passed to GSSAPI directly.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from spnego import ContextReq, KerberosCCache, KerberosKeytab
from spnego._gss import GSSAPI_IMP_ERR, HAS_GSSAPI, HAS_IOV, GSSAPIProxy, _kinit
from spnego.channel_bindings import GssChannelBindings

from mqis.files import system_reason
from mqis.protocol.authentication import AuthenticationError, CallerTicket, Identity
from mqis.runtime.authentication.account import Account, Accounts, resolve
from mqis.wire.errors import WireError
from mqis.wire.security.keytab import decode_realms
from mqis.wire.security.tickets import ticket_of

#: Makes of a principal, its ticket and the seconds that this is valid what a server acts with.
JoinTicket = Callable[[str, bytes, float], CallerTicket]

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


def check_available() -> None:
    if not available():
        reason = GSSAPI_IMP_ERR or "gssapi has no IOV functions"
        raise AuthenticationError(f"Kerberos needs the extra mqis[kerberos]: {reason}")


class _Kerberos(GSSAPIProxy):
    """The base of both sides, a ``protection.Mechanism``."""

    signs_whole: ClassVar[bool] = False
    ntlm_session: ClassVar[None] = None
    identity: Identity | None = None
    ticket: CallerTicket | None = None

    @property
    def signing(self) -> bool:
        return bool(self.context_attr & ContextReq.integrity)

    @property
    def sealing(self) -> bool:
        return self.signing and bool(self.context_attr & ContextReq.confidentiality)

    @property
    def lifetime_s(self) -> float:
        assert self._context is not None
        return float(self._context.lifetime)

    def signature_size(self, sealed: bool) -> int:
        if sealed:
            return self.query_message_sizes().header
        raw = import_module("gssapi.raw")  # an extra
        iov = raw.IOV(raw.IOVBufferType.mic_token, b"", std_layout=False)
        raw.get_mic_iov_length(self._context, iov)
        return len(iov[0].value or b"")


class KerberosAcceptor(_Kerberos):
    """The server's side. The caller's account is that of its principal, if there is one."""

    def __init__(
        self,
        accounts: Accounts,
        own_names: tuple[str, ...],
        keytab: str | None,
        join: JoinTicket | None = None,
    ) -> None:
        """``join`` makes of a caller's ticket what this server acts with; None: it does not act."""
        check_available()
        if keytab is None:  # GSSAPI would take the keys of the whole computer
            raise AuthenticationError("Kerberos is off: the server has no security.keytab")
        self._own_realms = realms_of(keytab)
        gssapi = import_module("gssapi")  # an extra
        credential: Any = gssapi.Credentials(usage="accept", store={"keytab": keytab})
        super().__init__(
            usage="accept",
            protocol="kerberos",
            context_req=_REQUEST,
            _gssapi_credential=credential,
        )
        self._accounts = accounts
        self._own_names = own_names
        self._join = join
        #: The ticket in the caller's first token; it is the caller's once that is accepted.
        self._shown: bytes | None = None
        self._ticket: CallerTicket | None = None

    @property
    def identity(self) -> Identity | None:  # type: ignore[override]
        principal = self.client_principal if self.complete else None
        if principal is None:
            return None
        return identity_of(self._accounts, self._own_names, self._own_realms, principal)

    @property
    def ticket(self) -> CallerTicket | None:  # type: ignore[override]
        """What this server may act as the caller with, the same at each call."""
        principal = self.client_principal if self.complete else None
        join, shown = self._join, self._shown
        if self._ticket is None and join and shown is not None and principal is not None:
            self._ticket = join(principal, shown, self.lifetime_s)
        return self._ticket

    def step(
        self,
        in_token: bytes | None = None,
        *,
        channel_bindings: GssChannelBindings | None = None,
    ) -> bytes | None:
        if self._join is not None and self._shown is None and in_token:
            self._shown = ticket_of(in_token)
        return super().step(in_token, channel_bindings=channel_bindings)


class KerberosInitiator(_Kerberos):
    """The client's side, from a password, a ticket cache or a keytab.

    The keytab is read anew for each logon, so that a renewed key is used at the next one.
    """

    def __init__(
        self,
        principal: str,
        password: str | None,
        ccache: str | None,
        *,
        host: str,
        service: str,
        sealing: bool,
        request: ContextReq = _REQUEST,
        keytab: str | None = None,
        ticket: CallerTicket | None = None,
    ) -> None:
        """With ``ticket``, the server acts as the caller whose it is; nothing else counts then."""
        check_available()
        credential: KerberosCCache | KerberosKeytab | None = None
        made: Any = None
        if ticket is not None:
            made = ticket.credentials()
        elif keytab is not None:
            realms_of(keytab)  # one that others may read is refused
            credential = KerberosKeytab(keytab, principal or None)
        elif ccache is not None:
            credential = KerberosCCache(ccache, principal or None)
        elif password is not None:
            made = _log_on(principal, password)
        request |= ContextReq.confidentiality if sealing else ContextReq.none
        super().__init__(
            username=credential,
            hostname=host,
            service=service,
            context_req=request,
            _gssapi_credential=made,
        )


def _log_on(principal: str, password: str) -> Any:
    """Asks the KDC for tickets that a server may act with, as Windows does; it may refuse that.

    pyspnego asks for such tickets only together with giving them to the server.
    """
    secret = password.encode("utf-8", errors="surrogatepass")
    base = _kinit(principal.encode(), secret, forwardable=True)
    return import_module("gssapi").Credentials(base=base, usage="initiate")  # an extra


# --- Refusals in words ----------------------------------------------------------------------------

#: Where the numbers of krb5's errors begin (RFC 4120 7.5.9 counts from there).
_KRB5_BASE = -1765328384
_REASONS = {
    6: "the KDC knows no such account",
    7: "the KDC knows no account with that service principal name",
    12: "the account may not log on at this time, or from this computer",
    13: "the KDC does not let the server's account act as the caller: its msDS-AllowedToDelegateTo "
    "does not name this service, or the caller's ticket is not forwardable, as that of an account "
    "that is sensitive and cannot be delegated",
    14: "the KDC has no key of a type that this computer may use",
    18: "the account is disabled, locked or has expired",
    23: "the password has expired or has to be changed first",
    24: "the password or the key in the keytab is wrong",
    32: "the ticket has expired",
    37: "the clocks of this computer and of the KDC differ by more than five minutes",
    147: "the KDC answers for another client",
    156: "no KDC answers",
    181: "the keytab has no key of this account",
    195: "there is no such ticket cache",
}


def reason_of(error: BaseException) -> str:
    """Why Kerberos failed: what the number of an error means, else what the library says."""
    found: BaseException | None = error
    while found is not None:
        code = getattr(found, "min_code", None) or getattr(found, "err_code", None)
        number = (code - _KRB5_BASE) & 0xFFFF_FFFF if isinstance(code, int) else -1
        if number in _REASONS:
            return _REASONS[number]
        found = getattr(found, "base_error", None) or found.__cause__
    return str(error)


# --- The realms of the keys in a keytab file ------------------------------------------------------

#: The largest file read: more than a keytab with a thousand keys has.
_MOST = 1 << 20
#: Permissions that a keytab must not give: any to others, writing to the group.
_TOO_OPEN = stat.S_IRWXO | stat.S_IWGRP


def realms_of(path: str | Path) -> frozenset[str]:
    """Returns the realms of the keys; ``AuthenticationError`` for a file that cannot be trusted."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST + 1)
    except OSError as error:
        raise AuthenticationError(f"{path}: cannot be read: {system_reason(error)}") from error
    if mode & _TOO_OPEN:
        raise AuthenticationError(
            f"{path}: other users may read or change this keytab and so log on as anybody: "
            f"run chmod 600 {path}"
        )
    if len(data) > _MOST:
        raise AuthenticationError(f"{path}: a keytab has at most {_MOST} bytes")
    try:
        return frozenset(decode_realms(data))
    except (WireError, UnicodeDecodeError) as error:
        raise AuthenticationError(f"{path}: this is no keytab: {error}") from error


# --- The mapping of Kerberos principals to accounts -----------------------------------------------
# A realm decides only the names of its own users. Where realms trust each other, users of the
# others can get tickets for this server, so the realm is part of a principal's identity:
#
# - A principal of a realm that this server has keys of is one of the own users: the account of
#   that domain, or of the realm's first label, which is its short name by custom. Where that is
#   the domain or the name of this server, accounts without a domain are considered too.
# - A principal of any other realm is the account whose domain is that realm in full. It is never
#   one of the own users, whatever the name of its realm.
#
# Realms are compared exactly: to Kerberos, LAB and lab are two.


def identity_of(
    accounts: Accounts, own_names: tuple[str, ...], own_realms: Collection[str], principal: str
) -> Identity:
    """The identity of an authenticated principal; without an account it has no SID."""
    name, _, realm = principal.rpartition("@")
    if realm in own_realms:
        account = _own_user(accounts, own_names, realm, name)
    else:
        account = _user_of_another(accounts, (*own_names, *own_realms), realm, name)
    return Identity(realm, name) if account is None else account.identity


def _own_user(
    accounts: Accounts, own_names: tuple[str, ...], realm: str, name: str
) -> Account | None:
    return resolve(accounts, own_names, realm, name) or accounts.find(realm.partition(".")[0], name)


def _user_of_another(
    accounts: Accounts, own: tuple[str, ...], realm: str, name: str
) -> Account | None:
    if not realm or realm.upper() in (known.upper() for known in own):
        return None
    return accounts.find(realm, name)
