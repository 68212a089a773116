"""Sessions between queue managers, and what their messages carry."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.capture.private_queues import notification, replication
from mqis.protocol.capture.row import DecodedRow
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqcn.notification import ChangeNotification, NotificationCommand, NotificationUpdate
from mqis.wire.mqcn.notification_message import NotificationBody, NotificationEvent
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp import messages as m
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import MessageClass
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.capture.made import (
    FEW,
    MQQB,
    SOURCE,
    ack,
    frames_of,
    rows_of,
    told,
    user_message,
)
from tests.strategies.mqdsrp import messages
from tests.strategies.mqqb import packets

SITE, PARTITION, OTHER = (
    Guid(b"the sender's one"),
    Guid(b"a partition here"),
    Guid(b"another one here"),
)
THING = Guid(b"an object of it.")
REPLICATION = QueueName.of_direct("OS:PSC1\\Private$\\MQIS_QUEUE$")
NOTIFICATION = QueueName.of_direct("TCP:10.0.0.1\\private$\\notify_queue$")


def seq(number: int) -> SequenceNumber:
    return SequenceNumber(number)


def change(path: str | None, number: int, partition: Guid = PARTITION) -> DirectoryChange:
    label = pair(PropId.Q_LABEL, "x")
    return DirectoryChange(
        Command.CREATE,
        path,
        None if path else THING,
        partition,
        seq(1),
        seq(number),
        seq(0),
        (label,),
    )


def rows(*packets: bytes) -> list[DecodedRow]:
    return rows_of(frames_of(MQQB, [(True, packet) for packet in packets]))


def carried(message: m.Message, queue: QueueName = REPLICATION) -> DecodedRow:
    (row,) = rows(user_message(7, queue, m.encode_message(message)))
    return row


# --- the session ----------------------------------------------------------------------------------


def test_a_session_from_its_beginning() -> None:
    one, other = Guid(b"the initiator..."), Guid(b"the acceptor....")
    parts = [
        (True, EstablishConnection(one, Guid.NULL, 1).to_bytes()),
        (False, EstablishConnection(one, other, 2).to_bytes()),
        (True, ConnectionParameters(1000, 2000).to_bytes()),
        (False, ConnectionParameters(1000, 2000, 32).to_bytes()),
        (True, ack(3)),
    ]
    found = rows_of(frames_of(MQQB, parts))
    assert [(row.kind, row.summary) for row in found] == [
        ("EstablishConnection request", f"{one} to {Guid.NULL}"),
        ("EstablishConnection response", f"{one} to {other}"),
        ("ConnectionParameters request", "window 64, acknowledge within 2000 ms"),
        ("ConnectionParameters response", "window 32, acknowledge within 2000 ms"),
        ("SessionAck", "has 3, recoverable 0"),
    ]
    assert [row.queue_manager for row in found] == [one, other, None, None, None]
    # From the middle of the set-up on nobody knows who began.
    assert rows_of(frames_of(MQQB, parts[2:]))[0].kind == "ConnectionParameters"
    # Who sets up is the client, if the handshake was not captured and ports do not tell.
    (row,) = rows_of(frames_of(replace(MQQB, server_port=50_000), parts[:1])[3:4])
    assert row.to_server


def test_a_refusal() -> None:
    (row,) = rows(EstablishConnection(SITE, Guid.NULL, 1, refused=True).to_bytes())
    assert row.summary == "refused"


def test_a_packet_that_is_wrong_inside() -> None:
    """Its length is right, so the next one is read."""
    bad = bytearray(ack(1))
    bad[18] = 9
    assert told(rows(bytes(bad), ack(2))) == [
        ("packet", "internal packets have type 1, 2 or 3, not 9 at offset 18"),
        ("SessionAck", None),
    ]


@FEW
@given(st.lists(packets(), min_size=1, max_size=3))
def test_every_packet_is_a_row(sent: list[object]) -> None:
    found = rows_of(frames_of(MQQB, [(True, packet.to_bytes()) for packet in sent]))  # type: ignore[attr-defined]
    assert len(found) == len(sent)
    for row in found:
        assert json.loads(row.detail) if row.error is None else row.protocol != "mqqb"


# --- messages -------------------------------------------------------------------------------------


def test_a_message_of_anybody() -> None:
    (row,) = rows(user_message(5, body=b"hello", label="greeting\0"))
    assert (row.protocol, row.kind, row.call_id) == ("mqqb", "UserMessage", 5)
    identity = MessageIdentifier(SOURCE, 5)
    assert row.summary == f"{identity} to OS:pec1\\private$\\orders, 5 bytes"
    assert (row.queue_manager, row.machines) == (SOURCE, ("pec1",))
    detail = json.loads(row.detail)
    assert detail["body"] == b"hello".hex()
    assert (detail["label"], detail["class"], detail["correlation"]) == ("greeting", "NORMAL", None)
    assert detail["signed"] is False


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (QueueName(QueueKind.PUBLIC, guid=THING), f"PUBLIC={THING}"),
        (QueueName.at_destination(77), "private queue 77"),
        (QueueName.NONE, "no queue"),
    ],
)
def test_queues_in_words(queue: QueueName, text: str) -> None:
    (row,) = rows(user_message(5, queue))
    assert row.summary.endswith(f" to {text}, 0 bytes")


def test_acknowledgements_are_told_by_their_class() -> None:
    """Even if they come to the replication queue: their body is another message."""
    correlation = MessageIdentifier(THING, 3)
    found = rows(
        user_message(
            5,
            REPLICATION,
            message_class=MessageClass.NACK_Q_EXCEED_QUOTA,
            correlation_id=correlation.to_bytes(),
        ),
        user_message(6, REPLICATION, message_class=0x1234),
    )
    assert [(row.protocol, row.kind) for row in found] == [
        ("mqqb", "NACK_Q_EXCEED_QUOTA"),
        ("mqqb", "class 0x1234"),
    ]
    assert json.loads(found[0].detail)["correlation"] == str(correlation)


def test_a_body_that_is_encrypted_or_wrong() -> None:
    plain = decode_packet(user_message(5, REPLICATION, b"\x09" * 30))
    assert isinstance(plain, UserMessage)
    hidden = replace(plain, security=SecurityHeader(encrypted=True, signature=b"signed"))
    first, second = rows(hidden.to_bytes(), plain.to_bytes())
    assert (first.protocol, first.kind, first.error) == ("mqdsrp", "encrypted message", None)
    assert json.loads(first.detail)["signed"] is True
    assert (second.protocol, second.kind) == ("mqdsrp", "message")
    assert second.error is not None
    assert second.error.startswith("in the body: ")


@pytest.mark.parametrize(
    ("queue", "machines"),
    [(REPLICATION, ("PSC1", "bsc1")), (QueueName.at_destination(1), ("bsc1",))],
)
def test_replication_by_either_name_of_its_queue(
    queue: QueueName, machines: tuple[str, ...]
) -> None:
    row = carried(m.BscAck(SITE, THING, "bsc1"), queue)
    assert (row.protocol, row.carrier, row.kind) == ("mqdsrp", "mqqb", "BscAck")
    assert row.machines == machines


REPLIES = [
    (
        m.ChangePropagation(SITE, (change("a\\q", 5), change(None, 6))),
        f"create a\\q (0000000000000005), create {THING} (0000000000000006)",
        (PARTITION, 6, ()),
    ),
    (
        m.ChangePropagation(SITE, tuple(change(f"q{n}", n) for n in range(5))),
        ", ".join(f"create q{n} ({n:016x})" for n in range(3)) + " and 2 more",
        (PARTITION, 4, ()),
    ),
    (
        m.ChangePropagation(SITE, (change("a", 5), change("b", 6, OTHER))),
        "create a (0000000000000005), create b (0000000000000006)",
        (None, None, ()),
    ),
    (
        m.ChangePropagation(
            SITE, (), m.Heartbeat("pec1", (m.PartitionSeqNumbers(PARTITION, seq(9), seq(0)),))
        ),
        f"heartbeat: {PARTITION} up to 0000000000000009",
        (PARTITION, 9, ("pec1",)),
    ),
    (m.ChangePropagation(SITE), "heartbeat: ", (None, None, ())),
    (
        m.ChangeRequest(SITE, PARTITION, 3, "bsc1", "psc1", change("a", 0)),
        "3: create a (0000000000000000)",
        (PARTITION, None, ("bsc1", "psc1")),
    ),
    (
        m.ChangeRequest(SITE, PARTITION, 3, "psc1", None, change("a", 0)),
        "3: create a (0000000000000000)",
        (PARTITION, None, ("psc1",)),
    ),
    (
        m.ChangeReply(SITE, 3, 0xC00E0005, "bsc1"),
        "3: MQ_ERROR_QUEUE_EXISTS",
        (None, None, ("bsc1",)),
    ),
    (
        m.SyncRequest(SITE, PARTITION, seq(4), seq(8), seq(0), False, 0, "psc1"),
        f"{PARTITION} from 0000000000000004 to 0000000000000008",
        (PARTITION, 4, ("psc1",)),
    ),
    (
        m.SyncRequest(SITE, PARTITION, seq(0), seq(8), seq(0), True, 0, "psc1"),
        f"{PARTITION}: everything",
        (PARTITION, 0, ("psc1",)),
    ),
    (
        m.SyncReply(SITE, PARTITION, seq(4), seq(8), seq(0), m.Sync0.NONE, (change("a", 5),)),
        f"{PARTITION} from 0000000000000004 to 0000000000000008: create a (0000000000000005)",
        (PARTITION, 8, ()),
    ),
    (
        m.SyncReply(SITE, PARTITION, seq(4), seq(8), seq(0), m.Sync0.NONE),
        f"{PARTITION} from 0000000000000004 to 0000000000000008: no change",
        (PARTITION, 8, ()),
    ),
    (
        m.AlreadyPurged(SITE, PARTITION, seq(8)),
        f"{PARTITION}: purged up to 0000000000000008",
        (PARTITION, 8, ()),
    ),
    (
        m.PscAck(SITE, SITE, PARTITION, seq(8), "psc1"),
        f"psc1 has {PARTITION} up to 0000000000000008",
        (PARTITION, 8, ("psc1",)),
    ),
    (m.BscAck(SITE, THING, "bsc1"), "bsc1 is there", (None, None, ("bsc1",))),
]


@pytest.mark.parametrize(
    ("message", "summary", "about"), REPLIES, ids=[type(r[0]).__name__ for r in REPLIES]
)
def test_replication_in_words(
    message: m.Message, summary: str, about: tuple[Guid | None, int | None, tuple[str, ...]]
) -> None:
    row = carried(message, QueueName.at_destination(1))
    assert (row.kind, row.summary, row.error) == (type(message).__name__, summary, None)
    assert (row.partition, row.seq, row.machines) == about


@FEW
@given(messages())
def test_any_replication_message_is_told(message: m.Message) -> None:
    told_as = replication(m.encode_message(message))
    assert told_as.detail == message
    assert told_as.kind == type(message).__name__


def test_notifications() -> None:
    updates = (
        NotificationUpdate(NotificationCommand.CREATE, "a\\q", None, THING),
        NotificationUpdate(NotificationCommand.DELETE, None, THING, THING),
    )
    body = ChangeNotification(updates).to_body()
    (row,) = rows(user_message(1, NOTIFICATION, body))
    assert (row.protocol, row.kind) == ("mqcn", "ChangeNotification")
    assert row.summary == f"create a\\q, delete {THING}"
    assert row.machines == ("10.0.0.1",)
    second = NotificationBody(NotificationEvent.QUEUE_UPDATE, THING, "dc1").to_bytes()
    (row,) = rows(user_message(1, QueueName.at_destination(3), second))
    assert (row.kind, row.summary) == ("NotificationBody", f"queue update {THING}")
    assert row.machines == ("dc1",)
    with pytest.raises(WireError):
        notification(b"\x09")
