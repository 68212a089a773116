"""``mqis undelete``: brings deleted objects back as they were."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import JsonOption, TypeName, spread
from mqis.cli.output import (
    DryRunOption,
    YesOption,
    cell,
    confirm,
    console,
    print_error,
    print_json,
    say,
    table,
)
from mqis.protocol.undeletion.messages import EntryState, UndeleteEntry, UndeleteRequest
from mqis.texts import and_more, counted, iso_moment, moment
from mqis.views.deletion.undelete_steps import UndeleteOutcome, UndeletePlan, carry_out, make_plan
from mqis.views.presentation.periods import parse_period

#: The most rows of the plan on a terminal; --json has all.
_MOST_ROWS = 50
_HINT = "; say which objects: TYPE PATH_OR_GUID, --at, --deleted-by or --under"


@spread
def undelete(
    kind: Annotated[
        TypeName | None,
        typer.Argument(metavar="[TYPE]", case_sensitive=False, show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH_OR_GUID]",
            help="One object, and what was deleted with it.",
            show_default=False,
        ),
    ] = None,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Objects deleted then: 2026-03-01, 2026-03-01T14:05, FROM..TO, FROM.. (UTC).",
            show_default=False,
        ),
    ] = None,
    deleted_by: Annotated[
        str | None,
        typer.Option(metavar="USER", help="Objects that this user deleted.", show_default=False),
    ] = None,
    under: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Objects of this site or machine, which may be deleted itself.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Time for the servers of a deleted site to send its objects.",
        ),
    ] = 60.0,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    access: OptionalLogonOptions,
    json: JsonOption = False,
) -> None:
    """Bring deleted objects back: same identifiers, properties, permissions and owners.

    The server searches its journal. Ask the authority of the objects: the PEC for sites, links and
    users, the PSC of their site for machines and queues. Without conditions it lists what was
    deleted.
    """
    request = _request(kind, name, at, deleted_by, under)
    listing = dry_run or request == UndeleteRequest("plan")
    outcome = None
    with connected(access.login()) as remote:
        plan = make_plan(remote, request)
        if not json:
            _show(plan)
        if plan.ready and not listing:
            confirm(f"Bring {counted(len(plan.ready), 'object')} back?", yes=yes)
            outcome = carry_out(remote, plan, wait_s=wait)
    if json:
        print_json(_as_json(plan, outcome, dry_run=listing))
    elif outcome is not None:
        _tell(plan, outcome)
    else:
        hint = _HINT if plan.entries and listing else ""
        say("nothing was changed" + (" (--dry-run)" if dry_run else hint))
    if (outcome is not None and outcome.failed) or (outcome is None and not listing):
        raise typer.Exit(1)


def _request(
    kind: TypeName | None,
    name: str | None,
    at: str | None,
    deleted_by: str | None,
    under: str | None,
) -> UndeleteRequest:
    since_us, until_us = (None, None) if at is None else parse_period(at)
    return UndeleteRequest(
        "plan",
        type="" if kind is None else kind.value,
        name=name or "",
        since_us=since_us,
        until_us=until_us,
        by=deleted_by or "",
        under=under or "",
    )


def _show(plan: UndeletePlan) -> None:
    if not plan.entries:
        say("no deleted objects that match are in the journal of this server")
        return
    numbers = Counter(entry.type for entry in plan.ready)
    parts = [counted(number, kind) for kind, number in numbers.items()]
    say(f"to bring back: {', '.join(parts) or 'nothing'}", "bold")
    rows = table("type", "object", "deleted", "by", "authority", "")
    for entry in plan.entries[:_MOST_ROWS]:
        texts = (entry.type, entry.path or entry.id, _time(entry), entry.by, entry.authority)
        rows.add_row(*(cell(text) for text in texts), _remark(entry))
    console().print(rows)
    if len(plan.entries) > _MOST_ROWS:
        say(f"{and_more(len(plan.entries) - _MOST_ROWS)} (--json has all)", "dim")
    for entry in plan.conflicts:
        say(f"conflict: {entry.type} {entry.path or entry.id}: {entry.reason}", "yellow")
    for entry in plan.ready:
        if entry.power:
            say(f"{entry.type} {entry.path or entry.id} is {entry.power}", "yellow")


def _remark(entry: UndeleteEntry) -> str:
    if entry.state == EntryState.CONFLICT:
        return "conflict"
    return "from its site's servers" if entry.follows else ""


def _time(entry: UndeleteEntry) -> str:
    return moment(entry.time_us / 1e6)


def _tell(plan: UndeletePlan, outcome: UndeleteOutcome) -> None:
    names = {entry.id: f"{entry.type} {entry.path or entry.id}" for entry in plan.entries}
    there = outcome.count(EntryState.PRESENT)
    others = f"; {counted(there, 'object')} came from other servers" if there else ""
    say(f"brought back {counted(outcome.count(EntryState.RESTORED), 'object')}{others}", "green")
    for result in outcome.failed:
        print_error(f"{names.get(result.id, result.id)}: {result.reason or result.state}")


def _as_json(
    plan: UndeletePlan, outcome: UndeleteOutcome | None, *, dry_run: bool
) -> dict[str, object]:
    results = {} if outcome is None else outcome.results
    return {
        "dry_run": dry_run,
        "objects": [
            {
                "type": entry.type,
                "id": entry.id,
                "path": entry.path,
                "deleted": iso_moment(entry.time_us),
                "by": entry.by,
                "authority": entry.authority,
                "power": entry.power,
                "state": results[entry.id].state if entry.id in results else entry.state,
                "reason": results[entry.id].reason if entry.id in results else entry.reason,
            }
            for entry in plan.entries
        ],
    }
