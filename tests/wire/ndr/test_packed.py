"""Answers that are copied from packed bytes have the bytes that the encoder gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import Syntax
from mqis.wire.ndr.packed import Packed, encode_packed_rows
from mqis.wire.propvariant import PropVariant, VarType
from tests.strategies.propvariant import values_of

#: Types whose values are decoded: their referents have pointers of their own, or another alignment.
DECODED = {VarType.VECTOR_UI8, VarType.VECTOR_LPWSTR, VarType.VECTOR_VARIANT}
COPIED = sorted(set(VarType) - DECODED)


def encoded(values: Sequence[PropVariant], syntax: Syntax) -> bytes:
    """The elements and their referents, as the encoder of S_DSGetProps writes them."""
    whole = dscomm.GET_PROPS.response.encode(
        dscomm.PropsGot(tuple(values), b"", 0), syntax, given={"cp": len(values)}
    )
    return whole[8:]


def packed_of(values: Sequence[PropVariant]) -> list[Packed]:
    return [(value.vt, value.packed()) for value in values]


@given(st.lists(values_of(COPIED), min_size=1, max_size=12))
def test_the_bytes_of_the_encoder(values: list[PropVariant]) -> None:
    for syntax in Syntax:
        found = encode_packed_rows([packed_of(values)], syntax)
        assert found is not None
        rest = encoded(values, syntax)
        assert rest.startswith(found)
        # What follows is the signature's count, its size and the result: zeros, with their padding.
        assert len(rest) - len(found) <= (24 if syntax is Syntax.NDR64 else 16)
        assert not any(rest[len(found) :])


@pytest.mark.parametrize("vt", sorted(DECODED))
def test_types_that_are_decoded(vt: VarType) -> None:
    assert encode_packed_rows([[(vt, bytes(4))]], Syntax.NDR20) is None


@pytest.mark.parametrize(
    ("vt", "packed"),
    [
        (VarType.UI1, b""),
        (VarType.UI4, bytes(5)),
        (VarType.NULL, b"\0"),
        (VarType.BOOL, b"\1\0"),
        (VarType.BOOL, b"\0"),
        (VarType.CLSID, Guid.NULL.raw[1:]),
        (VarType.LPWSTR, b""),
        (VarType.LPWSTR, b"a\0"),
        (VarType.LPWSTR, b"a\0\0"),
        (VarType.LPWSTR, b"a\0\0\0b\0\0\0"),
        (VarType.LPWSTR, b"a\0" * 65_536 + b"\0\0"),
        (VarType.BLOB, b"\3\0\0\0ab"),
        (VarType.BLOB, b"\1\0\0"),
        (VarType.VECTOR_UI4, b"\2\0\0\0" + bytes(4)),
        (VarType.VECTOR_CLSID, b"\1\0\0\0" + bytes(17)),
        (0x7777, b""),
    ],
)
def test_damaged_values_are_left_to_the_decoder(vt: int, packed: bytes) -> None:
    for syntax in Syntax:
        assert encode_packed_rows([[(vt, packed)]], syntax) is None
