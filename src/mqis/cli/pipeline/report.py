"""``mqis pipeline report``: the state of the enterprise for people who run no server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.options import JsonOption, spread
from mqis.cli.output import print_json, say
from mqis.cli.pipeline.opening import interruptible, opened_tables
from mqis.cli.pipeline.options import TableOptions
from mqis.texts import joined

if TYPE_CHECKING:
    from mqis.pipeline.tables import TableStore

REPORT = "report.html"


@interruptible
@spread
def report(
    out: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]",
            help=f"The HTML file to write. Default: {REPORT}, with --run in its tables.",
            show_default=False,
        ),
    ] = "",
    *,
    pdf: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write it as PDF too; this needs Chromium or a browser like it.",
            show_default=False,
        ),
    ] = "",
    place: TableOptions,
    json: JsonOption = False,
) -> None:
    """Write a report: findings and what to do first, inventory, pictures, tables.

    It is one HTML file that needs no network.
    """
    from mqis.pipeline.locations import local_path  # noqa: PLC0415

    default = place.directory / REPORT if place.run is not None else Path(REPORT)
    html, printed = local_path(out) if out else default, local_path(pdf) if pdf else None
    _check_browser(printed)
    with opened_tables(place) as opened:
        sections = write_report(opened, html, printed)
    files = [str(path) for path in (html, printed) if path is not None]
    if json:
        print_json({"files": files, "sections": sections})
    else:
        names = ", ".join(sections) or "nothing, there are no tables"
        say(f"wrote {joined(files)}: {names}")


def write_report(opened: TableStore, html: Path, pdf: Path | None = None) -> list[str]:
    """Writes the report with the picture that 'mqis map' draws; returns its headings."""
    from mqis.pipeline.report import report as job  # noqa: PLC0415
    from mqis.views.sitemap.picture import picture_of_objects  # noqa: PLC0415

    return job(opened, html, pdf=pdf, draw=picture_of_objects)


def _check_browser(pdf: Path | None) -> None:
    """Reports a missing browser before Spark starts."""
    if pdf is not None:
        from mqis.pipeline.printing import find_browser  # noqa: PLC0415

        find_browser()
