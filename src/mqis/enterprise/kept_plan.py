"""The plan that was carried out last, as a run directory keeps it.

``enterprise.toml`` is the file of the last 'mqis up'. Entries that it has no more, and that nobody
has removed, are in ``left.toml``; so are the names of servers that were taken out by a plan of
which something else could not be carried out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import Any

from mqis.enterprise.difference import Action, Step
from mqis.enterprise.plan import (
    EntryKind,
    RunPlan,
    ServerPlan,
    entries_of,
    entry_of,
    items_of,
    parse_plan,
)
from mqis.files import write_whole
from mqis.protocol.directory.objects import name_key

PLAN, LEFT = "enterprise.toml", "left.toml"
_REMOVED = "removed"


def carried_out(run: Path) -> RunPlan | None:
    """The plan that was carried out last, with what was left of earlier ones; None: none was."""
    kept = run / PLAN
    if not kept.exists():
        return None
    content = _content(kept)
    if (run / LEFT).exists():
        left = _content(run / LEFT)
        removed = {name_key(name) for name in left.pop(_REMOVED, ())}
        for section, keys in left.pop("options", {}).items():
            options = content.setdefault("options", {})
            options[section] = {**keys, **options.get(section, {})}
        for key, entries in left.items():
            content[key] = [*content.get(key, ()), *entries]
        servers = content.get("server", ())
        content["server"] = [s for s in servers if name_key(s["name"]) not in removed]
    return parse_plan(content, str(kept), consistent=False)


def keep(run: Path, text: str, plan: RunPlan, before: RunPlan | None, done: Sequence[Step]) -> None:
    """Notes that a plan was carried out by these steps."""
    left = {} if before is None else _left(plan, before, done)
    import tomlkit  # noqa: PLC0415 -- slow

    write_whole(run / LEFT, tomlkit.dumps(left))  # first: an entry in both files does no harm
    write_whole(run / PLAN, text)


def leave(run: Path, servers: Sequence[ServerPlan]) -> None:
    """Notes servers that a file has no more and that are still there."""
    left = _content(run / LEFT) if (run / LEFT).exists() else {}
    left["server"] = [*left.get("server", ()), *map(_table, servers)]
    import tomlkit  # noqa: PLC0415 -- slow

    write_whole(run / LEFT, tomlkit.dumps(left))


def forget(run: Path, server: str) -> None:
    """Notes that a server was taken out, whatever becomes of the other steps."""
    left = _content(run / LEFT) if (run / LEFT).exists() else {}
    left[_REMOVED] = [*left.get(_REMOVED, ()), server]
    import tomlkit  # noqa: PLC0415 -- slow

    write_whole(run / LEFT, tomlkit.dumps(left))


def _left(plan: RunPlan, before: RunPlan, done: Sequence[Step]) -> Mapping[str, Any]:
    removed = {(s.kind, s.entry.key) for s in done if s.action is Action.REMOVE}
    found: dict[str, Any] = {}
    for kind in EntryKind:
        if kind is EntryKind.OPTIONS:
            if options := _left_options(plan, before, removed):
                found["options"] = options
            continue
        wanted = entries_of(plan, kind)
        for item in items_of(before, kind):
            key = entry_of(before, kind, item).key
            if key not in wanted and (kind, key) not in removed:
                found.setdefault(kind.value, []).append(_table(item))
    return found


def _left_options(
    plan: RunPlan, before: RunPlan, removed: Set[tuple[EntryKind, str]]
) -> dict[str, dict[str, object]]:
    wanted = entries_of(plan, EntryKind.OPTIONS)
    found: dict[str, dict[str, object]] = {}
    for name, entry in entries_of(before, EntryKind.OPTIONS).items():
        if name not in wanted and (EntryKind.OPTIONS, name) not in removed:
            section, _, key = name.partition(".")
            found.setdefault(section, {})[key] = entry.attributes["value"]
    return found


def _table(item: Any) -> dict[str, object]:
    return {field.name: plain_value(getattr(item, field.name)) for field in fields(item)}


def plain_value(value: object) -> object:
    """A value as TOML has it: a role is a text, two sites are a list."""
    if isinstance(value, str):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _content(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8-sig"))
