"""Boxcars: the example byte-exact, every limit from both sides, and what is wrong with others."""

from __future__ import annotations

from contextlib import suppress
from struct import pack_into, unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.testing.cmp import user_message
from mqis.wire.cmp.boxcar import (
    HEADER_SIZE,
    MAX_MESSAGES,
    MAX_SIZE,
    MIN_SIZE,
    Boxcar,
    BoxcarReader,
)
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import MAX_DATA, PACKET_SIZE, MsgTag, Packet
from mqis.wire.decoders import DECODERS, BoxcarText, PacketText
from mqis.wire.errors import WireError
from tests.strategies.cmp import packets
from tests.wire.cmp.vectors import BODY, VECTORS

REQUEST = Packet.connection_req(1, 0x101)
PROPAGATE = user_message(1, 0x2001, BODY, is_master=True)


def boxcar(*packets: Packet) -> bytes:
    return BoxcarBuilder(packets).to_bytes()


def message(size: int, connection_id: int = 1) -> Packet:
    return user_message(connection_id, 0x2001, b"m" * size, is_master=True)


def with_header(data: bytes, *, total: int | None = None, count: int | None = None) -> bytes:
    patched = bytearray(data)
    if total is not None:
        pack_into("<I", patched, 8, total)
    if count is not None:
        pack_into("<I", patched, 12, count)
    return bytes(patched)


# --- the example ----------------------------------------------------------------------------------


@pytest.mark.req("CMP-4.1.2-01", "CMP-2.1.1.1-01", "CMP-2.2.1-01", "CMP-2.2.2-08")
def test_the_example_is_byte_exact_both_ways() -> None:
    data = boxcar(REQUEST, PROPAGATE)
    assert data == VECTORS["boxcar"]
    assert unpack_from("<4I", data) == (0, 0, 128, 2)
    assert Boxcar.from_bytes(data) == Boxcar((REQUEST, PROPAGATE))


def test_the_example_as_printed_is_read_too() -> None:
    """Its body then has the filler in it (E-CMP-04)."""
    request, propagate = Boxcar.from_bytes(VECTORS["boxcar printed"]).packets
    assert request == REQUEST
    assert propagate == PROPAGATE._replace(data=BODY + bytes(4))


def test_mqis_decode_reads_a_boxcar() -> None:
    (decoder,) = (decoder for decoder in DECODERS if decoder.name == "cmp")
    request = PacketText("CONNECTION_REQ", 1, 1, "0x00000101", b"")
    propagate = PacketText("USER_MESSAGE", 1, 1, "0x00002001", BODY)
    assert decoder.decode(VECTORS["boxcar"]) == BoxcarText((request, propagate), None)


# --- places and filler ----------------------------------------------------------------------------


@pytest.mark.req("CMP-2.1.1.1-02", "CMP-2.1.1.1-03", "CMP-2.1.1.1-04")
@pytest.mark.parametrize("size", range(17))
def test_packets_stand_at_multiples_of_eight_behind_zeros(size: int) -> None:
    """Filler of 0 to 7 bytes, not of 0 or 4 (E-CMP-06)."""
    data = boxcar(message(size), REQUEST)
    at = 40 + -(-size // 8) * 8
    assert data[at : at + PACKET_SIZE] == VECTORS["CONNECTION_REQ"]
    assert data[40 + size : at] == bytes(at - 40 - size)
    assert len(data) == at + PACKET_SIZE
    assert Boxcar.from_bytes(data).packets == (message(size), REQUEST)


@pytest.mark.req("CMP-2.1.1.1-03")
def test_a_packet_behind_a_refusal_stands_at_48() -> None:
    data = boxcar(Packet.denied(1, 0x80070005), REQUEST)
    assert data[16:44] == VECTORS["CONNECTION_REQ_DENIED"]
    assert data[48:] == VECTORS["CONNECTION_REQ"]


@pytest.mark.req("CMP-2.1.1.1-04")
def test_filler_is_not_looked_at() -> None:
    data = bytearray(boxcar(message(5), message(3)))
    data[45:48] = b"\xff\xfe\xfd"
    data[-5:] = b"fill!"
    assert Boxcar.from_bytes(bytes(data)) == Boxcar((message(5), message(3)))


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7])
def test_filler_behind_the_last_packet_may_be_missing(size: int) -> None:
    """E-CMP-05: the total counts what is there, and is no multiple of 8 then."""
    padded = boxcar(REQUEST, message(size))
    assert len(padded) == 72
    bare = with_header(padded[: 64 + size], total=64 + size)
    partly = with_header(padded[:71], total=71)
    for data in (padded, bare, partly):
        assert Boxcar.from_bytes(data) == Boxcar((REQUEST, message(size)))


