"""Replication messages (MC-MQDSRP 2.2): the vectors, every field, every check."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import SMALLEST, Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    Message,
    MessageOperation,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
    decode_message,
    encode_message,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer
from tests.strategies.mqdsrp import changes, messages

_FILE = Path(__file__).parents[2] / "data" / "mqdsrp" / "vectors.json"
_LOADED: dict[str, dict[str, Any]] = json.loads(_FILE.read_text())["replication_messages"]
#: By the number that their names begin with.
VECTORS = {name.split()[0]: bytes.fromhex(row["hex"]) for name, row in _LOADED.items()}
DECODED: dict[str, Any] = {name.split()[0]: row["decoded"] for name, row in _LOADED.items()}

S0 = Guid.parse("10000000-0000-0000-0000-000000000001")
S1 = Guid.parse("20000000-0000-0000-0000-000000000002")
S2 = Guid.parse("30000000-0000-0000-0000-000000000003")
QUEUE = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
LINK = Guid.parse("b1b2b3b4-1111-2222-3333-444455556666")
BSC21 = Guid.parse("d0d1d2d3-0a0b-0c0d-0e0f-101112131415")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX
N = SequenceNumber


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


def guid(value: Guid) -> PropVariant:
    return PropVariant(VarType.CLSID, value)


def number(vt: VarType, value: int) -> PropVariant:
    return PropVariant(vt, value)


UPDATE = DirectoryChange(
    Command.UPDATE,
    None,
    QUEUE,
    S1,
    N(10),
    N(11),
    MIN,
    ((108, text("L2")), (105, number(VarType.UI4, 2048))),
)
CREATE = DirectoryChange(
    Command.CREATE,
    "C14\\testq",
    None,
    S1,
    MIN,
    MIN,
    MIN,
    (
        (103, text("C14\\testq")),
        (104, number(VarType.UI1, 0)),
        (106, number(VarType.I2, -1)),
    ),
)
SYNC = DirectoryChange(
    Command.SYNC,
    None,
    LINK,
    Guid.NULL,
    N(5),
    N(8),
    MIN,
    ((803, number(VarType.UI4, 1)), (801, guid(S0)), (802, guid(S1))),
)
DELETE = DirectoryChange(
    Command.DELETE,
    None,
    QUEUE,
    Guid.NULL,
    N(8),
    N(9),
    MIN,
    ((1403, number(VarType.UI1, 1)), (1404, number(VarType.UI1, 7))),
)
HEARTBEAT = Heartbeat("PSC1", (PartitionSeqNumbers(S1, N(11), MIN),))

VALUES: dict[str, Message] = {
    "0": ChangePropagation(S1, (UPDATE,), HEARTBEAT),
    "0b": ChangePropagation(S1),
    "1": ChangeRequest(S2, S1, 7, "BSC21", "PSC2", CREATE),
    "2": SyncRequest(S2, S1, N(5), MAX, MIN, False, 1, "PSC2"),
    "3": SyncReply(S0, Guid.NULL, N(5), N(9), MIN, Sync0.NONE, (SYNC, DELETE)),
    "4": ChangeReply(S1, 7, 0, "BSC21"),
    "5": AlreadyPurged(S0, S1, N(20)),
    "6": PscAck(S2, S2, S1, N(512), "PSC2"),
    "7": BscAck(S2, BSC21, "BSC21"),
}

_ROWS = {
    "0": "MQDSRP-2.2.6.9-01",
    "0b": "MQDSRP-2.2.6.9-04",
    "1": "MQDSRP-2.2.6.2-01",
    "2": "MQDSRP-2.2.6.4-01",
    "3": "MQDSRP-2.2.6.5-01",
    "4": "MQDSRP-2.2.6.3-01",
    "5": "MQDSRP-2.2.6.8-01",
    "6": "MQDSRP-2.2.6.7-01",
    "7": "MQDSRP-2.2.6.6-01",
}


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.req(row)) for name, row in _ROWS.items()]
)
@pytest.mark.req("MQDSRP-2.2-01", "MQDSRP-2.2.6-01")
def test_vectors_are_byte_exact_both_ways(name: str) -> None:
    assert decode_message(VECTORS[name]) == VALUES[name]
    assert encode_message(VALUES[name]) == VECTORS[name]


def test_all_nine_vectors_are_here() -> None:
    assert VECTORS.keys() == VALUES.keys() == _ROWS.keys()
    assert len(VECTORS) == 9


@pytest.mark.parametrize("name", VALUES)
def test_the_vectors_own_decode_agrees(name: str) -> None:
    """Whoever wrote the bytes also wrote down what they mean."""
    message, decoded = VALUES[name], DECODED[name]
    assert str(message.site) == decoded["site"]
    assert decoded["operation"] == message.OPERATION
    for ours, theirs in (
        ("request_id", "request_id"),
        ("requester", "requester"),
        ("psc", "psc"),
        ("result", "result"),
        ("scope", "scope"),
        ("is_sync0", "is_sync0"),
        ("complete_sync0", "complete_sync0"),
        ("name", "bsc"),
    ):
        if hasattr(message, ours) and theirs in decoded:
            assert getattr(message, ours) == decoded[theirs]
    for ours, theirs in (("from_seq", "from"), ("to_seq", "to"), ("purged_seq", "purged")):
        if hasattr(message, ours):
            assert getattr(message, ours) == N(decoded[theirs])


@pytest.mark.parametrize(
    ("operation", "name"),
    [(0, "0"), (1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5"), (6, "6"), (7, "7")],
)
@pytest.mark.req("MQDSRP-2.2.5.1-01", "MQDSRP-2.2.5.1-02", "MQDSRP-2.2.6-01")
def test_base_header(operation: int, name: str) -> None:
    """Version at 0, the sender's site at 1, operation at 17, and the operation decides the kind."""
    octets = encode_message(VALUES[name])
    assert octets[0] == 0
    assert octets[1:17] == VALUES[name].site.raw
    assert octets[17] == operation == VALUES[name].OPERATION
    assert type(decode_message(octets)) is type(VALUES[name])


