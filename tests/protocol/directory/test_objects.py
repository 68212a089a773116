"""Objects, tombstones and partitions as values."""

from __future__ import annotations

import pickle
from types import MappingProxyType

import pytest

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Partition,
    PurgeState,
    Scope,
    deleted_type_of,
    name_key,
    object_type_of,
    without_path_name,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import PropertyBag, encode_properties
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    ALICE,
    CN,
    DELETED,
    ENTERPRISE,
    LINK,
    MACHINE,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    USER,
    World,
    text,
    ui1,
    ui4,
)

SEVEN = SequenceNumber(7)


def queue(properties: dict[int, PropVariant]) -> DirectoryObject:
    return DirectoryObject(QUEUE, ORDERS, SITE_A, SEVEN, properties)


class TestDirectoryObject:
    def test_properties_cannot_be_changed_from_outside(self) -> None:
        properties = {105: ui4(1)}
        obj = queue(properties)
        properties[105] = ui4(2)
        assert obj.value(105) == 1
        assert isinstance(obj.properties, MappingProxyType)
        with pytest.raises(TypeError):
            obj.properties[105] = ui4(3)  # type: ignore[index]

    def test_a_bag_is_as_good_as_a_mapping(self) -> None:
        properties = {103: text("C14\\q"), 105: ui4(1)}
        bag = PropertyBag(encode_properties(properties))
        assert queue(properties) == DirectoryObject(QUEUE, ORDERS, SITE_A, SEVEN, bag)

    def test_changes_make_another_object(self) -> None:
        before = queue({105: ui4(1), 108: text("x")})
        after = before.with_properties({105: ui4(2)}, SequenceNumber(8))
        assert dict(before.properties) == {105: ui4(1), 108: text("x")}
        assert dict(after.properties) == {105: ui4(2), 108: text("x")}
        assert (after.seq, after.id, after.partition) == (SequenceNumber(8), ORDERS, SITE_A)

    def test_survives_pickling(self) -> None:
        obj = queue({105: ui4(1)})
        assert pickle.loads(pickle.dumps(obj)) == obj

    @pytest.mark.req("MQDS-3.1.4.21.4-01")
    @pytest.mark.parametrize(
        ("object_type", "propid"),
        [(QUEUE, 103), (MACHINE, 203), (SITE, 301), (CN, 502), (ENTERPRISE, 601)],
    )
    def test_path_is_the_name_property(self, object_type: ObjectType, propid: int) -> None:
        obj = DirectoryObject(object_type, OTHER, SITE_A, SEVEN, {propid: text("Name")})
        assert obj.path == "Name"
        assert NAME_PROPERTY[object_type] == propid
        assert DirectoryObject(object_type, OTHER, SITE_A, SEVEN, {}).path is None

    @pytest.mark.req("MQDS-2.2.9-02")
    @pytest.mark.parametrize("object_type", [USER, LINK, DELETED])
    def test_users_links_and_tombstones_have_no_path(self, object_type: ObjectType) -> None:
        assert object_type not in NAME_PROPERTY
        named = {int(p): text("x") for p in PropId}
        assert DirectoryObject(object_type, OTHER, SITE_A, SEVEN, named).path is None

    @pytest.mark.req("MQDS-3.1.4.21.3-01")
    def test_identifier_properties(self) -> None:
        assert {kind: int(p) for kind, p in IDENTIFIER_PROPERTY.items()} == {
            QUEUE: 101,
            MACHINE: 202,
            SITE: 302,
            CN: 503,
            ENTERPRISE: 609,
            USER: 706,
            LINK: 806,
        }

    def test_names_ignore_case(self) -> None:
        assert name_key("C14\\Orders \u00c4") == name_key("c14\\oRDERS \u00e4")
        assert name_key("a") != name_key("b")


class TestTombstone:
    @pytest.mark.req("MQDSRP-3.1.1.2.2-02")
    @pytest.mark.parametrize(
        ("object_type", "number"),
        [(ENTERPRISE, 6), (SITE, 3), (LINK, 8), (CN, 5), (MACHINE, 2), (QUEUE, 1), (USER, 7)],
    )
    def test_types(self, object_type: ObjectType, number: int) -> None:
        properties = {int(PropId.D_OBJTYPE): prop(PropId.D_OBJTYPE, number)}
        assert deleted_type_of(properties) is object_type

    @pytest.mark.req("MQDSRP-3.1.1.2.2-02")
    def test_a_tombstone_is_not_the_tombstone_of_a_tombstone(self) -> None:
        with pytest.raises(ValueError, match="type that the object had"):
            DeletedObject(ALICE, Guid.NULL, SEVEN, DELETED, Scope.ENTERPRISE)

    @pytest.mark.req("MQDSRP-3.1.1.2.2-03")
    def test_scopes(self) -> None:
        assert {scope.name: int(scope) for scope in Scope} == {"SITE": 0, "ENTERPRISE": 1}


