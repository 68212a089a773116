"""Decides at which zoom there is room for a caption.

Captions keep their size on the screen, so that two captions which overlap at one zoom are apart at
a higher one. Important captions come first. A caption that has appeared stays at higher zooms.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mqis.views.sitemap.model import Point

#: The zooms at which captions appear, each higher by the square root of two.
ZOOMS = tuple(2 ** (step / 2) for step in range(-10, 5))
#: Pixels of a line and of a cell of the grid.
LINE, _CELL = 15.0, 96.0
#: Pixels of characters of 12-pixel text in a wide, bold font: of others there is room left.
_NARROW, _WIDE = frozenset("iljtfr.,:;'!|()[]/- "), frozenset("mwMW@%…◆")
_WIDTHS = {"narrow": 5.6, "wide": 12.8, "capital": 9.6, "other": 8.4, "ideograph": 12.6}

Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class CaptionBox:
    """A caption below a dot: the place of the dot's middle, and the caption's size."""

    place: Point
    width: float
    height: float
    #: The distance from the dot's middle to the top of the caption.
    below: float
    weight: float

    def at(self, zoom: float) -> Rectangle:
        x, y = self.place[0] * zoom, self.place[1] * zoom + self.below
        return x - self.width / 2, y, x + self.width / 2, y + self.height


def size_of(lines: Sequence[str]) -> tuple[float, float]:
    return max(map(width_of_text, lines), default=0) + 8, len(lines) * LINE


def width_of_text(text: str) -> float:
    """An upper estimate of a text's width: nobody knows the reader's font."""
    return sum(_WIDTHS[_kind(character)] for character in text)


def _kind(character: str) -> str:
    if character in _NARROW:
        return "narrow"
    if character in _WIDE:
        return "wide"
    if unicodedata.east_asian_width(character) in "WF":
        return "ideograph"
    return "capital" if character.isupper() else "other"


class CaptionRoom:
    """Gives room to captions one after the other; the first ones are the important ones."""

    def __init__(self) -> None:
        self._taken = _Grid()
        self._number = 0

    def take(self, rectangle: Rectangle) -> bool:
        """Takes the room if it is free; else the caption has to be left out."""
        self._number += 1
        if self._taken.touches(self._number, rectangle):
            return False
        self._taken.add(self._number, rectangle)
        return True


def zooms_of(
    names: Sequence[CaptionBox], wholes: Sequence[CaptionBox] = ()
) -> tuple[list[float], list[float]]:
    """The smallest zooms with room for each name, and for each whole caption with the same number.

    A caption that never has room gets twice the highest zoom.
    """
    order = sorted(range(len(names)), key=lambda n: (-names[n].weight, n))
    found = [2 * ZOOMS[-1]] * len(names), [2 * ZOOMS[-1]] * len(wholes)
    for zoom in ZOOMS:
        taken = _Grid()
        for number in order:
            if found[0][number] <= zoom:
                whole = bool(wholes) and found[1][number] <= zoom
                taken.add(number, (wholes if whole else names)[number].at(zoom))
        for boxes, zooms in zip((names, wholes), found, strict=True):
            for number in order if boxes else ():
                rectangle = boxes[number].at(zoom)
                if zooms[number] > zoom and not taken.touches(number, rectangle):
                    taken.add(number, rectangle)
                    zooms[number] = zoom
    return found


@dataclass(slots=True)
class _Grid:
    """Rectangles and their numbers by the cells of a grid that they cover."""

    cells: dict[tuple[int, int], list[tuple[int, Rectangle]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, number: int, rectangle: Rectangle) -> None:
        for cell in _cells(rectangle):
            self.cells[cell].append((number, rectangle))

    def touches(self, number: int, rectangle: Rectangle) -> bool:
        """True if the rectangle overlaps one of another number."""
        left, top, right, bottom = rectangle
        return any(
            owner != number
            and left < other[2]
            and other[0] < right
            and top < other[3]
            and other[1] < bottom
            for cell in _cells(rectangle)
            for owner, other in self.cells.get(cell, ())
        )


def _cells(rectangle: Rectangle) -> Iterator[tuple[int, int]]:
    left, top, right, bottom = (int(side // _CELL) for side in rectangle)
    for across in range(left, right + 1):
        for down in range(top, bottom + 1):
            yield across, down
