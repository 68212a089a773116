"""Lists of properties: packed or not, they are the same values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.propertylist import PropertyList, decode_list
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from tests.strategies.mqdsrp import properties

Pairs = tuple[tuple[int, PropVariant], ...]


@given(properties())
def test_bytes_and_back(given_pairs: Pairs) -> None:
    packed = PropertyList.of(given_pairs).encoded()
    reader = Reader(packed)
    decoded = decode_list(reader, len(given_pairs))
    reader.expect_end("the list")
    assert decoded == PropertyList.of(given_pairs)
    assert decoded.encoded() == packed
    assert tuple(decoded) == given_pairs
    assert decoded.packed == tuple(variant.packed() for _, variant in given_pairs)


@given(properties())
def test_a_list_is_equal_to_the_pairs_that_it_was_made_of(given_pairs: Pairs) -> None:
    listed = PropertyList.of(given_pairs)
    assert listed == given_pairs
    assert given_pairs == listed
    assert hash(listed) == hash(given_pairs)
    assert repr(listed) == repr(given_pairs)
    assert len(listed) == len(given_pairs)
    assert listed[:1] == given_pairs[:1]
    assert PropertyList.of(listed) is listed


def test_other_values_and_other_kinds_are_not_equal() -> None:
    listed = PropertyList.of((pair(PropId.Q_LABEL, "a"),))
    assert listed != PropertyList.of((pair(PropId.Q_LABEL, "b"),))
    assert listed != PropertyList.of((pair(PropId.Q_PATHNAME, "a"),))
    assert listed != [pair(PropId.Q_LABEL, "a")]
    assert listed[0] == pair(PropId.Q_LABEL, "a")


@given(properties(), st.data())
def test_a_list_that_is_cut_off_is_refused(given_pairs: Pairs, data: st.DataObject) -> None:
    packed = PropertyList.of(given_pairs).encoded()
    cut = data.draw(st.integers(0, max(0, len(packed) - 1)))
    if cut < len(packed):
        with pytest.raises(WireError):
            decode_list(Reader(packed[:cut]), len(given_pairs))
