"""Worked examples E1 to E8f: byte-exact in both syntaxes, both ways.

The bytes were made with Samba's libndr and agree with an independent encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    ENUM16,
    I16,
    I32,
    PROPVARIANT,
    U16,
    U32,
    WCHAR,
    WSTRING,
    Conformant,
    ConformantVarying,
    ContextHandle,
    Count,
    Description,
    Parameters,
    Ref,
    Struct,
    Syntax,
    Unique,
)
from mqis.wire.propvariant import PropVariant, VarType

SAMPLE_GUID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")


@dataclass(frozen=True, slots=True)
class LongShort:
    number: int
    small: int


@dataclass(frozen=True, slots=True)
class EnumShort:
    kind: int
    small: int


@dataclass(frozen=True, slots=True)
class TwoStrings:
    first: int
    text: str | None
    second: int
    other: str | None


@dataclass(frozen=True, slots=True)
class Shorts:
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UnicodeString:
    maximum_length: int
    buffer: str | None


@dataclass(frozen=True, slots=True)
class Inner:
    text: str | None
    small: int


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner | None
    number: int | None


@dataclass(frozen=True, slots=True)
class Request:
    values: tuple[int, ...]
    text: str | None
    handle: ContextHandle


@dataclass(frozen=True, slots=True)
class Variants:
    variants: tuple[PropVariant, ...] | None


UNICODE_STRING = Struct(
    UnicodeString,
    length=U16,
    maximum_length=U16,
    buffer=Unique(
        ConformantVarying(WCHAR, size_is=Count("maximum_length", 2), length_is=Count("length", 2))
    ),
)
INNER = Struct(Inner, text=Unique(WSTRING), small=I16)
E7 = Parameters(
    Request,
    n=I16,
    values=Ref(Conformant(I16, size_is="n")),
    text=Unique(WSTRING),
    handle=CONTEXT_HANDLE,
)

VT_UI4 = PropVariant(VarType.UI4, 0x11223344)
VT_LPWSTR = PropVariant(VarType.LPWSTR, "abc")
VT_BLOB = PropVariant(VarType.BLOB, bytes.fromhex("0102030405"))

CASES: dict[str, tuple[Description[Any] | Parameters[Any], Any, str, str]] = {
    "E1": (
        Struct(LongShort, number=I32, small=I16),
        LongShort(0x01020304, 0x0506),
        "040302010605",
        "0403020106050000",
    ),
    "E2": (
        Struct(EnumShort, kind=ENUM16, small=I16),
        EnumShort(2, 0x1234),
        "02003412",
        "0200000034120000",
    ),
    "E3": (
        Struct(TwoStrings, first=I16, text=Unique(WSTRING), second=I16, other=Unique(WSTRING)),
        TwoStrings(0x1111, "A", 0x2222, "BC"),
        (
            "1111000000000200222200000400020002000000000000000200000041000000030000000000000003000000"
            "420043000000"
        ),
        (
            "111100000000000000000200000000002222000000000000040002000000000002000000000000000000000000"
            "00000002000000000000004100000000000000030000000000000000000000000000000300000000000000"
            "420043000000"
        ),
    ),
    "E4": (
        Struct(Shorts, n=U32, values=Conformant(U16, size_is="n")),
        Shorts((1, 2, 3)),
        "0300000003000000010002000300",
        "0300000000000000030000000100020003000000",
    ),
    "E5": (
        UNICODE_STRING,
        UnicodeString(6, "AB"),
        "040006000000020003000000000000000200000041004200",
        "0400060000000000000002000000000003000000000000000000000000000000020000000000000041004200",
    ),
    "E6": (
        Struct(Outer, inner=Unique(INNER), number=Unique(U32)),
        Outer(Inner("x", 7), 0x99),
        "000002000400020008000200070000000200000000000000020000007800000099000000",
        (
            "000002000000000004000200000000000800020000000000070000000000000002000000000000000000000000"
            "00000002000000000000007800000099000000"
        ),
    ),
    "E7": (
        E7,
        Request((1, 2, 3), "hi", ContextHandle(SAMPLE_GUID)),
        (
            "030000000300000001000200030000000000020003000000000000000300000068006900000000000000"
            "0000d4c3b2a101000200030405060708090a"
        ),
        (
            "030000000000000003000000000000000100020003000000000002000000000003000000000000000000000000"
            "0000000300000000000000680069000000000000000000d4c3b2a101000200030405060708090a"
        ),
    ),
    "E8a": (
        PROPVARIANT,
        VT_UI4,
        "13000000000000001300000044332211",
        "130000000000000013000000000000004433221100000000",
    ),
    "E8b": (
        PROPVARIANT,
        VT_LPWSTR,
        "1f000000000000001f000000000002000400000000000000040000006100620063000000",
        (
            "1f000000000000001f000000000000000000020000000000040000000000000000000000000000000400000000"
            "0000006100620063000000"
        ),
    ),
    "E8c": (
        PROPVARIANT,
        PropVariant(VarType.CLSID, SAMPLE_GUID),
        "48000000000000004800000000000200d4c3b2a101000200030405060708090a",
        "480000000000000048000000000000000000020000000000d4c3b2a101000200030405060708090a",
    ),
    "E8d": (
        PROPVARIANT,
        VT_BLOB,
        "4100000000000000410000000500000000000200050000000102030405",
        "410000000000000041000000000000000500000000000000000002000000000005000000000000000102030405",
    ),
    "E8e": (
        PROPVARIANT,
        PropVariant(VarType.VECTOR_UI4, (1, 2, 3)),
        "131000000000000013100000030000000000020003000000010000000200000003000000",
        (
            "13100000000000001310000000000000030000000000000000000200000000000300000000000000010000000200"
            "000003000000"
        ),
    ),
    "E8f": (
        Struct(
            Variants,
            n=U32,
            variants=Unique(Conformant(PROPVARIANT, size_is="n")),
        ),
        Variants((VT_BLOB, VT_UI4, VT_LPWSTR)),
        (
            "030000000000020003000000000000004100000000000000410000000500000004000200000000001300000000"
            "00000013000000443322111f000000000000001f0000000800020005000000010203040500000004000000000000"
            "00040000006100620063000000"
        ),
        (
            "030000000000000000000200000000000300000000000000410000000000000041000000000000000500000000"
            "0000000400020000000000130000000000000013000000000000004433221100000000"
            "1f000000000000001f00000000000000080002000000000005000000000000000102030405000000040000000000"
            "0000000000000000000004000000000000006100620063000000"
        ),
    ),
    "empty": (PROPVARIANT, PropVariant(VarType.EMPTY, None), "00" * 10, "00" * 16),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("syntax", Syntax)
def test_encodes_to_the_worked_bytes(name: str, syntax: Syntax) -> None:
    description, value, ndr20, ndr64 = CASES[name]
    expected = ndr20 if syntax is Syntax.NDR20 else ndr64
    assert description.encode(value, syntax).hex() == expected


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("syntax", Syntax)
def test_decodes_the_worked_bytes(name: str, syntax: Syntax) -> None:
    description, value, ndr20, ndr64 = CASES[name]
    data = bytes.fromhex(ndr20 if syntax is Syntax.NDR20 else ndr64)
    assert description.decode(data, syntax) == value
