"""Checks of configuration values: each returns the value from TOML, or raises ValueError."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mqis.config.stores import directory_urls, relative_to
from mqis.places import PlaceError, parse_place
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.security.sid import Sid

E = TypeVar("E", bound=Enum)
T = TypeVar("T")

Check = Callable[[object], Any]

_DESCRIPTIONS: dict[Check, str] = {}


def accepts(description: str) -> Callable[[Callable[[object], T]], Callable[[object], T]]:
    """Describes the values that a check accepts, for the documentation."""

    def register(check: Callable[[object], T]) -> Callable[[object], T]:
        _DESCRIPTIONS[check] = description
        return check

    return register


def accepted_by(check: Check) -> str:
    """Returns the description of the values that a check accepts."""
    return _DESCRIPTIONS[check]


def about(check: Check, explanation: str, *, live: bool = False) -> dict[str, Any]:
    """The metadata of a key: its check, its comment, and whether SIGHUP rereads it (``live``)."""
    return {"check": check, "explanation": explanation, "live": live}


@accepts("text")
def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text in quotes, not {value!r}")
    return value


@accepts("a directory or a URI")
def as_place(value: object) -> str:
    """Checks a path or URI; its error never repeats a credential."""
    if not isinstance(value, str):
        raise ValueError("must be text in quotes")
    try:
        if value:
            parse_place(value)
    except PlaceError as error:
        raise ValueError(str(error)) from None
    return value


def one_of(kind: type[E]) -> Callable[[object], E]:
    """Returns a check for the value of a member of ``kind``."""
    members = {str(member.value): member for member in kind}

    @accepts(", ".join(members))
    def check(value: object) -> E:
        if not isinstance(value, str) or value not in members:
            raise ValueError(f"{value!r} is not one of {', '.join(members)}")
        return members[value]

    return check


@accepts("true or false")
def as_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {value!r}")
    return value


def between(least: int, most: int) -> Callable[[object], int]:
    @accepts(f"number from {least} to {most}")
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a number from {least} to {most}, not {value!r}")
        return value

    return check


as_port = between(0, 65_535)


@accepts("IP address")
def as_address(value: object) -> str:
    text = as_text(value)
    try:
        ip_address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address") from None
    return text


@accepts("IP address")
def as_ipv4(value: object) -> str:
    text = as_address(value)
    if ":" in text:
        raise ValueError(
            f"{text!r} is not an IPv4 address; discovery needs one, as IPv6 has no broadcast"
        )
    return text


@accepts('`["...", ...]`')
def as_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f'must be a list, ["...", ...], not {value!r}')
    return tuple(as_text(item) for item in value)


@accepts('`["http://HOST:PORT", ...]`')
def as_monitors(value: object) -> tuple[str, ...]:
    """Monitoring endpoints; a mistake is better found here than by a peer that never answers."""
    entries = as_texts(value)
    for entry in entries:
        parts = urlsplit(entry)  # raises ValueError for brackets that do not match
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f'must be "http://HOST:PORT", not {entry!r}')
        _ = parts.port  # raises ValueError for a port that is none
    return entries


@accepts('`["DOMAIN SERVER ...", ...]`')
def as_catalogs(value: object) -> tuple[str, ...]:
    """Domains, each with the global catalog servers that clients are told of."""
    entries = as_texts(value)
    for entry in entries:
        words = entry.split()
        if len(words) < 2:
            raise ValueError(f'must be "DOMAIN SERVER ...", not {entry!r}')
        for name in words[1:]:
            ServerSpec(name)  # raises ValueError for a name that the list cannot hold
    return entries


@accepts('`["S-1-...", ...]`')
def as_sids(value: object) -> tuple[Sid, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f'must be a list, ["S-1-...", ...], not {value!r}')
    return tuple(Sid.parse(as_text(item)) for item in value)


@accepts("text")
def as_store_url(value: object) -> str:
    url = as_text(value)
    relative_to(url, Path())  # raises ValueError unless it is the URL of a store
    directory_urls(url)
    return url


@accepts("IP address")
def as_optional_address(value: object) -> str:
    """Checks an IP address that may be empty."""
    return "" if value == "" else as_address(value)


@accepts("GUID")
def as_optional_guid(value: object) -> Guid | None:
    """Checks a GUID that may be empty."""
    text = as_text(value)
    if not text:
        return None
    try:
        return Guid.parse(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a GUID") from None


def as_host(value: object) -> tuple[str, int | None]:
    """Parses ``ADDRESS``, ``ADDRESS:PORT`` or ``[IPV6]:PORT``; host names are allowed too."""
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
