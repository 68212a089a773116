"""``mqis doctor``: checks a server, and says how to repair what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.findings import doctor_json, show_areas
from mqis.cli.options import ConfigOption, JsonOption, OptionalRunOption, run_here
from mqis.cli.output import print_json
from mqis.config.file import DEFAULT_NAME
from mqis.findings import CheckReport
from mqis.views.doctor.examination import examine_run, examine_server


def doctor(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SERVER]...", help="Check only these, of 'mqis up'.", show_default=False
        ),
    ] = None,
    *,
    config: ConfigOption = None,
    run: OptionalRunOption = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show also the checks that found nothing wrong.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check configuration, ports, clock, store, keys, other servers and journal.

    It changes nothing; the server may be running or stopped. Exit status 1 if something is wrong.
    """
    run = run or run_here(config)
    if servers and run is None:
        raise typer.BadParameter("there is no run directory here: name it with --run")
    if run is not None:
        reports = examine_run(run, servers or ())
    else:
        file = Path(DEFAULT_NAME) if config is None else config
        reports = [CheckReport(tuple(examine_server(file)))]
    failed = any(report.failed for report in reports)
    if json:
        print_json({"ok": not failed, "servers": [doctor_json(report) for report in reports]})
    else:
        show_areas(reports, everything=all_)
    if failed:
        raise typer.Exit(1)
