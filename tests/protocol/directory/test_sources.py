"""Objects as records: what commands and the console read from a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqis.protocol.directory.lookup_query import Order, SortKey
from mqis.protocol.directory.object_sources import NoSuchObject, Record, StoreSource, as_guid
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.errors import DirectoryError
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory import world as w

BERLIN, DELFT, USER = (Guid(letter * 16) for letter in (b"b", b"d", b"u"))


@pytest.fixture
def source() -> Iterator[StoreSource]:
    store = MemoryStore()
    sites = ((BERLIN, "Berlin", "ber-dir1"), (DELFT, "Delft", "del-dir1"))
    with store.write() as tx:
        for number, (id_, name, psc) in enumerate(sites, 1):
            values: dict[int, PropVariant] = props(
                {
                    PropId.S_PATHNAME: name,
                    PropId.S_PSC: psc,
                }
            )
            seq = SequenceNumber(number)
            tx.insert(DirectoryObject(ObjectType.SITE, id_, ENTERPRISE_PARTITION, seq, values))
        seq = SequenceNumber(3)
        sid: dict[int, PropVariant] = props({PropId.U_SID: b"\1\0\0\0\0\0\0\5"})
        tx.insert(DirectoryObject(ObjectType.USER, USER, ENTERPRISE_PARTITION, seq, sid))
    with store.read() as view:
        yield StoreSource(view)


def test_names_and_identifiers(source: StoreSource) -> None:
    assert source.name_of(ObjectType.SITE, BERLIN) == "Berlin"
    assert source.name_of(ObjectType.SITE, USER) is None
    assert source.id_of(ObjectType.SITE, "berlin") == BERLIN
    assert source.id_of(ObjectType.SITE, "Paris") is None
    assert as_guid(str(BERLIN)) == BERLIN
    assert as_guid("Berlin") is None


@pytest.mark.parametrize("name", ["Delft", "DELFT", str(DELFT), f"{{{DELFT}}}"])
def test_one_object_with_all_that_is_stored(source: StoreSource, name: str) -> None:
    record = source.get(ObjectType.SITE, name)
    assert (record.id, record.path, record.seq) == (DELFT, "Delft", f"{2:016x}")
    assert record.partition == ENTERPRISE_PARTITION
    assert dict(record.values) == props({PropId.S_PATHNAME: "Delft", PropId.S_PSC: "del-dir1"})


def test_one_object_with_what_was_asked_for(source: StoreSource) -> None:
    record = source.get(ObjectType.SITE, "Berlin", [PropId.S_PSC, PropId.S_GATES])
    assert record.values[PropId.S_PSC] == prop(PropId.S_PSC, "ber-dir1")
    assert record.values.keys() == {PropId.S_PSC, PropId.S_GATES}


def test_a_list_in_order(source: StoreSource) -> None:
    sort = [SortKey(PropId.S_PATHNAME, Order.DESCENDING)]
    found = source.lookup(ObjectType.SITE, [PropId.S_PSC], [], sort)
    assert [record.path for record in found] == ["Delft", "Berlin"]
    only = [Restriction(Relation.EQ, PropId.S_PSC, prop(PropId.S_PSC, "ber-dir1"))]
    assert [r.path for r in source.lookup(ObjectType.SITE, [PropId.S_PSC], only, [])] == ["Berlin"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ObjectType.QUEUE, HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        (ObjectType.MACHINE, HResult.MQ_ERROR_MACHINE_NOT_FOUND),
        (ObjectType.USER, HResult.MQ_ERROR_INVALID_PARAMETER),
    ],
)
def test_what_is_not_there(source: StoreSource, kind: ObjectType, code: HResult) -> None:
    with pytest.raises(DirectoryError, match="there is no") as refused:
        source.get(kind, "nobody")
    assert refused.value.hresult == code
    assert source.get(ObjectType.USER, str(USER)).path is None


# --- Read Directory Object (MS-MQDS 3.1.6.6) ------------------------------------------------------


@pytest.mark.req("MQDS-3.1.6.6-01")
@pytest.mark.parametrize(
    ("object_type", "target", "propid", "value"),
    [
        (ObjectType.QUEUE, w.ORDERS, 103, "C14\\orders"),
        (ObjectType.MACHINE, w.C14, 201, w.SITE_A),
        (ObjectType.SITE, w.SITE_A, 301, "Alpha"),
        (ObjectType.CN, w.NET, 502, "Net"),
        (ObjectType.ENTERPRISE, w.ENTERPRISE_ID, 604, "PEC0"),
        (ObjectType.USER, w.ALICE, 706, w.ALICE),
        (ObjectType.ROUTINGLINK, w.LINK_AB, 803, 5),
    ],
)
def test_values_of_all_seven_types(
    object_type: ObjectType, target: Guid, propid: int, value: Value
) -> None:
    with w.World().store.read() as view:
        record = StoreSource(view).get(object_type, str(target), [PropId(propid)])
    assert [found and found.value for found in record.values.values()] == [value]


@pytest.mark.req("MQDS-3.1.6.6-01")
def test_identifiers_of_other_types_and_of_none_are_skipped() -> None:
    asked: list[Any] = [PropId.QM_PATHNAME, PropId.Q_INSTANCE, 99, PropId.QM_MACHINE_ID, 1 << 31]
    with w.World().store.read() as view:
        record = StoreSource(view).get(ObjectType.MACHINE, "C14", asked)
    shown = [propid for propid, found in record.values.items() if found is not None]
    assert shown == [PropId.QM_PATHNAME, PropId.QM_MACHINE_ID]


@pytest.mark.req("MQDS-3.1.6.6-01")
@pytest.mark.parametrize(
    ("object_type", "name"), [(ObjectType.MACHINE, "C99"), (ObjectType.QUEUE, str(w.OTHER))]
)
def test_an_object_that_is_not_there(object_type: ObjectType, name: str) -> None:
    with w.World().store.read() as view, pytest.raises(NoSuchObject):
        StoreSource(view).get(object_type, name, [PropId.QM_PATHNAME])


def test_a_record_has_the_values_that_were_asked_for() -> None:
    values = {PropId.S_PATHNAME: prop(PropId.S_PATHNAME, "Berlin"), PropId.S_PSC: None}
    record = Record(ObjectType.SITE, BERLIN, "Berlin", values)
    assert record.value(PropId.S_PATHNAME) == "Berlin"
    assert record.value(PropId.S_PSC) is None
    assert record.value(PropId.S_GATES) is None
