"""The port behind which security providers authenticate callers and protect their calls.

A security context is built leg by leg (MS-RPCE 3.3.1.5.2.1), then protects the PDUs of one
connection in order (3.3.1.5.2.2). What a signature covers depends on provider and level:

level      NTLM with extended session security   Kerberos                         encrypted
2          nothing                               nothing                          nothing
3, 4, 5    header, body, trailer                 body; all if headers are signed  nothing
6          header, body, trailer                 body; all if headers are signed  body

Levels 3 and 4 are signed as 5 is, which the table of 3.3.1.5.2.2 does not ask for and peers do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Protocol, TypeGuard

from mqis.protocol.errors import ProtocolError
from mqis.protocol.security.access import Token
from mqis.wire.security import sid as well_known
from mqis.wire.security.sid import Sid


class AuthType(IntEnum):
    """auth_type (MS-RPCE 2.2.1.1.7). A number that is not listed stays a plain number."""

    NONE = 0x00
    SPNEGO = 0x09
    NTLM = 0x0A
    TLS = 0x0E
    KERBEROS = 0x10
    NETLOGON = 0x44
    MSMQ = 0x64


class AuthLevel(IntEnum):
    """auth_level (MS-RPCE 2.2.1.1.8)."""

    DEFAULT = 0
    NONE = 1
    CONNECT = 2
    CALL = 3
    PACKET = 4
    INTEGRITY = 5
    PRIVACY = 6


def auth_type_name(auth_type: int) -> str:
    """The name of an authentication type for messages to people; its number if it is unknown."""
    known = auth_type in list(AuthType)
    return AuthType(auth_type).name if known else f"authentication type {auth_type:#04x}"


class AuthenticationError(ProtocolError):
    """The peer did not prove who it is, or what arrived is not what was sent."""


class LogonEnd(Enum):
    """The reasons for which a logon that succeeded is no longer valid."""

    #: The account is gone, or has another password or SID than at the logon.
    REVOKED = "revoked"
    #: The logon, or the ticket that it was made with, is too old.
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller, as an acceptor recognised it."""

    domain: str
    name: str
    #: None: Kerberos proved the identity, but no account of this server gives it a SID.
    sid: Sid | None = None
    groups: frozenset[Sid] = frozenset()
    anonymous: bool = False

    def __str__(self) -> str:
        if self.anonymous:
            return "anonymous"
        return f"{self.domain}\\{self.name}" if self.domain else self.name


@dataclass(frozen=True, slots=True)
class Addresses:
    """The two ends of the connection that a logon comes over, without ports; '' if unknown."""

    peer: str = ""
    local: str = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CallerTicket:
    """A Kerberos ticket with which this server may act as its caller; each logon has its own."""

    #: The caller, as the ticket names it.
    principal: str
    #: Returns the provider's credentials; may ask the KDC, so it is called outside the event loop.
    credentials: Callable[[], Any] = field(repr=False)


#: A context that belongs to no connection.
NOWHERE = Addresses()

ANONYMOUS = Identity("", "", well_known.ANONYMOUS, anonymous=True)


def has_name(identity: Identity | None) -> TypeGuard[Identity]:
    """Returns whether a caller has proved a name; everybody else is a stranger.

    A stranger did not log on, logged on below the minimum level (and has no identity then), or
    logged on as nobody, which NTLM allows. No other code asks whether an identity is there:
    ``protocol.budget.Caller`` has the answer for what callers may hold.
    """
    return identity is not None and not identity.anonymous


def name_of(identity: Identity | None) -> str:
    """The caller for logs and journals."""
    return str(identity) if has_name(identity) else str(ANONYMOUS)


def token_for(identity: Identity | None, *, anonymous_in_everyone: bool = False) -> Token:
    """The access token of a caller; a stranger is anonymous.

    The groups of every authenticated user (Everyone, Authenticated Users, Network) are added here;
    no accounts file lists them.
    """
    if not has_name(identity):
        return Token.anonymous(in_everyone=anonymous_in_everyone)
    if identity.sid is not None:
        return Token.authenticated(identity.sid, identity.groups)
    implied = (well_known.EVERYONE, well_known.AUTHENTICATED_USERS, well_known.NETWORK)
    return Token(None, frozenset((*identity.groups, *implied)))


class SecurityContext(Protocol):
    """One side of a security context. It protects the messages of one connection, in order.

    An error is final: a context that raised ``AuthenticationError`` refuses everything after it.
    """

    @property
    def complete(self) -> bool:
        """True once the peer has proven what the level requires, so that calls may be made."""

    @property
    def identity(self) -> Identity | None:
        """The caller: an acceptor knows it once the context is complete, an initiator never.

        Its groups are those of now, not those of the logon; None once the logon has ended.
        """

    @property
    def ended(self) -> LogonEnd | None:
        """The reason that the peer has to log on again; None while its logon is valid."""

    @property
    def ticket(self) -> CallerTicket | None:
        """What this server may act as the caller with; None without one, or after the logon."""

    def step(self, token: bytes | None) -> bytes | None:
        """Takes the peer's token (None at the start); returns the next one to send, if any."""

    def signature_size(self, level: int) -> int:
        """The length of the signatures that ``protect`` makes: 0 at level connect."""

    def protect(
        self, level: int, header: bytes, body: bytes, trailer: bytes, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """The body to send, encrypted at level privacy, and the signature.

        The three parts precede the token on the wire, in that order; they are passed unencrypted.
        """

    def unprotect(  # noqa: PLR0917
        self,
        level: int,
        header: bytes,
        body: bytes,
        trailer: bytes,
        signature: bytes,
        sign_header: bool,
    ) -> bytes:
        """The decrypted body; raises unless the signature is that of the peer's next message."""


class Authenticator(Protocol):
    """Creates the server's side of security contexts."""

    def acceptor(
        self, auth_type: int, level: int, addresses: Addresses = NOWHERE
    ) -> SecurityContext:
        """A context for a new caller; raises ``AuthenticationError`` if there can be none."""


class Initiator(Protocol):
    """Creates the client's side of security contexts, from credentials that it holds."""

    def initiator(self, auth_type: int, level: int, target: str) -> SecurityContext:
        """A context towards ``target``, a host name or a service principal name (service/host)."""
