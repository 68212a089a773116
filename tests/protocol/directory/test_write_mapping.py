"""Writing: what is checked before a table applies, what is stored, what failure leaves behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.write_mapping import (
    check_properties,
    client_create,
    client_update,
    event_create,
    event_update,
)
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType
from tests.protocol.directory.world import (
    ADDRESSES,
    BARE_CERTIFICATE,
    C14,
    C15,
    CN,
    DESCRIPTOR,
    ENTERPRISE,
    KEYS,
    LINK,
    MACHINE,
    NET,
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
    guid,
    guids,
    i4,
    refusal,
    text,
    texts,
    ui1,
    ui2,
    ui4,
)
from tests.strategies.propvariant import texts as any_text

INSUFFICIENT = HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES
ILLEGAL_ID = HResult.MQ_ERROR_ILLEGAL_PROPID
ILLEGAL_VT = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT
ILLEGAL_VALUE = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
NOT_ALLOWED = HResult.MQ_ERROR_PROPERTY_NOTALLOWED

ENDS = {801: guid(SITE_A), 802: guid(SITE_B)}


class TestIdentifiers:
    @pytest.mark.parametrize(
        "propid",
        [
            pytest.param(120, marks=pytest.mark.req("MQDS-2.2.10.1-01")),
            pytest.param(122, marks=pytest.mark.req("MQDS-2.2.10.1-01")),
            pytest.param(0, marks=pytest.mark.req("MQDS-2.3-01")),
            pytest.param(4711, marks=pytest.mark.req("MQDS-2.3-01")),
            pytest.param(208, marks=pytest.mark.req("MQDS-3.1.4.21.2-01")),
            pytest.param(1403, marks=pytest.mark.req("MQDS-3.1.4.21.2-01")),
        ],
    )
    @pytest.mark.req("MQDS-3.1.4.4-13", "MQDS-3.1.4.9-04")
    def test_identifiers_of_other_types_or_none_fail(self, propid: int) -> None:
        world = World()
        everything = world.snapshot()
        codes = [
            refusal(lambda: world.create(QUEUE, "C14\\new", {104: ui1(1), propid: ui4(1)})),
            refusal(lambda: world.update(world.one(QUEUE), {104: ui1(1), propid: ui4(1)})),
        ]
        assert codes == [ILLEGAL_ID] * 2
        assert world.snapshot() == everything

    @pytest.mark.req("MQDS-3.1.4.21.2-01")
    @pytest.mark.parametrize("object_type", ObjectType)
    def test_a_type_takes_no_property_of_another(self, object_type: ObjectType) -> None:
        samples = {
            QUEUE: (108, text("x")),
            MACHINE: (214, ui4(1)),
            SITE: (305, ui2(1)),
            CN: (501, ui1(1)),
            ENTERPRISE: (616, ui4(1)),
            USER: (705, guids()),
            LINK: (810, text("x")),
        }
        for owner, (propid, value) in samples.items():
            if owner is object_type:
                check_properties(object_type, {propid: value})
            else:
                with pytest.raises(DirectoryError) as caught:
                    check_properties(object_type, {propid: value})
                assert caught.value.hresult == ILLEGAL_ID

    @pytest.mark.req("MQDS-3.1.4.4-13", "MQDS-3.1.4.9-04")
    @pytest.mark.parametrize(
        ("propid", "value"),
        [
            (106, PropVariant(VarType.UI2, 1)),
            (105, PropVariant(VarType.I4, 1)),
            (108, PropVariant(VarType.NULL, None)),
            (103, blob(b"ignored, but of the wrong type")),
        ],
    )
    def test_a_value_of_another_type_fails(self, propid: int, value: PropVariant) -> None:
        world = World()
        everything = world.snapshot()
        codes = [
            refusal(lambda: world.create(QUEUE, "C14\\new", {propid: value})),
            refusal(lambda: world.update(world.one(QUEUE), {propid: value})),
        ]
        assert codes == [ILLEGAL_VT] * 2
        assert world.snapshot() == everything

    @pytest.mark.req("MQDS-2.2.10.1-02")
    def test_a_private_identifier_is_told_before_anything_else(self) -> None:
        """1203 stands in the update table, and 1101 and 1601 in the client's: still refused."""
        world = World()
        for kind, propid in ((MACHINE, 1203), (QUEUE, 1101), (ENTERPRISE, 1601)):
            with pytest.raises(DirectoryError) as caught:
                client_update(world.one(kind), {propid: PropVariant(VarType.NULL, None)})
            assert caught.value.hresult == ILLEGAL_ID


