"""The report: one HTML file for people who run no server, and the same as PDF."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mqis.pipeline.locations import write_output
from mqis.pipeline.printing import print_pdf
from mqis.pipeline.report.content import DrawMap, read_content
from mqis.pipeline.report.page import headings, html_page
from mqis.pipeline.tables import TableStore


def report(
    tables: TableStore,
    out: Path,
    *,
    pdf: Path | None = None,
    written: datetime | None = None,
    draw: DrawMap | None = None,
) -> list[str]:
    """Writes the report, and as PDF if ``pdf`` is given; returns the headings of its sections.

    ``draw`` makes the picture of the map; without it the report has none.
    """
    content = read_content(tables, written, draw)
    write_output(out, html_page(content).encode(errors="backslashreplace"))
    if pdf is not None:
        print_pdf(html_page(content, unfolded=True).encode(errors="backslashreplace"), pdf)
    return headings(content)


__all__ = ["report"]
