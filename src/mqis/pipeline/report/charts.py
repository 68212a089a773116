"""Charts of the report as SVG and HTML: lines, bars and a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from mqis.texts import tick_text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 820, 260, 64, 16, 14, 34
#: Colour-blind readers can distinguish these (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a800")
_SERIES = len(_COLOURS)
_BAR = 22
#: The room for the labels of bars, by their length; longer ones are cut.
_NARROWEST, _WIDEST, _LETTER = 120, 360, 7.6

Points = Sequence[tuple[float, float]]


def line_chart(series: Mapping[str, Points], unit: str) -> str:
    """Lines over time; x is seconds since 1970. Draws only the highest of many series."""
    if not any(series.values()):
        return _nothing()
    ranked = sorted(series.items(), key=lambda item: -max(y for _, y in item[1]))
    drawn = dict(sorted(ranked[:_SERIES]))
    points = [point for line in drawn.values() for point in line]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    ticks = _ticks(max(y for _, y in points))
    frame = _Frame(left, right, ticks[-1])
    parts = frame.grid(ticks, unit)
    for index, (name, line) in enumerate(drawn.items()):
        parts.append(_line(frame, name, sorted(line), _COLOURS[index]))
    left_out = len(series) - len(drawn)
    note = f"<p class=note>The {len(drawn)} highest of {len(series)}.</p>" if left_out else ""
    return _svg(parts, _HEIGHT, unit) + _legend(drawn) + note


class _Frame:
    """The axes of a line chart: maps values to positions in the picture."""

    def __init__(self, left: float, right: float, top: float) -> None:
        self.left, self.right, self.top = left, right, top or 1.0

    def x(self, value: float) -> float:
        share = (value - self.left) / ((self.right - self.left) or 1)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (1 - value / self.top) * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self, ticks: Sequence[float], unit: str) -> list[str]:
        parts = [f'<text class=axis x="{_LEFT}" y="{_TOP - 4}">{escape(unit)}</text>']
        for tick in ticks:
            y = self.y(tick)
            parts.append(
                f'<line class=grid x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
                f'<text class=axis x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{_number(tick)}</text>"
            )
        for step in range(5):
            moment = self.left + (self.right - self.left) * step / 4
            anchor = ("start", "middle", "middle", "middle", "end")[step]
            parts.append(
                f'<text class=axis x="{self.x(moment):.1f}" y="{_HEIGHT - 12}" '
                f'text-anchor="{anchor}">{self._time(moment)}</text>'
            )
            if self.right == self.left:
                break
        return parts

    def _time(self, moment: float) -> str:
        return tick_text(moment, self.right - self.left, first=moment == self.left)


def _line(frame: _Frame, name: str, points: Points, colour: str) -> str:
    title = f"<title>{escape(name)}</title>"
    if len(points) == 1:
        x, y = frame.x(points[0][0]), frame.y(points[0][1])
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}">{title}</circle>'
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    return f'<polyline points="{path}" stroke="{colour}">{title}</polyline>'


def bar_chart(
    bars: Sequence[tuple[str, float]], unit: str, after: Sequence[float] | None = None
) -> str:
    """Horizontal bars, in the order given; ``after`` draws a second one below each."""
    if not bars:
        return _nothing()
    values = [value for _, value in bars] + list(after or ())
    top = max(values) or 1.0
    label = min(max(_LETTER * max(len(name) for name, _ in bars) + 10, _NARROWEST), _WIDEST)
    room = _WIDTH - label - 120
    step = _BAR if after is None else 2 * _BAR - 6
    parts = []
    for index, (name, value) in enumerate(bars):
        y = 4 + index * step
        parts.append(
            f'<text x="{label - 8:.1f}" y="{y + 12}" text-anchor="end">{escape(_short(name))}'
            f"<title>{escape(name)}</title></text>"
        )
        parts.append(_bar((label, y), value / top * room, f"{_number(value)} {unit}", _COLOURS[0]))
        if after is not None:
            wide = after[index] / top * room
            text = f"{_number(after[index])} after"
            parts.append(_bar((label, y + _BAR - 6), wide, text, _COLOURS[1]))
    return _svg(parts, 8 + step * len(bars), unit)


def _bar(at: tuple[float, float], width: float, text: str, colour: str) -> str:
    x, y = at
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="15" rx="2" '
        f'fill="{colour}"/>'
        f'<text x="{x + 6 + width:.1f}" y="{y + 12:.1f}">{escape(text)}</text>'
    )


def matrix(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], int]
) -> str:
    """A table of counts by row and column, with darker cells for higher counts."""
    if not rows or not columns:
        return _nothing()
    top = max(cells.values(), default=0) or 1
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in columns)
    body = []
    for row in rows:
        tds = "".join(_cell(cells.get((row, column), 0), top) for column in columns)
        total = sum(cells.get((row, column), 0) for column in columns)
        body.append(f"<tr><th scope=row>{escape(row)}</th>{tds}<td class=sum>{total}</td></tr>")
    return (
        f"<div class=wide><table class=matrix><tr><th></th>{head}<th scope=col>all</th></tr>"
        f"{''.join(body)}</table></div>"
    )


def _cell(count: int, top: int) -> str:
    if not count:
        return "<td></td>"
    return f'<td class=hit style="--share:{0.2 + 0.6 * count / top:.2f}">{count}</td>'


def _ticks(top: float) -> list[float]:
    """Round axis values from 0 to at least ``top``."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / 4
    power = 10 ** floor(log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw)
    return [step * number for number in range(ceil(top / step) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


def _short(name: str, most: int = 48) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _legend(series: Mapping[str, object]) -> str:
    marks = (
        f'<span><i style="background:{_COLOURS[index]}"></i>{escape(name)}</span>'
        for index, name in enumerate(series)
    )
    return f"<p class=legend>{''.join(marks)}</p>"


def _svg(parts: Sequence[str], height: int, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _nothing() -> str:
    return "<p class=note>Nothing to show.</p>"