class TestRequired:
    @pytest.mark.req("MQDS-3.1.4.4-05")
    @pytest.mark.parametrize(
        ("object_type", "properties"),
        [
            (USER, {702: blob(certificates(BARE_CERTIFICATE))}),
            (USER, {705: guids(OTHER)}),
            (LINK, {801: guid(SITE_A), 812: ui4(1)}),
            (LINK, {802: guid(SITE_A), 812: ui4(1)}),
            (LINK, ENDS),
        ],
    )
    def test_missing(self, object_type: ObjectType, properties: Properties) -> None:
        with pytest.raises(DirectoryError) as caught:
            client_create(object_type, properties)
        assert caught.value.hresult == INSUFFICIENT

    @pytest.mark.req("MQDS-3.1.6.3-03")
    @pytest.mark.parametrize(
        ("object_type", "properties"),
        [
            (USER, {702: blob(certificates(BARE_CERTIFICATE))}),
            (LINK, {**ENDS, 806: guid(OTHER)}),
            # Skipped identifiers do not count.
            (LINK, {**ENDS, 105: ui4(1)}),
        ],
    )
    def test_missing_in_an_event(self, object_type: ObjectType, properties: Properties) -> None:
        with pytest.raises(DirectoryError) as caught:
            event_create(object_type, properties)
        assert caught.value.hresult == INSUFFICIENT

    @pytest.mark.req("MQDS-3.1.4.4-05")
    def test_a_link_takes_exactly_one_cost(self) -> None:
        assert client_create(LINK, {**ENDS, 803: ui4(3)})[812] == ui4(3)
        assert client_create(LINK, {**ENDS, 812: ui4(3)})[812] == ui4(3)
        for create in (client_create, event_create):
            with pytest.raises(DirectoryError) as caught:
                create(LINK, {**ENDS, 803: ui4(3), 812: ui4(3)})
            assert caught.value.hresult == NOT_ALLOWED

    @pytest.mark.req("MQDS-3.1.4.4-05")
    @pytest.mark.parametrize("object_type", [QUEUE, MACHINE, SITE])
    def test_the_others_need_none(self, object_type: ObjectType) -> None:
        client_create(object_type, {})

    @pytest.mark.req("MQDS-3.1.4.4-06")
    @pytest.mark.parametrize(
        ("object_type", "path", "properties"),
        [
            (QUEUE, "C14\\new", {103: text("C14\\new")}),
            (
                MACHINE,
                "C16",
                {
                    201: guid(SITE_A),
                    202: guid(OTHER),
                    203: text("C16"),
                    206: blob(ADDRESSES),
                    207: guids(NET),
                },
            ),
            (SITE, "Gamma", {302: guid(OTHER), 304: text("PSC9")}),
            (CN, "Wire", {503: guid(OTHER)}),
            (LINK, None, {**ENDS, 803: ui4(3), 806: guid(OTHER)}),
        ],
    )
    def test_clients_of_either_age_succeed(
        self, object_type: ObjectType, path: str | None, properties: Properties
    ) -> None:
        """With all that the oldest servers ask for; that it is not needed, the tests above say."""
        world = World()
        made = world.create(object_type, path, properties)
        identifier = made.id == OTHER
        assert identifier is (object_type is not QUEUE)


class TestDefaults:
    @pytest.mark.parametrize(
        ("object_type", "path", "properties", "expected"),
        [
            pytest.param(
                QUEUE,
                "C14\\new",
                {},
                {
                    102: guid(Guid.NULL),
                    104: ui1(0),
                    105: ui4(0xFFFFFFFF),
                    106: PropVariant(VarType.I2, 0),
                    107: ui4(0xFFFFFFFF),
                    108: text(""),
                    111: ui1(0),
                    112: ui4(1),
                    113: ui1(0),
                    114: ui1(1),
                },
                marks=pytest.mark.req("MQDS-3.1.4.4-15"),
            ),
            pytest.param(
                MACHINE,
                "C16",
                {201: guid(SITE_A)},
                {
                    206: blob(b""),
                    207: guids(),
                    208: guids(),
                    209: guids(),
                    210: ui4(0),
                    214: ui4(0xFFFFFFFF),
                    215: ui4(0xFFFFFFFF),
                    216: text(""),
                    219: ui1(0),
                    220: ui4(0),
                    227: ui1(0),
                    228: ui1(0),
                    229: ui1(0),
                    238: blob(b""),
                    239: blob(b""),
                    1202: blob(b""),
                    1203: blob(b""),
                },
                marks=pytest.mark.req("MQDS-3.1.4.4-16"),
            ),
            pytest.param(
                SITE,
                "Gamma",
                {},
                {
                    303: guids(),
                    304: text(""),
                    305: ui2(2),
                    306: ui2(10),
                    310: ui2(0),
                    311: ui1(0),
                    312: ui1(0),
                    1302: blob(b""),
                },
                marks=pytest.mark.req("MQDS-3.1.4.4-17"),
            ),
        ],
    )
    def test_defaults(
        self,
        object_type: ObjectType,
        path: str,
        properties: Properties,
        expected: dict[int, PropVariant],
    ) -> None:
        world = World()
        made = world.create(object_type, path, properties)
        shown = {propid: world.show(made, propid) for propid in expected}
        assert shown == {propid: variant.value for propid, variant in expected.items()}

    def test_new_links_and_networks(self) -> None:
        world = World()
        link = world.create(LINK, None, {**ENDS, 812: ui4(1)})
        assert (world.show(link, 810), world.show(link, 813)) == ("", ())
        network = world.create(CN, "Wire", {})
        assert world.show(network, 501) == 1


