"""Writes into an enterprise file what commands have changed; comments and order stay."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import tomlkit
from tomlkit.items import AoT, Table

from mqis.config.file import ConfigError
from mqis.enterprise.difference import Drift, PlanDifference
from mqis.enterprise.kept import as_toml
from mqis.enterprise.plan import EntryKind, link_key, parse_plan
from mqis.files import write_whole
from mqis.protocol.directory.objects import name_key


def adopt(path: Path, difference: PlanDifference, *, write: bool = True) -> list[str]:
    """Changes the file; returns what was written, one line each, or what ``write`` would.

    Raises ``ConfigError`` and writes nothing if the result would be no plan.
    """
    document = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    told = [_take(document, drift) for drift in difference.drift if drift.adoptable]
    deleted = (step for step in difference.steps if step.deleted)
    told += (_drop(document, step.kind, step.entry.key, step.name) for step in deleted)
    if told:
        text = tomlkit.dumps(document)
        try:
            parse_plan(tomllib.loads(text), str(path))
        except ConfigError as error:
            raise ConfigError(
                f"{error}; so this cannot be adopted, and nothing was written: {'; '.join(told)}"
            ) from None
        if write:
            write_whole(path, text, mode=path.stat().st_mode & 0o777)
    return told


def _take(document: tomlkit.TOMLDocument, drift: Drift) -> str:
    if drift.entry is None:
        table = tomlkit.table()
        names = drift.name.split(" - ")
        table.update({"sites": names} if drift.kind is EntryKind.LINK else {"name": drift.name})
        table.update({key: as_toml(v) for key, v in drift.now.items() if v not in ("", None)})
        entries = document.setdefault(drift.kind.value, tomlkit.aot())
        entries.append(table)
        return f"{drift.kind} {drift.name}: added"
    for table in _tables(document, drift.kind):
        if _key_of(drift.kind, table) == drift.entry.key:
            table.update({key: as_toml(value) for key, value in drift.now.items()})
    values = ", ".join(f"{key} = {as_toml(value)}" for key, value in drift.now.items())
    return f"{drift.kind} {drift.name}: {values}"


def _drop(document: tomlkit.TOMLDocument, kind: EntryKind, key: str, name: str) -> str:
    entries = document[kind.value]
    assert isinstance(entries, AoT)
    for number, table in enumerate(entries):
        if _key_of(kind, table) == key:
            del entries[number]
            break
    return f"{kind} {name}: taken out"


def _tables(document: tomlkit.TOMLDocument, kind: EntryKind) -> Iterable[Table]:
    found = document.get(kind.value, ())
    return found if isinstance(found, AoT) else ()


def _key_of(kind: EntryKind, table: Table) -> str:
    if kind is EntryKind.LINK:
        return link_key(map(str, table["sites"]))
    return name_key(str(table["path" if kind is EntryKind.QUEUE else "name"]))
