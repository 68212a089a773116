"""Packed values are stored and sent as the decoded ones would be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, DirectoryObject
from mqis.protocol.directory.types.catalogue import ROWS, STORED_AS
from mqis.protocol.replication.keeping import emptied, stored
from mqis.protocol.replication.replicated import (
    FILLERS,
    REPLICATED,
    may_be_absent,
    sent_value,
    whole_object,
)
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propertybag import PropertyBag, encode_properties
from mqis.wire.propvariant import PropVariant
from tests.strategies.directory import directory_objects
from tests.strategies.mqdsrp import properties

Pairs = tuple[tuple[int, PropVariant], ...]
IDENTIFIERS = frozenset(IDENTIFIER_PROPERTY.values())


def plainly_stored(pairs: Pairs) -> dict[int, PropVariant]:
    """The rule for decoded values, one after the other."""
    result: dict[int, PropVariant] = {}
    for propid, variant in pairs:
        if propid in FILLERS or propid in IDENTIFIERS:
            continue
        row, target = ROWS[propid], STORED_AS.get(propid, propid)
        if row.replicated and row.store is not None:
            result.update(row.store(variant.value, {}, {}))
        elif variant.value or not may_be_absent(propid):
            result[target] = PropVariant(ROWS[target].vt, variant.value)
    return result


@given(directory_objects())
def test_what_is_sent_of_an_object(obj: DirectoryObject) -> None:
    plain = tuple((propid, sent_value(obj, propid)) for propid in REPLICATED[obj.type])
    assert whole_object(obj) == plain
    in_a_store = replace(obj, properties=PropertyBag(encode_properties(obj.properties)))
    assert whole_object(in_a_store) == plain


@given(directory_objects())
def test_what_is_stored_of_an_object(obj: DirectoryObject) -> None:
    sent = whole_object(obj)
    assert dict(stored(sent)) == plainly_stored(tuple(sent))


@given(properties())
def test_what_is_stored_of_any_properties(given_pairs: Pairs) -> None:
    known = tuple((propid, variant) for propid, variant in given_pairs if propid in ROWS)
    assert dict(stored(known)) == plainly_stored(known)
    gone = {
        STORED_AS.get(propid, propid)
        for propid, variant in known
        if not variant.value and may_be_absent(propid) and propid not in FILLERS | IDENTIFIERS
    }
    assert set(emptied(PropertyList.of(known))) == gone
