"""The events that change a directory: names, identifiers, times, numbers, tombstones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Partition, Scope
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.certificates import MAX_CERTIFICATES, UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    ALICE,
    ALICE_SID,
    BARE_CERTIFICATE,
    BOB_SID,
    C13,
    C14,
    C15,
    CN,
    DELETED,
    DESCRIPTOR,
    ENTERPRISE,
    ENTERPRISE_ID,
    LINK,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SECOND_CERTIFICATE,
    SITE,
    SITE_A,
    SITE_B,
    USER,
    World,
    blob,
    certificates,
    digest,
    guid,
    guids,
    i4,
    refusal,
    text,
    ui1,
    ui4,
)

ENDS = {801: guid(SITE_A), 802: guid(SITE_B), 812: ui4(5)}
CERTIFICATE = {702: blob(certificates(BARE_CERTIFICATE)), 705: guids(digest(BARE_CERTIFICATE))}

#: For each type that a client creates: a path and the least properties.
LEAST: dict[ObjectType, tuple[str | None, Properties]] = {
    QUEUE: ("C14\\new", {}),
    MACHINE: ("C16", {201: guid(SITE_A)}),
    SITE: ("Gamma", {}),
    CN: ("Wire", {}),
    USER: (None, CERTIFICATE),
    LINK: (None, ENDS),
}


def code_of(error: pytest.ExceptionInfo[DirectoryError]) -> int:
    return error.value.hresult


class TestIdentifiers:
    @pytest.mark.req("MQDS-3.1.4.21.3-01")
    @pytest.mark.parametrize("object_type", list(LEAST))
    def test_are_given_at_creation(self, object_type: ObjectType) -> None:
        world = World()
        before = world.entropy.given
        made = world.create(object_type, *LEAST[object_type])
        assert world.entropy.given > before
        assert made.id.big_endian[0] == 0xC0  # one that the entropy gave
        assert world.get(object_type, made.id) == made

    @pytest.mark.req("MQDS-3.1.4.21.8.3-02")
    @pytest.mark.parametrize(
        ("object_type", "propid"), [(MACHINE, 202), (SITE, 302), (LINK, 806), (CN, 503)]
    )
    def test_are_taken_when_supplied(self, object_type: ObjectType, propid: int) -> None:
        world = World()
        path, least = LEAST[object_type]
        assert world.create(object_type, path, {**least, propid: guid(OTHER)}).id == OTHER

    @pytest.mark.parametrize(
        ("object_type", "propid"), [(MACHINE, 202), (SITE, 302), (LINK, 806), (CN, 503)]
    )
    def test_the_null_guid_is_none(self, object_type: ObjectType, propid: int) -> None:
        world = World()
        path, least = LEAST[object_type]
        made = world.create(object_type, path, {**least, propid: guid(Guid.NULL)})
        assert made.id.big_endian[0] == 0xC0

    @pytest.mark.parametrize(
        ("object_type", "propid"),
        [
            pytest.param(QUEUE, 101, marks=pytest.mark.req("MQDS-3.1.4.21.8.3-08")),
            pytest.param(USER, 706, marks=pytest.mark.req("MQDS-3.1.4.21.8.3-12")),
        ],
    )
    def test_of_queues_and_users_are_always_the_servers(
        self, object_type: ObjectType, propid: int
    ) -> None:
        world = World()
        path, least = LEAST[object_type]
        made = world.create(object_type, path, {**least, propid: guid(OTHER)})
        assert made.id.big_endian[0] == 0xC0


class TestNames:
    @pytest.mark.parametrize(
        ("object_type", "propid"),
        [
            pytest.param(QUEUE, 103, marks=pytest.mark.req("MQDS-3.1.4.21.8.3-08")),
            pytest.param(MACHINE, 203, marks=pytest.mark.req("MQDS-3.1.4.21.8.3-03")),
            pytest.param(SITE, 301, marks=pytest.mark.req("MQDS-3.1.4.21.8.3-03")),
        ],
    )
    def test_come_from_the_path(self, object_type: ObjectType, propid: int) -> None:
        world = World()
        path, least = LEAST[object_type]
        made = world.create(object_type, path, {**least, propid: text("C14\\other")})
        assert made.path == path == world.show(made, propid)
        assert world.find(object_type, str(path).upper()) == made

    @pytest.mark.req("MQDS-3.1.4.21.8.3-12")
    def test_of_a_network_comes_from_its_property(self) -> None:
        world = World()
        assert world.create(CN, None, {502: text("Wire")}).path == "Wire"
        assert world.create(CN, "Path", {502: text("Property")}).path == "Property"
        assert world.create(CN, "Path", {}).path == "Path"

    @pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE, CN])
    def test_are_needed(self, object_type: ObjectType) -> None:
        world = World()
        with pytest.raises(DirectoryError) as caught:
            world.create(object_type, None, LEAST[object_type][1])
        assert code_of(caught) == HResult.MQ_ERROR_INVALID_PARAMETER

    def test_are_checked(self) -> None:
        world = World()
        with pytest.raises(DirectoryError) as caught:
            world.create(QUEUE, "C14\\private$\\x", {})
        assert code_of(caught) == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
        with pytest.raises(DirectoryError) as caught:
            world.create(SITE, "", {})
        assert code_of(caught) == HResult.MQ_ERROR_INVALID_PARAMETER

    @pytest.mark.req("MQDS-2.2.9-02")
    @pytest.mark.parametrize("object_type", [LINK, USER])
    def test_of_links_and_users_are_accepted_and_ignored(self, object_type: ObjectType) -> None:
        """The documented client names a link by 64 digits (3.2.6.1.4), 3.1.4.4 wants none."""
        path = f"{0xA:032X}{0xB:032X}"
        named, plain = World(), World()
        made = named.create(object_type, path, LEAST[object_type][1])
        assert made == plain.create(object_type, None, LEAST[object_type][1])
        assert made.path is None
        assert named.find(object_type, path) is None


class TestTypes:
    def test_an_enterprise_is_not_created_by_clients(self) -> None:
        with pytest.raises(DirectoryError) as caught:
            World().create(ENTERPRISE, "Corp2", {601: text("Corp2")})
        assert code_of(caught) == HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION

    def test_a_tombstone_is_not_created_by_anybody(self) -> None:
        world = World()
        codes = [
            refusal(lambda: world.create(DELETED, "x", {1404: ui1(1)})),
            refusal(lambda: world.create_event(DELETED, {1404: ui1(1)})),
        ]
        assert codes == [HResult.MQ_ERROR_INVALID_PARAMETER] * 2

    def test_a_server_with_a_store_of_its_own_creates_networks(self) -> None:
        assert World().create(CN, "Wire", {}).path == "Wire"

    @pytest.mark.req("MQDS-3.1.1.14-01")
    def test_one_enterprise_and_a_collection_of_each_other_type(self) -> None:
        world = World()
        before = world.last(Guid.NULL)
        world.create_event(ENTERPRISE, {601: text("Other"), 609: guid(OTHER)})
        assert world.last(Guid.NULL) == before + 1
        for object_type in (QUEUE, MACHINE, SITE, USER, LINK, CN):
            world.create(object_type, *LEAST[object_type])
        with world.store.read() as view:
            assert [obj.id for obj in view.objects(ENTERPRISE)] == [OTHER]
            counts = {kind: view.count(kind) for kind in ObjectType}
        assert counts == {
            ENTERPRISE: 1,
            QUEUE: 4,
            MACHINE: 4,
            SITE: 4,
            USER: 4,
            LINK: 4,
            CN: 4,
            DELETED: 0,
        }

    def test_the_enterprise_that_comes_takes_the_place_of_its_former_self(self) -> None:
        world = World()
        world.create_event(ENTERPRISE, {601: text("Corp"), 609: guid(ENTERPRISE_ID)})
        assert world.show(world.one(ENTERPRISE), 604) is None
        assert world.store.check() == []


class TestTimes:
    @pytest.mark.req("MQDS-3.1.4.21.8.3-10")
    @pytest.mark.parametrize(
        ("object_type", "created", "modified"), [(QUEUE, 109, 110), (MACHINE, 217, 218)]
    )
    def test_of_new_objects_are_now(
        self, object_type: ObjectType, created: int, modified: int
    ) -> None:
        world = World()
        world.now = 86_400
        made = world.create(object_type, *LEAST[object_type])
        assert made.properties[created] == made.properties[modified] == i4(86_400)

    @pytest.mark.req("MQDS-3.1.4.21.8.2-05")
    @pytest.mark.parametrize(
        ("object_type", "created", "modified", "change"),
        [
            (QUEUE, 109, 110, {105: ui4(1)}),
            (QUEUE, 109, 110, {103: text("ignored")}),
            (MACHINE, 217, 218, {214: ui4(1)}),
        ],
    )
    def test_every_update_moves_modify_time(
        self, object_type: ObjectType, created: int, modified: int, change: Properties
    ) -> None:
        world = World()
        world.now = 86_400
        before = world.show(world.one(object_type), created)
        assert before != world.show(world.one(object_type), modified)
        obj = world.update(world.one(object_type), change)
        assert (world.show(obj, created), world.show(obj, modified)) == (before, 86_400)

    def test_events_bring_their_own(self) -> None:
        world = World()
        obj = world.update_event(world.one(QUEUE), {105: ui4(1)})
        assert (world.show(obj, 109), world.show(obj, 110)) == (510, 511)
        obj = world.update_event(obj, {110: i4(600)})
        assert world.show(obj, 110) == 600

    def test_other_types_have_none(self) -> None:
        world = World()
        before = world.one(SITE)
        changed = world.update(before, {304: text("PSC9")})
        assert changed.properties == {**before.properties, 304: text("PSC9")}


class TestPlace:
    @pytest.mark.req("MQDS-3.1.4.21.8.3-09", "MQDSRP-1.3.1.2-01")
    def test_a_queue_hangs_on_its_machine(self) -> None:
        world = World()
        for name, other, site in (("c13", C15, SITE_B), ("c14", C13, SITE_A), ("c15", C14, SITE_B)):
            made = world.create(QUEUE, f"{name}\\new", {115: guid(other)})
            host = world.find(MACHINE, name)
            assert host is not None
            assert world.show(made, 115) == host.id
            assert made.partition == host.partition == site

    @pytest.mark.req("MQDS-3.1.4.21.8.3-09")
    def test_a_queue_without_a_machine(self) -> None:
        world = World()
        everything = world.snapshot()
        codes = [
            refusal(lambda: world.create(QUEUE, "C99\\new", {})),
            refusal(lambda: world.create_event(QUEUE, {103: text("C99\\new")})),
        ]
        assert codes == [HResult.MQ_ERROR_MACHINE_NOT_FOUND] * 2
        assert world.snapshot() == everything

    @pytest.mark.req("MQDS-3.1.4.21.8.3-06")
    @pytest.mark.parametrize(
        ("properties", "own_site", "site"),
        [
            ({201: guid(SITE_B)}, None, SITE_B),
            ({201: guid(SITE_B)}, SITE_A, SITE_B),
            ({222: guids(SITE_B, SITE_A)}, SITE_A, SITE_B),
            ({}, SITE_A, SITE_A),
        ],
    )
    def test_a_machine_lies_in_its_site(
        self, properties: Properties, own_site: Guid | None, site: Guid
    ) -> None:
        world = World(own_site=own_site)
        made = world.create(MACHINE, "C16", properties)
        assert made.partition == site
        assert world.show(made, 201) == world.show(made, 211) == site

    def test_a_machine_without_a_site(self) -> None:
        world = World()
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            world.create(MACHINE, "C16", {})
        assert code_of(caught) == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES
        assert world.snapshot() == everything

    def test_moving_a_machine_leaves_its_partition(self) -> None:
        """The authority of an object does not change behind its back."""
        world = World()
        obj = world.update(world.one(MACHINE), {201: guid(SITE_B)})
        assert obj.partition == SITE_A

    def test_the_partition_is_assigned_by_the_server_and_read_back(self) -> None:
        """A client cannot choose it, and it has no effect on what else is read or found."""
        world = World()
        obj = world.update(world.one(QUEUE), {116: guid(OTHER)})
        assert (world.show(obj, 116), obj.partition) == (SITE_A, SITE_A)
        assert world.find(QUEUE, "C14\\orders") == obj
        assert world.show(obj, 115) == C14
        again = world.update(obj, {105: ui4(1)})
        assert (again.partition, world.show(again, 105)) == (SITE_A, 1)


class TestUniqueness:
    @pytest.mark.req("MQDS-3.1.6.11-01")
    @pytest.mark.parametrize(
        ("object_type", "path", "code"),
        [
            (QUEUE, "c14\\ORDERS", HResult.MQ_ERROR_QUEUE_EXISTS),
            (MACHINE, "c14", HResult.MQ_ERROR_MACHINE_EXISTS),
            (SITE, "ALPHA", HResult.MQ_ERROR_QUEUE_EXISTS),
            (CN, "net", HResult.MQ_ERROR_QUEUE_EXISTS),
        ],
    )
    def test_of_names(self, object_type: ObjectType, path: str, code: HResult) -> None:
        world = World()
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            world.create(object_type, path, LEAST[object_type][1])
        assert code_of(caught) == code
        assert world.snapshot() == everything

    @pytest.mark.req("MQDS-3.1.6.11-01")
    @pytest.mark.parametrize(
        ("object_type", "propid"), [(MACHINE, 202), (SITE, 302), (CN, 503), (LINK, 806)]
    )
    def test_of_identifiers(self, object_type: ObjectType, propid: int) -> None:
        world = World()
        everything = world.snapshot()
        path, least = LEAST[object_type]
        with pytest.raises(DirectoryError) as caught:
            world.create(object_type, path, {**least, propid: guid(world.one(object_type).id)})
        expected = (
            HResult.MQ_ERROR_MACHINE_EXISTS
            if object_type is MACHINE
            else HResult.MQ_ERROR_QUEUE_EXISTS
        )
        assert code_of(caught) == expected
        assert world.snapshot() == everything

    def test_types_do_not_share_names(self) -> None:
        assert World().create(SITE, "C14", {}).path == "C14"

    def test_a_rename_to_a_taken_name(self) -> None:
        world = World()
        other = world.create(CN, "Wire", {})
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            world.update(other, {502: text("NET")})
        assert code_of(caught) == HResult.MQ_ERROR_QUEUE_EXISTS
        with pytest.raises(DirectoryError) as caught:
            world.update(other, {502: text("")})
        assert code_of(caught) == HResult.MQ_ERROR_INVALID_PARAMETER
        assert world.snapshot() == everything

    def test_a_rename(self) -> None:
        world = World()
        obj = world.update(world.one(CN), {502: text("NET")})  # just the case of its own name
        assert obj.path == "NET"
        obj = world.update(obj, {502: text("Wire")})
        assert world.find(CN, "net") is None
        assert world.find(CN, "wire") == obj


class TestCertificates:
    @pytest.mark.req("MQDS-3.1.4.4-25")
    def test_a_bare_certificate_becomes_a_list_of_one(self) -> None:
        world = World()
        supplied = {**CERTIFICATE, 702: blob(BARE_CERTIFICATE)}
        for made in (
            world.create(USER, None, supplied),
            world.create_event(USER, supplied),
            world.update(world.one(USER), {702: blob(BARE_CERTIFICATE)}),
            world.update_event(world.one(USER), {702: blob(BARE_CERTIFICATE)}),
        ):
            stored = made.properties[702].value
            assert isinstance(stored, bytes)
            (entry,) = UserSignCerts.from_bytes(stored).certificates
            assert entry.certificate == BARE_CERTIFICATE
            assert entry.digest == digest(BARE_CERTIFICATE).raw
            assert entry.identifier.big_endian[0] == 0xC0  # one that the entropy gave

    @pytest.mark.req("MQDS-3.1.4.4-25")
    def test_a_list_stays_as_it_is(self) -> None:
        world = World()
        listed = certificates(BARE_CERTIFICATE, SECOND_CERTIFICATE)
        made = world.create(USER, None, {**CERTIFICATE, 702: blob(listed)})
        assert made.properties[702] == blob(listed)

    def test_nothing_is_an_empty_list(self) -> None:
        world = World()
        made = world.update(world.one(USER), {702: blob(b"")})
        assert made.properties[702] == blob(bytes(4))

    def test_what_is_neither_is_refused(self) -> None:
        with pytest.raises(DirectoryError) as caught:
            World().create(USER, None, {**CERTIFICATE, 702: blob(b"no certificate")})
        assert code_of(caught) == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE

    @pytest.mark.req("MQDS-3.1.4.4-24")
    def test_a_user_who_is_known_gets_one_more(self) -> None:
        world = World()
        before = world.last(Guid.NULL)
        again = world.create(
            USER,
            None,
            {
                701: blob(ALICE_SID),
                702: blob(SECOND_CERTIFICATE),
                705: guids(digest(SECOND_CERTIFICATE)),
            },
        )
        assert again.id == ALICE
        assert world.show(again, 705) == (digest(BARE_CERTIFICATE), digest(SECOND_CERTIFICATE))
        stored = again.properties[702].value
        assert isinstance(stored, bytes)
        listed = UserSignCerts.from_bytes(stored).certificates
        assert [c.certificate for c in listed] == [BARE_CERTIFICATE, SECOND_CERTIFICATE]
        assert world.last(Guid.NULL) == before + 1
        with world.store.read() as view:
            assert view.count(USER) == 3

    @pytest.mark.req("MQDS-3.1.4.4-24")
    def test_a_certificate_twice_is_one(self) -> None:
        world = World()
        again = world.create(USER, None, {701: blob(ALICE_SID), **CERTIFICATE})
        assert again.properties == world.one(USER).properties
        assert world.show(again, 702) == certificates(BARE_CERTIFICATE)
        assert world.show(again, 705) == (digest(BARE_CERTIFICATE),)

    def test_more_certificates_than_a_list_can_hold(self) -> None:
        world = World()
        ders = [bytes.fromhex("3006 3004") + n.to_bytes(4, "big") for n in range(MAX_CERTIFICATES)]
        world.update(world.one(USER), {702: blob(certificates(*ders))})
        everything = world.snapshot()
        more = {701: blob(ALICE_SID), **CERTIFICATE}
        code = refusal(lambda: world.create(USER, None, more))
        assert code == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
        assert world.snapshot() == everything

    @pytest.mark.req("MQDS-3.1.4.4-24")
    def test_a_user_who_is_not_known_is_another_one(self) -> None:
        world = World()
        made = world.create(USER, None, {701: blob(BOB_SID), **CERTIFICATE})
        assert made.id != ALICE
        assert world.show(made, 701) == BOB_SID
        assert world.show(made, 705) == (digest(BARE_CERTIFICATE),)


class TestCreateEvent:
    @pytest.mark.req("MQDS-3.1.6.3-04")
    def test_a_queue_brings_identifier_path_and_times(self) -> None:
        world = World()
        made = world.create_event(
            QUEUE, {101: guid(OTHER), 103: text("C14\\new"), 109: i4(7), 110: i4(8)}
        )
        assert (made.id, made.path) == (OTHER, "C14\\new")
        assert (world.show(made, 109), world.show(made, 110)) == (7, 8)

    @pytest.mark.req("MQDS-3.1.6.3-04")
    @pytest.mark.parametrize(
        ("object_type", "properties", "shown"),
        [
            (MACHINE, {203: text("C16"), 201: guid(SITE_A)}, {203: "C16", 227: 0, 112: None}),
            (USER, {**CERTIFICATE, 706: guid(OTHER)}, {706: OTHER}),
            (SITE, {301: text("Gamma"), 304: text("PSC9")}, {301: "Gamma", 304: "PSC9"}),
            (
                SITE,
                {301: text("Gamma"), 1301: blob(DESCRIPTOR)},
                {1301: DESCRIPTOR, 305: 2},
            ),
        ],
    )
    def test_the_others_bring_what_a_client_cannot(
        self, object_type: ObjectType, properties: Properties, shown: dict[int, object]
    ) -> None:
        world = World()
        made = world.create_event(object_type, properties)
        assert {propid: world.show(made, propid) for propid in shown} == shown

    @pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE, CN, ENTERPRISE, USER, LINK])
    def test_no_properties_are_not_enough(self, object_type: ObjectType) -> None:
        world = World()
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            world.create_event(object_type, {})
        assert code_of(caught) == HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES
        assert world.snapshot() == everything

    def test_identifiers_of_other_types_are_skipped_wrong_types_fail(self) -> None:
        world = World()
        made = world.create_event(SITE, {301: text("Gamma"), 105: text("?"), 4711: ui4(1)})
        assert not {105, 4711} & set(made.properties)
        for bad in ({305: ui4(1)}, {302: text("no guid")}):
            with pytest.raises(DirectoryError) as caught:
                world.create_event(SITE, {301: text("Delta"), **bad})
            assert code_of(caught) == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT

    def test_names_are_checked(self) -> None:
        with pytest.raises(DirectoryError) as caught:
            World().create_event(QUEUE, {103: text("nowhere")})
        assert code_of(caught) == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME


class TestDelete:
    @pytest.mark.parametrize(
        ("object_type", "partition"),
        [
            (QUEUE, SITE_A),
            (MACHINE, SITE_A),
            (SITE, Guid.NULL),
            (CN, Guid.NULL),
            (USER, Guid.NULL),
            (LINK, Guid.NULL),
            (ENTERPRISE, Guid.NULL),
        ],
    )
    @pytest.mark.req("MQDSRP-3.1.1.2.2-01", "MQDSRP-3.1.1.2.2-02")
    def test_leaves_a_tombstone(self, object_type: ObjectType, partition: Guid) -> None:
        world = World()
        obj = world.one(object_type)
        before = world.last(partition)
        tombstone = world.delete(obj)
        assert tombstone == DeletedObject(
            obj.id, partition, before + 1, object_type, Scope.ENTERPRISE
        )
        assert world.last(partition) == before + 1
        with world.store.read() as view:
            assert view.get(object_type, obj.id) is None
            assert view.tombstones(obj.id) == [tombstone]
            assert list(view.changes(partition, before)) == [tombstone]

    @pytest.mark.req("MQDSRP-3.1.1.2.2-03")
    @pytest.mark.parametrize(("scope", "expected"), [(0, Scope.SITE), (1, Scope.ENTERPRISE)])
    def test_a_tombstone_reaches_as_far_as_its_queue(self, scope: int, expected: Scope) -> None:
        world = World()
        obj = world.update(world.one(QUEUE), {114: ui1(scope)})
        assert world.delete(obj).scope is expected

    def test_an_object_that_comes_back_has_no_tombstone(self) -> None:
        world = World()
        world.delete(world.one(LINK))
        made = world.create(LINK, None, {**ENDS, 806: guid(LINK_AB)})
        with world.store.read() as view:
            assert view.tombstones(LINK_AB) == []
        assert made.seq == world.last(Guid.NULL)
        assert world.store.check() == []

    def test_the_name_is_free_again(self) -> None:
        world = World()
        world.delete(world.one(QUEUE))
        assert world.create(QUEUE, "C14\\orders", {}).id != ORDERS


class TestNumbers:
    def test_count_up_in_each_partition(self) -> None:
        world = World(empty=True)
        site_a = world.create(SITE, "Alpha", {302: guid(SITE_A)})
        site_b = world.create(SITE, "Beta", {302: guid(SITE_B)})
        machine = world.create(MACHINE, "C14", {201: guid(SITE_A)})
        queue = world.create(QUEUE, "C14\\q", {})
        assert [obj.seq.value for obj in (site_a, site_b, machine, queue)] == [1, 2, 1, 2]
        queue = world.update(queue, {105: ui4(1)})
        site_b = world.update(site_b, {304: text("PSC2")})
        assert (queue.seq.value, site_b.seq.value) == (3, 3)
        assert world.delete(queue).seq.value == 4
        assert (world.last(Guid.NULL).value, world.last(SITE_A).value) == (3, 4)
        assert world.partition(SITE_B) is None

    @pytest.mark.req("MQDS-3.1.4.21.8.2-08", "MQDS-3.1.1.1-01")
    @pytest.mark.parametrize(
        ("object_type", "propid", "partition"),
        [
            (QUEUE, 117, SITE_A),
            (MACHINE, 213, SITE_A),
            (SITE, 308, Guid.NULL),
            (CN, 505, Guid.NULL),
            (ENTERPRISE, 608, Guid.NULL),
            (USER, 704, Guid.NULL),
            (LINK, 805, Guid.NULL),
        ],
    )
    @pytest.mark.parametrize("supplied", [b"", b"\xff" * 8, bytes(8), b"not eight bytes at all"])
    def test_a_supplied_number_is_not_even_looked_at(
        self, object_type: ObjectType, propid: int, partition: Guid, supplied: bytes
    ) -> None:
        """The next one of the object's partition is taken, which is null but for two types."""
        world = World()
        before = world.last(partition)
        obj = world.update(world.one(object_type), {propid: blob(supplied)})
        assert obj.seq == world.last(partition) == before + 1
        assert world.show(obj, propid) == (before + 1).to_bytes()

    def test_an_update_that_changes_nothing_takes_one_too(self) -> None:
        world = World()
        before = world.one(SITE)
        assert world.update(before, {}).seq > before.seq

    @pytest.mark.parametrize(
        "fails",
        [
            lambda events, tx: events.create(CN, "Net", {}),
            lambda events, tx: events.create(MACHINE, "C16", {}),
            lambda events, tx: events.create(QUEUE, "C99\\q", {}),
            lambda events, tx: events.create(QUEUE, "C14\\q", {112: ui4(9)}),
            lambda events, tx: events.update(tx.get(CN, NET), {502: text("Taken")}),
            lambda events, tx: events.update(tx.get(CN, NET), {502: text("")}),
            lambda events, tx: events.update(tx.get(QUEUE, ORDERS), {110: i4(1)}),
            lambda events, tx: events.update_directory_object(
                tx.get(QUEUE, ORDERS), {103: text("C14")}
            ),
            lambda events, tx: events.create_directory_object(SITE, {301: text("Alpha")}),
        ],
    )
    def test_a_failed_operation_takes_none(self, fails: object) -> None:
        """Also where nothing is rolled back: every rule speaks before a number is given out."""
        world = World()
        world.create(CN, "Taken", {})
        everything = world.snapshot()
        with world.store.write() as transaction, pytest.raises(DirectoryError):
            fails(world.events(transaction), transaction)  # type: ignore[operator]
        assert world.snapshot() == everything

    def test_the_last_number_is_never_given_out(self) -> None:
        """All ones means "to the newest change" on the wire (MC-MQDSRP 2.2.2)."""
        world = World()
        for last in (SequenceNumber.MAX - 1, SequenceNumber.MAX):
            with world.store.write() as transaction:
                transaction.put_partition(Partition(SITE_A, "PSC1", last))
            with pytest.raises(StorageError, match="no sequence numbers left"):
                world.update(world.one(QUEUE), {})
        with world.store.write() as transaction:
            transaction.put_partition(Partition(SITE_A, "PSC1", SequenceNumber.MAX - 2))
        assert world.update(world.one(QUEUE), {}).seq == SequenceNumber.MAX - 1

    def test_a_new_partition_is_owned_by_its_authority(self) -> None:
        world = World()
        enterprise = world.partition(Guid.NULL)
        assert enterprise is not None
        assert enterprise.owner == "PEC0"  # although the enterprise came after its partition
        assert world.partition(SITE_A) == Partition(SITE_A, "PSC1", world.one(QUEUE).seq)


