"""The read tables (MS-MQDS 3.1.4.21.8.1): which properties a client reads, and what they show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.read_mapping import (
    check_readable,
    is_readable,
    read_property,
)
from mqis.protocol.directory.types.machine_values import MAX_NAMED
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_AES_PROVIDER,
    ENHANCED_PROVIDER,
    PublicKey,
    PublicKeys,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sddl import parse_sddl
from tests.protocol.directory.world import (
    ADDRESSES,
    ALICE,
    ALICE_SID,
    BARE_CERTIFICATE,
    BASE_KEY,
    C14,
    C15,
    CN,
    DELETED,
    DESCRIPTOR,
    ENHANCED_KEY,
    ENTERPRISE,
    ENTERPRISE_ID,
    KEYS,
    LINK,
    LINK_AB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    SITE_F,
    USER,
    World,
    blob,
    certificates,
    digest,
    guid,
    guids,
    text,
    ui1,
    ui2,
    ui4,
)

#: What a client may read (8.1.1, 8.1.4, 8.1.6, 8.1.8 to 8.1.11), and what is in no table.
TABLES = {
    MACHINE: (
        "8.1-01",
        {*range(201, 204), *range(205, 211), *range(214, 225), *range(227, 230)}
        | {231, 232, 233, 234, 237, 238, 239, 241, 242},
        {211, 212, 213},
    ),
    QUEUE: ("8.1-10", {*range(101, 117), 121, 123, 124}, {117, 118, 119, 125, 126}),
    ENTERPRISE: (
        "8.1-12",
        {601, 602, 603, 604, 609, 616, 617},
        {605, 606, 607, 608, *range(610, 616)},
    ),
    SITE: ("8.1-14", {*range(301, 307), *range(309, 313)}, {307, 308}),
    LINK: ("8.1-15", {801, 802, 803, 806, *range(808, 814)}, {804, 805, 807}),
    # 501 is in no table, but clients may write it and need to know it.
    CN: ("8.1-16", {501, 502, 503}, {504, 505}),
    USER: ("8.1-17", {701, 702, 705, 706}, {703, 704}),
}


class TestTables:
    @pytest.mark.parametrize(
        ("object_type", "readable", "unlisted"),
        [
            pytest.param(kind, *row[1:], marks=pytest.mark.req(f"MQDS-3.1.4.21.{row[0]}"))
            for kind, row in TABLES.items()
        ],
    )
    def test_table(self, object_type: ObjectType, readable: set[int], unlisted: set[int]) -> None:
        for propid in readable:
            assert check_readable(object_type, propid) == propid
            assert is_readable(propid)
        for propid in unlisted:
            assert not is_readable(propid)
            with pytest.raises(DirectoryError) as caught:
                check_readable(object_type, propid)
            assert caught.value.hresult == HResult.E_ADS_PROPERTY_NOT_FOUND

    def test_every_public_identifier_is_in_one_table(self) -> None:
        listed = [p for _, readable, unlisted in TABLES.values() for p in readable | unlisted]
        assert sorted(listed) == [int(propid) for propid in PropId if propid < 1000]

    @pytest.mark.req("MQDS-2.2.10.1-02")
    @pytest.mark.parametrize("propid", [p for p in PropId if p >= 1000])
    def test_private_identifiers_are_not_read(self, propid: int) -> None:
        assert not is_readable(propid)
        for object_type in ObjectType:
            with pytest.raises(DirectoryError) as caught:
                check_readable(object_type, propid)
            assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_PROPID

    @pytest.mark.req("MQDS-2.2.10.1-01")
    @pytest.mark.parametrize(
        ("object_type", "propid"),
        [(QUEUE, 120), (QUEUE, 122), (MACHINE, 204), (MACHINE, 225), (ENTERPRISE, 618)],
    )
    def test_undefined_identifiers_inside_a_range(
        self, object_type: ObjectType, propid: int
    ) -> None:
        with pytest.raises(DirectoryError) as caught:
            check_readable(object_type, propid)
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_PROPID

    @pytest.mark.req("MQDS-3.1.4.21.2-01")
    def test_identifiers_mean_something_for_their_own_type_only(self) -> None:
        world = World()
        with pytest.raises(DirectoryError) as caught:
            check_readable(MACHINE, 108)
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_PROPID
        assert world.show(world.one(MACHINE), 101) is None
        assert world.show(world.one(QUEUE), 202) is None
        assert world.show(world.one(QUEUE), 4711) is None

    def test_tombstones_have_no_properties_that_a_client_reads(self) -> None:
        for propid in (101, 1401, 1405):
            with pytest.raises(DirectoryError):
                check_readable(DELETED, propid)


class TestIdentity:
    @pytest.mark.req("MQDS-3.1.4.21.3-01", "MQDS-2.2.10.5-01")
    @pytest.mark.parametrize(
        ("object_type", "propid", "identifier"),
        [
            (QUEUE, 101, ORDERS),
            (MACHINE, 202, C14),
            (SITE, 302, SITE_A),
            (CN, 503, NET),
            (ENTERPRISE, 609, ENTERPRISE_ID),
            (USER, 706, ALICE),
            (LINK, 806, LINK_AB),
        ],
    )
    def test_identifier(self, object_type: ObjectType, propid: int, identifier: Guid) -> None:
        world = World()
        with world.store.read() as view:
            shown = read_property(world.one(object_type), propid, view)
        assert shown == PropVariant(VarType.CLSID, identifier)

    @pytest.mark.req("MQDS-3.1.4.21.4-01")
    @pytest.mark.parametrize(
        ("object_type", "propids", "name"),
        [
            (QUEUE, (103, 121, 124), "C14\\orders"),
            (MACHINE, (203, 221, 233), "C14"),
            (SITE, (301, 309), "Alpha"),
            (CN, (502,), "Net"),
            (ENTERPRISE, (601,), "Corp"),
        ],
    )
    def test_name(self, object_type: ObjectType, propids: tuple[int, ...], name: str) -> None:
        """A directory of its own has one name for each object, under whatever identifier."""
        world = World()
        obj = world.one(object_type)
        assert obj.path == name
        with world.store.read() as view:
            shown = [read_property(obj, propid, view) for propid in propids]
        assert shown == [PropVariant(VarType.LPWSTR, name)] * len(propids)

    @pytest.mark.parametrize(
        ("object_type", "sequence", "partition"),
        [
            pytest.param(*row, marks=pytest.mark.req(f"MQDS-3.1.1.{section}-01"))
            for section, row in [
                ("6", (ENTERPRISE, 608, 607)),
                ("7", (MACHINE, 213, 211)),
                ("8", (QUEUE, 117, 116)),
                ("8", (USER, 704, 703)),
                ("8", (SITE, 308, 307)),
                ("8", (LINK, 805, 804)),
                ("8", (CN, 505, 504)),
            ]
        ],
    )
    def test_number_and_partition(
        self, object_type: ObjectType, sequence: int, partition: int
    ) -> None:
        world = World()
        obj = world.one(object_type)
        home = SITE_A if object_type in (MACHINE, QUEUE) else Guid.NULL
        with world.store.read() as view:
            assert read_property(obj, sequence, view) == blob(obj.seq.to_bytes())
            assert read_property(obj, partition, view) == guid(home)
        assert len(obj.seq.to_bytes()) == 8


class TestMachine:
    @pytest.mark.req("MQDS-3.1.4.21.8.1-02")
    def test_sites(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {222: guids(SITE_B, SITE_A)})
        assert world.show(obj, 201) == SITE_B
        assert world.show(obj, 222) == (SITE_B, SITE_A)

    @pytest.mark.req("MQDS-3.1.4.21.8.1-03")
    def test_keys_by_provider(self) -> None:
        """The bare key (aBuf), not the entry around it, chosen by the provider's name."""
        world = World()
        obj = world.update(world.one(MACHINE), {238: blob(KEYS)})
        with world.store.read() as view:
            shown = {p: read_property(obj, p, view) for p in (205, 231, 232)}
        base = PropVariant(VarType.VECTOR_UI1, BASE_KEY.to_bytes())
        enhanced = PropVariant(VarType.VECTOR_UI1, ENHANCED_KEY.to_bytes())
        assert shown == {205: base, 231: base, 232: enhanced}

    @pytest.mark.req("MQDS-3.1.4.21.8.1-03")
    @pytest.mark.parametrize(
        ("provider", "present"),
        [(BASE_PROVIDER, {205, 231}), (ENHANCED_PROVIDER, {232}), (ENHANCED_AES_PROVIDER, set())],
    )
    def test_an_absent_key_is_an_empty_vector(self, provider: str, present: set[int]) -> None:
        world = World()
        assert [world.show(world.one(MACHINE), p) for p in (205, 231, 232)] == [b"", b"", b""]
        keys = PublicKeys((PublicKey.of(BASE_KEY, provider),)).to_bytes()
        obj = world.update(world.one(MACHINE), {238: blob(keys)})
        for propid in (205, 231, 232):
            expected = BASE_KEY.to_bytes() if propid in present else b""
            assert world.show(obj, propid) == expected

    @pytest.mark.req("MQDS-3.1.1.7-01", "MQDS-3.1.4.21.8.1-04")
    def test_addresses(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {206: blob(ADDRESSES)})
        assert world.show(obj, 206) == bytes.fromhex("0400 0100 0a010203")

    @pytest.mark.req("MQDS-3.1.4.21.8.1-05")
    def test_routing_servers_by_name(self) -> None:
        """Strings, although the text says GUIDs; a server that is gone has no name."""
        world = World()
        obj = world.update(world.one(MACHINE), {208: guids(C15, OTHER, C14), 209: guids(C14)})
        with world.store.read() as view:
            assert read_property(obj, 223, view) == PropVariant(
                VarType.VECTOR_LPWSTR, ("C15", "C14")
            )
            assert read_property(obj, 224, view) == PropVariant(VarType.VECTOR_LPWSTR, ("C14",))

    @pytest.mark.req("SEC-7-01")
    def test_a_long_list_of_routing_servers_is_not_looked_up_to_its_end(self) -> None:
        world = World()
        long = PropVariant(VarType.VECTOR_CLSID, (C14,) * 65_536)
        obj = world.one(MACHINE)
        obj = replace(obj, properties={**obj.properties, 208: long})
        with world.store.read() as view:
            shown = read_property(obj, 223, view)
        assert shown is not None
        assert shown.value == ("C14",) * MAX_NAMED

    @pytest.mark.req("MQDS-3.1.4.21.8.1-06")
    @pytest.mark.parametrize(
        ("propid", "writes"),
        [
            (219, {219: ui1(1)}),
            (227, {210: ui4(1)}),
            (228, {210: ui4(2)}),
            (228, {228: ui1(1)}),
            (229, {229: ui1(1)}),
            (242, {242: ui1(1)}),
        ],
    )
    def test_flags(self, propid: int, writes: dict[int, PropVariant]) -> None:
        world = World()
        with world.store.read() as view:
            assert read_property(world.one(MACHINE), propid, view) == ui1(0)
        obj = world.update_event(world.one(MACHINE), writes)
        with world.store.read() as view:
            assert read_property(obj, propid, view) == ui1(1)

    @pytest.mark.req("MQDS-3.1.4.21.8.1-07")
    def test_keys_and_security(self) -> None:
        world = World()
        obj = world.update_event(world.one(MACHINE), {238: blob(KEYS), 1201: blob(DESCRIPTOR)})
        assert world.show(obj, 238) == world.show(obj, 1203) == KEYS
        assert world.show(obj, 239) == world.show(obj, 1202) == b""
        assert world.show(obj, 234) == world.show(obj, 1201) == DESCRIPTOR
        owner = parse_sddl("O:BA").owner
        assert owner is not None
        assert world.show(obj, 241) == owner.to_bytes()
        obj = world.update_event(obj, {1202: blob(KEYS), 1203: blob(b"")})
        assert (world.show(obj, 239), world.show(obj, 238)) == (KEYS, b"")

    @pytest.mark.req("MQDS-3.1.4.21.8.1-07")
    @pytest.mark.parametrize(
        ("sddl", "mask"),
        [
            (None, 0x7),
            ("O:BAG:SYD:(A;;FA;;;WD)", 0x7),
            ("O:BA", 0x1),
            ("G:SY", 0x2),
            ("D:", 0x4),
            ("S:", 0x8),
            ("O:BAG:SYD:S:", 0xF),
        ],
    )
    def test_security_information_tells_the_parts_that_are_there(
        self, sddl: str | None, mask: int
    ) -> None:
        world = World()
        machine, queue, site = world.one(MACHINE), world.one(QUEUE), world.one(SITE)
        if sddl is not None:
            descriptor = blob(parse_sddl(sddl).to_bytes())
            machine = world.update_event(machine, {1201: descriptor})
            queue = world.update_event(queue, {1101: descriptor})
            site = world.update_event(site, {1301: descriptor})
        assert world.show(machine, 237) == mask
        assert world.show(queue, 1103) == mask
        assert world.show(site, 1303) == mask

    def test_no_owner_no_value(self) -> None:
        world = World(described=False)
        assert world.show(world.one(MACHINE), 241) is None
        obj = world.update_event(world.one(MACHINE), {1201: blob(parse_sddl("G:SY").to_bytes())})
        assert world.show(obj, 241) is None

    @pytest.mark.req("MQDS-3.1.4.21.8.1-08")
    @pytest.mark.parametrize("bits", [0x00, 0x01, 0x10, 0x02, 0x04, 0x08, 0x11, 0x19])
    def test_service(self, bits: int) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {210: ui4(bits)})
        assert world.show(obj, 210) == bits
        assert world.show(obj, 227) == bits & 1
        assert world.show(obj, 228) == int(bool(bits & 0x0E))

    @pytest.mark.req("MQDS-3.1.4.21.8.1-08")
    def test_a_server_that_stands_alone_has_no_bit(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {228: ui1(1)})
        assert (world.show(obj, 228), world.show(obj, 210)) == (1, 0)

    @pytest.mark.req("MQDS-3.1.4.21.8.1-09")
    @pytest.mark.parametrize("system", [0, 0x100, 0x200, 0x300, 0x400, 0x500])
    def test_operating_system(self, system: int) -> None:
        world = World()
        assert world.show(world.one(MACHINE), 220) == 0
        obj = world.update(world.one(MACHINE), {220: ui4(system)})
        assert world.show(obj, 220) == system


