"""Charts as SVG, drawn here: lines, bars and a matrix are all that a report needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 240, 60, 30
_COLOURS = ("#1f6feb", "#d4380d", "#389e0d", "#722ed1", "#d48806", "#08979c", "#c41d7f", "#595959")

Points = Sequence[tuple[float, float]]


def line_chart(series: Mapping[str, Points], unit: str) -> str:
    """Lines over time; x is seconds since some moment."""
    points = [point for line in series.values() for point in line]
    if not points:
        return _nothing()
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top = max(y for _, y in points) or 1.0

    def place(point: tuple[float, float]) -> str:
        x = _LEFT + (point[0] - left) / ((right - left) or 1) * (_WIDTH - _LEFT - 10)
        y = 10 + (1 - point[1] / top) * (_HEIGHT - _BOTTOM - 10)
        return f"{x:.1f},{y:.1f}"

    parts = _axis(top, unit)
    for index, (name, line) in enumerate(series.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(place(point) for point in sorted(line))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(name)}</title></polyline>"
        )
    return _svg(parts, _HEIGHT) + _legend(series)


def bar_chart(bars: Sequence[tuple[str, float]], unit: str) -> str:
    """Horizontal bars, in the order given."""
    if not bars:
        return _nothing()
    top = max(value for _, value in bars) or 1.0
    parts = []
    for index, (name, value) in enumerate(bars):
        y = 4 + index * 20
        width = value / top * (_WIDTH - 340)
        parts.append(
            f'<text x="240" y="{y + 11}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="248" y="{y}" width="{width:.1f}" height="14" fill="{_COLOURS[0]}"/>'
            f'<text x="{254 + width:.1f}" y="{y + 11}">{value:,.6g} {escape(unit)}</text>'
        )
    return _svg(parts, 8 + 20 * len(bars))


def matrix(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], int]
) -> str:
    """Counts by row and column, darker where there are more."""
    if not rows or not columns:
        return _nothing()
    top = max(cells.values(), default=0) or 1
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = []
    for row in rows:
        tds = "".join(_cell(cells.get((row, column), 0), top) for column in columns)
        body.append(f"<tr><th>{escape(row)}</th>{tds}</tr>")
    return f"<table class=matrix><tr><th></th>{head}</tr>{''.join(body)}</table>"


def _cell(count: int, top: int) -> str:
    strength = 0 if not count else 0.15 + 0.85 * count / top
    return f'<td style="background:rgba(212,56,13,{strength:.2f})">{count or ""}</td>'


def _axis(top: float, unit: str) -> list[str]:
    low = _HEIGHT - _BOTTOM
    return [
        f'<line x1="{_LEFT}" y1="10" x2="{_LEFT}" y2="{low}" stroke="#999"/>',
        f'<line x1="{_LEFT}" y1="{low}" x2="{_WIDTH - 10}" y2="{low}" stroke="#999"/>',
        f'<text x="{_LEFT - 6}" y="16" text-anchor="end">{top:,.4g}</text>',
        f'<text x="{_LEFT - 6}" y="{low}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{escape(unit)}</text>',
    ]


def _legend(series: Mapping[str, object]) -> str:
    marks = (
        f'<span><i style="background:{_COLOURS[index % len(_COLOURS)]}"></i>{escape(name)}</span>'
        for index, name in enumerate(series)
    )
    return f"<p class=legend>{''.join(marks)}</p>"


def _svg(parts: Sequence[str], height: int) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _nothing() -> str:
    return "<p>Nothing to show.</p>"