def test_a_refusal_alone_may_have_44_bytes() -> None:
    padded = boxcar(Packet.denied(1, 5))
    assert len(padded) == 48
    assert Boxcar.from_bytes(with_header(padded[:44], total=44)).packets[0].reason == 5


def test_bytes_behind_the_announced_packets_are_filler_however_many() -> None:
    data = with_header(boxcar(REQUEST, message(100)), count=1)
    assert Boxcar.from_bytes(data) == Boxcar((REQUEST,))


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.req("CMP-2.1.1.2-02", "CMP-2.2.8-01", "CMP-2.1.1.1-06")
@pytest.mark.parametrize(
    ("size", "total"), [(0, 40), (1, 48), (5, 48), (81_877, 81_920), (81_880, 81_920)]
)
def test_bodies_up_to_the_longest(size: int, total: int) -> None:
    data = boxcar(message(size))
    assert len(data) == total
    assert unpack_from("<2I", data, 8) == (total, 1)
    assert unpack_from("<I", data, 32) == (size,)
    assert Boxcar.from_bytes(data) == Boxcar((message(size),))


def test_a_body_of_81_881_bytes_has_no_boxcar() -> None:
    builder = BoxcarBuilder()
    assert builder.has_room(MAX_DATA)
    assert not builder.has_room(MAX_DATA + 1)
    with pytest.raises(ValueError, match="81881 bytes"):
        builder.add(message(MAX_DATA + 1))
    assert (builder.count, builder.size) == (0, HEADER_SIZE)


@pytest.mark.req("CMP-2.1.1.2-01", "CMP-2.1.1.1-05")
def test_3412_packets_fit_and_no_more() -> None:
    """16 bytes are left then, which is less than a packet."""
    builder = BoxcarBuilder([Packet.ping()] * MAX_MESSAGES)
    assert not builder.has_room(0)
    with pytest.raises(ValueError, match="no room"):
        builder.add(Packet.ping())
    data = builder.to_bytes()
    assert len(data) == 81_904
    assert unpack_from("<2I", data, 8) == (81_904, 3412)
    assert len(Boxcar.from_bytes(data).packets) == 3412


@pytest.mark.parametrize("size", [0, 1, 7, 8, 64, 4096])
@pytest.mark.parametrize("is_master", [True, False])
def test_user_messages_need_no_packet(size: int, is_master: bool) -> None:
    """Both ways to add one make the same bytes and stop at the same place."""
    body = b"m" * size
    packet = user_message(7, 0x2001, body, is_master=is_master)
    one, other = BoxcarBuilder(), BoxcarBuilder()
    while one.has_room(size):
        one.add(packet)
        assert other.add_user_message(7, 0x2001, body, is_master)
    assert not other.add_user_message(7, 0x2001, body, is_master)
    assert other.to_bytes() == one.to_bytes()
    assert (other.size, other.count) == (one.size, one.count)


def test_3413_packets_are_refused() -> None:
    data = with_header(boxcar(*[Packet.ping()] * MAX_MESSAGES), count=3413)
    with pytest.raises(WireError, match="3413 messages, 1 to 3412") as caught:
        BoxcarReader(data)
    assert caught.value.offset == 12


def test_an_empty_boxcar_is_neither_made_nor_read() -> None:
    with pytest.raises(ValueError, match="at least one"):
        BoxcarBuilder().to_bytes()
    with pytest.raises(WireError, match="0 messages"):
        BoxcarReader(with_header(boxcar(REQUEST), count=0))


@pytest.mark.req("CMP-2.1.1.2-02", "CMP-2.2.1-03")
@pytest.mark.parametrize("size", [0, 1, 15, 16, 32, 39, 81_921, 100_000])
def test_sizes_outside_the_limits_are_refused(size: int) -> None:
    data = (VECTORS["boxcar"] + bytes(MAX_SIZE))[:size]
    with pytest.raises(WireError, match=f"{MIN_SIZE} to {MAX_SIZE}"):
        BoxcarReader(with_header(data, total=size) if size >= HEADER_SIZE else data)


@given(st.lists(packets, min_size=1, max_size=60))
def test_size_is_known_before_the_bytes_are(some: list[Packet]) -> None:
    builder = BoxcarBuilder(some)
    data = builder.to_bytes()
    assert (builder.size, builder.count) == (len(data), len(some))
    assert len(data) % 8 == 0


# --- header against call --------------------------------------------------------------------------