class TestPartition:
    @pytest.mark.req("MQDSRP-3.1.1.2.3-02")
    def test_all_of_it_is_stored(self) -> None:
        partition = Partition(
            SITE_A,
            "PSC1",
            SequenceNumber(9),
            SequenceNumber(3),
            SequenceNumber(4),
            PurgeState.IN_SYNC0,
        )
        world = World(empty=True)
        with world.store.write() as transaction:
            transaction.put_partition(partition)
        found = world.partition(SITE_A)
        assert found is not None
        assert (found.id, found.owner) == (SITE_A, "PSC1")
        assert (found.last_seq.value, found.purged_seq.value, found.allowed_purge_seq.value) == (
            9,
            3,
            4,
        )
        assert found.purge_state == 2

    def test_a_new_one_starts_at_the_beginning(self) -> None:
        new = Partition(SITE_A, "PSC1")
        assert {new.last_seq, new.purged_seq, new.allowed_purge_seq} == {SequenceNumber.MIN}
        assert new.purge_state is PurgeState.NORMAL

    @pytest.mark.req("MQDSRP-3.1.1.2.3-03")
    def test_purge_states(self) -> None:
        """As the table has them; another section swaps two of the names (E39)."""
        assert {state.name: int(state) for state in PurgeState} == {
            "NORMAL": 0,
            "STARTING_SYNC0": 1,
            "IN_SYNC0": 2,
            "COMPLETING_SYNC0": 3,
        }

    @pytest.mark.req("MQDSRP-3.1.1.2.3-01")
    def test_the_enterprise_is_the_null_guid(self) -> None:
        assert ENTERPRISE_PARTITION.raw == bytes(16)


class TestTypeOfIdentifier:
    @pytest.mark.req("MQDSRP-3.1.1.4-01")
    @pytest.mark.parametrize(
        ("propid", "object_type"),
        [
            (101, QUEUE),
            (199, QUEUE),
            (201, MACHINE),
            (303, SITE),
            (502, CN),
            (601, ENTERPRISE),
            (701, USER),
            (803, LINK),
            (899, LINK),
            (1101, QUEUE),
            (1203, MACHINE),
            (1301, SITE),
            (1501, CN),
            (1601, ENTERPRISE),
            (1701, USER),
            (1899, LINK),
        ],
    )
    def test_known(self, propid: int, object_type: ObjectType) -> None:
        assert object_type_of(propid) is object_type

    @pytest.mark.req("MQDSRP-3.1.1.4-02")
    @pytest.mark.parametrize(
        "propid", [0, 99, 401, 499, 900, 999, 1000, 1001, 1099, 1900, 2101, 0xFFFFFFFF]
    )
    def test_unknown(self, propid: int) -> None:
        """1000 itself does not exceed 1000: its quotient is 10."""
        assert object_type_of(propid) is None

    @pytest.mark.req("MQDSRP-3.1.1.4-02")
    def test_a_deletion_tells_its_type_in_1404(self) -> None:
        """Its first identifier, 1403, has the quotient 4, which is no type (E59)."""
        assert object_type_of(1403) is None
        assert deleted_type_of({1403: ui1(1), 1404: ui1(7)}) is USER
        for properties in ({}, {1403: ui1(1)}, {1404: ui1(4)}, {1404: ui1(9)}, {1404: text("7")}):
            assert deleted_type_of(properties) is None

    @pytest.mark.req("MQDSRP-3.1.1.4-01")
    def test_agrees_with_the_catalogue(self) -> None:
        for propid in PropId:
            prefix = propid.name.split("_")[0]
            expected = {
                "Q": QUEUE,
                "QM": MACHINE,
                "S": SITE,
                "CN": CN,
                "E": ENTERPRISE,
                "U": USER,
                "L": LINK,
                "D": None,
            }[prefix]
            assert object_type_of(propid) is expected


@pytest.mark.parametrize(
    ("object_type", "columns"), [(LINK, "id,neighbor1,neighbor2"), (ObjectType.USER, "id,sid")]
)
def test_how_an_object_without_a_name_is_named(object_type: ObjectType, columns: str) -> None:
    told = without_path_name(object_type)
    assert told.startswith(f"a {object_type.label} has no path name; ")
    assert f"'mqis lookup {object_type.label} --columns {columns}'" in told


def test_an_object_with_a_name_is_named_by_it() -> None:
    assert without_path_name(ObjectType.SITE) == "a site has no path name"
