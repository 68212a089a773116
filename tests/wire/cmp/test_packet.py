"""MESSAGE_PACKET: the six tags, byte by byte."""

from __future__ import annotations

import pytest
from hypothesis import given

from mqis.testing.cmp import packet_bytes, user_message
from mqis.wire.cmp.packet import MAX_DATA, PACKET_SIZE, MsgTag, Packet
from tests.strategies.cmp import packets
from tests.wire.cmp.vectors import VECTORS


@pytest.mark.parametrize(
    ("name", "packet"),
    [
        pytest.param(
            "CONNECTION_REQ",
            Packet.connection_req(1, 0x101),
            marks=pytest.mark.req("CMP-2.2.7-01"),
        ),
        pytest.param(
            "CONNECTION_REQ_DENIED",
            Packet.denied(1, 0x80070005),
            marks=pytest.mark.req("CMP-2.2.5-01", "CMP-4.2.1.1-01"),
        ),
        pytest.param(
            "USER_MESSAGE",
            user_message(1, 0x2002, b"", is_master=False),
            marks=pytest.mark.req("CMP-4.2.1.2-01"),
        ),
        pytest.param(
            "DISCONNECT",
            Packet.disconnect(1, 0x101),
            marks=pytest.mark.req("CMP-2.2.3-01", "CMP-4.2.2-01"),
        ),
        pytest.param(
            "DISCONNECTED",
            Packet.disconnected(1),
            marks=pytest.mark.req("CMP-2.2.4-01", "CMP-4.2.2-01"),
        ),
        pytest.param("PING", Packet.ping(), marks=pytest.mark.req("CMP-2.2.6-01")),
    ],
)
def test_examples_are_byte_exact(name: str, packet: Packet) -> None:
    assert packet_bytes(packet) == VECTORS[name]
    assert len(packet.header()) == PACKET_SIZE


@pytest.mark.req("CMP-2.2-01", "CMP-2.2.2-01")
def test_fields_are_little_endian_and_in_their_places() -> None:
    packet = Packet(0x11121314, 0x21222324, 0x31323334, 0x41424344, b"abcde", 0x61626364)
    expected = "14131211 24232221 34333231 44434241 05000000 64636261"
    assert packet.header() == bytes.fromhex(expected)
    assert packet_bytes(packet) == bytes.fromhex(expected) + b"abcde"


@pytest.mark.req("CMP-2.2.2-02")
def test_there_are_six_tags() -> None:
    assert {tag.name: int(tag) for tag in MsgTag} == {
        "DISCONNECT": 1,
        "DISCONNECTED": 2,
        "CONNECTION_REQ_DENIED": 3,
        "PING": 4,
        "CONNECTION_REQ": 5,
        "USER_MESSAGE": 0xFFF,
    }


@pytest.mark.req("CMP-2.2.2-04", "CMP-2.2.2-05", "CMP-2.2.2-06")
@pytest.mark.parametrize(
    ("packet", "is_master", "connection_id", "user_msg_type"),
    [
        (Packet.disconnect(7, 0x101), 1, 7, 0x101),
        (Packet.disconnected(7), 0, 7, 0),
        (Packet.denied(7, 5), 0, 7, 0),
        (Packet.ping(), 1, 0, 0),
        (Packet.connection_req(7, 0x101), 1, 7, 0x101),
        (user_message(7, 0x2001, b"x", is_master=True), 1, 7, 0x2001),
        (user_message(7, 0x2001, b"x", is_master=False), 0, 7, 0x2001),
    ],
)
def test_fields_by_tag(
    packet: Packet, is_master: int, connection_id: int, user_msg_type: int
) -> None:
    assert packet[1:4] == (is_master, connection_id, user_msg_type)


@pytest.mark.req("CMP-2.2.2-07")
def test_no_header_announces_more_than_fits_a_boxcar() -> None:
    user_message(1, 0, bytes(MAX_DATA), is_master=True).header()
    with pytest.raises(ValueError, match="81881 bytes, at most 81880"):
        user_message(1, 0, bytes(MAX_DATA + 1), is_master=True).header()


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_fields_that_do_not_fit_are_misuse(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Packet.connection_req(value, 0).header()
    with pytest.raises(ValueError, match="32 bits"):
        Packet.denied(1, value)


@pytest.mark.req("CMP-2.2.5-02")
@pytest.mark.parametrize("reason", [0x80070005, 0x80070057, 0, 0xFFFFFFFF])
def test_a_reason_is_whatever_the_upper_layer_says(reason: int) -> None:
    assert Packet.denied(1, reason).reason == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", None), (b"abc", None), (b"\x05\0\x07\x80", 0x80070005), (b"\1\0\0\0more", 1)],
)
def test_a_reason_is_the_first_four_bytes_if_there_are_four(
    data: bytes, reason: int | None
) -> None:
    assert Packet(MsgTag.CONNECTION_REQ_DENIED, 0, 1, 0, data).reason == reason


@given(packets)
def test_a_view_encodes_like_its_bytes(packet: Packet) -> None:
    view = packet._replace(data=memoryview(packet.data))
    assert packet_bytes(view) == packet_bytes(packet)
