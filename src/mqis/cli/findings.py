"""Findings as text, tables and JSON, for all commands that check something.

The keys of JSON are those that programs know from each command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.output import cell, console, natural_width, print_note, say, table
from mqis.findings import CheckReport, Finding, Gravity, worst
from mqis.protocol.activedirectory.estate.findings import ldif_of
from mqis.protocol.hygiene.checks import finding_row
from mqis.texts import and_more, counted

if TYPE_CHECKING:
    from mqis.storage.journal.checking import JournalCheck

STYLES = {
    Gravity.OK: "green",
    Gravity.NOTE: "cyan",
    Gravity.WARNING: "yellow",
    Gravity.ERROR: "bold red",
}

LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=1, help="Show this many findings of each check.")
]

# --- mqis check, mqis estate check ----------------------------------------------------------------


def show_report(report: CheckReport, limit: int) -> None:
    """Prints the findings in a table for each check, and what the input cannot show.

    Findings of one check stand together and have one explanation. ``limit`` caps each table.
    """
    counts = ((number, kind.removesuffix("s")) for kind, number in report.counts.items())
    parts = [counted(number, kind) for number, kind in counts if number]
    say(f"checked {', '.join(parts) or 'nothing'}")
    for check, group in groupby(report.findings, attrgetter("check")):
        _show_check(check, list(group), limit)
    say("")
    if not report.findings:
        seen = " in what could be seen" if report.limits or report.unreadable else ""
        say(f"no faults found{seen}", "yellow" if seen else "green")
    elif any(found.repair for found in report.findings):
        say("--ldif FILE writes the repairs; read them, then: ldapmodify -f FILE", "dim")
    for unread in report.unreadable:
        say(f"cannot read: {unread}", "yellow")
    for unknown in report.limits:
        what = f"{unknown.check}: " if unknown.check else ""
        left = f" ({unknown.left_out} left out)" if unknown.left_out else ""
        say(f"cannot tell: {what}{unknown.reason}{left}; {unknown.advice}", "yellow")


def _show_check(check: str, found: list[Finding], limit: int) -> None:
    first = found[0]
    say("")
    say(f"{check}, {counted(len(found), 'finding')}: {first.what}", STYLES[worst(found)])
    if first.why:
        say(f"users see: {first.why}", "dim")
    shown = table("object" if first.objects else "where", "detail", "what to do")
    for one in found[:limit]:
        shown.add_row(cell(one.where), cell(one.detail), cell(one.todo))
    console().print(shown)
    if len(found) > limit:
        say(f"{and_more(len(found) - limit)}: --limit {len(found)}", "dim")


def check_json(report: CheckReport) -> dict[str, object]:
    unknown = [asdict(limit) | {"check": limit.check or None} for limit in report.limits]
    return {
        "clean": not report.findings,
        "objects": report.counts,
        "findings": [finding_row(found) for found in report.findings],
        "unknown": unknown,
    }


def estate_json(report: CheckReport) -> dict[str, object]:
    return {
        "checked": datetime.now(UTC).isoformat(),
        "clean": not report.findings,
        "objects": report.counts,
        "findings": [
            {
                "check": found.check,
                "explanation": found.what,
                "symptom": found.why,
                "where": found.where,
                "detail": found.detail,
                "advice": found.todo,
                "ldif": ldif_of(found) or None,
            }
            for found in report.findings
        ],
        "unknown": [
            {
                "check": limit.check,
                "reason": limit.reason,
                "advice": limit.advice,
                "left_out": limit.left_out,
            }
            for limit in report.limits
        ],
        "unreadable": list(report.unreadable),
    }


# --- mqis doctor ----------------------------------------------------------------------------------


def show_areas(reports: Sequence[CheckReport], *, everything: bool) -> None:
    """Prints one table of all findings, those that are in order only if ``everything`` is set.

    Where a table has no room they are lines: a command in a narrow column could not be copied.
    """
    several = any(report.server for report in reports)
    shown = table(*(["server"] if several else []), "", "about", "what", "what to do")
    counts = dict.fromkeys(Gravity, 0)
    told: list[tuple[str, Finding]] = []
    for report in reports:
        for finding in report.findings:
            counts[finding.gravity] += 1
            if finding.gravity is not Gravity.OK or everything:
                told.append((report.server or "all", finding))
                shown.add_row(
                    *([cell(report.server or "all")] if several else []),
                    cell(finding.gravity.label, STYLES[finding.gravity]),
                    cell(finding.check),
                    cell(finding.what),
                    cell(finding.todo),
                )
    if natural_width(shown) > console().width:
        for server, finding in told:
            where = f"{server}, {finding.check}" if several else finding.check
            say(f"{finding.gravity.label}: {where}: {finding.what}", STYLES[finding.gravity])
            if finding.todo:
                say(f"  {finding.todo}")
    elif told:
        console().print(shown)
    summary = ", ".join(
        f"{number} in order" if gravity is Gravity.OK else counted(number, gravity.label)
        for gravity, number in counts.items()
        if number
    )
    say(summary, "red" if counts[Gravity.ERROR] else "green")


def doctor_json(report: CheckReport) -> dict[str, object]:
    findings = [
        {"severity": f.gravity.label, "area": f.check, "what": f.what, "todo": f.todo}
        for f in report.findings
    ]
    return {"server": report.server, "findings": findings}


# --- mqis show ------------------------------------------------------------------------------------


def show_lines(findings: Iterable[Finding]) -> None:
    """Prints a line for each finding about one server, with what to do."""
    for finding in findings:
        todo = f": {finding.todo}" if finding.todo else ""
        say(f"{finding.what}{todo}", STYLES[finding.gravity])


def server_json(findings: Iterable[Finding]) -> list[dict[str, object]]:
    return [{"grade": f.gravity.colour, "text": f.what, "todo": f.todo} for f in findings]


# --- mqis store check, mqis journal check ---------------------------------------------------------


def show_faults(faults: Sequence[str]) -> None:
    """Prints a line for each fault of a store, and their number."""
    for fault in faults:
        say(fault, "red")
    say(counted(len(faults), "fault"), STYLES[Gravity.ERROR])


def show_journal(result: JournalCheck, faults: Sequence[Finding]) -> None:
    """Prints a line for each finding, those first that count as faults."""
    for fault in faults:
        say(f"{fault.check}: {fault}", "red")
    for notice in (finding for finding in result.findings if finding not in faults):
        say(f"{notice.check}: {notice}", STYLES[Gravity.NOTE])
    if result.sealed_lsn:
        say(f"sealed: records up to {result.sealed_lsn}; the last segment is still open")
    if faults:
        say(counted(len(faults), "fault"), STYLES[Gravity.ERROR])
    else:
        told = counted(result.segments, "segment")
        say(f"ok: {counted(result.records, 'record')} in {told}", STYLES[Gravity.OK])


def journal_json(result: JournalCheck, faults: Sequence[Finding]) -> dict[str, object]:
    return {
        "ok": not faults,
        "faults": [str(fault) for fault in faults],
        "notices": [str(finding) for finding in result.findings if finding not in faults],
        "findings": [
            {
                "state": finding.check,
                "fault": finding.is_fault,
                "file": finding.where,
                "segments": [finding.first, finding.last],
                "text": finding.what,
            }
            for finding in result.findings
        ],
        "segments": result.segments,
        "records": result.records,
        "sealed_lsn": result.sealed_lsn,
    }


# --- remarks of imports and exports ---------------------------------------------------------------


def show_notes(notes: Iterable[Finding]) -> None:
    """Prints the remarks on stderr, one a line."""
    for note in notes:
        print_note(f"{note.count} x {note}")


def notes_json(notes: Iterable[Finding]) -> dict[str, object]:
    """The key ``notes``; nothing if there are none. Each has the names of all its entries."""
    told = [{"what": n.what, "count": n.count, "entries": n.names} for n in notes]
    return {"notes": told} if told else {}
