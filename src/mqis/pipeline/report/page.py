"""The report's page: findings first, then inventory, pictures, and the rows behind them.

The page is one file without scripts. Names in it come from anywhere, so everything is escaped, and
its policy forbids scripts and all requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mqis.findings import Finding, Gravity
from mqis.pages import rendered
from mqis.pipeline.report.content import ReportContent
from mqis.pipeline.report.findings import findings
from mqis.pipeline.report.htmltables import RowTable
from mqis.pipeline.report.pictures import PICTURES, Block, Remark
from mqis.pipeline.report.wording import INVENTORY, TABLES
from mqis.texts import agreeing, duration, minute

_VERDICTS = {
    Gravity.ERROR: ("bad", "Action needed"),
    Gravity.WARNING: ("warn", "Needs attention"),
    Gravity.OK: ("good", "In order"),
}


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the page: its heading, and what stands below it."""

    name: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        return self.name.lower().replace(" ", "-")

    @property
    def is_table(self) -> bool:
        return self.name in TABLES.values()


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """The verdict, and the findings that it is made of."""

    KIND: ClassVar[str] = "verdict"

    mark: str
    word: str
    #: (mark, sentence, what to do first) of each.
    findings: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class NumberCards:
    """Numbers side by side: (name, value, mark)."""

    KIND: ClassVar[str] = "cards"

    cards: tuple[tuple[str, str, str], ...]


def html_page(content: ReportContent, *, unfolded: bool = False) -> str:
    """The page; ``unfolded`` opens all tables, for paper."""
    sections = [*_sections(content, unfolded)]
    return rendered(
        "report.html",
        title=title_of(content),
        dates=_dates(content),
        links=[*_links(sections)],
        sections=sections,
    )


def title_of(content: ReportContent) -> str:
    return f"{content.enterprise or 'Enterprise'}: state of the directory"


def headings(content: ReportContent) -> list[str]:
    return [section.name for section in _sections(content, False)]


def _dates(content: ReportContent) -> str:
    parts = [f"Report of {minute(content.written)}"]
    if content.began is not None and content.ended is not None:
        parts.append(f"period {minute(content.began)} to {minute(content.ended)}")
    return ", ".join(parts) + " (UTC)."


def _sections(content: ReportContent, unfolded: bool) -> Iterator[ReportSection]:
    if sentences := findings(content):
        yield ReportSection("In short", (_verdict(sentences),))
    if cards := tuple(_numbers(content)):
        yield ReportSection("Inventory", (NumberCards(cards),))
    for name, draw in PICTURES:
        if blocks := draw(content):
            yield ReportSection(name, tuple(blocks))
    for table, name in TABLES.items():
        if rows := content.tables.get(table):
            found = RowTable.of(table, rows, content.count(table), unfolded=unfolded)
            yield ReportSection(name, (found,))
        elif table in content.tables:
            yield ReportSection(name, (Remark("None.", "good"),))


def _links(sections: Sequence[ReportSection]) -> Iterator[tuple[str, str]]:
    """Links to the sections, (name, anchor); one for all tables."""
    yield from ((each.name, each.anchor) for each in sections if not each.is_table)
    yield from [("Tables", each.anchor) for each in sections if each.is_table][:1]


def _verdict(made: Sequence[Finding]) -> VerdictBlock:
    mark, word = _VERDICTS[made[0].gravity]
    told = tuple((_VERDICTS[found.gravity][0], found.what, found.todo) for found in made)
    return VerdictBlock(mark, word, told)


# --- numbers --------------------------------------------------------------------------------------


def _numbers(content: ReportContent) -> Iterator[tuple[str, str, str]]:
    """The numbers of the inventory and of what was found: (name, value, mark)."""
    if content.servers:
        yield "directory servers", f"{content.servers:,}", ""
    held: Counter[str] = Counter()
    for row in content.inventory:
        held[row["type"]] += row["count"]
    for kind, plural in INVENTORY.items():
        if held[kind]:
            yield agreeing(held[kind], kind, plural), f"{held[kind]:,}", ""
    if content.changes is not None:
        yield "changes", f"{content.changes:,}", ""
    if lag := content.tables.get("lag"):
        yield "longest delay (95 %)", duration(max(row["p95_ms"] for row in lag) / 1000), ""
    for table, name in (
        ("divergence", "differences"),
        ("hygiene", "objects to look at"),
        ("gaps", "skipped or repeated"),
        ("evidence", "doubts about the input"),
        ("errors", "read errors"),
    ):
        if table in content.tables:
            count = content.count(table)
            yield name, f"{count:,}", "bad" if count else "good"