class TestCanonicalForm:
    """Several identifiers, one attribute: it is stored under one of them."""

    @pytest.mark.req("MQDS-3.1.4.21.8.1-02")
    def test_201_is_the_first_of_222(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {222: guids(SITE_A, SITE_B)})
        obj = world.update(obj, {201: guid(SITE_F)})
        assert world.show(obj, 222) == (SITE_F, SITE_B)
        assert world.show(obj, 201) == SITE_F
        assert 201 not in obj.properties

    def test_201_that_is_in_the_list_moves_to_its_front(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {222: guids(SITE_A, SITE_F, SITE_B)})
        obj = world.update(obj, {201: guid(SITE_B)})
        assert world.show(obj, 222) == (SITE_B, SITE_F)

    @pytest.mark.req("MQDS-3.1.4.21.8.2-13")
    def test_803_and_812_are_one_cost(self) -> None:
        world = World()
        obj = world.update(world.one(LINK), {803: ui4(7)})
        assert world.show(obj, 812) == 7
        assert 803 not in obj.properties

    @pytest.mark.req("MQDS-3.1.4.21.8.2-13")
    def test_read_modify_write_cannot_corrupt_a_cost(self) -> None:
        """803 reads with the surcharge of a foreign end; what it reads cannot be written back."""
        world = World()
        obj = world.create(LINK, None, {801: guid(SITE_A), 802: guid(SITE_F), 812: ui4(5)})
        assert world.show(obj, 803) == 1_000_004
        with pytest.raises(DirectoryError) as caught:
            world.update(obj, {803: ui4(1_000_004)})
        assert caught.value.hresult == ILLEGAL_VALUE
        assert world.show(world.get(LINK, obj.id), 812) == 5

    def test_events_know_every_name_of_a_property(self) -> None:
        world = World()
        obj = world.update_event(
            world.one(MACHINE), {234: blob(DESCRIPTOR), 1202: blob(KEYS), 1203: blob(KEYS)}
        )
        assert world.show(obj, 1201) == DESCRIPTOR
        assert world.show(obj, 239) == world.show(obj, 238) == KEYS
        assert not {234, 1202, 1203} & set(obj.properties)
        queue = world.update_event(world.one(QUEUE), {1102: blob(DESCRIPTOR)})
        assert world.show(queue, 1101) == DESCRIPTOR
        assert 1102 not in queue.properties

    @pytest.mark.parametrize(
        ("object_type", "properties"),
        [
            (QUEUE, {118: ui4(1), 119: ui4(2), 126: text("x")}),
            (MACHINE, {212: ui4(1), 1205: blob(b"x")}),
            (SITE, {312: ui1(9)}),
            (LINK, {807: texts("C15")}),
            (ENTERPRISE, {605: ui2(1), 606: ui2(1), 610: blob(b"x"), 611: ui4(1), 615: ui4(1)}),
        ],
    )
    def test_reserved_properties_are_never_stored(
        self, object_type: ObjectType, properties: Properties
    ) -> None:
        world = World()
        before = world.one(object_type)
        assert event_update(before, properties) == {}
        assert world.update_event(before, properties).properties == before.properties