@pytest.mark.parametrize("total", [0, 39, 40, 127, 129, 81_920, 0xFFFFFFFF])
def test_a_total_unlike_the_byte_count_is_refused(total: int) -> None:
    with pytest.raises(WireError, match=f"dwcbTotal is {total}, but the boxcar has 128") as caught:
        BoxcarReader(with_header(VECTORS["boxcar"], total=total))
    assert caught.value.offset == 8


@pytest.mark.parametrize("count", [0, 1, 3, 4095])
def test_a_count_unlike_the_calls_is_refused(count: int) -> None:
    assert len(list(BoxcarReader(VECTORS["boxcar"], 2))) == 2
    with pytest.raises(WireError, match=f"is 2, but the call announced {count}"):
        BoxcarReader(VECTORS["boxcar"], count)


@pytest.mark.req("CMP-2.2.1-02")
def test_sequence_numbers_are_sent_as_zero_and_not_looked_at() -> None:
    data = bytearray(VECTORS["boxcar"])
    assert data[:8] == bytes(8)
    data[:8] = b"\xff" * 8
    assert Boxcar.from_bytes(bytes(data)) == Boxcar((REQUEST, PROPAGATE))


@pytest.mark.req("CMP-2.2.2-09")
@pytest.mark.parametrize("reserved", [0, 0xDEADBEEF])
def test_the_reserved_field_is_not_looked_at(reserved: int) -> None:
    (packet,) = Boxcar.from_bytes(boxcar(REQUEST._replace(reserved=reserved))).packets
    assert packet[:5] == REQUEST[:5]


# --- inside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", [0, 6, 7, 0xFFE, 0x1000, 0xFFFFFFFF])
def test_an_unknown_tag_ends_the_boxcar(tag: int) -> None:
    """A set, not a range (E-CMP-10); its data is not even measured."""
    strange = Packet(tag, 1, 1, 0, b"x" * 9)
    read = Boxcar.from_bytes(boxcar(REQUEST, message(3), strange, message(4), message(5)))
    assert read.packets == (REQUEST, message(3))
    assert read.remainder is not None
    assert (read.remainder.offset, read.remainder.messages) == (72, 3)
    assert "MsgTag" in read.remainder.reason


@pytest.mark.req("CMP-2.2.2-10")
@pytest.mark.parametrize("length", [5, 9, 81_880, 81_881, 0xFFFFFFFF])
def test_data_past_the_end_ends_the_boxcar(length: int) -> None:
    data = bytearray(boxcar(REQUEST, message(4)))
    data = data[:68]  # no filler
    pack_into("<I", data, 8, 68)
    pack_into("<I", data, 56, length)
    read = Boxcar.from_bytes(bytes(data))
    assert read.packets == (REQUEST,)
    assert read.remainder is not None
    assert (read.remainder.offset, read.remainder.messages) == (40, 1)


@pytest.mark.req("CMP-2.2.2-10")
@pytest.mark.parametrize("cut", [0, 1, 8, 23])
def test_a_packet_header_past_the_end_ends_the_boxcar(cut: int) -> None:
    data = boxcar(REQUEST, REQUEST)[: 40 + cut]
    read = Boxcar.from_bytes(with_header(data, total=len(data)))
    assert read.packets == (REQUEST,)
    assert read.remainder is not None
    assert (read.remainder.offset, read.remainder.messages) == (40, 1)


def test_data_is_not_copied() -> None:
    data = boxcar(message(1000))
    (packet,) = BoxcarReader(data)
    assert isinstance(packet.data, memoryview)
    assert packet.data.obj is data


# --- anything -------------------------------------------------------------------------------------


@given(st.lists(packets, min_size=1, max_size=60))
def test_round_trip(some: list[Packet]) -> None:
    assert Boxcar.from_bytes(boxcar(*some)) == Boxcar(tuple(some))


@given(st.binary(max_size=200))
def test_garbage_raises_only_wire_errors(data: bytes) -> None:
    with suppress(WireError):
        Boxcar.from_bytes(data)


@given(st.lists(packets, min_size=1, max_size=8), st.integers(16), st.binary(min_size=1))
def test_a_damaged_inside_gives_a_prefix(some: list[Packet], at: int, damage: bytes) -> None:
    """With a good header there is always an answer, and what it leaves out it says."""
    data = bytearray(boxcar(*some))
    at = 16 + at % (len(data) - 16)
    end = min(len(data), at + len(damage))
    data[at:end] = damage[: end - at]
    read = Boxcar.from_bytes(bytes(data))
    dropped = read.remainder.messages if read.remainder else 0
    assert len(read.packets) + dropped == len(some)
    assert all(packet.tag in set(MsgTag) for packet in read.packets)
