"""Packets of MS-MQQB against the text's own example and the vectors, and every check."""

from __future__ import annotations

import dataclasses
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.decoders import DECODERS
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import SyncRequest, decode_message
from mqis.wire.mqqb.baseheader import BASE_SIZE, INFINITE, MAX_PACKET, BaseHeader
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)
from mqis.wire.mqqb.packet import Packet, UserMessage, decode_packet
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqqb.properties import MessageClass, MessageProperties, is_nack
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader, SenderIdType
from mqis.wire.mqqb.userheader import UserHeader
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer
from tests.strategies.mqqb import packets, pings, user_messages
from tests.wire.mqqb.frames import FRAMES, PACKETS

PSC1 = Guid.parse("f0f1f2f3-0001-0002-0003-040506070809")
PSC2 = Guid.parse("e0e1e2e3-0001-0002-0003-040506070809")
QUEUE = QueueName.of_direct("OS:PSC1\\private$\\mqis_queue$")


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACKETS)
def test_vectors_are_byte_exact_both_ways(name: str) -> None:
    assert decode_packet(PACKETS[name]).to_bytes() == PACKETS[name]


def test_session_set_up_as_values() -> None:
    request = EstablishConnection(PSC2, Guid.NULL, 0x12345)
    assert decode_packet(PACKETS["EC request PSC2 -> PSC1"]) == request
    response = EstablishConnection(PSC2, PSC1, 0x12345)
    assert decode_packet(PACKETS["EC response PSC1 -> PSC2"]) == response
    assert decode_packet(PACKETS["CP request"]) == ConnectionParameters(500, 20_000, 64)
    assert decode_packet(PACKETS["SessionAck"]) == SessionAck(SessionHeader(ack_seq=1))


@pytest.mark.req("MQDSRP-2.1-02")
def test_a_replication_message_is_the_body_of_one_user_message() -> None:
    message = decode_packet(PACKETS["UserMessage"])
    assert isinstance(message, UserMessage)
    assert message.priority == 3
    assert message.time_to_reach_queue == message.header.time_to_be_received == 1200
    assert message.header == UserHeader(
        PSC2,
        1,
        QUEUE,
        time_to_be_received=1200,
        sent_time=0x5F000000,
        admin=QueueName.at_source(1),
        response=QueueName.SAME_AS_ADMIN,
    )
    assert message.security == SecurityHeader(SenderIdType.QUEUE_MANAGER, PSC2.raw)
    assert message.properties.acknowledge == 4
    assert len(message.properties.body) == 70
    assert isinstance(decode_message(message.properties.body), SyncRequest)


def test_a_nack() -> None:
    nack = decode_packet(PACKETS["NACK"])
    assert isinstance(nack, UserMessage)
    assert nack.header.destination == QueueName.at_destination(1)
    assert nack.header.address == PSC2
    assert nack.header.response == QUEUE
    assert nack.time_to_reach_queue == INFINITE
    assert nack.properties.message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
    subject = MessageIdentifier.from_bytes(nack.properties.correlation_id)
    assert subject == MessageIdentifier(PSC2, 1)
    assert subject.to_bytes() == nack.properties.correlation_id


# --- the example of MS-MQQB 4.1 -------------------------------------------------------------------

CLIENT = Guid(bytes.fromhex("d1587355509195954997b6e611ea26c6"))
SERVER = Guid(bytes.fromhex("0789cd434c39118f44459078909ea0fc"))


def test_the_ping_of_the_example() -> None:
    assert Ping.from_bytes(FRAMES[1]) == Ping(4, CLIENT, client=True)
    assert Ping.from_bytes(FRAMES[2]) == Ping(4, SERVER, client=True)


def _without_reserved(frame: bytes) -> bytes:
    return frame[:1] + b"\0" + frame[2:]


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8])
def test_the_example_is_reproduced_but_for_its_reserved_byte(number: int) -> None:
    packet = decode_packet(FRAMES[number])
    octets = packet.to_bytes()
    assert octets == _without_reserved(FRAMES[number])