class TestQueue:
    @pytest.mark.req("MQDS-3.1.4.21.8.1-10")
    @pytest.mark.parametrize("propid", [104, 111, 113])
    def test_flags(self, propid: int) -> None:
        world = World()
        assert world.show(world.one(QUEUE), propid) == 0
        assert world.show(world.update(world.one(QUEUE), {propid: ui1(1)}), propid) == 1

    @pytest.mark.req("MQDS-3.1.4.21.8.1-10")
    def test_scope(self) -> None:
        world = World()
        assert world.show(world.one(QUEUE), 114) == 1  # the enterprise
        assert world.show(world.update(world.one(QUEUE), {114: ui1(0)}), 114) == 0

    @pytest.mark.req("MQDS-3.1.4.21.8.1-11")
    @pytest.mark.parametrize("level", [0, 1, 2])
    def test_privacy_level(self, level: int) -> None:
        world = World()
        assert world.show(world.update(world.one(QUEUE), {112: ui4(level)}), 112) == level

    @pytest.mark.req("MQDS-2.2.10.2-01")
    def test_security(self) -> None:
        world = World(described=False)
        assert world.show(world.one(QUEUE), 1102) is None
        obj = world.update_event(world.one(QUEUE), {1101: blob(DESCRIPTOR)})
        assert world.show(obj, 1102) == DESCRIPTOR

    @pytest.mark.req("MQDS-3.1.1.8-01")
    def test_attributes_beyond_the_model(self) -> None:
        """QueueManagerIdentifier and PathnameSuffix are mapped but declared nowhere."""
        world = World()
        obj = world.update(world.one(QUEUE), {123: text("x")})
        assert (world.show(obj, 115), world.show(obj, 123)) == (C14, "x")
        assert (world.show(obj, 116), world.show(obj, 117)) == (SITE_A, obj.seq.to_bytes())

    @pytest.mark.req("MQDS-3.1.1.8-01", "MQDS-3.1.1.6-01", "MQDS-3.1.1.7-01")
    @pytest.mark.parametrize(
        ("object_type", "propid"),
        [(MACHINE, 213), (SITE, 308), (CN, 505), (ENTERPRISE, 608), (USER, 704), (LINK, 805)],
    )
    def test_objects_carry_their_sequence_number(
        self, object_type: ObjectType, propid: int
    ) -> None:
        world = World()
        obj = world.one(object_type)
        assert int.from_bytes(obj.seq.to_bytes(), "big") > 0
        assert world.show(obj, propid) == obj.seq.to_bytes()


