"""What the keys of the configuration may be: each check takes what TOML gave, or says why not."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

from mqis.config.stores import relative_to
from mqis.wire.guid import Guid
from mqis.wire.security.sid import Sid

E = TypeVar("E", bound=Enum)

Check = Callable[[object], Any]


def about(check: Check, explanation: str, *, live: bool = False) -> dict[str, Any]:
    """What a key may be, and the comment above it; ``live``: SIGHUP makes a server reread it."""
    return {"check": check, "explanation": explanation, "live": live}


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"wants text in quotes, got {value!r}")
    return value


def one_of(kind: type[E]) -> Callable[[object], E]:
    """A member of ``kind`` by its value."""

    def check(value: object) -> E:
        members = {str(member.value): member for member in kind}
        if not isinstance(value, str) or value not in members:
            raise ValueError(f"{value!r} is none of {', '.join(members)}")
        return members[value]

    return check


def as_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"wants true or false, got {value!r}")
    return value


def between(least: int, most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"wants a number from {least} to {most}, got {value!r}")
        return value

    return check


as_port = between(0, 65_535)


def as_address(value: object) -> str:
    text = as_text(value)
    try:
        ip_address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address") from None
    return text


def as_ipv4(value: object) -> str:
    text = as_address(value)
    if ":" in text:
        raise ValueError(f"{text!r} is not an IPv4 address, and there is no broadcast over IPv6")
    return text


def as_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f'wants a list, ["...", ...], got {value!r}')
    return tuple(as_text(item) for item in value)


def as_sids(value: object) -> tuple[Sid, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f'wants a list, ["S-1-...", ...], got {value!r}')
    return tuple(Sid.parse(as_text(item)) for item in value)


def as_store_url(value: object) -> str:
    url = as_text(value)
    relative_to(url, Path())  # refuses what no store answers to
    return url


def as_optional_address(value: object) -> str:
    """An IP address, or nothing."""
    return "" if value == "" else as_address(value)


def as_optional_guid(value: object) -> Guid | None:
    """A GUID as text, or nothing."""
    text = as_text(value)
    if not text:
        return None
    try:
        return Guid.parse(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a GUID") from None


def as_host(value: object) -> tuple[str, int | None]:
    """``ADDRESS``, ``ADDRESS:PORT`` or ``[IPV6]:PORT``; names will do as well."""
    text = as_text(value)
    host, port = text, ""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or any(c.isspace() for c in host) or (port and not port.isdigit()):
        raise ValueError(f"{text!r} is not an address: write 10.0.0.2 or 10.0.0.2:1801")
    return host, as_port(int(port)) if port else None
