"""The interface of ``shapes.idl``, as descriptions.

Each operation is a pair of dataclasses, for the request and the response, and a description of
their encoding. A description may name a count that the dataclass has no field for: the codec writes
and checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    ASTRING,
    BOOLEAN,
    BYTE,
    CONTEXT_HANDLE,
    DOUBLE,
    FLOAT,
    GUID,
    I8,
    I16,
    I32,
    I64,
    INT3264,
    PROPVARIANT,
    PROPVARIANT_TYPE,
    U8,
    U16,
    U32,
    U64,
    UINT3264,
    WCHAR,
    WSTRING,
    Choice,
    Conformant,
    ConformantVarying,
    ContextHandle,
    Description,
    Enum,
    Fixed,
    Full,
    Given,
    Lazy,
    Parameters,
    Range,
    Ref,
    Struct,
    Union,
    Unique,
    Varying,
    VaryingString,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId

SYNTAX = SyntaxId(Guid.parse("5ba6e5a0-0d5c-4c0e-9f6b-2f4d69c5a001"), 1)

MAX_ITEMS = 10_000


# --- simple types ---------------------------------------------------------------------------------


class Colour(IntEnum):
    """An enum: 16 bits in NDR20, 32 in NDR64."""

    RED = 1
    GREEN = 2
    BLUE = 3


class Corner(IntEnum):
    """A [v1_enum]: 32 bits in both, and codes may be negative."""

    SHARP = -1
    ROUND = 70_000


@dataclass(frozen=True, slots=True)
class Numbers:
    """Every simple type, in an order that needs padding."""

    flag: bool
    i8: int
    u16: int
    u8: int
    i64: int
    i16: int
    u32: int
    character: int
    u64: int
    single: float
    i32: int
    double: float
    native: int
    unsigned_native: int
    colour: int
    corner: int
    id: Guid


NUMBERS_STRUCT = Struct(
    Numbers,
    flag=BOOLEAN,
    i8=I8,
    u16=U16,
    u8=U8,
    i64=I64,
    i16=I16,
    u32=U32,
    character=WCHAR,
    u64=U64,
    single=FLOAT,
    i32=I32,
    double=DOUBLE,
    native=INT3264,
    unsigned_native=UINT3264,
    colour=Enum(Colour),
    corner=Enum(Corner, v1_enum=True),
    id=GUID,
)


@dataclass(frozen=True, slots=True)
class NumbersCall:
    numbers: Numbers


_NUMBERS = Parameters(NumbersCall, numbers=NUMBERS_STRUCT)
#: Returns its argument.
NUMBERS: Operation[NumbersCall, NumbersCall] = Operation(0, "numbers", _NUMBERS, _NUMBERS)


# --- arrays ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrays:
    fixed: tuple[int, ...]
    conformant: tuple[int, ...]
    varying: tuple[int, ...]
    #: The size of the array that ``both`` fills the beginning of.
    room: int
    both: bytes


_ARRAYS = Parameters(
    Arrays,
    fixed=Fixed(U32, 4),
    count=Range(U32, 0, MAX_ITEMS),
    conformant=Conformant(U16, size_is="count"),
    used=U32,
    varying=Varying(I32, 8, length_is="used"),
    room=Range(U32, 0, MAX_ITEMS),
    length=U32,
    both=ConformantVarying(BYTE, size_is="room", length_is="length"),
)
#: Returns each array reversed.
ARRAYS: Operation[Arrays, Arrays] = Operation(1, "arrays", _ARRAYS, _ARRAYS)


# --- strings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strings:
    wide: str
    narrow: str
    maybe: str | None
    label: str


_STRINGS = Parameters(
    Strings,
    wide=Ref(WSTRING),
    narrow=Ref(ASTRING),
    maybe=Unique(WSTRING),
    label=VaryingString(32),
)
#: Returns each string in upper case.
STRINGS: Operation[Strings, Strings] = Operation(2, "strings", _STRINGS, _STRINGS)


# --- pointers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pointers:
    ref: int
    unique: int | None
    full: int | None
    #: On the wire this may point to the same referent as ``full``.
    shared: int | None


@dataclass(frozen=True, slots=True)
class PointersAnswer:
    unique: int | None
    total: int
    nulls: int
    #: True if ``full`` and ``shared`` have the same number.
    same: bool


_NUMBER = U32  # one description: full pointers are shared only within a type
POINTERS: Operation[Pointers, PointersAnswer] = Operation(
    3,
    "pointers",
    Parameters(
        Pointers,
        ref=Ref(_NUMBER),
        unique=Unique(_NUMBER),
        full=Full(_NUMBER),
        shared=Full(_NUMBER),
    ),
    Parameters(PointersAnswer, unique=Unique(_NUMBER), total=Ref(U64), nulls=U32, same=BOOLEAN),
)


# --- structures with pointers to structures -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A structure whose pointers' referents follow all of it, depth first."""

    name: str | None
    origin: Point
    outline: tuple[Point, ...]
    next: Figure | None = None


