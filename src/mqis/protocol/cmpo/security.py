"""Which calls are authenticated and which are let in (2.1.3, 3.2.1.1)."""

from __future__ import annotations

from enum import Enum

from mqis.protocol.authentication import AuthLevel, Identity


class SecurityLevel(Enum):
    """Security Level, given by the level above and never changed."""

    MUTUAL = "mutual"
    INCOMING = "incoming"
    NONE = "none"


def attempts(level: SecurityLevel, *, credentials: bool) -> tuple[bool, ...]:
    """Whether to authenticate a call, one attempt after the other until one gets through.

    Without credentials there is nothing to try first.
    """
    if level is SecurityLevel.MUTUAL:
        return (True,)
    return (True, False) if credentials else (False,)


def admits(
    level: SecurityLevel, auth_level: int, identity: Identity | None, *, initiated_here: bool
) -> bool:
    """Whether a call may come in.

    Authenticated means at packet privacy. With incoming authentication, calls that belong to a
    session that this side asked for may come without: it may have had to ask without, too.
    """
    if level is SecurityLevel.NONE:
        return True
    known = identity is not None and not identity.anonymous
    if known and auth_level == AuthLevel.PRIVACY:
        return True
    return level is SecurityLevel.INCOMING and initiated_here


def is_machine(identity: Identity | None, host_name: str) -> bool:
    """Whether a caller is the account of the host that it says it is on (MS-DTCO 5.1)."""
    return identity is not None and identity.name.upper() == f"{host_name.upper()}$"


def principal(host_name: str, identity: Identity | None) -> str:
    """Whom to expect at the other end: who called, if a machine did, else the host (3.3.4.2.1)."""
    if identity is not None and identity.name.endswith("$"):
        host_name = identity.name[:-1]
    return f"host/{host_name}"
