"""``mqis check``: faults in a directory on which all replicas agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.findings import LimitOption, check_json, show_report
from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import (
    ConfigOption,
    JsonOption,
    OptionalRunOption,
    StoreOption,
    opened,
    refuse_password,
    run_here,
    spread,
    store_url,
)
from mqis.cli.output import print_error, print_json
from mqis.config.nodes import load_nodes
from mqis.findings import CheckReport
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


@spread
def check(
    sources: SourcesArgument = None,
    *,
    run: OptionalRunOption = None,
    limit: LimitOption = 20,
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
    run = run or run_here(sources, store, config, access.is_wanted())
    if sum(map(bool, (sources, store, run, access.is_given))) > 1:
        raise typer.BadParameter("FILE or STORE, --store, --run and --server exclude each other")
    try:
        report = _together(sources or (), run) or _report(sources, store, config, access)
    except MqisError as error:
        print_error(str(error))
        raise typer.Exit(2) from None
    if json:
        print_json(check_json(report))
    else:
        show_report(report, limit)
    if report.failed:
        raise typer.Exit(1)


def _together(sources: Sequence[str], run: Path | None) -> CheckReport | None:
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
) -> CheckReport:
    if access.is_wanted(sources, store, config):
        with connected(access.login()) as remote:
            return check_server(remote)
    source = sources[0] if sources else None
    if source is not None and not is_store(source):
        return check_export(Path(source))
    url = store_url(refuse_password(source) or store, config)
    with opened(url) as found, found.read() as view:
        return check_view(view)
