"""The part of ``mqis up`` that changes an enterprise which exists: shows, asks, and applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import typer

from mqis.cli.output import cell, confirm, console, print_json, print_note, say, table
from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, Nodes, is_run, load_nodes
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.configs import is_member
from mqis.enterprise.control import LOCK, ask
from mqis.enterprise.difference import (
    Action,
    PlanDifference,
    compare,
    expelled_servers,
    impossible,
    removed_servers,
    removed_sites,
    without_gates,
)
from mqis.enterprise.kept_plan import PLAN, carried_out, leave
from mqis.enterprise.launch import Launch
from mqis.enterprise.lost_servers import fault_of, why_not_brought_up
from mqis.enterprise.placing import place_servers
from mqis.enterprise.plan import EntryKind, RunPlan, ServerRole
from mqis.enterprise.present_plan import read_present
from mqis.enterprise.roles import replaced_by
from mqis.enterprise.setup import administrator
from mqis.enterprise.states import ProcessState, Supervised, load_states
from mqis.enterprise.supervisor import lock_of
from mqis.protocol.directory.object_sources import Source, StoreSource
from mqis.protocol.directory.objects import name_key
from mqis.texts import counted, shortened
from mqis.views.deletion.delete_text import names
from mqis.views.deletion.plan import DeletePlan, plan_delete
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

_STYLES = {Action.ADD: "green", Action.CHANGE: "yellow", Action.REMOVE: "red"}
#: The longest name or value in a table.
_LONGEST_TEXT = 100
#: The most names of objects that go with a site.
_MOST_NAMES = 5
_NOTHING = "nothing was changed (--dry-run)"
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
    #: What cannot be done, in words; then nothing is.
    impossible: Sequence[str] = ()
    #: Servers that cannot be started, with the reasons.
    hindered: Mapping[str, str] = field(default_factory=dict)
    #: The processes of servers that outlived their supervisor; they are ended first.
    outlived: Mapping[str, int] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        return len(self.difference.steps) + len(self.follows)


def planned_change(what: Launch) -> PlannedChange | None:
    """The change that the file makes; None before the enterprise is founded, or if its PEC
    cannot be read (which is told when that starts)."""
    before = carried_out(what.run)
    if before is None or not is_run(what.run):
        return None
    nodes = load_nodes(what.run)
    pec = next((node for node in nodes if node.role == ServerRole.PEC), None)
    if pec is None or not Path(pec.store).is_file() or not Path(pec.store).stat().st_size:
        return None
    with _directory(what, pec) as source:
        present = read_present(what.plan, before, nodes, what.run, source)
        difference = compare(what.plan, before, present, remove=what.remove)
        sites = [plan_delete(source, ObjectType.SITE, name) for name in removed_sites(difference)]
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
    found = _Servers.of(what.run, nodes)
    ports = _ports(what, before, found)
    warnings = [*without_gates(what.plan, difference.steps), *_going_along(sites, difference)]
    return PlannedChange(
        difference,
        follows,
        found.starts(there, joining),
        [*_left_out(what), *warnings, *ports.notes],
        [*impossible(what.plan, difference), *_strange_servers(sites, nodes), *ports.taken],
        found.hindered(there, joining),
        found.outlived,
    )


@dataclass(frozen=True, slots=True)
class _Ports:
    """What is said of ports: those that are replaced, and one that the file sets and is taken."""

    notes: Sequence[str] = ()
    taken: Sequence[str] = ()


def _ports(what: Launch, before: RunPlan | None, found: _Servers) -> _Ports:
    """Tries the ports of all servers that do not hold theirs already."""
    own, running = what.own_addresses, found.running | found.outlived.keys()
    try:
        _, notes = place_servers(
            what.run.absolute(), what.plan, before, own_addresses=own, running=running
        )
    except NodesError as error:
        return _Ports(taken=(str(error),))
    return _Ports(notes)


@dataclass(frozen=True, slots=True)
class _Servers:
    """The servers of a run directory as they are now."""

    #: True if there is a supervisor.
    alive: bool
    states: Mapping[str, Supervised]
    #: The processes of servers that outlived their supervisor.
    outlived: Mapping[str, int]
    nodes: Nodes

    @classmethod
    def of(cls, run: Path, nodes: Nodes) -> _Servers:
        alive, states = holder(run / LOCK) is not None, load_states(run)
        known = states.servers if states is not None and alive else {}
        held = {} if alive else {node.name: holder(lock_of(node)) for node in nodes}
        return cls(alive, known, {name: pid for name, pid in held.items() if pid}, nodes)

    @property
    def running(self) -> set[str]:
        return {name for name, known in self.states.items() if known.state in _RUNNING}

    def starts(self, nodes: Sequence[NodePlace], joining: Set[str]) -> dict[str, str]:
        """The servers that do not run while the supervisor does, and those that join again."""
        found = {}
        for node in nodes:
            name, known = node.name, self.states.get(node.name)
            idle = known is not None and known.state not in _RUNNING
            if not idle and name not in joining:
                continue
            now = f"is {known.state.value}" if idle and known else "has lost its directory"
            then = "joins again" if name in joining else "is started"
            if name not in joining and why_not_brought_up(node, self.nodes) is not None:
                then = "cannot be started"
            found[name] = f"{name} {now} and {then}"
        return found

    def hindered(self, nodes: Sequence[NodePlace], joining: Set[str]) -> dict[str, str]:
        """The servers that do not run and cannot be started, with the reasons."""
        idle = (node for node in nodes if node.name not in self.running | joining)
        reasons = {node.name: why_not_brought_up(node, self.nodes) for node in idle}
        return {name: reason for name, reason in reasons.items() if reason is not None}


def _left_out(what: Launch) -> list[str]:
    return [f"{what.source}: {entry}; it is left out" for entry in what.plan.left_out]


def _strange_servers(sites: Sequence[DeletePlan], nodes: Nodes) -> Iterator[str]:
    """Sites that go with a directory server in them which 'mqis up' does not run."""
    own = {name_key(node.name) for node in nodes}
    for site in sites:
        if strange := [server for server in site.servers if name_key(server) not in own]:
            yield (
                f"site {site.target.name}: {', '.join(strange)} in it is a directory server that "
                "'mqis up' does not run: 'mqis delete machine' takes it out"
            )


def _going_along(sites: Sequence[DeletePlan], difference: PlanDifference) -> Iterator[str]:
    """What goes with a site and is in no step, and what will name a site that is gone."""
    listed = {name_key(step.name) for step in difference.steps if step.action is Action.REMOVE}
    for site in sites:
        known = listed | {name_key(server) for server in site.servers}
        along = [one for one in site.along if name_key(one.name) not in known]
        if along:
            told = "; ".join(names(sorted(along, key=lambda one: one.name), _MOST_NAMES))
            yield f"with {site.target.name} goes what the file never had: {told}"
        if site.left:
            told = "; ".join(names(site.left, _MOST_NAMES))
            yield f"this will name {site.target.name}, which is gone: {told}"


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
    path: Path, what: Launch, change: PlannedChange | None, *, dry_run: bool, json: bool
) -> None:
    """Writes what commands have changed into the file.

    And into the plan that was carried out last: what commands change from now on is drift again.
    """
    from mqis.enterprise.adopting import adopt  # noqa: PLC0415 -- slow

    told = [] if change is None else adopt(path, change.difference, write=not dry_run)
    kept = what.run / PLAN
    if change is not None and told and not dry_run:
        if not kept.samefile(path):
            adopt(kept, change.difference)
        if servers := expelled_servers(what.plan, change.difference):
            leave(what.run, servers)
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
    plan, before = what.plan, carried_out(what.run)
    nodes = load_nodes(what.run) if is_run(what.run) else Nodes(plan.enterprise.name, ())
    found = _Servers.of(what.run, nodes)
    ports = _ports(what, before, found)
    hindered = found.hindered(nodes.nodes, frozenset())
    starts = [server.name for server in plan.servers if server.name not in hindered]
    if json:
        print_json(
            {
                "founded": before is not None,
                "starts": starts,
                "hindered": hindered,
                "warnings": [*_left_out(what), *ports.notes],
                "impossible": list(ports.taken),
                "dry_run": True,
            }
        )
    else:
        servers, sites = counted(len(starts), "server"), counted(len(plan.sites), "site")
        for line in (*_left_out(what), *ports.notes, *_told_hindered(hindered)):
            say(line, "yellow")
        if before is not None:
            say(f"the directory of the PEC cannot be read; {servers} would be started")
        else:
            say(f"{plan.enterprise.name} would be founded in {what.run}: {servers} in {sites}")
    if ports.taken:
        raise MqisError(f"{what.source}: {'; '.join(ports.taken)}; nothing was changed")
    if not json:
        say(_NOTHING)


def agreed_to(change: PlannedChange, what: Launch, *, yes: bool, dry_run: bool, json: bool) -> bool:
    """Shows a change and asks; returns False if that was all that was wanted."""
    bad = change.impossible
    if json and dry_run:
        print_json({"impossible": list(bad), **_as_json(change, what)})
    elif not json and not bad:
        _show(change, what)
    if bad:
        raise MqisError(f"{what.source}: {'; '.join(bad)}; nothing was changed")
    if dry_run:
        if not json:
            _show_starts(change, what)
            say(_NOTHING)
        return False
    if change.difference.needs_consent:
        confirm("Carry this out?", yes=yes)
    return True


def _show_starts(change: PlannedChange, what: Launch) -> None:
    """What a dry run tells besides: carrying it out tells that itself."""
    for name, pid in change.outlived.items():
        again = "" if name in change.hindered else ", and started again"
        say(f"{name} outlived its supervisor, as process {pid}: it is ended{again}")
    for line in _told_hindered(change.hindered):
        say(line, "yellow")
    if holder(what.run / LOCK) is None:
        count = counted(len(_started(change, what)), "server")
        say(f"{count} would be started" + ("" if change.outlived else ": all are down"))


def _told_hindered(hindered: Mapping[str, str]) -> list[str]:
    return [f"{name} cannot be started: {reason}" for name, reason in hindered.items()]


def _started(change: PlannedChange, what: Launch) -> list[str]:
    """The servers that are started: those that do not run, or all if there is no supervisor."""
    if holder(what.run / LOCK) is not None:
        return [name for name in change.starts if name not in change.hindered]
    gone = removed_servers(change.difference.steps) | change.hindered.keys()
    here = {name_key(node.name): node.name for node in load_nodes(what.run)}
    names = {name_key(server.name): server.name for server in what.plan.servers} | here
    return [name for name in names.values() if name not in gone]


def apply_live(change: PlannedChange, what: Launch, path: Path, *, json: bool) -> None:
    """Lets the supervisor carry out the file; returns when it is done."""
    refused = list(what.plan.left_out)
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
        print_json({**_as_json(change, what), "refused": lines})
    else:
        for line in lines:
            print_note(f"refused: {line}")
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
            made.add_row(
                cell(action.value, _STYLES[action]),
                *(cell(shortened(t, _LONGEST_TEXT)) for t in texts),
            )
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


def _as_json(change: PlannedChange, what: Launch) -> dict[str, object]:
    keys = "action", "kind", "name", "detail"
    difference = change.difference
    return {
        "steps": [dict(zip(keys, row, strict=True)) for row in _rows(change)],
        "starts": _started(change, what),
        "hindered": dict(change.hindered),
        "outlived": dict(change.outlived),
        "warnings": list(change.warnings),
        "left": [{"kind": s.kind, "name": s.name} for s in difference.left],
        "drift": [{"kind": d.kind, "name": d.name, "detail": d.detail} for d in difference.drift],
    }
