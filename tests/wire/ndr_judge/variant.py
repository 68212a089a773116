"""PROPVARIANT as MS-MQMQ appendix A declares it (2.2.13, 2.2.15, 2.2.16)."""

from __future__ import annotations

from typing import Any

from tests.wire.ndr_judge.kinds import Identifier, Number, Text
from tests.wire.ndr_judge.shapes import Array, Pointer, Structure, Union
from tests.wire.ndr_judge.streams import Kind, Values

VT_EMPTY, VT_NULL, VT_LPWSTR, VT_CLSID, VT_VARIANT = 0, 1, 31, 72, 12
VT_VECTOR = 0x1000
VT_BOOL = 11


def _counted(name: str, count: str, pointer: str, element: Kind) -> Structure:
    array = Pointer(Array(element, size=count))
    return Structure(name, {count: Number(4), pointer: array})


def _vector(name: str, element: Kind) -> Structure:
    return _counted(name, "cElems", "pElems", element)


ARMS: dict[int, Kind | None] = {
    VT_EMPTY: None,
    VT_NULL: None,
    16: Number(1, signed=True),  # VT_I1
    17: Number(1),
    2: Number(2, signed=True),  # VT_I2
    18: Number(2),
    3: Number(4, signed=True),  # VT_I4
    19: Number(4),
    20: Number(8, signed=True),  # VT_I8
    21: Number(8),
    VT_BOOL: Number(2, signed=True),
    VT_CLSID: Pointer(Identifier()),
    65: _counted("BLOB", "cbSize", "pBlobData", Number(1)),
    VT_LPWSTR: Pointer(Text()),
    VT_VECTOR | 17: _vector("CAUB", Number(1)),
    VT_VECTOR | 18: _vector("CAUI", Number(2)),
    VT_VECTOR | 3: _vector("CAL", Number(4, signed=True)),
    VT_VECTOR | 19: _vector("CAUL", Number(4)),
    VT_VECTOR | 21: _vector("CAUH", Number(8)),
    VT_VECTOR | VT_CLSID: _vector("CACLSID", Identifier()),
    VT_VECTOR | VT_LPWSTR: _vector("CALPWSTR", Pointer(Text())),
}
PROPVARIANT = Structure(
    "PROPVARIANT",
    {
        "vt": Number(2),
        "wReserved1": Number(1),
        "wReserved2": Number(1),
        "wReserved3": Number(4),
        "_varUnion": Union(Number(2), "vt", ARMS),
    },
)
# A variant may hold variants.
ARMS[VT_VECTOR | VT_VARIANT] = _vector("CAPROPVARIANT", PROPVARIANT)


def blank(vt: int) -> Values:
    """A variant of which only the type matters: zero, empty or null."""
    arm = ARMS[vt]
    value: Any = 0 if isinstance(arm, Number) else None
    if isinstance(arm, Structure):
        count, pointer = arm.members
        value = {count: 0, pointer: None}
    return {"vt": vt, "wReserved1": 0, "wReserved2": 0, "wReserved3": 0, "_varUnion": value}
