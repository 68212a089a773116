"""Opens the store that a URL names.

    sqlite:PATH, or just PATH     one file
    postgresql://...              a database
    memory:                       nothing is kept
    ldaps://..., ldap://...       an Active Directory, which only 'mqis serve' opens; several
                                  domain controllers are separated by blanks

A command that reads changes nothing: it neither makes a store nor upgrades one. Each kind is
imported when it is used, so that the PostgreSQL driver is needed for PostgreSQL only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from mqis.config.errors import ConfigError
from mqis.extras import POSTGRES
from mqis.wire.errors import MqisError

if TYPE_CHECKING:  # slow, and many commands name a store without opening it
    from mqis.protocol.ldap.urls import LdapUrl
    from mqis.protocol.ports import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_POSTGRES = ("postgresql", "postgres")
_LDAP = ("ldap", "ldaps")
#: Parameters of a PostgreSQL URL that hold a secret.
_SECRET_PARAMETERS = ("password", "sslpassword")
#: Find a secret in a PostgreSQL URL anywhere in a text.
_SECRETS = (
    re.compile(r"(postgres(?:ql)?://[^:/@\s\"']*):[^@\s\"']*(?=@)"),
    re.compile(r"([?&](?:ssl)?password)=[^&\s\"']*"),
)


def open_store(
    url: str, *, create: bool = False, claim: bool = False, timeout_s: float | None = None
) -> Store:
    """Opens the store at ``url``, for reading only unless ``create`` or ``claim`` is given.

    ``create`` makes a missing store; without it, a missing one is an error, and an empty or foreign
    file too. ``claim`` upgrades a store of an earlier version. ``timeout_s`` is for databases, see
    ``PostgresStore``; ``claims`` claims every kind of store.
    """
    kind, rest = _split(url)
    read_only = not (create or claim)
    if kind == "sqlite":
        from mqis.storage.sqlite import SqliteStore  # noqa: PLC0415

        return SqliteStore(Path(rest), create=create, read_only=read_only)
    if kind == "memory":
        from mqis.storage.memory_store import MemoryStore  # noqa: PLC0415

        return MemoryStore()
    if kind in _LDAP:
        from mqis.protocol.ldap.urls import without_account  # noqa: PLC0415

        raise ConfigError(
            f"{without_account(url)} is an Active Directory, which this command does not read; ask "
            "the server that serves it, or copy it first: mqis import URL --store FILE"
        )
    POSTGRES.require("a store in PostgreSQL")
    from mqis.storage.postgres import PostgresStore  # noqa: PLC0415

    return PostgresStore(url, create=create, read_only=read_only, claim=claim, timeout_s=timeout_s)


def relative_to(url: str, directory: Path) -> str:
    """Resolves a file's path in ``url`` against ``directory``; ValueError if it names no store."""
    kind, rest = _split(url)
    return f"sqlite:{directory / rest}" if kind == "sqlite" else url


def directory_urls(url: str) -> tuple[LdapUrl, ...]:
    """The domain controllers of an Active Directory; none if the store is of another kind."""
    if _split(url)[0] not in _LDAP:
        return ()
    from mqis.protocol.ldap.urls import (  # noqa: PLC0415
        ACCOUNT_PLACE,
        LdapUrl,
        holds_account,
        without_account,
    )

    try:
        return tuple(LdapUrl.parse(word) for word in url.split())
    except MqisError as error:
        if holds_account(url):  # also of a password with a space in it
            raise ConfigError(f"{without_account(url)}: {ACCOUNT_PLACE}") from None
        raise ConfigError(str(error)) from error


def file_of(url: str) -> Path | None:
    """The file that holds the store; None if it is not a file."""
    kind, rest = _split(url)
    return Path(rest) if kind == "sqlite" else None


def holds_password(url: str) -> bool:
    """True if a store's URL holds a password."""
    if _split(url)[0] not in _POSTGRES:
        return False
    try:
        parts = urlsplit(url)
        names = [name for name, _ in parse_qsl(parts.query)]  # libpq decodes %70assword as well
        return bool(parts.password) or any(name in _SECRET_PARAMETERS for name in names)
    except ValueError:  # libpq may understand what urlsplit does not
        return "password" in url or "@" in url


def without_passwords(text: str) -> str:
    """Removes the passwords of PostgreSQL URLs from ``text``."""
    for secret in _SECRETS:
        text = secret.sub(r"\1", text)
    return text


def _split(url: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(url)
    kind, rest = match.groups() if match else ("sqlite", url)
    if kind == "memory" and not rest:
        return kind, rest
    if kind in (*_POSTGRES, *_LDAP) and rest.startswith("//"):
        return kind, rest
    if kind == "sqlite" and rest:
        return kind, rest
    shown = re.sub(r"//[^/]*@", "//...@", url)  # there may be a password in it
    raise ConfigError(
        f"{shown!r} names no store: write sqlite:PATH, postgresql://..., ldaps://..., or memory:"
    )
