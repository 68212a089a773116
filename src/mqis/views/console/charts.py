"""Small charts of the recent past: the paths of a drawing, and the same in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isnan

from mqis.pages.charts import area_of, path_of, round_steps
from mqis.texts import clock, duration
from mqis.views.console.samples import Measure, StatusSample
from mqis.views.console.tones import LONG_S, Tone

#: The size of a drawing, in its own units; pages stretch it.
WIDTH, HEIGHT = 600, 120
#: An axis is at least so long, however little there is to show.
_SHORTEST_S = 300.0
_ROWS = 12
_TITLES = {
    Measure.LAG: ("Lag", "changes behind"),
    Measure.CHANGES: ("Changes", "a second"),
    Measure.WAITING: ("Messages waiting", ""),
    Measure.SESSIONS: ("Sessions between servers", ""),
}


@dataclass(frozen=True, slots=True)
class Point:
    time: float
    #: NaN: not known.
    value: float
    #: The server whose value it is, if it is the value of one.
    server: str = ""


@dataclass(frozen=True, slots=True)
class StatusChart:
    """One chart; ``text`` tells what the picture shows."""

    key: str
    title: str
    now: str
    unit: str
    tone: Tone
    text: str
    #: Path data: the curve, the area below it, its last point.
    line: str
    area: str
    dot: str
    #: (left edge, width) of the times at which a server was not up.
    outages: tuple[tuple[float, float], ...]
    #: The labels of the axes.
    top: str
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class ChartPage:
    charts: tuple[StatusChart, ...]
    #: The time of each row and its values, newest first.
    rows: tuple[tuple[str, ...], ...]
    #: The server that the charts are about; empty: all.
    server: str
    #: "in the last 12 min".
    period: str


def chart_page(samples: Sequence[StatusSample], every_s: float, server: str = "") -> ChartPage:
    """The four charts of all servers, or of one. Without samples there are none."""
    if not samples:
        return ChartPage((), (), server, "")
    curves = {measure: _points(samples, measure, server) for measure in Measure}
    axis = _Axis.of(samples, every_s)
    charts = tuple(axis.chart(measure, curve) for measure, curve in curves.items())
    return ChartPage(charts, tuple(_rows(curves)), server, axis.period)


def _points(samples: Sequence[StatusSample], measure: Measure, server: str) -> list[Point]:
    """Lag is that of the server that is farthest behind; the others are sums."""
    if server:
        return [Point(each.time, each.of(server, measure)) for each in samples]
    if measure is Measure.LAG:
        return [Point(each.time, *each.worst(measure)) for each in samples]
    return [Point(each.time, each.total(measure)) for each in samples]


@dataclass(frozen=True, slots=True)
class _Axis:
    """The time that all charts of a page show."""

    begin: float
    end: float
    every_s: float
    outages: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, samples: Sequence[StatusSample], every_s: float) -> _Axis:
        end = samples[-1].time
        begin = min(samples[0].time, end - _SHORTEST_S)
        silent = [(each.time, bool(each.silent)) for each in samples]
        return cls(begin, end, every_s, tuple(_spans(silent, every_s)))

    @property
    def period(self) -> str:
        return f"in the last {duration(self.end - self.begin)}"

    def chart(self, measure: Measure, curve: Sequence[Point]) -> StatusChart:
        known = [point for point in curve if not isnan(point.value)]
        top = round_steps(
            max((point.value for point in known), default=0.0), parts=1, steps=(1, 2, 5)
        )[-1]
        pieces = [self._drawn(piece, top) for piece in _pieces(curve, self.every_s)]
        title, unit = _TITLES[measure]
        last = curve[-1]
        return StatusChart(
            measure.name.lower(),
            title,
            number_text(last.value),
            "" if isnan(last.value) else unit,
            _tone(measure, curve),
            self._text(measure, curve, known),
            " ".join(path_of(piece) for piece in pieces),
            " ".join(area_of(piece, HEIGHT) for piece in pieces if len(piece) > 1),
            "" if isnan(last.value) else path_of([self._place(last, top)]) + "h0",
            tuple((self._x(a), max(2.0, self._x(b) - self._x(a))) for a, b in self.outages),
            number_text(top),
            clock(self.begin),
            clock(self.end),
        )

    def _text(self, measure: Measure, curve: Sequence[Point], known: Sequence[Point]) -> str:
        if not known:
            return f"No server reports this {self.period}."
        unit = _TITLES[measure][1]
        unit = f" {unit}" if unit else ""
        last, peak = curve[-1], max(known, key=lambda point: point.value)
        sentence = "Not known now" if isnan(last.value) else f"Now {number_text(last.value)}{unit}"
        sentence += f" ({last.server})" if last.server and last.value else ""
        if not peak.value:
            return f"{sentence}; never more {self.period}."
        at = clock(peak.time) + (f" ({peak.server})" if peak.server else "")
        return f"{sentence}; at most {number_text(peak.value)} {self.period}, at {at}."

    def _x(self, time: float) -> float:
        return round(WIDTH * (time - self.begin) / (self.end - self.begin), 1)

    def _place(self, point: Point, top: float) -> tuple[float, float]:
        return self._x(point.time), round(HEIGHT - HEIGHT * point.value / top, 1)

    def _drawn(self, piece: Sequence[Point], top: float) -> list[tuple[float, float]]:
        return [self._place(point, top) for point in piece]


def _pieces(curve: Sequence[Point], every_s: float) -> Iterator[list[Point]]:
    """The parts of a curve without a gap: an unknown value, or missing samples."""
    piece: list[Point] = []
    for point in curve:
        if piece and (isnan(point.value) or point.time - piece[-1].time > 5 * every_s + 10):
            yield piece
            piece = []
        if not isnan(point.value):
            piece.append(point)
    if piece:
        yield piece


def _spans(times: Sequence[tuple[float, bool]], every_s: float) -> Iterator[tuple[float, float]]:
    """The times from the first to the last of neighbouring samples that are true."""
    begin: float | None = None
    end = 0.0
    for time, on in times:
        if on:
            begin = time - every_s / 2 if begin is None else begin
            end = time
        elif begin is not None:
            yield begin, end + every_s / 2
            begin = None
    if begin is not None:
        yield begin, end


def _tone(measure: Measure, curve: Sequence[Point]) -> Tone:
    """Amber for a replica that is behind; red if it stays so, amber if messages wait as long."""
    now = curve[-1].value
    if isnan(now) or not now or measure in (Measure.CHANGES, Measure.SESSIONS):
        return Tone.PLAIN
    recent = [point for point in curve if point.time >= curve[-1].time - LONG_S]
    long = curve[0].time < recent[0].time and all(point.value for point in recent)
    if measure is Measure.LAG:
        return Tone.BAD if long else Tone.LATE
    return Tone.LATE if long else Tone.PLAIN


def _rows(curves: dict[Measure, list[Point]]) -> Iterator[tuple[str, ...]]:
    """Some of the values as a table; a row in every twelfth part of the time."""
    points = list(zip(*curves.values(), strict=True))[::-1]
    for row in points[:: max(1, ceil(len(points) / _ROWS))]:
        yield clock(row[0].time), *(number_text(point.value) for point in row)


def number_text(value: float) -> str:
    """A number for people: 1,204, 12, 0.4; "unknown" for NaN."""
    if isnan(value):
        return "unknown"
    if value >= 10 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"
