"""The configuration: one TOML file, every key checked and explained.

A section is a frozen dataclass whose fields carry ``about``; ``Config`` lists the sections.
Reading, checking and the file that ``mqis init`` writes all follow from these, so a new section is
a dataclass and one line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Any

from mqis.services.stores import relative_to
from mqis.wire.errors import MqisError

#: Where commands look when they are not told.
DEFAULT_NAME = "mqis.toml"


class ConfigError(MqisError):
    """A configuration cannot be used: which file, which key, why."""


class Role(StrEnum):
    """What a server is in the enterprise (MC-MQDSRP 1.3.1)."""

    PEC = "pec"
    PSC = "psc"
    BSC = "bsc"
    NONE = "none"


Check = Callable[[object], Any]


def about(check: Check, explanation: str) -> dict[str, Any]:
    """What a key may be, and the comment that stands above it."""
    return {"check": check, "explanation": explanation}


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"wants text in quotes, got {value!r}")
    return value


def as_role(value: object) -> Role:
    if value not in list(Role):
        raise ValueError(f"{value!r} is none of {', '.join(Role)}")
    return Role(str(value))


def as_store_url(value: object) -> str:
    url = as_text(value)
    relative_to(url, Path())  # refuses what no store answers to
    return url


@dataclass(frozen=True, slots=True)
class ServerSection:
    """This server's own place in the enterprise."""

    name: str = field(
        default="", metadata=about(as_text, "The name of this computer in the directory.")
    )
    role: Role = field(
        default=Role.NONE,
        metadata=about(
            as_role,
            "pec: the primary enterprise controller, authority of the enterprise partition; psc: "
            "the primary site controller, authority of its site; bsc: a backup that replicates "
            "from them; none: a directory on its own.",
        ),
    )
    site: str = field(
        default="", metadata=about(as_text, "The name of the site that this server stands in.")
    )


@dataclass(frozen=True, slots=True)
class StoreSection:
    """Where the directory is kept."""

    url: str = field(
        default="sqlite:mqis.db",
        metadata=about(
            as_store_url,
            "sqlite:PATH is one file, relative to this one; postgresql://user@host/database is a "
            "database; memory: forgets everything at the end.",
        ),
    )


@dataclass(frozen=True, slots=True)
class EnterpriseSection:
    """The enterprise that this server belongs to."""

    name: str = field(default="", metadata=about(as_text, "Its name, the same on every server."))


@dataclass(frozen=True, slots=True)
class Config:
    """All sections. A file may leave out any section and any key."""

    server: ServerSection = ServerSection()
    store: StoreSection = StoreSection()
    enterprise: EnterpriseSection = EnterpriseSection()


def load(path: Path) -> Config:
    """The configuration in a file, its store's path made independent of where we stand."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{path}: cannot be read: {reason}; 'mqis init' writes one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    config = parse(content, str(path))
    url = relative_to(config.store.url, path.absolute().parent)
    return replace(config, store=replace(config.store, url=url))


def parse(content: dict[str, Any], source: str = DEFAULT_NAME) -> Config:
    """The configuration that parsed TOML stands for; ``source`` names the file in errors."""
    sections = {section.name: type(section.default) for section in fields(Config)}
    _refuse_unknown(content, list(sections), source, "")
    return Config(
        **{name: _section(sections[name], name, value, source) for name, value in content.items()}
    )


def _section(kind: type[Any], name: str, content: object, source: str) -> Any:
    if not isinstance(content, dict):
        raise ConfigError(f"{source}: {name}: is a section, write [{name}]")
    keys = {key.name: key for key in fields(kind)}
    _refuse_unknown(content, list(keys), source, f"{name}.")
    values = {}
    for key, value in content.items():
        try:
            values[key] = keys[key].metadata["check"](value)
        except ValueError as error:
            raise ConfigError(f"{source}: {name}.{key}: {error}") from None
    return kind(**values)


def _refuse_unknown(content: dict[str, Any], known: list[str], source: str, prefix: str) -> None:
    for key in content:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"{source}: {prefix}{key}: no such key; {hint}")


# --- the file that 'mqis init' writes -------------------------------------------------------------


def default_toml(config: Config | None = None) -> str:
    """A commented file that ``load`` reads back as ``config``, by default the defaults."""
    config = Config() if config is None else config
    lines = ["# mqis: what this server is and where it keeps its directory."]
    for section in fields(Config):
        value = getattr(config, section.name)
        lines += ["", f"# {type(value).__doc__}", f"[{section.name}]"]
        for key in fields(value):
            lines += wrap(
                key.metadata["explanation"],
                90,
                initial_indent="# ",
                break_on_hyphens=False,
                subsequent_indent="# ",
            )
            lines.append(f"{key.name} = {_toml(getattr(value, key.name))}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
