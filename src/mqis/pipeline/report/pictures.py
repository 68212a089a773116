"""The pictures of the report, from its content; a picture without data is left out."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from html import escape

from mqis.pipeline.report.charts import bar_chart, line_chart, matrix
from mqis.pipeline.report.content import ReportContent
from mqis.pipeline.report.wording import CAUSES
from mqis.texts import counted

_RANKED = 15
_SITES = 40


def _map(content: ReportContent) -> str:
    """The map as an image: names in it cannot become part of the page, nor its style."""
    if not content.sitemap:
        return ""
    data = b64encode(content.sitemap.encode(errors="replace")).decode("ascii")
    alt = "Map of the sites and the links between them"
    return f'<img class=map alt="{alt}" src="data:image/svg+xml;base64,{data}">'


def _by_site(content: ReportContent) -> str:
    """Queues by site; the machines in words beside them."""
    counts = {(row["partition"], row["type"]): row["count"] for row in content.inventory}
    queues = Counter({site: n for (site, kind), n in counts.items() if kind == "queue"})
    if not queues:
        return ""
    ranked = queues.most_common(_RANKED)
    bars = [(_site(site, counts.get((site, "machine"), 0)), float(n)) for site, n in ranked]
    left = len(queues) - len(ranked)
    note = f"<p class=note>The {_RANKED} largest of {len(queues):,} sites.</p>" if left else ""
    return bar_chart(bars, "queues") + note


def _site(name: str, machines: int) -> str:
    return f"{name} ({counted(machines, 'machine')})"


def _divergence(content: ReportContent) -> str:
    rows = content.tables.get("divergence")
    if rows is None:
        return ""
    if not rows:
        return "<p class=good>All servers hold the same directory.</p>"
    servers = [name for name, _ in Counter(row["server"] for row in rows).most_common(_SITES)]
    deciding = sorted({row["authority"] for row in rows})[:_SITES]
    between = Counter((row["server"], row["authority"]) for row in rows)
    return (
        "<p class=note>The number of objects in which a server (row) differs from the authority "
        "that decides about them (column).</p>" + matrix(sorted(servers), deciding, between)
    )


def _causes(content: ReportContent) -> str:
    rows = content.tables.get("divergence", ())
    causes = Counter(row["cause"] for row in rows).most_common()
    bars = [(CAUSES.get(cause, cause), float(count)) for cause, count in causes]
    note = "<p class=note>What became of the changes that servers lack.</p>"
    return note + bar_chart(bars, "") if bars else ""


def _activity(content: ReportContent) -> str:
    points = ((p["origin"], p["moment"], p["changes"]) for p in content.activity)
    return _lines(points, "changes, by authority")


def _lag_over_time(content: ReportContent) -> str:
    points = ((p["server"], p["moment"], p["p95_ms"] / 1000) for p in content.lag_over_time)
    return _lines(points, "seconds until 95 % of changes arrived")


def _lines(points: Iterable[tuple[str, float, float]], unit: str) -> str:
    """A line for each name of (name, moment, value)."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, moment, value in points:
        series[name].append((moment, value))
    return line_chart(series, unit) if series else ""


def _lag(content: ReportContent) -> str:
    ranked = sorted(content.tables.get("lag", ()), key=lambda row: -row["p95_ms"])[:_RANKED]
    bars = [(f"{row['origin']} to {row['server']}", row["p95_ms"] / 1000) for row in ranked]
    return bar_chart(bars, "s") if bars else ""


def _load(content: ReportContent) -> str:
    rows = content.tables.get("traffic", ())
    ranked = sorted(rows, key=lambda row: -max(row["messages"], row["messages_after"]))[:_RANKED]
    if not ranked:
        return ""
    bars = [(f"{row['kind']} {row['name']}", row["messages"]) for row in ranked]
    failed = next((row["failed"] for row in rows if row["failed"]), "")
    if not failed:
        return bar_chart(bars, "messages")
    note = f"<p class=note>The second bar: after the failure of {escape(failed)}.</p>"
    return note + bar_chart(bars, "messages", [row["messages_after"] for row in ranked])


def _failures(content: ReportContent) -> str:
    rows = content.tables.get("what_if", ())
    if not rows:
        return ""
    cutting = [row for row in rows if row["cut_off"]][:_RANKED]
    if cutting:
        bars = [(f"{row['kind']} {row['name']}", float(row["cut_off"])) for row in cutting]
        note = "<p class=note>Pairs of sites that one failure cuts off from each other.</p>"
        return note + bar_chart(bars, "pairs")
    dearer = sorted(rows, key=lambda row: -row["dearer_by"])[:_RANKED]
    bars = [(f"{row['kind']} {row['name']}", float(row["dearer_by"])) for row in dearer]
    note = "<p class=good>No single failure cuts a site off. The cost that one adds:</p>"
    return note + bar_chart(bars, "added cost")


#: The headings and the functions that draw.
PICTURES: tuple[tuple[str, Callable[[ReportContent], str]], ...] = (
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
