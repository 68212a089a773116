"""``mqis check``: faults in a directory on which all replicas agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    StoreOption,
    opened,
    refuse_password,
    store_url,
)
from mqis.cli.output import cell, console, counted, print_error, print_json, say, table
from mqis.cli.spread import spread
from mqis.config.nodes import load_nodes
from mqis.protocol.hygiene.examining import HygieneReport
from mqis.views.hygiene.copies import check_export, check_server, check_view, is_store
from mqis.views.hygiene.together import check_run, check_sources
from mqis.wire.errors import MqisError

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE|STORE]...",
        help="Files of 'mqis export', or stores; several are checked together. Default: the store "
        "of the configuration.",
        show_default=False,
    ),
]
CheckRunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        help="The run directory of 'mqis up': check the stores of all its servers together.",
        show_default=False,
    ),
]


@spread
def check(
    sources: SourcesArgument = None,
    *,
    run: CheckRunOption = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Show this many findings of each check.")
    ] = 20,
    store: StoreOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    access: OptionalLogonOptions,
) -> None:
    """Find faults of the directory itself: orphans, duplicates, links to nowhere, missing gates,
    sites that are cut off, queues that everyone may send to.

    Any server's copy will do; only those of all authorities together show duplicates. The command
    also says what its input cannot show. Exit status 0 if nothing was found, 1 if something was, 2
    if a copy cannot be read.
    """
    if sum(map(bool, (sources, store, run, access.is_given))) > 1:
        raise typer.BadParameter("FILE or STORE, --store, --run and --server exclude each other")
    try:
        report = _together(sources or (), run) or _report(sources, store, config, access)
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if json:
        print_json(_as_json(report))
    else:
        _show(report, limit)
    if report.findings:
        raise typer.Exit(1)


def _together(sources: Sequence[str], run: Path | None) -> HygieneReport | None:
    """The report on several copies; None if one is named at most."""
    if run is not None:
        return check_run(load_nodes(run))
    for source in sources:
        refuse_password(source)
    return check_sources(sources) if len(sources) > 1 else None


def _report(
    sources: Sequence[str] | None,
    store: str | None,
    config: Path | None,
    access: OptionalLogonOptions,
) -> HygieneReport:
    if access.is_wanted(sources, store, config):
        with connected(access.login()) as remote:
            return check_server(remote)
    source = sources[0] if sources else None
    if source is not None and not is_store(source):
        return check_export(Path(source))
    url = store_url(refuse_password(source) or store, config)
    with opened(url) as found, found.read() as view:
        return check_view(view)


# --- output ---------------------------------------------------------------------------------------


def _as_json(report: HygieneReport) -> dict[str, object]:
    return {
        "clean": not report.findings,
        "objects": {kind.label: number for kind, number in sorted(report.objects.items())},
        "findings": [
            {
                "check": found.check,
                "explanation": found.explanation,
                "type": found.type,
                "id": found.id,
                "path": found.path,
                "detail": found.detail,
                "advice": found.advice,
            }
            for found in report.findings
        ],
        "unknown": [
            {
                "check": limit.check or None,
                "reason": limit.reason,
                "advice": limit.advice,
                "left_out": limit.left_out,
            }
            for limit in report.limits
        ],
    }


def _show(report: HygieneReport, limit: int) -> None:
    parts = [counted(number, kind.label) for kind, number in sorted(report.objects.items())]
    say(f"checked {', '.join(parts) or 'nothing'}")
    for name, group in groupby(report.findings, attrgetter("check")):
        found = list(group)
        say("")
        say(f"{name}, {counted(len(found), 'finding')}: {found[0].explanation}", "bold red")
        shown = table("object", "detail", "what to do")
        for one in found[:limit]:
            subject = f"{one.type} {one.path or one.id}"
            shown.add_row(cell(subject), cell(one.shown_detail), cell(one.advice))
        console().print(shown)
        if len(found) > limit:
            say(f"and {len(found) - limit} more: --limit {len(found)}", "dim")
    say("")
    if not report.findings:
        say("no faults found", "green")
    for unknown in report.limits:
        what = f"{unknown.check}: " if unknown.check else ""
        left = f" ({unknown.left_out} left out)" if unknown.left_out else ""
        say(f"cannot tell: {what}{unknown.reason}{left}; {unknown.advice}", "yellow")
