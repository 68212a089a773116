"""The create tables (MS-MQDS 3.1.4.21.8.3), property by property.

The rule of each property is written out here; nothing is taken from the catalogue. A property
without a rule of its own here falls back to its update rule (MQDS-3.1.4.21.8.3-01), one without
any is ignored (MQDS-3.1.4.4-14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from tests.protocol.directory.departing import mark_of
from tests.protocol.directory.world import (
    ADDRESSES,
    BARE_CERTIFICATE,
    BOB_SID,
    C15,
    CN,
    DESCRIPTOR,
    KEYS,
    LINK,
    MACHINE,
    NET,
    OTHER,
    QUEUE,
    SECOND_CERTIFICATE,
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
    i2,
    i4,
    octets,
    text,
    texts,
    ui1,
    ui2,
    ui4,
)

NOT_ALLOWED = HResult.MQ_ERROR_PROPERTY_NOTALLOWED
NO_TYPE = HResult.MQ_ERROR_INVALID_PARAMETER


@dataclass(frozen=True)
class Shows:
    """The new object shows this."""

    value: Value


class Ignored:
    """The new object is the one that it is without the property."""


Expected = Shows | type[Ignored] | HResult
Row = tuple[int, PropVariant, Expected]


def same(propid: int, supplied: PropVariant, expected: Expected) -> Row:
    return propid, supplied, expected


def copied(propid: int, supplied: PropVariant) -> Row:
    return same(propid, supplied, Shows(supplied.value))


SEQUENCE = blob(bytes.fromhex("00000000000000ff"))

#: What else is supplied: the least that a create takes, and what a row takes the place of.
BASE: dict[ObjectType, tuple[str | None, dict[int, PropVariant]]] = {
    QUEUE: ("C14\\new", {}),
    MACHINE: ("C16", {201: guid(SITE_A)}),
    SITE: ("Gamma", {}),
    CN: ("Wire", {}),
    USER: (None, {702: blob(certificates(BARE_CERTIFICATE)), 705: guids(OTHER)}),
    LINK: (None, {801: guid(SITE_A), 802: guid(SITE_B), 812: ui4(5)}),
}
INSTEAD_OF = {222: 201, 803: 812}

MACHINE_ROWS: dict[str, list[Row]] = {
    "8.3-01": [
        copied(201, guid(SITE_B)),
        (207, guids(NET), Shows((NET,))),
        copied(208, guids(C15)),
        copied(209, guids(C15, OTHER)),
        copied(214, ui4(7)),
        copied(215, ui4(8)),
        copied(216, text("Windows NT 4.0")),
        copied(219, ui1(1)),
        copied(220, ui4(0x400)),
        copied(228, ui1(1)),
        copied(229, ui1(1)),
        same(233, text("c16.corp"), Ignored),
        copied(238, blob(KEYS)),
        copied(239, blob(KEYS)),
    ],
    "8.3-02": [copied(202, guid(OTHER))],
    "8.3-03": [same(203, text("C17"), Ignored)],
    "8.3-04": [(206, blob(ADDRESSES), Shows(ADDRESSES))],
    "8.3-05": [
        same(217, i4(1), NOT_ALLOWED),
        same(218, i4(1), NOT_ALLOWED),
        same(221, text("CN=C16"), Ignored),
        # The documented client sends the list, which the text refuses.
        (222, guids(SITE_B, SITE_A), Shows((SITE_B, SITE_A))),
        copied(227, ui1(1)),
        copied(1202, blob(KEYS)),
        copied(1203, blob(KEYS)),
    ],
    "8.3-06": [same(211, guid(SITE_F), Ignored)],
    "8.3-07": [copied(210, ui4(0x11))],
    "8.2-08": [same(213, SEQUENCE, Ignored)],
    "unlisted": [
        same(205, octets(b"key"), Ignored),
        same(212, ui4(1), Ignored),
        same(223, texts("C15"), Ignored),
        same(224, texts("C15"), Ignored),
        same(231, octets(b"key"), Ignored),
        same(232, octets(b"key"), Ignored),
        same(234, blob(DESCRIPTOR), Ignored),
        same(237, ui4(1), Ignored),
        same(241, blob(b""), Ignored),
        same(242, ui1(1), Ignored),
        same(1201, blob(DESCRIPTOR), Ignored),
        same(1205, blob(b""), Ignored),
    ],
}
QUEUE_ROWS: dict[str, list[Row]] = {
    "8.3-01": [
        copied(102, guid(OTHER)),
        copied(104, ui1(1)),
        copied(105, ui4(7)),
        copied(106, i2(-3)),
        copied(107, ui4(8)),
        copied(108, text("Orders")),
        copied(111, ui1(1)),
        copied(112, ui4(2)),
        copied(113, ui1(1)),
        copied(114, ui1(0)),
        (116, guid(SITE_B), Ignored),
        copied(123, text("suffix")),
        same(124, text("c14.corp\\new"), Ignored),
    ],
    "8.3-08": [
        same(101, guid(OTHER), Ignored),
        same(103, text("C14\\other"), Ignored),
        same(121, text("CN=new"), Ignored),
        same(109, i4(1), NOT_ALLOWED),
        same(110, i4(1), NOT_ALLOWED),
    ],
    "8.3-09": [same(115, guid(C15), Ignored)],
    "8.2-08": [same(117, SEQUENCE, Ignored)],
    "unlisted": [
        same(118, ui4(1), Ignored),
        same(119, ui4(1), Ignored),
        same(125, text("234.1.1.1:8001"), Ignored),
        same(126, text("LDAP://new"), Ignored),
        same(1101, blob(DESCRIPTOR), Ignored),
        same(1102, blob(DESCRIPTOR), Ignored),
        same(1103, ui4(1), Ignored),
    ],
}
SITE_ROWS: dict[str, list[Row]] = {
    "8.3-01": [
        copied(303, guids(C15)),
        copied(305, ui2(3)),
        copied(306, ui2(11)),
        copied(310, ui2(1)),
        copied(311, ui1(1)),
        same(312, ui1(7), Ignored),
    ],
    "8.3-02": [copied(302, guid(OTHER))],
    "8.3-03": [same(301, text("Delta"), Ignored)],
    "8.3-11": [
        (304, text("PSC9"), Shows("PSC9")),
        same(309, text("CN=Gamma"), Ignored),
        same(1301, blob(DESCRIPTOR), NOT_ALLOWED),
        copied(1302, blob(KEYS)),
    ],
    "8.2-08": [same(308, SEQUENCE, Ignored)],
    "unlisted": [same(307, guid(OTHER), Ignored), same(1303, ui4(1), Ignored)],
}
LINK_ROWS: dict[str, list[Row]] = {
    "8.3-01": [
        copied(803, ui4(9)),
        copied(810, text("slow")),
        copied(812, ui4(9)),
        copied(813, guids(C15)),
    ],
    "8.3-02": [copied(806, guid(OTHER))],
    "8.3-12": [
        copied(801, guid(SITE_F)),
        copied(802, guid(SITE_F)),
        same(811, text("path"), Ignored),
    ],
    "8.2-08": [same(805, SEQUENCE, Ignored)],
    "unlisted": [
        same(804, guid(OTHER), Ignored),
        same(807, texts("C15"), Ignored),
        same(808, text("Alpha"), Ignored),
        same(809, text("Beta"), Ignored),
    ],
}
NETWORK_ROWS: dict[str, list[Row]] = {
    "8.3-01": [(501, ui1(3), Shows(3))],
    "8.3-12": [
        (502, text("Other"), Shows("Other")),
        (503, guid(OTHER), Shows(OTHER)),
    ],
    "8.2-08": [(505, SEQUENCE, Ignored)],
    "unlisted": [
        (504, guid(OTHER), Ignored),
        (1501, blob(DESCRIPTOR), Ignored),
    ],
}
USER_ROWS: dict[str, list[Row]] = {
    "8.3-01": [
        copied(702, blob(certificates(SECOND_CERTIFICATE))),
        copied(705, guids(digest(SECOND_CERTIFICATE))),
    ],
    "8.3-12": [same(706, guid(OTHER), Ignored)],
    "8.2-08": [same(704, SEQUENCE, Ignored)],
    "unlisted": [copied(701, blob(BOB_SID)), same(703, guid(OTHER), Ignored)],
}
TABLES: Mapping[ObjectType, Mapping[str, list[Row]]] = {
    MACHINE: MACHINE_ROWS,
    QUEUE: QUEUE_ROWS,
    SITE: SITE_ROWS,
    LINK: LINK_ROWS,
    CN: NETWORK_ROWS,
    USER: USER_ROWS,
}


def claims_of(group: str, expected: Expected) -> list[str]:
    """3.1.4.4 has the rule for what no table lists, and for what a table marks as invalid."""
    rule = ["MQDS-3.1.4.4-14"] if group == "unlisted" or isinstance(expected, HResult) else []
    return rule if group == "unlisted" else [*rule, f"MQDS-3.1.4.21.{group}"]


CASES = [
    pytest.param(
        object_type,
        row[0],
        row[1],
        row[2],
        id=str(row[0]),
        marks=[mark_of(row_id) for row_id in claims_of(group, row[2])],
    )
    for object_type, groups in TABLES.items()
    for group, rows in groups.items()
    for row in rows
]


def make(world: World, object_type: ObjectType, more: dict[int, PropVariant]) -> DirectoryObject:
    path, base = BASE[object_type]
    left_out = {INSTEAD_OF[propid] for propid in more if propid in INSTEAD_OF}
    supplied = {propid: value for propid, value in base.items() if propid not in left_out}
    return world.create(object_type, path, {**supplied, **more})


def test_every_identifier_has_a_row() -> None:
    listed = [row[0] for groups in TABLES.values() for rows in groups.values() for row in rows]
    assert len(listed) == len(set(listed))
    tombstones = {1401, 1402, 1403, 1404, 1405}
    enterprise = {*range(601, 618), 1601}
    assert set(listed) == {int(propid) for propid in PropId} - tombstones - enterprise


@pytest.mark.parametrize(("object_type", "propid", "supplied", "expected"), CASES)
def test_create(
    object_type: ObjectType,
    propid: int,
    supplied: PropVariant,
    expected: Expected,
) -> None:
    world = World()
    if isinstance(expected, HResult):
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            make(world, object_type, {propid: supplied})
        assert caught.value.hresult == expected
        assert world.snapshot() == everything
        return
    made = make(world, object_type, {propid: supplied})
    if isinstance(expected, Shows):
        assert world.show(made, propid) == expected.value
    twin = World()  # gives out the same identifiers
    plain = None if propid == 222 else make(twin, object_type, {})
    if expected is Ignored:
        assert made == plain
    elif plain is not None:
        assert twin.show(plain, propid) != world.show(made, propid)


class TestKeysUnderBothNumbers:
    """1202 and 1203 at create fill the lists that 239 and 238 show."""

    @pytest.mark.req("MQDS-3.1.4.21.8.1-07")
    @pytest.mark.parametrize(("private", "public"), [(1202, 239), (1203, 238)])
    def test_create(self, private: int, public: int) -> None:
        world = World()
        made = make(world, MACHINE, {private: blob(KEYS)})
        assert world.show(made, public) == world.show(made, private) == KEYS
        assert private not in made.properties  # stored once


class TestSiteList:
    def test_both_forms_of_the_site_are_refused(self) -> None:
        """222 is accepted just where 201 is absent (MQDS-3.1.4.4-14)."""
        world = World()
        with pytest.raises(DirectoryError) as caught:
            world.create(MACHINE, "C16", {201: guid(SITE_A), 222: guids(SITE_A)})
        assert caught.value.hresult == NOT_ALLOWED

    @pytest.mark.req("MQDS-3.1.4.4-14", "MQDS-3.1.4.21.8.3-06")
    def test_the_documented_client_creates_a_machine(self) -> None:
        """The create table of 3.2.6.1.1 has 222 and neither 201 nor 202."""
        world = World()
        made = world.create(
            MACHINE,
            "C16",
            {222: guids(SITE_B, SITE_A), 210: ui4(1), 227: ui1(1), 239: blob(KEYS)},
        )
        assert world.show(made, 201) == SITE_B
        assert made.partition == SITE_B
