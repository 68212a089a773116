"""The report's page: findings first, then inventory, pictures, and the rows behind them.

The page is one file without scripts. Names in it come from anywhere, so everything is escaped, and
its policy forbids scripts and all requests.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from mqis.findings import Finding, Gravity
from mqis.pages import rendered
from mqis.pages.charts import BarChart, CountMatrix, LineChart
from mqis.pipeline.report.content import ReportContent
from mqis.pipeline.report.findings import findings
from mqis.pipeline.report.htmltables import RowTable
from mqis.pipeline.report.wording import CAUSES, INVENTORY, TABLES
from mqis.texts import agreeing, counted, duration, minute

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
        ("evidence", "doubts about the input"),
        ("errors", "read errors"),
    ):
        if table in content.tables:
            yield _found(name, content.count(table))
    if "gaps" in content.tables:
        certain = sum(row["certain"] for row in content.tables["gaps"])
        yield _found("skipped or repeated", certain)
        if doubtful := content.count("gaps") - certain:
            yield _found("perhaps skipped or repeated", doubtful)


def _found(name: str, count: int) -> tuple[str, str, str]:
    return name, f"{count:,}", "bad" if count else "good"


_RANKED = 15
_SITES = 40


class Block(Protocol):
    """A part of a section; the template of the report has a macro for each ``KIND``."""

    KIND: ClassVar[str]


Blocks = list[Block]


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence between pictures."""

    KIND: ClassVar[str] = "note"

    text: str
    #: note or good.
    mark: str = "note"


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture that is an image of its own."""

    KIND: ClassVar[str] = "image"

    alt: str
    source: str


def _map(content: ReportContent) -> Blocks:
    """The map as an image: names in it cannot become part of the page, nor its style."""
    if not content.sitemap:
        return []
    data = b64encode(content.sitemap.encode(errors="replace")).decode("ascii")
    alt = "Map of the sites and the links between them"
    return [PictureFile(alt, f"data:image/svg+xml;base64,{data}")]


def _charted(chart: LineChart | BarChart | None, *before: Remark) -> Blocks:
    """The chart behind remarks; nothing if there is nothing to draw."""
    return [] if chart is None else [*before, chart]


def _by_site(content: ReportContent) -> Blocks:
    """Queues by site; the machines in words beside them."""
    counts = {(row["partition"], row["type"]): row["count"] for row in content.inventory}
    queues = Counter({site: n for (site, kind), n in counts.items() if kind == "queue"})
    if not queues:
        return []
    ranked = queues.most_common(_RANKED)
    bars = [(_site(site, counts.get((site, "machine"), 0)), float(n)) for site, n in ranked]
    left = len(queues) - len(ranked)
    note = [Remark(f"The {_RANKED} largest of {counted(len(queues), 'site')}.")] if left else []
    return [*_charted(BarChart.of(bars, "queues")), *note]


def _site(name: str, machines: int) -> str:
    return f"{name} ({counted(machines, 'machine')})"


def _divergence(content: ReportContent) -> Blocks:
    rows = content.tables.get("divergence")
    if rows is None:
        return []
    if not rows:
        return [Remark("All servers hold the same directory.", "good")]
    servers = [name for name, _ in Counter(row["server"] for row in rows).most_common(_SITES)]
    deciding = sorted({row["authority"] for row in rows})[:_SITES]
    between = Counter((row["server"], row["authority"]) for row in rows)
    note = Remark(
        "The number of objects in which a server (row) differs from the authority that decides "
        "about them (column)."
    )
    return [note, CountMatrix.of(sorted(servers), deciding, between)]


def _causes(content: ReportContent) -> Blocks:
    rows = content.tables.get("divergence", ())
    causes = Counter(row["cause"] for row in rows).most_common()
    bars = [(CAUSES.get(cause, cause), float(count)) for cause, count in causes]
    note = Remark("What became of the changes that servers lack.")
    return _charted(BarChart.of(bars, ""), note)


def _activity(content: ReportContent) -> Blocks:
    points = ((p["origin"], p["moment"], p["changes"]) for p in content.activity)
    return _lines(points, "changes, by authority")


def _lag_over_time(content: ReportContent) -> Blocks:
    points = ((p["server"], p["moment"], p["p95_ms"] / 1000) for p in content.lag_over_time)
    return _lines(points, "seconds until 95 % of changes arrived")


def _lines(points: Iterable[tuple[str, float, float]], unit: str) -> Blocks:
    """A line for each name of (name, moment, value)."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, moment, value in points:
        series[name].append((moment, value))
    return _charted(LineChart.of(series, unit))


def _lag(content: ReportContent) -> Blocks:
    ranked = sorted(content.tables.get("lag", ()), key=lambda row: -row["p95_ms"])[:_RANKED]
    bars = [(f"{row['origin']} to {row['server']}", row["p95_ms"] / 1000) for row in ranked]
    return _charted(BarChart.of(bars, "s"))


def _load(content: ReportContent) -> Blocks:
    rows = content.tables.get("traffic", ())
    ranked = sorted(rows, key=lambda row: -max(row["messages"], row["messages_after"]))[:_RANKED]
    if not ranked:
        return []
    bars = [(f"{row['kind']} {row['name']}", row["messages"]) for row in ranked]
    failed = next((row["failed"] for row in rows if row["failed"]), "")
    if not failed:
        return _charted(BarChart.of(bars, "messages"))
    note = Remark(f"The second bar: after the failure of {failed}.")
    after = [row["messages_after"] for row in ranked]
    return _charted(BarChart.of(bars, "messages", after), note)


def _failures(content: ReportContent) -> Blocks:
    rows = content.tables.get("what_if", ())
    if not rows:
        return []
    cutting = [row for row in rows if row["cut_off"]][:_RANKED]
    if cutting:
        bars = [(f"{row['kind']} {row['name']}", float(row["cut_off"])) for row in cutting]
        note = Remark("Pairs of sites that one failure cuts off from each other.")
        return _charted(BarChart.of(bars, "pairs"), note)
    dearer = sorted(rows, key=lambda row: -row["dearer_by"])[:_RANKED]
    bars = [(f"{row['kind']} {row['name']}", float(row["dearer_by"])) for row in dearer]
    note = Remark("No single failure cuts a site off. The cost that one adds:", "good")
    return _charted(BarChart.of(bars, "added cost"), note)


#: The headings and the functions that draw.
PICTURES: tuple[tuple[str, Callable[[ReportContent], Blocks]], ...] = (
    ("Sites and links", _map),
    ("Queues by site", _by_site),
    ("Differences between servers", _divergence),
    ("Causes of differences", _causes),
    ("Changes over time", _activity),
    ("Delay of changes over time", _lag_over_time),
    ("Slowest ways", _lag),
    ("Single failures", _failures),
    ("Load of links and gates", _load),
)