# --- the parts, field by field --------------------------------------------------------------------


@pytest.mark.req("MQDSRP-2.2.3-01")
def test_partition_state_record() -> None:
    writer = Writer()
    record = PartitionSeqNumbers(S1, N(0x0102030405060708), N(256))
    record.encode(writer)
    octets = writer.getvalue()
    assert len(octets) == PartitionSeqNumbers.SIZE == 32
    assert octets[:16] == S1.raw
    assert octets[16:24] == bytes(range(1, 9))
    assert octets[24:] == bytes.fromhex("0000000000000100")
    assert PartitionSeqNumbers.decode(Reader(octets)) == record


def encoded(change: DirectoryChange) -> bytes:
    writer = Writer()
    change.encode(writer)
    return writer.getvalue()


@pytest.mark.parametrize("command", Command)
@pytest.mark.req("MQDSRP-2.2.4-01")
def test_commands(command: Command) -> None:
    octets = encoded(replace(UPDATE, command=command))
    assert octets[0] == {"CREATE": 0, "UPDATE": 1, "DELETE": 2, "SYNC": 3}[command.name]
    assert DirectoryChange.decode(Reader(octets)).command is command


@pytest.mark.parametrize("command", [4, 5, 0xFF])
@pytest.mark.req("MQDSRP-2.2.4-01")
def test_a_command_above_3(command: int) -> None:
    with pytest.raises(WireError, match=f"command {command} is none of") as caught:
        DirectoryChange.decode(Reader(bytes([command]) + encoded(UPDATE)[1:]))
    assert caught.value.offset == 0


@pytest.mark.req("MQDSRP-2.2.4-02", "MQDSRP-2.2.4-03", "MQDSRP-2.2.4-04", "MQDSRP-2.2.4-05")
def test_a_change_by_guid_has_no_path() -> None:
    octets = encoded(UPDATE)
    assert octets[1] == 1
    assert octets[2:18] == QUEUE.raw
    assert octets[18:34] == S1.raw
    assert octets[34:58] == b"".join(N(n).to_bytes() for n in (10, 11, 0))
    assert octets[58] == 2


@pytest.mark.req("MQDSRP-2.2.4-02", "MQDSRP-2.2.4-05", "MQDSRP-2.2.1-02")
def test_a_change_by_path_has_no_guid() -> None:
    octets = encoded(CREATE)
    path = "C14\\testq\0".encode("utf-16-le")
    assert octets[1] == 0
    assert octets[2:22] == path
    assert octets[22:38] == S1.raw
    assert octets[38:62] == bytes(24)
    assert octets[62] == 3


