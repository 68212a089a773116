"""The part of ``mqis up`` that changes an enterprise which exists: shows, asks, and applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import typer

from mqis.cli.output import cell, confirm, console, print_json, print_warning, say, table
from mqis.config.nodes import FILE, NodePlace, load_nodes
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.configs import is_member
from mqis.enterprise.control import LOCK, ask
from mqis.enterprise.difference import (
    Action,
    PlanDifference,
    compare,
    impossible,
    removed_servers,
    without_gates,
)
from mqis.enterprise.kept import PLAN, carried_out
from mqis.enterprise.launch import Launch
from mqis.enterprise.loss import fault_of
from mqis.enterprise.plan import EntryKind, ServerRole
from mqis.enterprise.present import read_present
from mqis.enterprise.roles import replaced_by
from mqis.enterprise.setup import administrator
from mqis.enterprise.states import ProcessState, load_states
from mqis.protocol.directory.object_sources import Source, StoreSource
from mqis.protocol.directory.objects import name_key
from mqis.texts import counted
from mqis.wire.errors import MqisError

_STYLES = {Action.ADD: "green", Action.CHANGE: "yellow", Action.REMOVE: "red"}
_RUNNING = (ProcessState.READY, ProcessState.STARTING, ProcessState.PAUSING)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The difference that a file makes, and what 'mqis up' does besides."""

    difference: PlanDifference
    #: Servers that were replaced as PSC and become backups, with the details; steps like others.
    follows: Mapping[str, str]
    #: Servers that do not run, or have lost their directories, each in words.
    starts: Mapping[str, str]
    warnings: Sequence[str]

    @property
    def steps(self) -> int:
        return len(self.difference.steps) + len(self.follows)


def planned_change(what: Launch) -> PlannedChange | None:
    """The change that the file makes; None before the enterprise is founded, or if its PEC
    cannot be read (which is told when that starts)."""
    before = carried_out(what.run)
    if before is None or not (what.run / FILE).exists():
        return None
    nodes = load_nodes(what.run)
    pec = next((node for node in nodes if node.role == ServerRole.PEC), None)
    if pec is None or not Path(pec.store).is_file() or not Path(pec.store).stat().st_size:
        return None
    with _directory(what, pec) as source:
        present = read_present(what.plan, before, nodes, what.run, source)
    difference = compare(what.plan, before, present, remove=what.remove)
    there = [node for node in nodes if node.name not in removed_servers(difference.steps)]
    replaced = {n.name: replaced_by(n, nodes) for n in there if fault_of(n) is None}
    follows = {
        name: f"follows {psc.name}, the PSC of {psc.site} now"
        for name, psc in replaced.items()
        if psc is not None
    }
    backups = {
        key
        for key, entry in present[EntryKind.SERVER].items()
        if entry.attributes["role"] is ServerRole.BSC
    }
    joining = {n.name for n in there if name_key(n.name) in backups and not is_member(n)}
    starts = _starts(what.run, there, joining)
    return PlannedChange(difference, follows, starts, without_gates(what.plan, difference.steps))


def _starts(run: Path, nodes: Sequence[NodePlace], joining: Set[str]) -> dict[str, str]:
    """The servers that do not run while the supervisor does, and those that join again."""
    alive, states = holder(run / LOCK) is not None, load_states(run)
    known = states.servers if states is not None and alive else {}
    found = {}
    for name in (node.name for node in nodes):
        idle = name in known and known[name].state not in _RUNNING
        if idle or name in joining:
            now = f"is {known[name].state.value}" if idle else "has lost its directory"
            then = "joins again" if name in joining else "is started"
            found[name] = f"{name} {now} and {then}"
    return found


@contextmanager
def _directory(what: Launch, pec: NodePlace) -> Iterator[Source]:
    """The PEC's directory: of the server if it runs, else of its store."""
    if holder(what.run / LOCK) is not None and pec.pid is not None:
        account = administrator(what.run.absolute(), what.plan, what.base)
        with what.connect(pec, account) as remote:
            yield remote
        return
    store = open_store(pec.store)
    try:
        with store.read() as view:
            yield StoreSource(view)
    finally:
        store.close()


def write_adopted(
    path: Path, run: Path, change: PlannedChange | None, *, dry_run: bool, json: bool
) -> None:
    """Writes what commands have changed into the file.

    And into the plan that was carried out last: what commands change from now on is drift again.
    """
    from mqis.enterprise.adopting import adopt  # noqa: PLC0415 -- slow

    told = [] if change is None else adopt(path, change.difference, write=not dry_run)
    kept = run / PLAN
    if change is not None and told and not dry_run and not kept.samefile(path):
        adopt(kept, change.difference)
    if json:
        print_json({"file": str(path), "adopted": told, "dry_run": dry_run})
        return
    for line in told:
        say(line)
    changes = counted(len(told), "change")
    if not told:
        say(f"{path}: nothing to adopt")
    elif dry_run:
        say(f"{path}: {changes} to write; nothing was changed (--dry-run)")
    else:
        say(f"{path}: {changes} written")