def test_the_example_as_values() -> None:
    assert decode_packet(FRAMES[3]) == EstablishConnection(CLIENT, SERVER, 501_140_046)
    assert decode_packet(FRAMES[5]) == ConnectionParameters(1496, 120_000, 64)
    message = decode_packet(FRAMES[7])
    assert isinstance(message, UserMessage)
    assert message.header.destination == QueueName.of_direct("OS:a04bm02\\q")
    assert message.header.message_id == 2286
    assert message.properties.label == "mqsender label\0"
    assert message.properties.body == b"a\0" * 1000
    assert message.security is not None
    # Data without the bit that is said to announce it.
    assert not message.security.security_info
    assert len(message.security.sender_id) == 28
    assert decode_packet(FRAMES[8]) == SessionAck(SessionHeader(ack_seq=1))


# --- properties -----------------------------------------------------------------------------------


@given(packets())
def test_round_trip(packet: Packet) -> None:
    octets = packet.to_bytes()
    assert decode_packet(octets) == packet
    assert BaseHeader.decode(Reader(octets)).length == len(octets)
    assert (
        len(octets) - 16 * (isinstance(packet, UserMessage) and packet.session is not None)
    ) % 4 == 0


@given(pings())
def test_ping_round_trip(ping: Ping) -> None:
    octets = ping.to_bytes()
    assert len(octets) == 24
    assert Ping.from_bytes(octets) == ping


@given(packets(), st.data())
def test_a_prefix_raises(packet: Packet, data: st.DataObject) -> None:
    octets = packet.to_bytes()
    cut = data.draw(st.integers(0, len(octets) - 1))
    with pytest.raises(WireError):
        decode_packet(octets[:cut])


@given(user_messages(), st.data())
def test_a_packet_that_ends_too_early_by_its_own_word_raises_or_parses(
    message: UserMessage, data: st.DataObject
) -> None:
    """PacketSize agrees with the bytes, but the headers want more."""
    octets = bytearray(dataclasses.replace(message, session=None).to_bytes())
    cut = data.draw(st.integers(BASE_SIZE, len(octets) - 4))
    octets[8:12] = cut.to_bytes(4, "little")
    with pytest.raises(WireError):
        decode_packet(bytes(octets[:cut]))


@given(st.binary(max_size=300))
def test_garbage_raises_only_wire_errors(data: bytes) -> None:
    for decode in (decode_packet, Ping.from_bytes):
        with suppress(WireError):
            decode(data)