@pytest.mark.parametrize("use_guid", [2, 0xFF])
@pytest.mark.req("MQDSRP-2.2.4-02")
def test_use_guid_above_1(use_guid: int) -> None:
    octets = bytearray(encoded(UPDATE))
    octets[1] = use_guid
    with pytest.raises(WireError, match=f"UseGuid is 0 or 1, not {use_guid}") as caught:
        DirectoryChange.decode(Reader(bytes(octets)))
    assert caught.value.offset == 1


@pytest.mark.req("MQDSRP-2.2.4-03", "MQDSRP-2.2.4-04")
def test_a_change_names_its_object_exactly_once() -> None:
    with pytest.raises(ValueError, match="never by both"):
        replace(UPDATE, path="x")
    with pytest.raises(ValueError, match="never by both"):
        replace(UPDATE, guid=None)


@pytest.mark.req("MQDSRP-2.2.4-06", "MQDSRP-2.2.4-07")
def test_identifiers_come_before_all_values() -> None:
    octets = encoded(UPDATE)
    assert octets[58:67] == bytes.fromhex("02 6c000000 69000000")
    assert octets[67:] == "L2\0".encode("utf-16-le") + (2048).to_bytes(4, "little")


@pytest.mark.req("MQDSRP-2.2.4-08")
def test_an_unknown_identifier_makes_the_rest_unreadable() -> None:
    octets = bytearray(VECTORS["0"])
    octets[0x54:0x58] = (4711).to_bytes(4, "little")
    with pytest.raises(WireError, match="property 4711 is unknown") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == 0x54


def test_a_value_of_another_type_than_its_identifier() -> None:
    with pytest.raises(ValueError, match="property 108 cannot have a value of type"):
        replace(UPDATE, properties=((108, number(VarType.UI4, 1)),))
    with pytest.raises(ValueError, match="property 4711 cannot have a value"):
        replace(UPDATE, properties=((4711, number(VarType.UI4, 1)),))


@pytest.mark.req("MQDSRP-2.2.6.9-05")
def test_counts_that_their_fields_cannot_hold() -> None:
    many = ((105, number(VarType.UI4, 1)),) * 256
    assert len(replace(UPDATE, properties=many[:255]).properties) == 255
    with pytest.raises(ValueError, match="at most 255 properties"):
        replace(UPDATE, properties=many)
    short = replace(UPDATE, properties=())
    assert encode_message(ChangePropagation(S1, (short,) * 65_535))[19:21] == b"\xff\xff"
    with pytest.raises(ValueError, match="does not fit in 2 bytes"):
        encode_message(ChangePropagation(S1, (short,) * 65_536))


@pytest.mark.req("MQDSRP-2.2.5.2-01", "MQDSRP-2.2.5.2-02", "MQDSRP-2.2.6.2-01")
def test_change_request_of_a_bsc() -> None:
    octets = encode_message(VALUES["1"])
    assert octets[18:34] == S1.raw
    assert octets[34:42] == bytes.fromhex("07000000 06000000")
    assert octets[42:64] == "BSC21\0PSC2\0".encode("utf-16-le")
    assert octets[64:] == encoded(CREATE)


@pytest.mark.req("MQDSRP-2.2.5.2-03")
def test_change_request_of_a_psc_has_no_psc_name() -> None:
    request = ChangeRequest(S2, S1, 7, "PSC2", None, CREATE)
    octets = encode_message(request)
    assert octets[38:42] == bytes(4)
    assert octets[42:52] == "PSC2\0".encode("utf-16-le")
    assert octets[52:] == encoded(CREATE)
    assert decode_message(octets) == request


@pytest.mark.parametrize("offset", [1, 5, 7, 0xFFFFFFFF])
@pytest.mark.req("MQDSRP-2.2.5.2-02")
def test_a_psc_name_offset_that_is_not_behind_the_requester(offset: int) -> None:
    octets = bytearray(VECTORS["1"])
    octets[38:42] = offset.to_bytes(4, "little")
    with pytest.raises(WireError, match=f"PSCNameOffset {offset} is not behind") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == 38


def test_a_psc_name_offset_counts_units_not_characters() -> None:
    request = ChangeRequest(S2, S1, 7, "A\U0001f600", "PSC2", CREATE)
    octets = encode_message(request)
    assert octets[38:42] == (4).to_bytes(4, "little")
    assert decode_message(octets) == request


