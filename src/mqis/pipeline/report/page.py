"""The page: a section for each table that is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mqis.pipeline.report.charts import bar_chart, line_chart, matrix
from mqis.pipeline.tables import Tables

_SHOWN = 100
_RANKED = 20
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:860px;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
svg{width:100%;font:11px system-ui,sans-serif}table{border-collapse:collapse;font-size:13px}
td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #eee}
.matrix td{text-align:center;min-width:2.5rem}.good{color:#237804}.bad{color:#a8071a}
.legend span{margin-right:1rem;font-size:12px}
.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.3rem}
.wide{overflow-x:auto}
"""


def report(tables: Tables, out: Path, title: str = "mqis pipeline report") -> list[str]:
    """Write the file; the sections that it has."""
    sections = [(name, html) for name, html in _sections(tables) if html]
    body = "".join(f"<section><h2>{escape(name)}</h2>{html}</section>" for name, html in sections)
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(title)}</h1>{body}</html>\n"
    )
    aside = out.with_name(f"{out.name}.part")
    aside.write_text(page, encoding="utf-8", errors="backslashreplace")
    aside.replace(out)
    return [name for name, _ in sections]


def _sections(tables: Tables) -> Iterator[tuple[str, str]]:
    makers = {
        "divergence": ("Divergence", _divergence),
        "lag_by_minute": ("Lag over time", _lag_over_time),
        "lag": ("Lag by way", _lag),
        "gaps": ("Gaps and duplicates", _rows),
        "traffic": ("Load of links and gates", _load),
        "what_if": ("What a failure would do", _failures),
        "hygiene": ("Hygiene", _rows),
        "errors": ("What could not be read", _rows),
    }
    for table, (name, make) in makers.items():
        if tables.has(table):
            yield name, make([row.asDict() for row in tables.read(table).limit(100_000).collect()])


Rows = Sequence[dict[str, Any]]


def _divergence(rows: Rows) -> str:
    if not rows:
        return "<p class=good>All replicas agree.</p>"
    servers, causes = sorted({r["server"] for r in rows}), sorted({r["cause"] for r in rows})
    counted = Counter((row["server"], row["cause"]) for row in rows)
    head = f"<p class=bad>{len(rows)} differences.</p>"
    columns = ("server", "difference", "type", "path", "id", "properties", "cause", "reason")
    return head + matrix(servers, causes, counted) + _rows([_chosen(row, columns) for row in rows])


def _chosen(row: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in columns}


def _lag_over_time(rows: Rows) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(rows, key=lambda row: (row["server"], row["minute"])):
        series.setdefault(row["server"], []).append((row["minute"].timestamp(), row["p95_ms"]))
    return line_chart(series, "p95 in ms, by minute")


def _lag(rows: Rows) -> str:
    ranked = sorted(rows, key=lambda row: -row["p95_ms"])[:_RANKED]
    return bar_chart([(f"{r['origin']} to {r['server']}", r["p95_ms"]) for r in ranked], "ms p95")


def _load(rows: Rows) -> str:
    ranked = sorted(rows, key=lambda row: -row["messages"])[:_RANKED]
    return bar_chart([(f"{r['kind']} {r['name']}", r["messages"]) for r in ranked], "messages")


def _failures(rows: Rows) -> str:
    cutting = sorted(rows, key=lambda row: (-row["cut_off"], -row["dearer_by"]))[:_RANKED]
    bars = [(f"{row['kind']} {row['name']}", float(row["cut_off"])) for row in cutting]
    return bar_chart(bars, "pairs of sites cut off") + _rows(cutting)


def _rows(rows: Rows) -> str:
    if not rows:
        return "<p class=good>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows[:_SHOWN]
    )
    left = f"<p>and {len(rows) - _SHOWN} more</p>" if len(rows) > _SHOWN else ""
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>{left}"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
