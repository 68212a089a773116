"""Change notifications: their bytes, and what is made of others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqcn import (
    ChangeNotification,
    NotificationBody,
    NotificationCommand,
    NotificationEvent,
    NotificationUpdate,
    decode_notification,
)
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.strategies.mqdsrp import changes

QUEUE = Guid(bytes(range(16)))
MASTER = Guid(b"m" * 16)

#: By the figures of 2.2.4 and 2.2.6.
CREATED = bytes.fromhex(
    "01 01"  # version, one update
    "00 00"  # created, by path
    "6d00 5c00 7100 0000"  # m\q
    + "6d" * 16  # GuidMasterId
    + "00" * 24
    + "02"
    + "65000000 6c000000"  # PROPID_Q_INSTANCE, PROPID_Q_LABEL
    + bytes(range(16)).hex()
    + "4c00 0000"  # L
)
DELETED = bytes.fromhex(
    "01 01 02 01" + bytes(range(16)).hex() + "6d" * 16 + "00" * 24 + "027b050000 7c0500000101"
)
TEXT = (
    "<Notification><Event>2</Event><ObjectGuid>03020100-0504-0706-0809-0A0B0C0D0E0F</ObjectGuid>"
    "<DomainController>dc1</DomainController></Notification>"
)
NO_GUID = TEXT.replace("03020100-0504", "0302010-00504")


def test_a_creation_byte_by_byte() -> None:
    update = NotificationUpdate(
        NotificationCommand.CREATE,
        "m\\q",
        None,
        MASTER,
        (
            pair(PropId.Q_INSTANCE, QUEUE),
            pair(PropId.Q_LABEL, "L"),
        ),
    )
    assert ChangeNotification((update,)).to_bytes() == CREATED
    assert ChangeNotification.from_bytes(CREATED) == ChangeNotification((update,))
    assert decode_notification(CREATED + b"\0") == ChangeNotification((update,))


def test_a_deletion_byte_by_byte() -> None:
    properties = (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, 1),
    )
    update = NotificationUpdate(NotificationCommand.DELETE, None, QUEUE, MASTER, properties)
    assert ChangeNotification((update,)).to_bytes() == DELETED
    assert ChangeNotification((update,)).to_body() == DELETED + b"\0"
    assert ChangeNotification.from_body(DELETED + b"\0") == ChangeNotification((update,))


def test_what_a_queue_manager_sends() -> None:
    told = NotificationBody(NotificationEvent.QUEUE_UPDATE, QUEUE, "dc1")
    data = b"\x02\x01" + TEXT.encode("utf-16-le")
    assert told.to_bytes() == data
    assert decode_notification(data + b"\0") == told


@given(changes(), st.binary(max_size=3))
def test_round_trip(change: object, rest: bytes) -> None:
    """A notification can carry everything that replication can."""
    properties = getattr(change, "properties", ())
    update = NotificationUpdate(NotificationCommand.UPDATE, None, QUEUE, MASTER, properties)
    told = ChangeNotification((update, update))
    assert ChangeNotification.from_bytes(told.to_bytes()) == told
    assert ChangeNotification.from_body(told.to_bytes() + rest) == told


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "1 byte"),
        (b"\x03\x01", "version 1, not 3"),
        (CREATED[:2] + b"\x03" + CREATED[3:], "command 3"),
        (CREATED[:3] + b"\x02" + CREATED[4:], "UseGuid is 0 or 1"),
        (CREATED.replace(b"\x6c\0\0\0", b"\xff\xff\0\0"), "property 65535 is unknown"),
        (CREATED[:-1], "no terminating zero"),
        (CREATED + b"\0\0", "after"),
        (b"\x02\x02", "one notification, not 2"),
        (b"\x02\x01" + TEXT.replace("2", "5", 1).encode("utf-16-le"), "not a notification"),
        (b"\x02\x01" + TEXT.encode("utf-16-le") * 20, "a notification of"),
        (b"\x02\x01" + NO_GUID.encode("utf-16-le"), "ObjectGuid is not a GUID"),
    ],
)
def test_what_is_none(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode_notification(data)


@given(st.binary(max_size=200))
def test_garbage(data: bytes) -> None:
    for start in (b"", b"\x01\x01", b"\x02\x01", CREATED[:20], DELETED[:61]):
        try:
            decode_notification(start + data)
        except WireError:
            continue


@pytest.mark.parametrize(
    ("path", "guid", "properties", "reason"),
    [
        (None, None, (), "by path or by GUID"),
        ("m\\q", QUEUE, (), "by path or by GUID"),
        ("q" * 1025, None, (), "at most 1024"),
        ("m\\q", None, ((PropId.Q_LABEL, PropVariant(VarType.UI1, 1)),), "cannot have a value"),
        ("m\\q", None, (pair(PropId.Q_SCOPE, 1),) * 256, "at most 255"),
    ],
)
def test_what_cannot_be_told(
    path: str | None,
    guid: Guid | None,
    properties: tuple[tuple[int, PropVariant], ...],
    reason: str,
) -> None:
    with pytest.raises(ValueError, match=reason):
        NotificationUpdate(NotificationCommand.UPDATE, path, guid, MASTER, properties)


def test_a_server_without_a_name() -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        NotificationBody(NotificationEvent.QUEUE_UPDATE, QUEUE, "a b")
    with pytest.raises(ValueError, match="at most 255 updates"):
        ChangeNotification(
            (NotificationUpdate(NotificationCommand.DELETE, None, QUEUE, MASTER),) * 256
        )