POINT = Struct(Point, x=I32, y=I32)
FIGURE: Struct[Figure] = Struct(
    Figure,
    name=Unique(WSTRING),
    origin=POINT,
    corners=U32,
    outline=Ref(Conformant(POINT, size_is="corners", maximum=MAX_ITEMS)),
    next=Unique(Lazy(lambda: FIGURE)),
)


@dataclass(frozen=True, slots=True)
class FiguresAsked:
    first: Figure | None


@dataclass(frozen=True, slots=True)
class FiguresGiven:
    """The reversed chain, and the names in it."""

    last: Figure | None
    names: tuple[str | None, ...]


FIGURES: Operation[FiguresAsked, FiguresGiven] = Operation(
    4,
    "figures",
    Parameters(FiguresAsked, first=Unique(FIGURE)),
    Parameters(
        FiguresGiven,
        last=Unique(FIGURE),
        count=U32,
        names=Unique(Conformant(Unique(WSTRING), size_is="count")),
    ),
)


@dataclass(frozen=True, slots=True)
class Polyline:
    """A conformant structure: the maximum count comes before all of it."""

    closed: bool
    width: int
    points: tuple[Point, ...]


POLYLINE = Struct(
    Polyline,
    closed=BOOLEAN,
    width=U16,
    count=U32,
    points=Conformant(POINT, size_is="count", maximum=MAX_ITEMS),
)


@dataclass(frozen=True, slots=True)
class PolylineCall:
    line: Polyline


_POLYLINE = Parameters(PolylineCall, line=Ref(POLYLINE))
#: Returns the line with its points reversed, closed if it was open.
POLYLINE_CALL: Operation[PolylineCall, PolylineCall] = Operation(
    5, "polyline", _POLYLINE, _POLYLINE
)


# --- unions ---------------------------------------------------------------------------------------


class Kind(IntEnum):
    NOTHING = 0
    CIRCLE = 1
    RECTANGLE = 2
    POLYGON = 3


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A structure with a union whose discriminant is another field."""

    body: Choice


_ARMS: dict[int, Description[Any] | None] = {
    Kind.NOTHING: None,
    Kind.CIRCLE: DOUBLE,
    Kind.RECTANGLE: Struct(Size, width=DOUBLE, height=DOUBLE),
    Kind.POLYGON: Unique(POLYLINE),
}
SHAPE = Struct(Shape, kind=Enum(Kind), body=Union(Enum(Kind), _ARMS, switch_is="kind"))
#: An encapsulated union: the tag is only in the union, here with 16 bits for a 1-byte arm.
MARK = Union(U16, {1: U8, 2: U32, 3: Unique(WSTRING)}, default=None)


@dataclass(frozen=True, slots=True)
class ShapesAsked:
    shapes: tuple[Shape, ...]
    mark: Choice


@dataclass(frozen=True, slots=True)
class ShapesGiven:
    areas: tuple[float, ...]
    mark: Choice


AREAS: Operation[ShapesAsked, ShapesGiven] = Operation(
    6,
    "areas",
    Parameters(
        ShapesAsked,
        count=Range(U32, 0, MAX_ITEMS),
        shapes=Conformant(SHAPE, size_is="count"),
        mark=MARK,
    ),
    Parameters(
        ShapesGiven, count=U32, areas=Unique(Conformant(DOUBLE, size_is="count")), mark=MARK
    ),
)


# --- properties -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertiesAsked:
    values: tuple[PropVariant, ...]


@dataclass(frozen=True, slots=True)
class PropertiesGiven:
    values: tuple[PropVariant, ...]
    types: tuple[VarType, ...]


#: Returns the values reversed, and their types.
PROPERTIES: Operation[PropertiesAsked, PropertiesGiven] = Operation(
    7,
    "properties",
    Parameters(
        PropertiesAsked,
        count=Range(U32, 1, 128),
        values=Conformant(PROPVARIANT, size_is="count"),
    ),
    Parameters(
        PropertiesGiven,
        values=Conformant(PROPVARIANT, size_is=Given("count")),
        types=Conformant(PROPVARIANT_TYPE, size_is=Given("count")),
    ),
)


# --- context handles ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PileOpened:
    """A pile of numbers that the server keeps for the holder of the handle."""

    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class PileAsked:
    height: int


@dataclass(frozen=True, slots=True)
class TakeAsked:
    handle: ContextHandle
    count: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The numbers taken ([out, size_is(count), length_is(*taken)]): at most ``count``."""

    numbers: tuple[int, ...]