@pytest.mark.req("MQDSRP-2.2.5.3-01", "MQDSRP-2.2.6.5-01")
def test_sync_reply_header() -> None:
    reply = SyncReply(S0, Guid.NULL, N(5), N(9), N(3), Sync0.MORE, (SYNC, DELETE))
    octets = encode_message(reply)
    assert octets[18:34] == Guid.NULL.raw
    assert octets[34:58] == b"".join(N(n).to_bytes() for n in (5, 9, 3))
    assert octets[58:66] == bytes.fromhex("02000000 01000000")
    assert octets[66:] == encoded(SYNC) + encoded(DELETE)


@pytest.mark.parametrize(
    ("value", "meaning"), [(0, Sync0.NONE), (1, Sync0.MORE), (2, Sync0.COMPLETE)]
)
@pytest.mark.req("MQDSRP-2.2.5.3-02")
def test_complete_sync0(value: int, meaning: Sync0) -> None:
    octets = bytearray(VECTORS["3"])
    octets[62] = value
    reply = decode_message(bytes(octets))
    assert isinstance(reply, SyncReply)
    assert reply.complete_sync0 is meaning
    octets[62:66] = b"\x03\0\0\0"
    with pytest.raises(WireError, match="CompleteSync0 is 0, 1 or 2, not 3") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == 62


@pytest.mark.req("MQDSRP-2.2.5.4-01", "MQDSRP-2.2.5.4-03")
def test_heartbeat() -> None:
    writer = Writer()
    second = PartitionSeqNumbers(S2, N(7), N(1))
    heartbeat = replace(HEARTBEAT, partitions=(*HEARTBEAT.partitions, second))
    heartbeat.encode(writer)
    octets = writer.getvalue()
    assert octets[:12] == b"\x02\0" + "PSC1\0".encode("utf-16-le")
    assert len(octets) == 12 + 2 * 32
    assert octets[44:60] == S2.raw
    assert Heartbeat.decode(Reader(octets)) == heartbeat


@pytest.mark.req("MQDSRP-2.2.5.4-02", "MQDSRP-2.2.6.9-04")
def test_a_heartbeat_without_records_is_two_zero_bytes() -> None:
    octets = encode_message(ChangePropagation(S1))
    assert octets[18:] == bytes(5)
    assert len(octets) == 23
    assert decode_message(octets) == ChangePropagation(S1)
    with pytest.raises(ValueError, match="names no machine"):
        Heartbeat("PSC1")
    with pytest.raises(WireError):
        decode_message(octets[:21])


@pytest.mark.parametrize("flush", [0, 1])
def test_flush(flush: int) -> None:
    message = ChangePropagation(S1, flush=flush)
    assert encode_message(message)[18] == flush
    assert decode_message(encode_message(message)) == message


@pytest.mark.parametrize(("at", "what"), [(58, "IsSync0"), (59, "Scope")])
@pytest.mark.req("MQDSRP-2.2.6.4-02")
def test_flags_of_a_sync_request(at: int, what: str) -> None:
    octets = bytearray(VECTORS["2"])
    for value in (0, 1):
        octets[at] = value
        request = decode_message(bytes(octets))
        assert isinstance(request, SyncRequest)
        assert (request.is_sync0, request.scope)[at - 58] == value
    octets[at] = 2
    with pytest.raises(WireError, match=f"{what} is 0 or 1, not 2") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == at


def test_a_scope_that_is_none() -> None:
    with pytest.raises(ValueError, match="Scope is 0 or 1"):
        SyncRequest(S2, S1, N(5), MAX, MIN, False, 2, "PSC2")


# --- checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 0x10, 0xFF])
@pytest.mark.req("MQDSRP-2.2.5.1-01")
def test_another_version(version: int) -> None:
    with pytest.raises(WireError, match=f"version {version}") as caught:
        decode_message(bytes([version]) + VECTORS["5"][1:])
    assert caught.value.offset == 0


@pytest.mark.parametrize("operation", [8, 9, 0xFF])
@pytest.mark.req("MQDSRP-2.2.5.1-02")
def test_another_operation(operation: int) -> None:
    octets = bytearray(VECTORS["5"])
    octets[17] = operation
    with pytest.raises(WireError, match=f"operation {operation} is not one of 0 to 7") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == 17


def test_the_operations() -> None:
    assert [operation.value for operation in MessageOperation] == list(range(8))


def test_every_operation_is_that_of_one_message() -> None:
    assert sorted(kind.OPERATION for kind in get_args(Message)) == sorted(MessageOperation)