class TestService:
    """210, 227 and 228 are views of the same four attributes."""

    @pytest.mark.req("MQDS-3.1.4.21.8.2-06")
    def test_228_makes_a_server_that_stands_alone(self) -> None:
        world = World()
        obj = world.create(MACHINE, "C16", {201: guid(SITE_A), 210: ui4(0x15)})
        assert world.show(obj, 228) == 1
        obj = world.update(obj, {228: ui1(1)})
        assert (world.show(obj, 228), world.show(obj, 210)) == (1, 0x11)
        obj = world.update(obj, {228: ui1(2)})
        assert (world.show(obj, 228), world.show(obj, 210)) == (0, 0x11)

    def test_228_beside_210_does_not_take_the_role_away(self) -> None:
        """The documented client sends both for a site controller (3.2.6.1.1)."""
        world = World()
        both = {201: guid(SITE_A), 210: ui4(0x04), 228: ui1(1)}
        obj = world.create(MACHINE, "C16", both)
        assert (world.show(obj, 210), world.show(obj, 228)) == (0x04, 1)
        alone = world.create(MACHINE, "C17", {201: guid(SITE_A), 210: ui4(0x10), 228: ui1(1)})
        assert (world.show(alone, 210), world.show(alone, 228)) == (0x10, 1)
        none = world.create(MACHINE, "C18", {201: guid(SITE_A), 210: ui4(0x04), 228: ui1(0)})
        assert (world.show(none, 210), world.show(none, 228)) == (0, 0)

    def test_227_at_create_adds_to_210(self) -> None:
        world = World()
        obj = world.create(MACHINE, "C16", {201: guid(SITE_A), 227: ui1(1), 210: ui4(0x10)})
        assert (world.show(obj, 227), world.show(obj, 210)) == (1, 0x11)


class TestAtomicity:
    @pytest.mark.req("MQDS-3.1.4.9-06", "MQDS-3.1.6.15-01")
    @pytest.mark.parametrize(
        "bad",
        [
            {110: i4(1)},
            {118: ui4(1)},
            {120: ui4(1)},
            {112: ui4(9)},
            {108: ui4(1)},
            {1101: blob(b"")},
        ],
    )
    def test_one_wrong_property_leaves_everything_as_it_was(
        self, bad: dict[int, PropVariant]
    ) -> None:
        world = World()
        everything = world.snapshot()
        good = {102: guid(OTHER), 105: ui4(7), 123: text("suffix")}
        for properties in ({**good, **bad}, {**bad, **good}):
            with pytest.raises(DirectoryError):
                world.update(world.one(QUEUE), properties)
        assert world.snapshot() == everything

    def test_writing_is_pure(self) -> None:
        world = World()
        obj = world.one(MACHINE)
        first = client_update(obj, {214: ui4(1)})
        first[9999] = ui4(1)
        assert client_update(obj, {214: ui4(1)}) == {214: ui4(1)}
        made = client_create(QUEUE, {})
        made.clear()
        assert client_create(QUEUE, {})[112] == ui4(1)


class TestEvents:
    def test_identifiers_of_other_types_are_skipped(self) -> None:
        world = World()
        changes = event_update(world.one(QUEUE), {105: ui4(7), 208: guids(C14), 4711: ui4(1)})
        assert changes == {105: ui4(7)}

    def test_what_the_tables_refuse_a_client_is_taken(self) -> None:
        """Another authority decided; its times and its services must not be lost (E69)."""
        world = World()
        obj = world.update_event(
            world.one(MACHINE), {203: text("C99"), 210: ui4(8), 217: i4(7), 218: i4(8)}
        )
        assert [world.show(obj, p) for p in (203, 210, 217, 218)] == ["C99", 8, 7, 8]
        site = world.update_event(world.one(SITE), {1301: blob(DESCRIPTOR)})
        assert world.show(site, 1301) == DESCRIPTOR

    def test_a_wrong_type_still_fails(self) -> None:
        world = World()
        with pytest.raises(DirectoryError) as caught:
            event_update(world.one(QUEUE), {105: text("7")})
        assert caught.value.hresult == ILLEGAL_VT

    def test_identity_does_not_change(self) -> None:
        world = World()
        before = world.one(QUEUE)
        obj = world.update_event(before, {101: guid(OTHER), 116: guid(OTHER), 117: blob(bytes(8))})
        assert (obj.id, obj.partition) == (before.id, before.partition)
        assert obj.properties == before.properties


@pytest.mark.req("MQDS-3.1.4.21.2-01")
@given(any_text, st.integers(0, 0xFFFFFFFF), st.integers(-0x8000, 0x7FFF))
def test_payload_passes_through_untouched(suffix: str, quota: int, priority: int) -> None:
    supplied = {
        123: text(suffix),
        105: ui4(quota),
        106: PropVariant(VarType.I2, priority),
        115: guid(C15),
    }
    assert client_update(World().one(QUEUE), supplied) == supplied
