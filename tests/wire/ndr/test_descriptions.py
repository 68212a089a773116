"""Descriptions that cannot be, and values that do not fit: the caller's errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mqis.wire import ndr
from mqis.wire.ndr import Syntax


@dataclass(frozen=True, slots=True)
class One:
    value: Any


@dataclass(frozen=True, slots=True)
class Two:
    first: Any
    second: Any


def test_fields_and_members_have_to_be_the_same_in_order() -> None:
    with pytest.raises(TypeError, match="has the fields"):
        ndr.Struct(Two, second=ndr.U32, first=ndr.U32)
    with pytest.raises(TypeError, match="has the fields"):
        ndr.Struct(Two, first=ndr.U32)


def test_an_extra_member_has_to_be_a_count() -> None:
    with pytest.raises(TypeError, match="no field 'other'"):
        ndr.Struct(One, other=ndr.U32, value=ndr.U32)


def test_a_count_has_to_be_there() -> None:
    with pytest.raises(TypeError, match="no 'n' here"):
        ndr.Struct(One, value=ndr.Conformant(ndr.U32, size_is="n"))


@pytest.mark.parametrize(
    "description",
    [
        ndr.Conformant(ndr.U32, size_is="n"),
        ndr.Conformant(ndr.Unique(ndr.Conformant(ndr.U32, size_is="n"))),
        ndr.Union(ndr.U32, {1: ndr.Unique(ndr.Conformant(ndr.U32, size_is="n"))}),
        ndr.Unique(ndr.Unique(ndr.Conformant(ndr.U32, size_is="n"))),
    ],
)
def test_a_correlation_that_nothing_binds(description: ndr.Description[Any]) -> None:
    with pytest.raises(TypeError, match="cannot be bound here"):
        description.encode((1,), Syntax.NDR20)


@pytest.mark.parametrize(
    "description",
    [
        ndr.Fixed(ndr.Conformant(ndr.U32), 2),
        ndr.Conformant(ndr.WSTRING),
        ndr.Union(ndr.U32, {1: ndr.Conformant(ndr.U32)}),
        ndr.Struct(Two, first=ndr.Conformant(ndr.U32), second=ndr.U32),
        ndr.Struct(One, value=ndr.Lazy(lambda: ndr.U32)),
        ndr.Struct(One, value=ndr.Conformant(ndr.Lazy(lambda: ndr.U32))),
        ndr.Struct(One, value=ndr.ConformantVarying(ndr.Lazy(lambda: ndr.U32))),
        ndr.Fixed(ndr.Lazy(lambda: ndr.U32), 1),
        ndr.Varying(ndr.Lazy(lambda: ndr.U32), 1),
        ndr.Range(ndr.WSTRING, 1, 2),
    ],
)
def test_what_cannot_be_laid_out(description: ndr.Description[Any]) -> None:
    with pytest.raises(TypeError):
        description.codec(Syntax.NDR20)


def test_structures_and_fixed_arrays_are_not_empty() -> None:
    with pytest.raises(TypeError, match="at least one"):
        ndr.Struct(Nothing)
    with pytest.raises(ValueError, match="at least one"):
        ndr.Fixed(ndr.U32, 0)


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


def test_no_parameters() -> None:
    nothing = ndr.Parameters(Nothing)
    assert nothing.encode(Nothing(), Syntax.NDR20) == b""
    assert nothing.decode(b"", Syntax.NDR64) == Nothing()


@pytest.mark.parametrize(
    ("description", "value"),
    [
        (ndr.U8, 256),
        (ndr.U32, -1),
        (ndr.I16, 0x8000),
        (ndr.INT3264, 1 << 31),
        (ndr.U32, "7"),
        (ndr.FLOAT, 1e300),
        (ndr.Fixed(ndr.U32, 2), (1,)),
        (ndr.Fixed(ndr.BYTE, 2), b"abc"),
        (ndr.Conformant(ndr.U16), (1 << 16,)),
    ],
)
def test_values_that_do_not_fit(description: ndr.Description[Any], value: Any) -> None:
    with pytest.raises(ValueError, match=r"fit|hold"):
        description.encode(value, Syntax.NDR20)
    with pytest.raises(ValueError, match=r"fit|hold"):
        ndr.Parameters(One, value=description).encode(One(value), Syntax.NDR20)


@pytest.mark.parametrize(
    "description",
    [ndr.Conformant(ndr.BYTE), ndr.Fixed(ndr.BYTE, 2), ndr.ConformantVarying(ndr.CHAR)],
)
def test_octets_are_bytes(description: ndr.Description[Any]) -> None:
    with pytest.raises(TypeError, match="bytes"):
        description.encode([1, 2], Syntax.NDR20)


def test_octets_of_a_fixed_number_stand_as_they_are() -> None:
    description = ndr.Fixed(ndr.BYTE, 2)
    for syntax in Syntax:
        assert description.encode(b"ab", syntax) == b"ab"
        assert description.decode(b"ab", syntax) == b"ab"


def test_a_boolean_is_a_bool() -> None:
    with pytest.raises(TypeError, match="True or False"):
        ndr.BOOLEAN.encode(1, Syntax.NDR20)  # type: ignore[arg-type]
    assert ndr.BOOLEAN.decode(b"\x02", Syntax.NDR20) is True


def test_a_hidden_discriminant_needs_a_union_behind_its_pointer() -> None:
    description = ndr.Parameters(
        One, tag=ndr.U32, value=ndr.Unique(ndr.Union(ndr.U32, {1: ndr.U32}, switch_is="tag"))
    )
    with pytest.raises(ValueError, match="is unknown"):
        description.encode(One(None), Syntax.NDR20)
    # Read, a null union has no discriminant to compare.
    assert description.decode(bytes.fromhex("0900000000000000"), Syntax.NDR20) == One(None)


def test_int3264_is_wide_in_ndr64() -> None:
    assert ndr.INT3264.encode(-2, Syntax.NDR20).hex() == "feffffff"
    assert ndr.INT3264.encode(-2, Syntax.NDR64).hex() == "feffffffffffffff"


def test_codecs_are_made_once() -> None:
    assert ndr.GUID.codec(Syntax.NDR20) is ndr.GUID.codec(Syntax.NDR20)
    assert ndr.GUID.codec(Syntax.NDR20) is not ndr.GUID.codec(Syntax.NDR20, big_endian=True)


def test_syntaxes_by_uuid() -> None:
    assert str(Syntax.NDR20.uuid) == "8a885d04-1ceb-11c9-9fe8-08002b104860"
    assert str(Syntax.NDR64.uuid) == "71710533-beba-4937-8319-b5dbef9ccc36"
    assert (Syntax.NDR20.version, Syntax.NDR64.version) == (2, 1)
