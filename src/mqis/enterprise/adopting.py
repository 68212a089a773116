"""Writes into an enterprise file what commands have changed; comments and order stay."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mqis.config.file import ConfigError
from mqis.enterprise.difference import Drift, PlanDifference
from mqis.enterprise.editing import PlanText
from mqis.enterprise.kept import as_toml
from mqis.enterprise.plan import EntryKind, check_plan, link_key
from mqis.files import write_whole
from mqis.protocol.directory.objects import name_key


def adopt(path: Path, difference: PlanDifference, *, write: bool = True) -> list[str]:
    """Changes the file; returns what was written, one line each, or what ``write`` would.

    Raises ``ConfigError`` and writes nothing if the result would be no plan.
    """
    document = PlanText(path.read_bytes().decode("utf-8"), str(path))
    told = [_take(document, drift) for drift in difference.drift if drift.adoptable]
    deleted = [step for step in difference.steps if step.deleted]
    for step in deleted:
        told += _drop(document, step.kind, step.entry.key)
    for step in deleted:
        if step.kind is EntryKind.SITE:
            told += _drop_servers(document, step.entry.key)
    if told:
        try:
            check_plan(tomllib.loads(document.text.removeprefix("\ufeff")), str(path))
        except ConfigError as error:
            raise ConfigError(
                f"{error}; so this cannot be adopted, and nothing was written: {'; '.join(told)}"
            ) from None
        if write:
            content = document.text.encode()
            write_whole(path, content, mode=path.stat().st_mode & 0o777)
    return told


def _take(document: PlanText, drift: Drift) -> str:
    kind = drift.kind.value
    if drift.entry is None:
        names = drift.name.split(" - ")
        first = {"sites": names} if drift.kind is EntryKind.LINK else {"name": drift.name}
        others = {key: as_toml(v) for key, v in drift.now.items() if v not in ("", None)}
        document.add(kind, first | others)
        return f"{kind} {drift.name}: added"
    for number, entry in enumerate(document.entries(kind)):
        if _key_of(drift.kind, entry) == drift.entry.key:
            document.update(kind, number, {k: as_toml(value) for k, value in drift.now.items()})
    values = ", ".join(f"{key} = {as_toml(value)}" for key, value in drift.now.items())
    return f"{kind} {drift.name}: {values}"


def _drop(document: PlanText, kind: EntryKind, key: str) -> Iterator[str]:
    for number, entry in enumerate(document.entries(kind.value)):
        if _key_in(document, kind, entry) == key:
            document.drop(kind.value, number)
            yield f"{kind} {_name_of(kind, entry)}: taken out"
            return


def _drop_servers(document: PlanText, site: str) -> Iterator[str]:
    """Takes out the servers of a deleted site, which keep running until they are removed."""
    servers = document.entries(EntryKind.SERVER.value)
    for key in [name_key(str(s["name"])) for s in servers if name_key(str(s["site"])) == site]:
        yield from _drop(document, EntryKind.SERVER, key)


def _name_of(kind: EntryKind, entry: Mapping[str, Any]) -> str:
    if kind is EntryKind.LINK:
        return " - ".join(map(str, entry["sites"]))
    return str(entry["path" if kind is EntryKind.QUEUE else "name"])


def _key_of(kind: EntryKind, entry: Mapping[str, Any]) -> str:
    if kind is EntryKind.LINK:
        return link_key(map(str, entry["sites"]))
    return name_key(_name_of(kind, entry))


def _key_in(document: PlanText, kind: EntryKind, entry: Mapping[str, Any]) -> str:
    """The key of an entry; that of an account has its domain, usually the enterprise's name."""
    if kind is not EntryKind.ACCOUNT:
        return _key_of(kind, entry)
    domain = entry.get("domain") or str(document.table("enterprise")["name"]).upper()
    return name_key(f"{domain}\\{entry['name']}")
