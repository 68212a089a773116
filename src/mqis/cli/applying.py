"""The part of ``mqis up`` that changes an enterprise which exists: shows, asks, and applies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import typer

from mqis.cli.confirming import confirm
from mqis.cli.output import cell, console, counted, print_json, print_warning, say, table
from mqis.config.nodes import FILE, NodePlace, load_nodes
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.adopting import adopt
from mqis.enterprise.control import LOCK, ask
from mqis.enterprise.difference import Action, PlanDifference, compare, impossible
from mqis.enterprise.kept import carried_out
from mqis.enterprise.launch import Launch
from mqis.enterprise.plan import ServerRole
from mqis.enterprise.present import read_present
from mqis.enterprise.setup import administrator
from mqis.enterprise.states import ProcessState, load_states
from mqis.protocol.directory.sources import Source, StoreSource
from mqis.wire.errors import MqisError

_STYLES = {Action.ADD: "green", Action.CHANGE: "yellow", Action.REMOVE: "red"}


def planned_change(what: Launch) -> PlanDifference | None:
    """The difference that the file makes; None before the enterprise is founded, or if its PEC
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
    return compare(what.plan, before, present, remove=what.remove)


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


def write_adopted(path: Path, change: PlanDifference | None, *, json: bool) -> None:
    """Writes what commands have changed into the file."""
    told = [] if change is None else adopt(path, change)
    if json:
        print_json({"file": str(path), "adopted": told})
        return
    for line in told:
        say(line)
    say(f"{path}: {counted(len(told), 'change')} written" if told else f"{path}: nothing to adopt")


def agreed_to(
    change: PlanDifference, what: Launch, *, yes: bool, dry_run: bool, json: bool
) -> bool:
    """Shows a difference and asks; returns False if that was all that was wanted."""
    bad = impossible(change)
    if json and dry_run:
        print_json({"impossible": bad, **_as_json(change)})
    elif not json:
        _show(change, what)
    if bad:
        raise MqisError(f"{what.source}: {'; '.join(bad)}; nothing was changed")
    if dry_run:
        if not json:
            say("nothing was changed (--dry-run)")
        return False
    if change.needs_consent:
        confirm("Carry this out?", yes=yes)
    return True


def apply_live(change: PlanDifference, what: Launch, path: Path, *, json: bool) -> None:
    """Lets the supervisor carry out the file; returns when it is done."""
    refused: list[str] = []
    idle = _idle(what.run)
    if not json:
        for name, state in idle.items():
            say(f"{name} is {state} and is started", "yellow")
    if change.steps or idle:
        answer = ask(
            what.run,
            "apply",
            file=str(path.absolute()),
            digest=sha256(what.text.encode()).hexdigest(),
            source=what.source,
            remove=what.remove,
        )
        refused = answer["refused"]
    if json:
        print_json({**_as_json(change), "refused": refused})
    else:
        for line in refused:
            print_warning(f"refused: {line}")
        name = what.plan.enterprise.name
        steps = counted(len(change.steps), "step")
        started = f"{counted(len(idle), 'server')} started"
        done = f"{steps} carried out" if change.steps else started if idle else "no change"
        done += f", {len(refused)} of them refused" if refused else ""
        say(f"{name} is up: {done}")
    if refused:
        raise typer.Exit(1)


def _idle(run: Path) -> dict[str, str]:
    """The servers that do not run, each with its state."""
    states = load_states(run)
    known = {} if states is None else states.servers
    running = (ProcessState.READY, ProcessState.STARTING, ProcessState.PAUSING)
    return {name: s.state.value for name, s in known.items() if s.state not in running}


# --- output ---------------------------------------------------------------------------------------


def _show(change: PlanDifference, what: Launch) -> None:
    if change.steps:
        made = table("", "what", "name", "detail")
        for step in change.steps:
            texts = step.kind.value, step.name, step.detail
            made.add_row(cell(step.action.value, _STYLES[step.action]), *map(cell, texts))
        console().print(made)
    for step in change.left:
        say(f"left alone: {step.kind} {step.name} is not in the file any more; --remove deletes it")
    for drift in change.drift:
        say(f"left alone: {drift.kind} {drift.name}: {drift.detail}", "yellow")
    if any(drift.adoptable for drift in change.drift):
        say(f"'mqis up --adopt' writes into {what.source} what commands have changed", "dim")


def _as_json(change: PlanDifference) -> dict[str, object]:
    return {
        "steps": [
            {"action": s.action, "kind": s.kind, "name": s.name, "detail": s.detail}
            for s in change.steps
        ],
        "left": [{"kind": s.kind, "name": s.name} for s in change.left],
        "drift": [{"kind": d.kind, "name": d.name, "detail": d.detail} for d in change.drift],
    }
