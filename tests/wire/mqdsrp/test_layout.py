"""The offsets of ``layout`` lead to the fields that ``messages`` encodes."""

from __future__ import annotations

import pytest

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp import layout
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    Message,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
    encode_message,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber

SITE, PARTITION, THING = (Guid(bytes([n]) * 16) for n in (1, 2, 3))
FROM, TO, PURGED = (SequenceNumber(n) for n in (0x11, 0x12, 0x13))


def change(path: str | None) -> DirectoryChange:
    return DirectoryChange(
        Command.CREATE if path else Command.UPDATE,
        path,
        None if path else THING,
        PARTITION,
        FROM,
        TO,
        PURGED,
        ((108, PropVariant(VarType.LPWSTR, "L")),),
    )


def raw(seq: SequenceNumber) -> bytes:
    return seq.to_bytes()


def reply(complete: Sync0, *changes: DirectoryChange) -> SyncReply:
    return SyncReply(SITE, PARTITION, FROM, TO, PURGED, complete, changes)


@pytest.mark.parametrize(
    "message",
    [
        ChangePropagation(SITE),
        reply(Sync0.NONE),
        AlreadyPurged(SITE, PARTITION, PURGED),
        BscAck(SITE, THING, "bsc"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_operation(message: Message) -> None:
    assert layout.operation_in(encode_message(message)) == message.OPERATION


def test_propagation() -> None:
    carried = change("m\\q")
    body = encode_message(ChangePropagation(SITE, (carried,)))
    at = layout.PROPAGATION_CHANGES_AT
    assert body[layout.PROPAGATION_COUNT_AT : at] == b"\x01\x00"
    end = at + len(carried.encoded)
    assert body[at:end] == carried.encoded
    assert len(body) == end + layout.HEARTBEAT_COUNT_SIZE


@pytest.mark.parametrize("full", [False, True])
def test_sync_request(full: bool) -> None:
    body = encode_message(SyncRequest(SITE, PARTITION, FROM, TO, PURGED, full, 0, "bsc"))
    assert layout.asked_from(body) == (PARTITION, FROM)
    assert body[layout.SYNC_REQUEST_IS_SYNC0_AT] == full


def test_sync_reply() -> None:
    carried = change(None)
    body = encode_message(reply(Sync0.COMPLETE, carried, carried))
    at = layout.SYNC_REPLY_PARTITION_AT
    assert body[at : at + 16] == PARTITION.raw
    assert body[layout.SYNC_REPLY_FROM_AT :].startswith(raw(FROM))
    assert body[layout.SYNC_REPLY_TO_AT :].startswith(raw(TO))
    assert body[layout.SYNC_REPLY_COUNT_AT] == 2
    assert body[layout.SYNC_REPLY_COMPLETE_AT] == Sync0.COMPLETE
    assert body[layout.SYNC_REPLY_CHANGES_AT :] == 2 * carried.encoded


@pytest.mark.parametrize("complete", list(Sync0))
def test_a_partial_reply_is_one_that_others_follow(complete: Sync0) -> None:
    assert layout.is_partial_reply(encode_message(reply(complete))) == (complete is Sync0.MORE)


def test_another_message_is_no_partial_reply() -> None:
    body = bytearray(encode_message(SyncRequest(SITE, PARTITION, FROM, TO, PURGED, True, 0, "bsc")))
    body[layout.SYNC_REPLY_COMPLETE_AT] = Sync0.MORE
    assert not layout.is_partial_reply(bytes(body))


def test_psc_ack() -> None:
    body = encode_message(PscAck(SITE, THING, PARTITION, TO, "psc"))
    assert body[layout.PSC_ACK_PARTITION_AT :].startswith(PARTITION.raw)
    assert body[layout.PSC_ACK_SEQ_AT :].startswith(raw(TO))


@pytest.mark.parametrize("path", ["m\\q", None])
def test_change(path: str | None) -> None:
    data = change(path).encoded
    assert data[layout.CHANGE_USE_GUID_AT] == (path is None)
    if path is None:
        name = THING.raw
        assert len(name) == layout.CHANGE_GUID_SIZE
    else:
        name = path.encode("utf-16-le") + bytes(layout.PATH_END_SIZE)
    assert data[layout.CHANGE_NAME_AT :].startswith(name)
    fixed = data[layout.CHANGE_NAME_AT + len(name) :]
    assert fixed.startswith(PARTITION.raw)
    assert fixed[layout.CHANGE_PREVIOUS_SEQ_AT :].startswith(raw(FROM))
    assert fixed[layout.CHANGE_SEQ_AT :].startswith(raw(TO))
    assert fixed[layout.CHANGE_PURGED_SEQ_AT :].startswith(raw(PURGED))
    assert fixed[layout.CHANGE_PROPERTY_COUNT_AT] == 1
    at = layout.CHANGE_PROPERTY_IDS_AT
    assert fixed[at : at + layout.PROPERTY_ID_SIZE] == (108).to_bytes(4, "little")
    assert fixed[at + layout.PROPERTY_ID_SIZE :] == b"L\0\0\0"
