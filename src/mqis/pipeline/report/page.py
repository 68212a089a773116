"""The report's page: the main numbers first, then a section for each table that exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.report.charts import bar_chart, line_chart, matrix
from mqis.pipeline.report.style import STYLE
from mqis.pipeline.tables import TableDirectory

_SHOWN = 100
_RANKED = 15
#: At most this many rows of a table are read.
_READ = 100_000

Rows = Sequence[dict[str, Any]]


def report(tables: TableDirectory, out: Path, title: str = "mqis pipeline report") -> list[str]:
    """Writes the report to ``out``; returns the headings of its sections."""
    found = {name: _read(tables, name) for name in _SECTIONS if tables.has(name)}
    sections = [(*_SECTIONS[name], rows) for name, rows in found.items()]
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name, _, _ in sections)
    body = "".join(
        f'<section id="{_anchor(name)}"><h2>{escape(name)}</h2>{make(rows)}</section>'
        for name, make, rows in sections
    )
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<link rel=icon href='data:,'><style>{STYLE}</style>"
        f"<header><h1>{escape(title)}</h1><nav>{links}</nav></header>"
        f"<main>{_cards(tables, found)}{body}</main></html>\n"
    )
    aside = out.with_name(f"{out.name}.part")
    aside.write_text(page, encoding="utf-8", errors="backslashreplace")
    aside.replace(out)
    return [name for name, _, _ in sections]


def _read(tables: TableDirectory, name: str) -> Rows:
    frame: DataFrame = tables.read(name)
    if name == "what_if":
        frame = frame.orderBy(F.desc("cut_off"), F.desc("dearer_by"), "kind", "name")
    return [row.asDict() for row in frame.limit(_READ).collect()]


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


# --- numbers --------------------------------------------------------------------------------------


def _cards(tables: TableDirectory, found: dict[str, Rows]) -> str:
    numbers: list[tuple[str, str, bool | None]] = []
    if tables.has("objects"):
        servers = tables.read("objects").select("server").distinct().count()
        numbers.append(("servers", f"{servers:,}", None))
    if "divergence" in found:
        count = len(found["divergence"])
        numbers.append(("differences", f"{count:,}", count == 0))
    if "gaps" in found:
        kinds = Counter(row["kind"] for row in found["gaps"])
        numbers += [
            (f"{kind}s", f"{kinds[kind]:,}", not kinds[kind]) for kind in ("gap", "duplicate")
        ]
    if found.get("lag"):
        worst = max(row["p95_ms"] for row in found["lag"])
        numbers.append(("longest p95 lag", _milliseconds(worst), None))
    if "what_if" in found:
        cutting = sum(row["cut_off"] > 0 for row in found["what_if"])
        numbers.append(("failures that cut sites off", f"{cutting:,}", cutting == 0))
    if "hygiene" in found:
        count = len(found["hygiene"])
        numbers.append(("hygiene findings", f"{count:,}", count == 0))
    if "evidence" in found:
        count = len(found["evidence"])
        numbers.append(("doubts about the input", f"{count:,}", count == 0))
    if "errors" in found:
        count = len(found["errors"])
        numbers.append(("read errors", f"{count:,}", count == 0))
    marks = {None: "", True: "good", False: "bad"}
    cards = (
        f"<div class='card {marks[good]}'><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value, good in numbers
    )
    return f"<div class=cards>{''.join(cards)}</div>"


def _milliseconds(value: float) -> str:
    return f"{value / 1000:,.1f} s" if value >= 10_000 else f"{value:,.0f} ms"


# --- sections -------------------------------------------------------------------------------------


def _divergence(rows: Rows) -> str:
    if not rows:
        return "<p class=good>All replicas agree.</p>"
    servers = [name for name, _ in Counter(row["server"] for row in rows).most_common(40)]
    deciding = sorted({row["authority"] for row in rows})[:40]
    between = Counter((row["server"], row["authority"]) for row in rows)
    causes = Counter(row["cause"] for row in rows).most_common()
    columns = ("server", "difference", "type", "path", "id", "properties", "cause", "reason")
    return (
        "<p class=note>Objects in which a server (row) differs from an authority (column).</p>"
        + matrix(sorted(servers), deciding, between)
        + "<h3>Causes</h3>"
        + bar_chart([(cause, float(count)) for cause, count in causes], "")
        + _table([{name: row[name] for name in columns} for row in rows])
    )


def _lag_over_time(rows: Rows) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        moment = row["minute"].timestamp()
        series.setdefault(row["server"], []).append((moment, row["p95_ms"]))
    return line_chart(series, "ms, 95th percentile, by minute")


def _lag(rows: Rows) -> str:
    ranked = sorted(rows, key=lambda row: -row["p95_ms"])
    bars = [(f"{r['origin']} to {r['server']}", r["p95_ms"]) for r in ranked[:_RANKED]]
    return bar_chart(bars, "ms p95") + _table(ranked)


def _load(rows: Rows) -> str:
    ranked = sorted(rows, key=lambda row: -max(row["messages"], row["messages_after"]))[:_RANKED]
    bars = [(f"{row['kind']} {row['name']}", row["messages"]) for row in ranked]
    failed = next((row["failed"] for row in rows if row["failed"]), "")
    if not failed:
        return bar_chart(bars, "messages")
    note = f"<p class=note>The second bar: after the failure of {escape(failed)}.</p>"
    return note + bar_chart(bars, "messages", [row["messages_after"] for row in ranked])


def _failures(rows: Rows) -> str:
    cutting = [row for row in rows if row["cut_off"]][:_RANKED]
    if cutting:
        bars = [(f"{row['kind']} {row['name']}", float(row["cut_off"])) for row in cutting]
        note = "<p class=note>Pairs of sites that the failure cuts off from each other.</p>"
        return note + bar_chart(bars, "pairs") + _table(rows)
    dearer = sorted(rows, key=lambda row: -row["dearer_by"])[:_RANKED]
    bars = [(f"{row['kind']} {row['name']}", float(row["dearer_by"])) for row in dearer]
    note = "<p class=good>No single failure cuts a site off. Added cost over all routes:</p>"
    return note + bar_chart(bars, "added cost") + _table(rows)


def _table(rows: Rows) -> str:
    if not rows:
        return "<p class=good>None.</p>"
    head = "".join(_th(name, value) for name, value in rows[0].items())
    body = "".join(
        "<tr>" + "".join(_td(value) for value in row.values()) + "</tr>" for row in rows[:_SHOWN]
    )
    left = len(rows) - _SHOWN
    more = f"<p class=note>{left:,} more rows are not shown</p>" if left > 0 else ""
    return (
        f"<details {'open' if len(rows) <= _RANKED else ''}><summary>{len(rows):,} rows</summary>"
        f"<div class=wide><table><tr>{head}</tr>{body}</table></div>{more}</details>"
    )


def _th(name: str, value: object) -> str:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<th scope=col{' class=number' if numeric else ''}>{escape(name)}</th>"


def _td(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return (
            f"<td class=number>{value:,.6g}</td>" if isinstance(value, float) else _integer(value)
        )
    if isinstance(value, list):
        return f"<td>{escape(', '.join(map(str, value)))}</td>"
    if isinstance(value, datetime):
        return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
    return f"<td>{escape(str(value))}</td>"


def _integer(value: int) -> str:
    return f"<td class=number>{value:,}</td>"


#: By table: the section's heading and the function that makes it.
_SECTIONS: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "divergence": ("Divergence", _divergence),
    "lag_by_minute": ("Lag over time", _lag_over_time),
    "lag": ("Lag by authority and replica", _lag),
    "gaps": ("Gaps and duplicates", _table),
    "rounds": ("Messages and synchronisations", _table),
    "margins": ("Purge margins", _table),
    "traffic": ("Load of links and gates", _load),
    "what_if": ("Effects of single failures", _failures),
    "hygiene": ("Hygiene", _table),
    "evidence": ("Evidence", _table),
    "errors": ("Read errors", _table),
}
