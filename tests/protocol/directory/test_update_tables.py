"""The update tables (MS-MQDS 3.1.4.21.8.2), property by property.

The rule of each property is written out here; nothing is taken from the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from tests.protocol.directory.departing import mark_of
from tests.protocol.directory.world import (
    ADDRESSES,
    BARE_CERTIFICATE,
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
ILLEGAL_ID = HResult.MQ_ERROR_ILLEGAL_PROPID
NO_TYPE = HResult.MQ_ERROR_INVALID_PARAMETER


@dataclass(frozen=True)
class Shows:
    """The property shows this afterwards."""

    value: Value


class Ignored:
    """Accepted, and nothing changes but number and ModifyTime."""


Expected = Shows | type[Ignored] | HResult
Row = tuple[int, PropVariant, Expected]


def same(propid: int, supplied: PropVariant, expected: Expected) -> Row:
    return propid, supplied, expected


def copied(propid: int, supplied: PropVariant) -> Row:
    return same(propid, supplied, Shows(supplied.value))


SEQUENCE = blob(bytes.fromhex("00000000000000ff"))

MACHINE_ROWS: dict[str, list[Row]] = {
    "8.2-01": [
        copied(201, guid(SITE_B)),
        copied(206, blob(ADDRESSES)),
        copied(208, guids(C15)),
        copied(209, guids(C15, OTHER)),
        # The partition follows from the site in a store that replicates.
        (211, guid(SITE_B), Ignored),
        copied(214, ui4(7)),
        copied(215, ui4(8)),
        copied(216, text("Windows NT 4.0")),
        copied(219, ui1(1)),
        copied(220, ui4(0x400)),
        copied(222, guids(SITE_B, SITE_A)),
        copied(228, ui1(1)),
        copied(229, ui1(1)),
        copied(238, blob(KEYS)),
        copied(239, blob(KEYS)),
        same(1203, blob(KEYS), ILLEGAL_ID),
    ],
    "8.2-02": [
        same(202, guid(OTHER), NOT_ALLOWED),
        (210, ui4(0x11), Shows(0x11)),
        same(217, i4(1), NOT_ALLOWED),
        same(203, text("C16"), Ignored),
        (207, guids(NET), Shows((NET,))),
    ],
    "8.2-03": [same(218, i4(1), NOT_ALLOWED), same(233, text("c14.corp"), Ignored)],
    "8.2-08": [same(213, SEQUENCE, Ignored)],
    "unlisted": [
        same(205, octets(b"key"), NOT_ALLOWED),
        same(212, ui4(1), NOT_ALLOWED),
        same(221, text("CN=C14"), NOT_ALLOWED),
        same(223, texts("C15"), NOT_ALLOWED),
        same(224, texts("C15"), NOT_ALLOWED),
        same(227, ui1(1), NOT_ALLOWED),
        same(231, octets(b"key"), NOT_ALLOWED),
        same(232, octets(b"key"), NOT_ALLOWED),
        same(234, blob(DESCRIPTOR), NOT_ALLOWED),
        same(237, ui4(1), NOT_ALLOWED),
        same(241, blob(b""), NOT_ALLOWED),
        same(242, ui1(1), NOT_ALLOWED),
    ],
    "private": [
        same(1201, blob(DESCRIPTOR), ILLEGAL_ID),
        same(1202, blob(KEYS), ILLEGAL_ID),
        same(1205, blob(b""), ILLEGAL_ID),
    ],
}
QUEUE_ROWS: dict[str, list[Row]] = {
    "8.2-09": [
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
        copied(115, guid(C15)),
        (116, guid(SITE_B), Ignored),
        copied(123, text("suffix")),
        same(124, text("c14.corp\\orders"), Ignored),
        same(110, i4(1), NOT_ALLOWED),
    ],
    "8.2-10": [
        same(101, guid(OTHER), NOT_ALLOWED),
        same(109, i4(1), NOT_ALLOWED),
        same(103, text("C14\\renamed"), Ignored),
    ],
    "8.2-08": [same(117, SEQUENCE, Ignored)],
    "unlisted": [
        same(118, ui4(1), NOT_ALLOWED),
        same(119, ui4(1), NOT_ALLOWED),
        same(121, text("CN=orders"), NOT_ALLOWED),
        same(125, text("234.1.1.1:8001"), NOT_ALLOWED),
        same(126, text("LDAP://orders"), NOT_ALLOWED),
    ],
    "private": [
        same(1101, blob(DESCRIPTOR), ILLEGAL_ID),
        same(1102, blob(DESCRIPTOR), ILLEGAL_ID),
        same(1103, ui4(1), ILLEGAL_ID),
    ],
}
ENTERPRISE_ROWS: dict[str, list[Row]] = {
    "8.2-11": [
        copied(602, ui1(1)),
        copied(603, text("Microsoft Base Cryptographic Provider v1.0")),
        copied(616, ui4(86400)),
        copied(617, ui2(3)),
        same(601, text("Renamed"), Ignored),
        same(609, guid(OTHER), NOT_ALLOWED),
    ],
    "8.2-08": [same(608, SEQUENCE, Ignored)],
    "unlisted": [
        same(604, text("PEC9"), NOT_ALLOWED),
        same(605, ui2(1), NOT_ALLOWED),
        same(606, ui2(1), NOT_ALLOWED),
        same(607, guid(OTHER), NOT_ALLOWED),
        same(610, blob(b"x"), NOT_ALLOWED),
        *(same(propid, ui4(1), NOT_ALLOWED) for propid in (611, 612, 613, 614, 615)),
    ],
    "private": [same(1601, blob(DESCRIPTOR), ILLEGAL_ID)],
}
SITE_ROWS: dict[str, list[Row]] = {
    "8.2-12": [
        copied(303, guids(C15)),
        copied(304, text("PSC9")),
        copied(305, ui2(3)),
        copied(306, ui2(11)),
        copied(310, ui2(1)),
        copied(311, ui1(1)),
        same(301, text("Renamed"), NOT_ALLOWED),
        same(302, guid(OTHER), NOT_ALLOWED),
        same(312, ui1(7), Ignored),
    ],
    "8.2-08": [same(308, SEQUENCE, Ignored)],
    "unlisted": [
        same(307, guid(OTHER), NOT_ALLOWED),
        same(309, text("CN=Alpha"), NOT_ALLOWED),
    ],
    "private": [
        same(1301, blob(DESCRIPTOR), ILLEGAL_ID),
        same(1302, blob(KEYS), ILLEGAL_ID),
        same(1303, ui4(1), ILLEGAL_ID),
    ],
}
LINK_ROWS: dict[str, list[Row]] = {
    "8.2-13": [
        copied(803, ui4(9)),
        copied(812, ui4(9)),
        copied(810, text("slow")),
        copied(813, guids(C15)),
        same(801, guid(SITE_B), NOT_ALLOWED),
        same(802, guid(SITE_A), NOT_ALLOWED),
        same(806, guid(OTHER), NOT_ALLOWED),
    ],
    "8.2-08": [same(805, SEQUENCE, Ignored)],
    "unlisted": [
        same(804, guid(OTHER), NOT_ALLOWED),
        same(807, texts("C15"), NOT_ALLOWED),
        same(808, text("Alpha"), NOT_ALLOWED),
        same(809, text("Beta"), NOT_ALLOWED),
        same(811, text("path"), NOT_ALLOWED),
    ],
}
NETWORK_ROWS: dict[str, list[Row]] = {
    "8.2-14": [
        (501, ui1(3), Shows(3)),
        (502, text("Renamed"), Shows("Renamed")),
    ],
    "8.2-08": [(505, SEQUENCE, Ignored)],
    "unlisted": [
        (503, guid(OTHER), NOT_ALLOWED),
        (504, guid(OTHER), NOT_ALLOWED),
    ],
    "private": [(1501, blob(DESCRIPTOR), ILLEGAL_ID)],
}
USER_ROWS: dict[str, list[Row]] = {
    "8.2-15": [
        copied(702, blob(certificates(BARE_CERTIFICATE, SECOND_CERTIFICATE))),
        copied(705, guids(digest(SECOND_CERTIFICATE))),
        same(701, blob(b""), NOT_ALLOWED),
        same(706, guid(OTHER), NOT_ALLOWED),
    ],
    "8.2-08": [same(704, SEQUENCE, Ignored)],
    "unlisted": [same(703, guid(OTHER), NOT_ALLOWED)],
}
TABLES = {
    MACHINE: MACHINE_ROWS,
    QUEUE: QUEUE_ROWS,
    ENTERPRISE: ENTERPRISE_ROWS,
    SITE: SITE_ROWS,
    LINK: LINK_ROWS,
    CN: NETWORK_ROWS,
    USER: USER_ROWS,
}


def ids_of(group: str) -> str:
    return {"unlisted": "MQDS-3.1.4.9-06", "private": "MQDS-2.2.10.1-02"}.get(
        group, f"MQDS-3.1.4.21.{group}"
    )


CASES = [
    pytest.param(
        object_type,
        row[0],
        row[1],
        row[2],
        id=str(row[0]),
        marks=mark_of(ids_of(group)),
    )
    for object_type, groups in TABLES.items()
    for group, rows in groups.items()
    for row in rows
]


def test_every_identifier_has_a_row() -> None:
    listed = [row[0] for groups in TABLES.values() for rows in groups.values() for row in rows]
    assert len(listed) == len(set(listed))
    tombstones = {1401, 1402, 1403, 1404, 1405}
    assert set(listed) == {int(propid) for propid in PropId} - tombstones


@pytest.mark.parametrize(("object_type", "propid", "supplied", "expected"), CASES)
def test_update(
    object_type: ObjectType,
    propid: int,
    supplied: PropVariant,
    expected: Expected,
) -> None:
    world = World()
    before = world.one(object_type)
    if isinstance(expected, HResult):
        everything = world.snapshot()
        with pytest.raises(DirectoryError) as caught:
            world.update(before, {propid: supplied})
        assert caught.value.hresult == expected
        assert world.snapshot() == everything
        return
    after = world.update(before, {propid: supplied})
    clock = {QUEUE: {110: i4(1000)}, MACHINE: {218: i4(1000)}}.get(object_type, {})
    if isinstance(expected, Shows):
        assert world.show(before, propid) != expected.value
        assert world.show(after, propid) == expected.value
    else:
        assert after.properties == {**before.properties, **clock}
    assert {p: after.properties[p] for p in clock} == clock
    moved = propid in (116, 211) and isinstance(expected, Shows)
    assert after.partition == (SITE_B if moved else before.partition)
    assert after.seq == world.last(after.partition)