@given(
    st.lists(
        st.tuples(st.sampled_from("cudx"), st.integers(0, 2), st.sampled_from("AB")), max_size=25
    )
)
def test_numbers_stay_in_order_whatever_happens(steps: list[tuple[str, int, str]]) -> None:
    """Creates, updates, deletes and failures: each success takes exactly the next number."""
    world = World(empty=True)
    sites = {"A": SITE_A, "B": SITE_B}
    for letter, site in sites.items():
        world.create(SITE, letter, {302: guid(site)})
        world.create(MACHINE, f"M{letter}", {201: guid(site)})
    expected = {SITE_A: 1, SITE_B: 1}
    for action, n, letter in steps:
        path, site = f"M{letter}\\q{n}", sites[letter]
        found = world.find(QUEUE, path)
        worked = False
        if action == "c" and found is None:
            worked = bool(world.create(QUEUE, path, {}))
        elif action == "c":
            with pytest.raises(DirectoryError):
                world.create(QUEUE, path, {})
        elif found is None:
            continue
        elif action == "u":
            worked = bool(world.update(found, {105: ui4(n)}))
        elif action == "d":
            worked = bool(world.delete(found))
        else:
            with pytest.raises(DirectoryError):
                world.update(found, {105: ui4(n), 110: i4(1)})
        expected[site] += worked
        assert world.last(site).value == expected[site]
    for site in sites.values():
        with world.store.read() as view:
            changes = list(view.changes(site, SequenceNumber.MIN))
        assert [c.seq for c in changes] == sorted({c.seq for c in changes})
        assert len({(isinstance(c, DirectoryObject), c.id) for c in changes}) == len(changes)
    assert world.store.check() == []