OPEN_PILE: Operation[PileAsked, PileOpened] = Operation(
    8,
    "open_pile",
    Parameters(PileAsked, height=Range(U32, 0, MAX_ITEMS)),
    Parameters(PileOpened, handle=CONTEXT_HANDLE),
)
TAKE: Operation[TakeAsked, Taken] = Operation(
    9,
    "take",
    Parameters(TakeAsked, handle=CONTEXT_HANDLE, count=Range(U32, 0, MAX_ITEMS)),
    Parameters(
        Taken,
        taken=U32,
        numbers=ConformantVarying(U32, size_is=Given("count"), length_is="taken"),
    ),
)
#: The handle comes back as zeros.
CLOSE_PILE: Operation[PileOpened, PileOpened] = Operation(
    10,
    "close_pile",
    Parameters(PileOpened, handle=CONTEXT_HANDLE),
    Parameters(PileOpened, handle=CONTEXT_HANDLE),
)


# --- the rest -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Octets:
    octets: bytes | None


_OCTETS = Parameters(Octets, size=U32, octets=Unique(Conformant(BYTE, size_is="size")))
#: Returns the octets reversed, in many fragments both ways.
MIRROR: Operation[Octets, Octets] = Operation(11, "mirror", _OCTETS, _OCTETS)


@dataclass(frozen=True, slots=True)
class SquaresAsked:
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Squares:
    """The squares ([out, size_is(count)]); the request has their number."""

    squares: tuple[int, ...]


SQUARES: Operation[SquaresAsked, Squares] = Operation(
    12,
    "squares",
    Parameters(SquaresAsked, first=U32, count=Range(U32, 0, MAX_ITEMS)),
    Parameters(Squares, squares=Conformant(U64, size_is=Given("count"))),
)


@dataclass(frozen=True, slots=True)
class Number:
    number: int


_NUMBER_CALL = Parameters(Number, number=I32)
#: Asks the client for the double (``DOUBLE_IT``) and adds one. A client may call it again from
#: within that callback.
CONSULT: Operation[Number, Number] = Operation(13, "consult", _NUMBER_CALL, _NUMBER_CALL)
#: Returns a fault with that status.
FAIL: Operation[Number, Number] = Operation(
    14, "fail", Parameters(Number, number=U32), _NUMBER_CALL
)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's name as the server knows it, and the call's protection."""

    name: str | None
    level: int


WHO_AM_I: Operation[Nothing, Caller] = Operation(
    15,
    "who_am_i",
    Parameters(Nothing),
    Parameters(Caller, name=Unique(WSTRING), level=U32),
)

#: A callback: the server calls, the client answers. Callbacks have their own numbers.
DOUBLE_IT: Operation[Number, Number] = Operation(0, "double_it", _NUMBER_CALL, _NUMBER_CALL)

SHAPES = InterfaceDescription(
    "shapes",
    SYNTAX,
    (
        NUMBERS,
        ARRAYS,
        STRINGS,
        POINTERS,
        FIGURES,
        POLYLINE_CALL,
        AREAS,
        PROPERTIES,
        OPEN_PILE,
        TAKE,
        CLOSE_PILE,
        MIRROR,
        SQUARES,
        CONSULT,
        FAIL,
        WHO_AM_I,
    ),
    opnums=16,
    callbacks=(DOUBLE_IT,),
)