def show_beginning(what: Launch, *, json: bool) -> None:
    """Tells what 'mqis up' would do where there is no enterprise yet, or its PEC is lost."""
    plan, founded = what.plan, carried_out(what.run) is not None
    if json:
        names = [server.name for server in plan.servers]
        print_json({"founded": founded, "starts": names, "dry_run": True})
        return
    servers, sites = counted(len(plan.servers), "server"), counted(len(plan.sites), "site")
    if founded:
        say(f"the directory of the PEC cannot be read; {servers} would be started")
    else:
        say(f"{plan.enterprise.name} would be founded in {what.run}: {servers} in {sites}")
    say("nothing was changed (--dry-run)")


def agreed_to(change: PlannedChange, what: Launch, *, yes: bool, dry_run: bool, json: bool) -> bool:
    """Shows a change and asks; returns False if that was all that was wanted."""
    bad = impossible(change.difference)
    if json and dry_run:
        print_json({"impossible": bad, **_as_json(change)})
    elif not json:
        _show(change, what)
    if bad:
        raise MqisError(f"{what.source}: {'; '.join(bad)}; nothing was changed")
    if dry_run:
        if not json:
            if holder(what.run / LOCK) is None:
                say(f"{counted(len(what.plan.servers), 'server')} would be started: all are down")
            say("nothing was changed (--dry-run)")
        return False
    if change.difference.needs_consent:
        confirm("Carry this out?", yes=yes)
    return True


def apply_live(change: PlannedChange, what: Launch, path: Path, *, json: bool) -> None:
    """Lets the supervisor carry out the file; returns when it is done."""
    refused: list[str] = []
    failed: dict[str, str] = {}
    if change.steps or change.starts:
        answer = ask(
            what.run,
            "apply",
            file=str(path.absolute()),
            digest=sha256(what.text.encode()).hexdigest(),
            source=what.source,
            remove=what.remove,
        )
        refused, failed = answer["refused"], answer["failed"]
    lines = [*refused, *(f"{name}: {reason}" for name, reason in failed.items())]
    if json:
        print_json({**_as_json(change), "refused": lines})
    else:
        for line in lines:
            print_warning(f"refused: {line}")
        say(f"{what.plan.enterprise.name} is up: {_outcome(change, refused, failed.keys())}")
    if lines:
        raise typer.Exit(1)


def _outcome(change: PlannedChange, refused: Sequence[str], failed: Set[str]) -> str:
    """What was done, each thing with its own number of failures."""
    steps = {f"{step.kind} {step.name}: ": step for step in change.difference.steps}
    servers = {s.name for s in steps.values() if s.kind is EntryKind.SERVER} | change.follows.keys()
    bad = sum(any(line.startswith(text) for line in refused) for text in steps)
    bad += len(servers & failed)
    told = []
    if change.steps:
        told.append(f"{counted(change.steps, 'step')} carried out")
        told += [f"{bad} of them refused"] if bad else []
    if idle := change.starts.keys() - servers:
        of = f"{len(idle - failed)} of " if idle & failed else ""
        told.append(f"{of}{counted(len(idle), 'server')} started")
    if others := failed - servers - idle:
        told.append(f"{counted(len(others), 'server')} given up")
    if others_refused := sum(not line.startswith(tuple(steps)) for line in refused):
        told.append(f"{counted(others_refused, 'other change')} refused")
    return ", ".join(told) or "no change"


# --- output ---------------------------------------------------------------------------------------


def _rows(change: PlannedChange) -> list[tuple[Action, str, str, str]]:
    steps = [(s.action, s.kind.value, s.name, s.detail) for s in change.difference.steps]
    server = EntryKind.SERVER.value
    return [*((Action.CHANGE, server, *row) for row in change.follows.items()), *steps]


def _show(change: PlannedChange, what: Launch) -> None:
    if rows := _rows(change):
        made = table("", "what", "name", "detail")
        for action, *texts in rows:
            made.add_row(cell(action.value, _STYLES[action]), *map(cell, texts))
        console().print(made)
    for line in (*change.starts.values(), *change.warnings):
        say(line, "yellow")
    difference = change.difference
    for step in difference.left:
        say(f"left alone: {step.kind} {step.name} is not in the file any more; --remove deletes it")
    for drift in difference.drift:
        say(f"left alone: {drift.kind} {drift.name}: {drift.detail}", "yellow")
    if any(drift.adoptable for drift in difference.drift):
        say(f"'mqis up --adopt' writes into {what.source} what commands have changed", "dim")


def _as_json(change: PlannedChange) -> dict[str, object]:
    keys = "action", "kind", "name", "detail"
    difference = change.difference
    return {
        "steps": [dict(zip(keys, row, strict=True)) for row in _rows(change)],
        "starts": list(change.starts),
        "warnings": list(change.warnings),
        "left": [{"kind": s.kind, "name": s.name} for s in difference.left],
        "drift": [{"kind": d.kind, "name": d.name, "detail": d.detail} for d in difference.drift],
    }
