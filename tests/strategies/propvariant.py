"""PROPVARIANT values and bags of them, for any test that needs some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.propvariant import PropVariant, Value, VarType

guids = st.binary(min_size=16, max_size=16).map(Guid)


def _from_units(units: list[int]) -> str:
    data = b"".join(unit.to_bytes(2, "little") for unit in units)
    return data.decode("utf-16-le", "surrogatepass")


#: Unit sequences, as Windows has them: lone surrogates included, zero excluded.
texts = st.one_of(
    st.text(st.characters(min_codepoint=1), max_size=20),
    st.lists(st.integers(1, 0xFFFF), max_size=20).map(_from_units),
    st.lists(st.sampled_from([0x41, 0xD83D, 0xDE00]), max_size=8).map(_from_units),
)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


def _several(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    lists: st.SearchStrategy[Any] = st.lists(items, max_size=5)
    return lists.map(tuple)


_VALUES: dict[VarType, st.SearchStrategy[Value]] = {
    VarType.EMPTY: st.none(),
    VarType.NULL: st.none(),
    VarType.I1: _signed(8),
    VarType.UI1: _unsigned(8),
    VarType.I2: _signed(16),
    VarType.UI2: _unsigned(16),
    VarType.I4: _signed(32),
    VarType.UI4: _unsigned(32),
    VarType.I8: _signed(64),
    VarType.UI8: _unsigned(64),
    VarType.BOOL: st.booleans(),
    VarType.LPWSTR: texts,
    VarType.BLOB: st.binary(max_size=40),
    VarType.CLSID: guids,
    VarType.VECTOR_UI1: st.binary(max_size=40),
    VarType.VECTOR_UI2: _several(_unsigned(16)),
    VarType.VECTOR_I4: _several(_signed(32)),
    VarType.VECTOR_UI4: _several(_unsigned(32)),
    VarType.VECTOR_UI8: _several(_unsigned(64)),
    VarType.VECTOR_LPWSTR: _several(texts),
    VarType.VECTOR_CLSID: _several(guids),
}


def values_of(types: Iterable[VarType]) -> st.SearchStrategy[PropVariant]:
    """Any value of these types."""
    return st.sampled_from(sorted(types)).flatmap(
        lambda vt: st.builds(PropVariant, st.just(vt), _VALUES[vt])
    )


_flat = values_of(_VALUES)


def _nested(items: st.SearchStrategy[PropVariant]) -> st.SearchStrategy[PropVariant]:
    several = st.lists(items, max_size=3).map(tuple)
    return st.builds(PropVariant, st.just(VarType.VECTOR_VARIANT), several)


def prop_variants() -> st.SearchStrategy[PropVariant]:
    """Any value of any type, vectors of variants up to three deep included."""
    return st.one_of(_flat, _nested(_flat), _nested(_flat | _nested(_flat | _nested(_flat))))


def property_sets() -> st.SearchStrategy[dict[int, PropVariant]]:
    return st.dictionaries(st.integers(0, 0xFFFFFFFF), _flat | _nested(_flat), max_size=5)