@pytest.mark.parametrize(
    ("name", "at", "size"),
    [("0", 19, 2), ("3", 58, 4), ("0", 0x62, 2)],
    ids=["changes of a propagation", "changes of a reply", "records of a heartbeat"],
)
def test_counts_beyond_the_bytes_are_refused_before_anything_is_made(
    name: str, at: int, size: int
) -> None:
    octets = bytearray(VECTORS[name])
    octets[at : at + size] = b"\xff" * size
    with pytest.raises(WireError, match="do not fit") as caught:
        decode_message(bytes(octets))
    assert caught.value.offset == at


@pytest.mark.parametrize(
    ("name", "at"),
    [
        pytest.param("0", 19, marks=pytest.mark.req("MQDSRP-2.2.6.9-01")),
        pytest.param("3", 58, marks=pytest.mark.req("MQDSRP-2.2.6.5-01")),
        pytest.param("0", 0x62, marks=pytest.mark.req("MQDSRP-2.2.5.4-03")),
    ],
)
def test_one_more_than_there_are(name: str, at: int) -> None:
    octets = bytearray(VECTORS[name])
    octets[at] += 1
    with pytest.raises(WireError):
        decode_message(bytes(octets))


@pytest.mark.req("MQDSRP-2.2.6.9-01")
@pytest.mark.parametrize("count", [255, 256, 1000])
def test_the_count_of_changes_has_two_bytes(count: int) -> None:
    message = ChangePropagation(S1, (UPDATE,) * count, HEARTBEAT)
    octets = encode_message(message)
    assert octets[19:21] == count.to_bytes(2, "little")
    assert decode_message(octets) == message


@pytest.mark.parametrize("name", VECTORS)
def test_surplus_bytes_are_ignored(name: str) -> None:
    for surplus in (b"\0", b"\xff" * 7):
        assert decode_message(VECTORS[name] + surplus) == VALUES[name]


@pytest.mark.parametrize("name", VECTORS)
def test_every_prefix_raises(name: str) -> None:
    octets = VECTORS[name]
    for size in range(len(octets)):
        with pytest.raises(WireError):
            decode_message(octets[:size])


def test_names_have_a_limit_both_ways() -> None:
    longest = BscAck(S2, BSC21, "x" * 256)
    assert decode_message(encode_message(longest)) == longest
    with pytest.raises(ValueError, match="at most 256"):
        encode_message(BscAck(S2, BSC21, "x" * 257))
    octets = encode_message(longest)
    with pytest.raises(WireError, match="BSCName is longer than 256"):
        decode_message(octets[:34] + b"y\0" + octets[34:])


def test_paths_have_a_limit_both_ways() -> None:
    longest = replace(CREATE, path="x" * 1024)
    octets = encoded(longest)
    assert DirectoryChange.decode(Reader(octets)) == longest
    with pytest.raises(ValueError, match="at most 1024"):
        replace(CREATE, path="x" * 1025)
    with pytest.raises(WireError, match="PathName is longer than 1024"):
        DirectoryChange.decode(Reader(octets[:2] + b"y\0" + octets[2:]))


# --- properties -----------------------------------------------------------------------------------


@given(messages())
def test_round_trip(message: Message) -> None:
    octets = encode_message(message)
    assert decode_message(octets) == message
    assert encode_message(decode_message(octets)) == octets


@given(changes())
def test_round_trip_of_a_change(change: DirectoryChange) -> None:
    reader = Reader(encoded(change))
    assert DirectoryChange.decode(reader) == change
    assert not reader.remaining


@given(messages(), st.data())
def test_a_prefix_raises(message: Message, data: st.DataObject) -> None:
    octets = encode_message(message)
    cut = data.draw(st.integers(0, len(octets) - 1))
    with pytest.raises(WireError):
        decode_message(octets[:cut])


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: bytes(17) + tail))
def test_garbage_raises_only_wire_errors(data: bytes) -> None:
    with suppress(WireError):
        decode_message(data)


@given(messages(), st.data())
def test_damage_raises_only_wire_errors(message: Message, data: st.DataObject) -> None:
    octets = bytearray(encode_message(message))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        decode_message(bytes(octets))


def test_the_smallest_change() -> None:
    """A number of changes is compared with the bytes that are left, before any is read."""
    writer = Writer()
    DirectoryChange(Command.CREATE, "", None, S1, MIN, MIN, MIN).encode(writer)
    assert len(writer) == SMALLEST