@given(packets(), st.data())
def test_damage_raises_only_wire_errors(packet: Packet, data: st.DataObject) -> None:
    octets = bytearray(packet.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        decode_packet(bytes(octets))


# --- framing --------------------------------------------------------------------------------------


def test_a_session_header_on_a_message_is_outside_packet_size() -> None:
    message = decode_packet(PACKETS["UserMessage"])
    assert isinstance(message, UserMessage)
    header = SessionHeader(7, 0, 0, 9, 0, 64)
    octets = dataclasses.replace(message, session=header).to_bytes()
    base = BaseHeader.decode(Reader(octets))
    assert base.session
    assert (base.size, base.length) == (288, 304)
    assert octets[-16:] == bytes.fromhex("07000000 00000000 09000000 40000000")
    decoded = decode_packet(octets)
    assert isinstance(decoded, UserMessage)
    assert decoded.session == header


def test_a_session_header_of_its_own_is_inside_packet_size() -> None:
    base = BaseHeader.decode(Reader(PACKETS["SessionAck"]))
    assert base.session
    assert base.size == base.length == 36


def _with(name: str, at: int, octets: bytes) -> bytes:
    packet = bytearray(PACKETS[name])
    packet[at : at + len(octets)] = octets
    return bytes(packet)


@pytest.mark.parametrize(
    ("packet", "offset", "reason"),
    [
        (_with("CP request", 0, b"\x11"), 0, "packet version 0x11"),
        (_with("CP request", 4, b"MQIS"), 4, "not the signature"),
        (_with("CP request", 8, b"\x0f\0\0\0"), 8, "PacketSize 15"),
        (_with("CP request", 8, b"\x01\0\x40\0"), 8, "PacketSize 4194305"),
        (_with("CP request", 8, b"\x1c\0\0\0"), 8, "the packet has 28 bytes, the data 32"),
        (_with("CP request", 18, b"\x00"), 18, "type 1, 2 or 3, not 0"),
        (_with("CP request", 18, b"\x04"), 18, "type 1, 2 or 3, not 4"),
        (_with("CP request", 18, b"\x01"), 20, "needs 16 bytes, 12 left"),
        (_with("SessionAck", 18, b"\x03"), 32, "4 bytes after the end of ConnectionParameters"),
        (_with("UserMessage", 60, b"\x40\x5c\x29"), 60, "neither express nor recoverable"),
        (_with("UserMessage", 60, b"\x00\x58\x29"), 60, "cannot be PRIVATE"),
        (_with("UserMessage", 60, b"\x00\x50\x29"), 60, "destination queue cannot be PRIVATE_AT_A"),
        (_with("UserMessage", 60, b"\x00\x3c\x29"), 60, "administration queue cannot be SAME_AS"),
        (_with("UserMessage", 60, b"\x00\x5c\x09"), 60, "has no MessagePropertiesHeader"),
        (_with("UserMessage", 64, b"\x00\x00"), 64, "name cannot have 0 bytes"),
        (_with("UserMessage", 64, b"\x3b\x00"), 64, "name cannot have 59 bytes"),
        (_with("UserMessage", 64, b"\xff\xff"), 64, "name cannot have 65535 bytes"),
        (_with("UserMessage", 64, b"\x38\x00"), 66, "does not end at its first zero"),
        (_with("UserMessage", 66, b"\x00\x00"), 66, "does not end at its first zero"),
        (_with("UserMessage", 161, b"\xfb"), 161, "a label of 251 units"),
        (_with("UserMessage", 192, b"\x49"), 216, "MessageBody needs 73 bytes, 72 left"),
        (_with("UserMessage", 212, b"\xff\xff\xff\xff"), 216, "ExtensionData needs"),
        (_with("UserMessage", 130, b"\xff\xff"), 144, "SecurityData needs 65535 bytes"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(packet: bytes, offset: int, reason: str) -> None:
    with pytest.raises(WireError, match=reason) as caught:
        decode_packet(packet)
    assert caught.value.offset == offset


def test_reserved_fields_are_ignored() -> None:
    packet = bytearray(PACKETS["UserMessage"])
    packet[1] = 0xCD
    packet[2] |= 0xC0  # X9, X8
    packet[3] |= 0xFE
    packet[60] |= 0x80
    packet[63] |= 0xEF
    packet[160] |= 0xF0
    assert decode_packet(bytes(packet)) == decode_packet(PACKETS["UserMessage"])


@pytest.mark.parametrize(
    ("part", "octets", "reason"),
    [
        ("debug", b"\x02\0\0\0", "queue type 2"),
        ("soap", bytes(24), "section 0x0000 instead of 0x0320"),
        ("multi_queue", b"\x0b\0\0\0\x64\0" + bytes(40), "MQFAddressHeader of 11 bytes"),
        ("multi_queue", b"\x0c\0\0\0\x65\0" + bytes(40), "section 0x0065 instead of 0x0064"),
    ],
)
def test_a_header_that_is_skipped_has_to_be_one(part: str, octets: bytes, reason: str) -> None:
    message = decode_packet(PACKETS["UserMessage"])
    assert isinstance(message, UserMessage)
    damaged = dataclasses.replace(message, **{part: octets})  # type: ignore[arg-type]
    with pytest.raises(WireError, match=reason):
        decode_packet(damaged.to_bytes())


@pytest.mark.parametrize(
    "octets", [FRAMES[1][:23], FRAMES[1] + b"\0", b"\x01\x7d\x49" + FRAMES[1][3:]]
)
def test_what_is_no_ping(octets: bytes) -> None:
    with pytest.raises(WireError):
        Ping.from_bytes(octets)


# --- local misuse ---------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", [-1, 8])
def test_priority_8_would_be_an_internal_packet(priority: int) -> None:
    message = UserMessage(UserHeader(PSC1, 1, QUEUE), MessageProperties(), priority=priority)
    with pytest.raises(ValueError, match="a priority is 0 to 7"):
        message.to_bytes()


def test_a_packet_of_more_than_four_mebibytes() -> None:
    largest = MAX_PACKET - BASE_SIZE - 48 - 60 - 56
    message = UserMessage(UserHeader(PSC1, 1, QUEUE), MessageProperties(bytes(largest)))
    octets = message.to_bytes()
    assert len(octets) == MAX_PACKET
    assert decode_packet(octets) == message
    more = UserMessage(UserHeader(PSC1, 1, QUEUE), MessageProperties(bytes(largest + 1)))
    with pytest.raises(ValueError, match="are allowed"):
        more.to_bytes()


def test_values_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        UserMessage(UserHeader(PSC1, 1 << 32, QUEUE), MessageProperties()).to_bytes()
    with pytest.raises(ValueError, match="at most 250 units"):
        MessageProperties(label="x" * 251)
    with pytest.raises(ValueError, match="20 bytes"):
        MessageProperties(correlation_id=b"")
    with pytest.raises(ValueError, match="four bits"):
        MessageProperties(acknowledge=16)
    with pytest.raises(ValueError, match="four bits each"):
        SecurityHeader(16)
    with pytest.raises(ValueError, match="five bits"):
        UserHeader(PSC1, 1, QUEUE, hops=32)
    with pytest.raises(ValueError, match="32 bits"):
        MessageIdentifier(PSC1, 1 << 32)


def test_names_of_the_wrong_kind() -> None:
    with pytest.raises(ValueError, match="has no direct name"):
        QueueName(QueueKind.PUBLIC, direct="x")
    with pytest.raises(ValueError, match="has no private queue number"):
        QueueName(QueueKind.PUBLIC, private_id=1)
    with pytest.raises(ValueError, match="has no GUID"):
        QueueName(QueueKind.DIRECT, guid=PSC1)
    with pytest.raises(ValueError, match="a destination queue cannot be"):
        UserHeader(PSC1, 1, QueueName.at_source(1))
    with pytest.raises(ValueError, match="an administration queue cannot be"):
        UserHeader(PSC1, 1, QUEUE, admin=QueueName.SAME_AS_ADMIN)


@pytest.mark.req("MQDSRP-3.1.5.1-05")
def test_negative_classes() -> None:
    """From 0x8000 to 0xC003, those without a name of their own included; nothing below."""
    assert all(is_nack(number) for number in range(0x8000, 0xC005))
    assert all(is_nack(number) for number in MessageClass if number.name.startswith("NACK"))
    others = [number for number in MessageClass if not number.name.startswith("NACK")]
    assert others
    assert not any(is_nack(number) for number in others)
    assert not is_nack(0x7FFF)


def test_decode_knows_both_protocols() -> None:
    known = {decoder.name: decoder.decode for decoder in DECODERS}
    message = known["mqqb"](PACKETS["UserMessage"])
    assert isinstance(message, UserMessage)
    assert isinstance(known["mqdsrp"](message.properties.body), SyncRequest)


def test_an_identifier_has_20_octets() -> None:
    octets = bytes(range(20))
    identifier = MessageIdentifier.from_bytes(octets)
    assert identifier == MessageIdentifier(Guid(octets[:16]), 0x13121110)
    assert identifier.to_bytes() == octets
    with pytest.raises(WireError, match="1 bytes after the end of the message identifier"):
        MessageIdentifier.from_bytes(octets + b"\0")
    with pytest.raises(WireError):
        MessageIdentifier.from_bytes(octets[:-1])


def test_the_flags_of_a_security_header() -> None:
    """Four bits each for the types of the sender's id and of the authentication, and flags."""
    header = SecurityHeader(
        9, encrypted=True, default_provider=True, security_info=False, authentication_type=6
    )
    writer = Writer()
    header.encode(writer)
    octets = writer.getvalue()
    assert octets[:2] == bytes.fromhex("6906")
    assert SecurityHeader.decode(Reader(octets)) == header
