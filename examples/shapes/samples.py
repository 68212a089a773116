"""One call of each kind, with the expected answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import pi
from typing import Any

from examples.shapes import interface as idl
from examples.shapes.interface import Colour, Corner, Figure, Kind, Point, Polyline, Shape, Size
from mqis.wire.guid import Guid
from mqis.wire.ndr import Choice
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import Operation

ID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
#: More than a hundred fragments of the usual size.
BLOB = bytes(range(256)) * 3000


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    operation: Operation[Any, Any]
    request: Any
    answer: Any
    given: Mapping[str, int] = field(default_factory=dict)


_NUMBERS = idl.NumbersCall(
    idl.Numbers(
        True,
        -128,
        65_535,
        255,
        -(1 << 63),
        -32_768,
        0xFFFF_FFFF,
        ord("€"),
        (1 << 64) - 1,
        -1.5,
        -(1 << 31),
        pi,
        -2,
        3_000_000_000,
        Colour.BLUE,
        Corner.SHARP,
        ID,
    )
)
_OUTLINE = (Point(0, 0), Point(4, 0), Point(4, 3))
_PROPERTIES = (
    PropVariant(VarType.UI1, 7),
    PropVariant(VarType.I2, -3),
    PropVariant(VarType.UI4, 0x1122_3344),
    PropVariant(VarType.LPWSTR, "label"),
    PropVariant(VarType.CLSID, ID),
    PropVariant(VarType.BLOB, b"\1\2\3\4\5"),
    PropVariant(VarType.VECTOR_CLSID, (ID, Guid.NULL)),
    PropVariant(VarType.VECTOR_LPWSTR, ("one", "", "three")),
    PropVariant(VarType.VECTOR_VARIANT, (PropVariant(VarType.UI8, 1 << 40),)),
    PropVariant(VarType.EMPTY, None),
)


def chain(*names: str | None) -> Figure | None:
    """A chain of figures in this order, each pointing to the next."""
    first = None
    for number, name in reversed(list(enumerate(names))):
        first = Figure(name, Point(number, -number), _OUTLINE[:number], first)
    return first


def backwards(figure: Figure | None) -> Figure | None:
    last = None
    while figure is not None:
        last = Figure(figure.name, figure.origin, figure.outline, last)
        figure = figure.next
    return last


_CHAIN = chain("first", None, "third")
_SHAPES = (
    Shape(Choice(Kind.CIRCLE, 2.0)),
    Shape(Choice(Kind.NOTHING)),
    Shape(Choice(Kind.RECTANGLE, Size(3.0, 0.5))),
    Shape(Choice(Kind.POLYGON, Polyline(True, 1, _OUTLINE))),
    Shape(Choice(Kind.POLYGON, None)),
)

SAMPLES = (
    Sample("every simple type", idl.NUMBERS, _NUMBERS, _NUMBERS),
    Sample(
        "arrays: fixed, conformant, varying, both",
        idl.ARRAYS,
        idl.Arrays((1, 2, 3, 4), (10, 20, 30), (-1, -2), 100, b"abc"),
        idl.Arrays((4, 3, 2, 1), (30, 20, 10), (-2, -1), 100, b"cba"),
    ),
    Sample(
        "arrays without elements",
        idl.ARRAYS,
        idl.Arrays((0, 0, 0, 1), (), (), 0, b""),
        idl.Arrays((1, 0, 0, 0), (), (), 0, b""),
    ),
    Sample(
        "strings",
        idl.STRINGS,
        idl.Strings("größe €", "plain", "here", "label"),
        idl.Strings("GRÖSSE €", "PLAIN", "HERE", "LABEL"),
    ),
    Sample(
        "a string that is null",
        idl.STRINGS,
        idl.Strings("", "", None, ""),
        idl.Strings("", "", None, ""),
    ),
    Sample(
        "pointers",
        idl.POINTERS,
        idl.Pointers(1, 20, 300, 300),
        idl.PointersAnswer(20, 621, 0, True),
    ),
    Sample(
        "null pointers",
        idl.POINTERS,
        idl.Pointers(1, None, None, 4000),
        idl.PointersAnswer(None, 4001, 2, False),
    ),
    Sample(
        "a chain of structures",
        idl.FIGURES,
        idl.FiguresAsked(_CHAIN),
        idl.FiguresGiven(backwards(_CHAIN), ("first", None, "third")),
    ),
    Sample("no chain", idl.FIGURES, idl.FiguresAsked(None), idl.FiguresGiven(None, ())),
    Sample(
        "a conformant structure",
        idl.POLYLINE_CALL,
        idl.PolylineCall(Polyline(False, 5, _OUTLINE)),
        idl.PolylineCall(Polyline(True, 5, _OUTLINE[::-1])),
    ),
    Sample(
        "unions, one arm a byte",
        idl.AREAS,
        idl.ShapesAsked(_SHAPES, Choice(1, 200)),
        idl.ShapesGiven((4 * pi, 0.0, 1.5, 6.0, 0.0), Choice(1, 200)),
    ),
    Sample(
        "unions, one arm a pointer",
        idl.AREAS,
        idl.ShapesAsked((), Choice(3, "text")),
        idl.ShapesGiven((), Choice(3, "text")),
    ),
    Sample(
        "unions, the default arm",
        idl.AREAS,
        idl.ShapesAsked((), Choice(77)),
        idl.ShapesGiven((), Choice(77)),
    ),
    Sample(
        "PROPVARIANTs",
        idl.PROPERTIES,
        idl.PropertiesAsked(_PROPERTIES),
        idl.PropertiesGiven(_PROPERTIES[::-1], tuple(p.vt for p in _PROPERTIES[::-1])),
        {"count": len(_PROPERTIES)},
    ),
    Sample(
        "an array that the request sizes",
        idl.SQUARES,
        idl.SquaresAsked(100_000, 3),
        idl.Squares((10_000_000_000, 10_000_200_001, 10_000_400_004)),
        {"count": 3},
    ),
    Sample("many fragments", idl.MIRROR, idl.Octets(BLOB), idl.Octets(BLOB[::-1])),
    Sample("no octets", idl.MIRROR, idl.Octets(None), idl.Octets(None)),
)