class TestEnterprise:
    @pytest.mark.req("MQDS-3.1.1.6-01", "MQDS-3.1.4.21.8.1-12")
    def test_attributes(self) -> None:
        world = World()
        obj = world.update_event(world.one(ENTERPRISE), {616: ui4(9), 1601: blob(DESCRIPTOR)})
        assert [world.show(obj, p) for p in (601, 604, 609)] == ["Corp", "PEC0", ENTERPRISE_ID]
        assert (world.show(obj, 616), world.show(obj, 1601)) == (9, DESCRIPTOR)

    @pytest.mark.req("MQDS-3.1.4.21.8.1-12")
    @pytest.mark.parametrize(("written", "shown"), [(3, 3), (200, 200), (4, 200), (0, 200)])
    def test_version(self, written: int, shown: int) -> None:
        world = World()
        with world.store.read() as view:  # nobody said anything: not an old directory
            assert read_property(world.one(ENTERPRISE), 617, view) == ui2(200)
        assert world.show(world.update(world.one(ENTERPRISE), {617: ui2(written)}), 617) == shown

    @pytest.mark.req("MQDS-3.1.4.21.8.1-12")
    @pytest.mark.parametrize(("written", "shown"), [(0, 0), (1, 1), (2, 0)])
    def test_name_style(self, written: int, shown: int) -> None:
        world = World()
        assert world.show(world.one(ENTERPRISE), 602) == 0
        assert world.show(world.update(world.one(ENTERPRISE), {602: ui1(written)}), 602) == shown

    @pytest.mark.req("MQDS-3.1.4.21.8.1-13", "MQDS-3.1.1.6-01")
    @pytest.mark.parametrize(
        "provider",
        [
            "Microsoft Base Cryptographic Provider v1.0",
            "Microsoft Enhanced Cryptographic Provider v1.0",
            "Microsoft Enhanced RSA and AES Cryptographic Provider",
        ],
    )
    def test_provider(self, provider: str) -> None:
        world = World()
        before = "Microsoft Enhanced RSA and AES Cryptographic Provider"
        assert world.show(world.one(ENTERPRISE), 603) == before
        assert (
            world.show(world.update(world.one(ENTERPRISE), {603: text(provider)}), 603) == provider
        )


