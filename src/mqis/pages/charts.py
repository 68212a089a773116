"""Charts as plain values: where each line, bar and label stands. The templates draw them.

Those of the report have axes and colours of their own; the console's small curves are stretched by
their page, which has the words beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isnan, log10
from typing import ClassVar

from mqis.texts import tick_text

#: The picture of a chart, and the room for the labels of its axes.
WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 820, 260, 64, 16, 14, 34
#: Colour-blind readers can distinguish these (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a800")
_BAR = 22
#: The room for the labels of bars, by their length; longer ones are cut.
_NARROWEST, _WIDEST, _LETTER = 120, 360, 7.6
_ANCHORS = ("start", "middle", "middle", "middle", "end")

Points = Sequence[tuple[float, float]]


# --- axes and paths -------------------------------------------------------------------------------


def round_steps(top: float, *, parts: int, steps: Sequence[float]) -> list[float]:
    """Round values of an axis from 0 to at least ``top``, in at most so many parts."""
    if top <= 0 or isnan(top):
        return [0.0, 1.0]
    raw = top / parts
    power = 10.0 ** floor(log10(raw))
    step = next(s * power for s in (*steps, 10) if s * power >= raw)
    return [step * number for number in range(ceil(top / step) + 1)]


def path_of(points: Points) -> str:
    """The data of an SVG path through the points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def area_of(points: Points, ground: float) -> str:
    """The data of the area between the points and the ground."""
    return f"{path_of(points)}L{points[-1][0]:g} {ground}L{points[0][0]:g} {ground}Z"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.3g}"


# --- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnLine:
    name: str
    colour: str
    #: A single one is a dot.
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over time."""

    KIND: ClassVar[str] = "line_chart"

    unit: str
    #: (y, text) of the values.
    ticks: tuple[tuple[float, str], ...]
    #: (x, anchor, text) of the moments.
    moments: tuple[tuple[str, str, str], ...]
    lines: tuple[DrawnLine, ...]
    #: The number of all lines, of which the highest are drawn.
    total: int
    width: int = WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP

    @classmethod
    def of(cls, series: Mapping[str, Points], unit: str) -> LineChart | None:
        """Lines of (seconds since 1970, value); None if there are no points."""
        ranked = sorted(
            (item for item in series.items() if item[1]),
            key=lambda item: -max(y for _, y in item[1]),
        )
        drawn = dict(sorted(ranked[: len(_COLOURS)]))
        points = [point for line in drawn.values() for point in line]
        if not points:
            return None
        begin, end = min(x for x, _ in points), max(x for x, _ in points)
        ticks = round_steps(max(y for _, y in points), parts=4, steps=(1, 2, 2.5, 5))
        frame = _Frame(begin, end, ticks[-1])
        return cls(
            unit,
            tuple((frame.y(tick), _number(tick)) for tick in ticks),
            tuple(frame.moments()),
            tuple(
                DrawnLine(name, colour, tuple(map(frame.place, sorted(line))))
                for (name, line), colour in zip(drawn.items(), _COLOURS, strict=False)
            ),
            len(series),
        )


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to positions in the picture."""

    begin: float
    end: float
    highest: float

    def x(self, value: float) -> float:
        share = (value - self.begin) / ((self.end - self.begin) or 1)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (1 - value / (self.highest or 1.0)) * (_HEIGHT - _TOP - _BOTTOM)

    def place(self, point: tuple[float, float]) -> tuple[str, str]:
        return f"{self.x(point[0]):.1f}", f"{self.y(point[1]):.1f}"

    def moments(self) -> list[tuple[str, str, str]]:
        span = self.end - self.begin
        found = []
        for step, anchor in enumerate(_ANCHORS if span else _ANCHORS[:1]):
            at = self.begin + span * step / 4
            text = tick_text(at, span, first=at == self.begin)
            found.append((f"{self.x(at):.1f}", anchor, text))
        return found


# --- bars -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnBar:
    y: int
    width: float
    text: str
    colour: str
    #: Its label; empty for a second bar.
    name: str = ""


@dataclass(frozen=True, slots=True)
class BarChart:
    """Horizontal bars."""

    KIND: ClassVar[str] = "bar_chart"

    unit: str
    bars: tuple[DrawnBar, ...]
    #: The place where bars begin.
    left: float
    height: int
    width: int = WIDTH

    @classmethod
    def of(
        cls, bars: Sequence[tuple[str, float]], unit: str, after: Sequence[float] | None = None
    ) -> BarChart | None:
        """Bars in the order given, each with one of ``after`` below it; None if there are none."""
        if not bars:
            return None
        top = max([value for _, value in bars] + list(after or ())) or 1.0
        left = min(max(_LETTER * max(len(name) for name, _ in bars) + 10, _NARROWEST), _WIDEST)
        room = WIDTH - left - 120
        step = _BAR if after is None else 2 * _BAR - 6
        drawn = []
        for index, (name, value) in enumerate(bars):
            y = 4 + index * step
            text = f"{_number(value)} {unit}"
            drawn.append(DrawnBar(y, value / top * room, text, _COLOURS[0], name))
            if after is not None:
                text = f"{_number(after[index])} after"
                width = after[index] / top * room
                drawn.append(DrawnBar(y + _BAR - 6, width, text, _COLOURS[1]))
        return cls(unit, tuple(drawn), left, 8 + step * len(bars))


# --- matrix ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountMatrix:
    """A table of counts by row and column, with darker cells for higher counts."""

    KIND: ClassVar[str] = "count_matrix"

    columns: tuple[str, ...]
    #: (name, (count, share of the darkest) of each cell, sum).
    rows: tuple[tuple[str, tuple[tuple[int, float], ...], int], ...]

    @classmethod
    def of(
        cls, rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], int]
    ) -> CountMatrix:
        top = max(cells.values(), default=0) or 1
        made = []
        for row in rows:
            counts = [cells.get((row, column), 0) for column in columns]
            shades = tuple((count, 0.2 + 0.6 * count / top) for count in counts)
            made.append((row, shades, sum(counts)))
        return cls(tuple(columns), tuple(made))
