"""Authentication of outgoing calls and admission of incoming ones (2.1.3, 3.2.1.1)."""

from __future__ import annotations

from enum import Enum

from mqis.protocol.authentication import AuthLevel, Identity, has_name


class SecurityLevel(Enum):
    """Security Level, set once by the level above."""

    MUTUAL = "mutual"
    INCOMING = "incoming"
    NONE = "none"


def attempts(level: SecurityLevel, *, credentials: bool) -> tuple[bool, ...]:
    """The attempts at a call, until one succeeds: True for each that is authenticated.

    Without credentials, there is no authenticated attempt.
    """
    if level is SecurityLevel.MUTUAL:
        return (True,)
    return (True, False) if credentials else (False,)


def admits(
    level: SecurityLevel, auth_level: int, identity: Identity | None, *, initiated_here: bool
) -> bool:
    """Returns whether an incoming call is admitted.

    Authenticated means at packet privacy. With incoming authentication, calls of a session that
    this side asked for may be anonymous, because its own request may have been anonymous too.
    """
    if level is SecurityLevel.NONE:
        return True
    if has_name(identity) and auth_level == AuthLevel.PRIVACY:
        return True
    return level is SecurityLevel.INCOMING and initiated_here


def is_machine(identity: Identity | None, host_name: str) -> bool:
    """Returns whether a caller is the machine account of the host that it names (MS-DTCO 5.1)."""
    return has_name(identity) and identity.name.upper() == f"{host_name.upper()}$"


def principal(host_name: str, identity: Identity | None) -> str:
    """The principal to expect: the machine that called, else the host by name (3.3.4.2.1)."""
    if has_name(identity) and identity.name.endswith("$"):
        host_name = identity.name[:-1]
    return f"host/{host_name}"
