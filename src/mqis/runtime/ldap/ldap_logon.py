"""Logging on to a directory server: SASL GSS-SPNEGO, or a simple bind.

GSS-SPNEGO is Kerberos or NTLM: the server never gets the password. Inside TLS the logon is bound to
the server's certificate, outside of it everything that follows is encrypted. A simple bind sends
the password itself, so it is made only if the caller asks for it, and inside TLS only.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from mqis.protocol.authentication import AuthenticationError, CallerTicket
from mqis.protocol.ldap.errors import LdapError, LdapRefused, LdapViolation
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.runtime.ldap.spnego import LdapProtection
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.requests import SaslBind, SimpleBind
from mqis.wire.ldap.responses import BindResponse

_MECHANISM = "GSS-SPNEGO"
#: Steps of a logon: NTLM takes two, Kerberos one or two.
_MOST_STEPS = 10
_ALLOW_SIMPLE = (
    "if it may have the password itself, allow a simple bind (--simple, or store.simple in a "
    "server's configuration)"
)

#: The reasons that Active Directory puts into the message of code 49 (MS-ERREF, in hexadecimal).
_LOGON_REASONS: Final = {
    "525": "there is no such user",
    "52e": "the user name or the password is wrong",
    "530": "the user may not log on at this time",
    "531": "the user may not log on from this computer",
    "532": "the password has expired",
    "533": "the account is disabled",
    "701": "the account has expired",
    "773": "the password has to be changed first",
    "775": "the account is locked",
    "490": "the user name or the password is wrong",
    "80090346": "the server demands that the logon is bound to the TLS connection",
}


class BindMethod(Enum):
    """The way to log on."""

    #: GSS-SPNEGO if there is a user, else anonymous.
    AUTOMATIC = "automatic"
    #: Sends the password itself.
    SIMPLE = "simple"
    NEGOTIATE = "negotiate"
    NTLM = "ntlm"
    KERBEROS = "kerberos"
    #: No logon: a server shows its root entry and little more.
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class LdapLogin:
    """The user and the way to log on."""

    user: str = ""
    password: str | None = field(default=None, repr=False)
    method: BindMethod = BindMethod.AUTOMATIC
    protection: LdapProtection = LdapProtection.SEAL
    ccache: str | None = None
    keytab: str | None = None
    #: The server acts as the caller whose ticket this is; nothing else counts then.
    ticket: CallerTicket | None = None

    @property
    def chosen(self) -> BindMethod:
        """The method, with the one that AUTOMATIC stands for; that is never a simple bind."""
        if self.method is not BindMethod.AUTOMATIC:
            return self.method
        if not self.user and self.ccache is None and self.keytab is None:
            return BindMethod.ANONYMOUS
        return BindMethod.NEGOTIATE


async def bind(
    connection: LdapConnection, login: LdapLogin, host: str, *, timeout_s: float
) -> None:
    """Logs on; ``host`` is the name of the server that Kerberos and NTLM name as their target."""
    method = login.chosen
    if method is BindMethod.ANONYMOUS:
        return
    try:
        if method is BindMethod.SIMPLE:
            await _bind_simple(connection, login, timeout_s)
        else:
            await _bind_spnego(connection, login, method, host, timeout_s)
    except AuthenticationError as error:
        raise LdapError(f"{connection.where}: {login.user}: {error}") from error
    except LdapRefused as error:
        told = _reason(connection, login, error) + _advice(connection, method, error)
        raise LdapError(told) from error


async def _bind_simple(connection: LdapConnection, login: LdapLogin, timeout_s: float) -> None:
    if not connection.is_encrypted:
        raise AuthenticationError(
            "a simple bind without TLS would show the password to everyone on the network; use "
            "ldaps:// or StartTLS"
        )
    if not login.password:
        # RFC 4513 5.1.2: the server would answer success without having checked anything.
        raise AuthenticationError("the password is empty")
    request = SimpleBind(login.user, login.password.encode())
    answer = await _ask(connection, request, timeout_s)
    _check(connection, login, answer)


async def _bind_spnego(
    connection: LdapConnection,
    login: LdapLogin,
    method: BindMethod,
    host: str,
    timeout_s: float,
) -> None:
    if _is_distinguished_name(login.user):
        raise AuthenticationError(
            "Kerberos and NTLM know no distinguished names; write NAME@DOMAIN or DOMAIN\\NAME"
        )
    # Loading them takes longer than most logons, and an anonymous connection needs neither.
    from mqis.runtime.ldap.settings import channel_binding  # noqa: PLC0415
    from mqis.runtime.ldap.spnego import (  # noqa: PLC0415
        SpnegoExchange,
        SpnegoMechanism,
        SpnegoUser,
    )

    certificate = connection.peer_certificate
    exchange = await asyncio.to_thread(
        SpnegoExchange,
        SpnegoUser(login.user, login.password, login.ccache, login.keytab, login.ticket),
        host,
        protection=LdapProtection.NONE if certificate else login.protection,
        mechanism=SpnegoMechanism(method.value),
        binding=channel_binding(certificate) if certificate else None,
    )
    token = await asyncio.to_thread(exchange.step, None)
    for _ in range(_MOST_STEPS):
        answer = await _ask(connection, SaslBind(_MECHANISM, token), timeout_s)
        code = answer.result.code
        if code not in (ResultCode.SUCCESS, ResultCode.SASL_BIND_IN_PROGRESS):
            _check(connection, login, answer)
        if answer.token and not exchange.complete:
            token = await asyncio.to_thread(exchange.step, answer.token)
        if code == ResultCode.SUCCESS:
            layer = exchange.layer()
            if layer is not None:
                connection.protect(layer)
            return
    raise AuthenticationError("the server does not come to an end of the logon")


def _reason(connection: LdapConnection, login: LdapLogin, error: LdapRefused) -> str:
    """The refusal in words: Active Directory says why with a number in its message."""
    if error.code != ResultCode.INVALID_CREDENTIALS:
        return str(error)
    _, _, tail = error.result.diagnostic.partition("data ")
    reason = _LOGON_REASONS.get(tail.partition(",")[0].strip(), "the logon is refused")
    return f"{connection.where}: {login.user or 'the account'}: {reason} ({error.result})"


def _advice(connection: LdapConnection, method: BindMethod, error: LdapRefused) -> str:
    """What to do about a server that refuses the way to log on; the caller decides, nobody else."""
    if error.code == ResultCode.STRONGER_AUTH_REQUIRED and not connection.is_encrypted:
        return "; use ldaps:// or StartTLS"
    if method is BindMethod.SIMPLE:
        return ""
    if error.code == ResultCode.AUTH_METHOD_NOT_SUPPORTED:
        return f"; the server knows neither Kerberos nor NTLM: {_ALLOW_SIMPLE}"
    if error.code == ResultCode.STRONGER_AUTH_REQUIRED:
        # Samba up to 4.20, unless smb.conf has: ldap server require strong auth =
        # allow_sasl_over_tls
        return (
            "; the server refuses Kerberos and NTLM inside TLS: use ldap://, where they encrypt "
            f"what follows; or {_ALLOW_SIMPLE}"
        )
    return ""


def _is_distinguished_name(user: str) -> bool:
    return "=" in user and "@" not in user and "\\" not in user


async def _ask(
    connection: LdapConnection, request: SimpleBind | SaslBind, timeout_s: float
) -> BindResponse:
    message = await connection.request(request, timeout_s=timeout_s)
    if not isinstance(message.operation, BindResponse):  # the machine has checked that
        raise LdapViolation(f"{connection.where}: a bind is answered by something else")
    return message.operation


def _check(connection: LdapConnection, login: LdapLogin, answer: BindResponse) -> None:
    if answer.result.code != ResultCode.SUCCESS:
        raise LdapRefused(f"{connection.where}: logon of {login.user}", answer.result)
