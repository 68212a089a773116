"""Renders results as tables for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.environment import Environment
from bench.results import Results, Row
from bench.run import Bench


def as_json(
    environment: Environment, load_at_end: float, quick: bool, done: Iterable[tuple[Bench, Results]]
) -> dict[str, Any]:
    return {
        "environment": asdict(environment),
        "load_at_end": load_at_end,
        "quick": quick,
        "entries": {bench.name: {"what": bench.what, **asdict(results)} for bench, results in done},
    }


def show(console: Console, bench: Bench, results: Results) -> None:
    console.print()
    console.print(Text(f"{bench.name}: {bench.what}", style="bold"))
    for title, rows in groupby(results.rows, key=lambda row: row.table):
        console.print(_table(title, list(rows)))
        console.print()
    for note in results.notes:
        console.print(note, soft_wrap=True, highlight=False, markup=False)
    for aim in results.aims:
        style = "green" if aim.met else "red"
        console.print(str(aim), style=style, soft_wrap=True, highlight=False, markup=False)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3f}"


#: Each column's heading, and the function that formats a row's cell; empty columns are left out.
_COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("per second", lambda row: _rate(row.per_second)),
    ("seconds", lambda row: "" if row.seconds is None else f"{row.seconds:.2f}"),
    ("p50 ms", lambda row: "" if row.p50_ms is None else _ms(row.p50_ms)),
    ("p99 ms", lambda row: "" if row.p99_ms is None else _ms(row.p99_ms)),
    ("CPU us", lambda row: "" if row.cpu_us is None else f"{row.cpu_us:,.0f}"),
    ("MB/s", lambda row: "" if row.mb_per_second is None else _rate(row.mb_per_second)),
    ("ratio", lambda row: "" if row.ratio is None else f"{row.ratio:.2f}x"),
)


_LOOK: dict[str, Any] = {"box": SIMPLE_HEAD, "pad_edge": False, "show_edge": False}


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", **_LOOK)
    table.add_column("", no_wrap=True)
    columns = [(head, show) for head, show in _COLUMNS if any(show(row) for row in rows)]
    for head, _ in columns:
        table.add_column(head, justify="right", no_wrap=True)
    peers = any(row.peer for row in rows)
    if peers:
        table.add_column("against", no_wrap=True)
    for row in rows:
        cells = [row.name, *(show(row) for _, show in columns)]
        table.add_row(*map(Text, [*cells, row.peer or ""] if peers else cells))
    return table
