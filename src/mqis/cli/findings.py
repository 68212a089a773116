"""Findings as text, tables and JSON, for all commands that check something.

The keys of JSON are those that programs know from each command.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqis.cli.output import cell, console, counted, say, table
from mqis.findings import CheckReport, Gravity

STYLES = {
    Gravity.OK: "green",
    Gravity.NOTE: "cyan",
    Gravity.WARNING: "yellow",
    Gravity.ERROR: "bold red",
}

# --- mqis doctor ----------------------------------------------------------------------------------


def show_areas(reports: Sequence[CheckReport], *, everything: bool) -> None:
    """Prints one table of all findings, those that are in order only if ``everything`` is set."""
    several = any(report.server for report in reports)
    shown = table(*(["server"] if several else []), "", "about", "what", "what to do")
    counts = dict.fromkeys(Gravity, 0)
    for report in reports:
        for finding in report.findings:
            counts[finding.gravity] += 1
            if finding.gravity is not Gravity.OK or everything:
                shown.add_row(
                    *([cell(report.server or "all")] if several else []),
                    cell(finding.gravity.label, STYLES[finding.gravity]),
                    cell(finding.check),
                    cell(finding.what),
                    cell(finding.todo),
                )
    if shown.row_count:
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