class TestSite:
    @pytest.mark.req("MQDS-3.1.4.21.8.1-14")
    def test_flags_have_two_sizes(self) -> None:
        world = World()
        obj = world.update(world.one(SITE), {310: ui2(1), 311: ui1(1), 312: ui1(1)})
        with world.store.read() as view:
            assert read_property(obj, 310, view) == ui2(1)
            assert read_property(obj, 311, view) == ui1(1)
            assert read_property(obj, 312, view) == ui1(0)  # nothing ever sets it

    @pytest.mark.req("MQDS-3.1.4.21.8.1-14", "MQDS-3.1.1.8-01")
    def test_attributes(self) -> None:
        world = World()
        obj = world.update_event(
            world.one(SITE),
            {303: guids(C14), 305: ui2(4), 306: ui2(5), 1301: blob(DESCRIPTOR), 1302: blob(KEYS)},
        )
        shown = [world.show(obj, p) for p in (303, 304, 305, 306, 309, 1301, 1302)]
        assert shown == [(C14,), "PSC1", 4, 5, "Alpha", DESCRIPTOR, KEYS]


class TestLink:
    @pytest.mark.req("MQDS-3.1.4.21.8.1-15")
    @pytest.mark.parametrize(
        ("ends", "cost"),
        [
            ((SITE_A, SITE_B), 5),
            ((SITE_A, SITE_F), 1_000_004),
            ((SITE_F, SITE_A), 1_000_004),
            ((SITE_F, SITE_F), 2_000_003),
            ((SITE_A, OTHER), 5),  # a site that nobody knows is not a foreign one
        ],
    )
    def test_cost(self, ends: tuple[Guid, Guid], cost: int) -> None:
        world = World()
        obj = world.create(LINK, None, {801: guid(ends[0]), 802: guid(ends[1]), 812: ui4(5)})
        with world.store.read() as view:
            assert read_property(obj, 803, view) == ui4(cost)
            assert read_property(obj, 812, view) == ui4(5)  # a number, though the text says string

    @pytest.mark.req("MQDS-3.1.4.21.8.1-15", "MQDS-3.1.1.8-01")
    def test_names_of_both_ends(self) -> None:
        """809 is the name of the second site, although the table cites 802 for it."""
        world = World()
        obj = world.one(LINK)
        assert (world.show(obj, 808), world.show(obj, 809)) == ("Alpha", "Beta")
        assert world.show(obj, 811) == f"{0xA:032X}{0xB:032X}"

    def test_without_a_cost_there_is_none_to_show(self) -> None:
        world = World()
        obj = replace(world.one(LINK), properties={801: guid(SITE_A)})
        assert (world.show(obj, 803), world.show(obj, 812)) == (None, None)

    def test_an_end_that_is_gone_has_no_name(self) -> None:
        world = World()
        world.delete(world.get(SITE, SITE_B))
        assert world.show(world.one(LINK), 809) is None

    @pytest.mark.req("MQDS-3.1.4.21.8.1-15")
    def test_the_rest_is_copied(self) -> None:
        world = World()
        obj = world.update(world.one(LINK), {810: text("slow"), 813: guids(C14)})
        shown = [world.show(obj, p) for p in (801, 802, 806, 810, 813)]
        assert shown == [SITE_A, SITE_B, LINK_AB, "slow", (C14,)]


