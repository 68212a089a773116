"""The configuration: one TOML file, every key checked and explained.

Reading, checking and the file that ``mqis init`` writes all follow from ``sections.Config``, so a
new section is a dataclass there and one line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from shlex import quote
from textwrap import wrap
from typing import Any

from mqis.config.errors import ConfigError
from mqis.config.nodes import supervised_place
from mqis.config.sections import Config, HostsSection
from mqis.config.stores import holds_password, relative_to
from mqis.files import is_open_to_others, system_reason, write_whole
from mqis.places import holds_credential, parse_place
from mqis.texts import meant

#: The configuration file that commands read by default.
DEFAULT_NAME = "mqis.toml"


#: Keys that name a file, relative to the directory of the configuration.
_FILES = (
    ("security", "accounts"),
    ("security", "keytab"),
    ("store", "password_file"),
    ("store", "keytab"),
    ("store", "ca_file"),
    ("replication", "key"),
    ("replication", "journal"),
)


def load(path: Path) -> Config:
    """Reads a configuration and makes the paths in it absolute."""
    return relative(read(path), path)


def read(path: Path) -> Config:
    """Reads and checks a configuration; paths in it stay as written."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = system_reason(error)
        way = f"; {_way_back(path)}" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{path}: cannot be read: {reason}{way}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this file is not valid TOML: {error}") from error
    config = parse(content, str(path))
    if holds_password(config.store.url) and is_open_to_others(path):
        raise ConfigError(
            f"{path}: store.url: it holds a password, and other users may read this file; "
            f"run: chmod 600 {path}, or leave the password out of the URL and put it into ~/.pgpass"
        )
    if holds_credential(config.replication.archive) and is_open_to_others(path):
        raise ConfigError(
            f"{path}: replication.archive: it holds a credential, and other users may read this "
            f"file; run: chmod 600 {path}, or put the credential into the server's environment"
        )
    return config


def _way_back(path: Path) -> str:
    """'mqis init' would found a second enterprise where a server of a run directory was lost."""
    if (found := supervised_place(path)) is not None:
        run, place = found
        return (
            f"it is that of {place.name}, a server of 'mqis up': 'mqis doctor --run "
            f"{quote(str(run))}' names the ways back"
        )
    return "'mqis init' writes one"


def relative(config: Config, path: Path) -> Config:
    """Returns ``config`` with its file names resolved against the directory of ``path``."""
    directory = path.absolute().parent
    url = relative_to(config.store.url, directory)
    config = replace(config, store=replace(config.store, url=url))
    for section, key in _FILES:
        file_name = getattr(getattr(config, section), key)
        if file_name:
            config = _with(config, section, **{key: str(directory / file_name)})
    archive = config.replication.archive
    if archive and isinstance(place := parse_place(archive), Path):
        config = _with(config, "replication", archive=str(directory / place))
    return config


def parse(content: dict[str, Any], source: str = DEFAULT_NAME) -> Config:
    """Checks parsed TOML and returns the configuration; ``source`` names the file in errors."""
    sections = {section.name: type(section.default) for section in fields(Config)}
    refuse_unknown(content, list(sections), source, "")
    return Config(
        **{name: _section(sections[name], name, value, source) for name, value in content.items()}
    )


def override(config: Config, values: Mapping[str, Mapping[str, object]], source: str) -> Config:
    """Returns ``config`` with some keys replaced; they are checked as those of a file."""
    for name, content in values.items():
        kind = type(getattr(config, name))
        checked = _section(kind, name, dict(content), source)
        given = ("entries",) if kind is HostsSection else tuple(content)
        config = _with(config, name, **{key: getattr(checked, key) for key in given})
    return config


def _with(config: Config, section: str, **values: Any) -> Config:
    changed: dict[str, Any] = {section: replace(getattr(config, section), **values)}
    return replace(config, **changed)


@dataclass(frozen=True, slots=True)
class Reread:
    """The result of rereading the configuration of a running server."""

    config: Config
    #: Keys that changed and take effect now.
    applied: list[str]
    #: Keys that changed and take effect after a restart.
    waiting: list[str]


def reread(running: Config, new: Config) -> Reread:
    """Applies the live keys of ``new`` to ``running``."""
    applied: list[str] = []
    waiting: list[str] = []
    for section in fields(Config):
        before, after = getattr(running, section.name), getattr(new, section.name)
        for key in fields(before):
            if getattr(before, key.name) == getattr(after, key.name):
                continue
            name = f"{section.name}.{key.name}"
            if isinstance(before, HostsSection):
                name = section.name
            if key.metadata["live"]:
                applied.append(name)
                running = _with(running, section.name, **{key.name: getattr(after, key.name)})
            else:
                waiting.append(name)
    return Reread(running, applied, waiting)


def _section(kind: type[Any], name: str, content: object, source: str) -> Any:
    if not isinstance(content, dict):
        raise ConfigError(f"{source}: {name}: this is a section; write [{name}]")
    if kind is HostsSection:  # its keys are names of machines
        content = {"entries": content}
    keys = {key.name: key for key in fields(kind)}
    refuse_unknown(content, list(keys), source, f"{name}.")
    values = {}
    for key, value in content.items():
        try:
            values[key] = keys[key].metadata["check"](value)
        except ValueError as error:
            where = name if kind is HostsSection else f"{name}.{key}"
            raise ConfigError(f"{source}: {where}: {error}") from None
    return kind(**values)


def refuse_unknown(content: dict[str, Any], known: list[str], source: str, prefix: str) -> None:
    """Raises ``ConfigError`` for a key that is not known, with the nearest that is."""
    for key in content:
        if key not in known:
            hint = meant(key, known, prefix)
            raise ConfigError(f"{source}: {prefix}{key}: no such key; {hint}")


# --- the file that 'mqis init' writes -------------------------------------------------------------


def write_config(path: Path, config: Config) -> None:
    """Writes a configuration whole: an interrupted command leaves the old file."""
    try:
        write_whole(path, default_toml(config))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {system_reason(error)}") from error


def default_toml(config: Config | None = None) -> str:
    """The text of a commented file with the values of ``config``, or the defaults."""
    config = Config() if config is None else config
    lines = ["# mqis: the configuration of this directory server."]
    lines.append("# 'mqis serve' rereads the keys marked [live] when it gets SIGHUP.")
    for section in fields(Config):
        value = getattr(config, section.name)
        lines += ["", f"# {type(value).__doc__}", f"[{section.name}]"]
        if isinstance(value, HostsSection):
            lines.append(f"# [live] {fields(value)[0].metadata['explanation']}")
            lines += [f"{as_toml(name)} = {as_toml(host)}" for name, host in value.entries]
            continue
        for key in fields(value):
            mark = "[live] " if key.metadata["live"] else ""
            lines += wrap(
                mark + key.metadata["explanation"],
                90,
                initial_indent="# ",
                break_on_hyphens=False,
                subsequent_indent="# ",
            )
            lines.append(f"{key.name} = {as_toml(getattr(value, key.name))}")
    return "\n".join(lines) + "\n"


def as_toml(value: object) -> str:
    """A value in the syntax of TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        value = ""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
