"""``mqis doctor``: checks a server, and says how to repair what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import ConfigOption, JsonOption
from mqis.cli.output import cell, console, counted, print_json, say, table
from mqis.config.file import DEFAULT_NAME
from mqis.views.doctor.examination import Report, examine_run, examine_server
from mqis.views.doctor.findings import Severity

_STYLES = {
    Severity.OK: "green",
    Severity.NOTE: "cyan",
    Severity.WARNING: "yellow",
    Severity.ERROR: "bold red",
}


def doctor(
    *,
    config: ConfigOption = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="DIR",
            help="Check every server of this run directory of 'mqis up' instead.",
            show_default=False,
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show also the checks that found nothing wrong.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check configuration, ports, clock, store, keys, other servers and journal.

    It changes nothing; the server may be running or stopped. Exit status 1 if something is wrong.
    """
    if run is not None:
        reports = examine_run(run)
    else:
        file = Path(DEFAULT_NAME) if config is None else config
        reports = [Report("", tuple(examine_server(file)))]
    failed = any(report.failed for report in reports)
    if json:
        print_json({"ok": not failed, "servers": [_as_json(report) for report in reports]})
    else:
        _show(reports, everything=all_)
    if failed:
        raise typer.Exit(1)


def _as_json(report: Report) -> dict[str, object]:
    return {
        "server": report.server,
        "findings": [finding.to_json() for finding in report.findings],
    }


def _show(reports: list[Report], *, everything: bool) -> None:
    several = any(report.server for report in reports)
    shown = table(*(["server"] if several else []), "", "about", "what", "what to do")
    counts = dict.fromkeys(Severity, 0)
    for report in reports:
        for finding in report.findings:
            counts[finding.severity] += 1
            if finding.severity is not Severity.OK or everything:
                shown.add_row(
                    *([cell(report.server or "all")] if several else []),
                    cell(finding.severity.value, _STYLES[finding.severity]),
                    cell(finding.area),
                    cell(finding.what),
                    cell(finding.todo),
                )
    if shown.row_count:
        console().print(shown)
    summary = ", ".join(
        f"{counts[Severity.OK]} in order" if kind is Severity.OK else counted(number, kind.value)
        for kind, number in counts.items()
        if number
    )
    say(summary, "red" if counts[Severity.ERROR] else "green")