class TestNetworkAndUser:
    @pytest.mark.req("MQDS-3.1.4.21.8.1-16", "MQDS-3.1.1.12-01")
    @pytest.mark.parametrize("protocol", [1, 3, 5])
    def test_network(self, protocol: int) -> None:
        world = World()
        obj = world.update_event(world.one(CN), {501: ui1(protocol), 1501: blob(DESCRIPTOR)})
        shown = [world.show(obj, p) for p in (501, 502, 503, 1501)]
        assert shown == [protocol, "Net", NET, DESCRIPTOR]

    @pytest.mark.req("MQDS-3.1.4.21.8.1-17")
    def test_user(self) -> None:
        world = World()
        shown = [world.show(world.one(USER), p) for p in (701, 702, 705, 706)]
        expected = certificates(BARE_CERTIFICATE), (digest(BARE_CERTIFICATE),)
        assert shown == [ALICE_SID, *expected, ALICE]


def test_a_descriptor_that_cannot_be_read_shows_no_parts() -> None:
    """No rule lets one in, but a store may hold one that was written before there was a rule."""
    world = World()
    obj = world.one(MACHINE)
    broken = obj.with_properties({1201: blob(b"broken")}, obj.seq)
    assert world.show(broken, 237) == 7
    assert world.show(broken, 241) is None
