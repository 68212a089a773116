"""Capture files of both formats, whole and damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.testing.pcap import decode_capture, write_pcap
from mqis.wire.errors import WireError
from mqis.wire.pcap import pcapng
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import MAX_PACKET, Captured, LinkType, Unreadable
from mqis.wire.pcap.classic import walk_pcap
from tests.wire.pcap.blocks import Blocks

TIME = 1_700_000_000_123_456_789
packets = st.lists(
    st.tuples(st.integers(0, (1 << 32) * 10**9 - 1), st.binary(max_size=64)), max_size=6
)


def unreadable(data: bytes) -> Unreadable:
    """The last item of a capture, which must be Unreadable."""
    *_, last = walk_capture(data)
    assert isinstance(last, Unreadable), last
    return last


# --- pcap -----------------------------------------------------------------------------------------


@given(packets, st.booleans(), st.booleans())
def test_what_is_written_is_read(
    content: list[tuple[int, bytes]], nanoseconds: bool, big_endian: bool
) -> None:
    data = write_pcap(content, 101, nanoseconds=nanoseconds, big_endian=big_endian)
    found = decode_capture(data)
    unit = 1 if nanoseconds else 1000
    assert [(p.time_ns, p.data) for p in found] == [(t // unit * unit, d) for t, d in content]
    assert [p.number for p in found] == list(range(1, len(content) + 1))
    assert all((p.link_type, p.original, p.cut) == (101, len(p.data), 0) for p in found)
    assert decode_capture(memoryview(data)) == found


def test_the_bytes_of_a_file() -> None:
    data = write_pcap([(1_000_002_000, b"abc")])
    assert data == bytes.fromhex(
        "d4c3b2a1 02000400 00000000 00000000 00000400 01000000 "
        "01000000 02000000 03000000 03000000 616263"
    )
    (found,) = decode_capture(data)
    assert found == Captured(1, 24, 1_000_002_000, LinkType.ETHERNET, b"abc", 3)


def test_the_snap_length_cuts() -> None:
    (found,) = decode_capture(write_pcap([(0, bytes(100))], snap_length=60))
    assert (len(found.data), found.original, found.cut) == (60, 100, 40)


def test_the_upper_bits_of_the_link_type_are_about_checksums() -> None:
    data = bytearray(write_pcap([(0, b"x")]))
    data[20:24] = struct.pack("<I", 0x24000001)
    assert decode_capture(bytes(data))[0].link_type == 1


@given(packets, st.data())
def test_a_cut_file_gives_its_first_packets(
    content: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    whole = write_pcap(content)
    size = data.draw(st.integers(0, len(whole)))
    found = list(walk_capture(whole[:size]))
    kept = [each for each in found if isinstance(each, Captured)]
    assert kept == list(decode_capture(whole))[: len(kept)]
    ends = [24 + sum(16 + len(d) for _, d in content[:n]) for n in range(len(content) + 1)]
    if size in ends:
        assert len(kept) == ends.index(size) == len(found)
    else:
        assert [type(each) for each in found[len(kept) :]] == [Unreadable]


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"", 0, "neither a pcap nor a pcapng"),
        (b"%PDF-1.7", 0, "neither a pcap nor a pcapng"),
        (write_pcap([])[:20], 20, "ends within its header"),
        (write_pcap([(0, b"abc")])[:30], 24, "ends within the header of packet 1"),
        (write_pcap([(0, b"abc")])[:-1], 24, "ends 1 bytes before the end of packet 1"),
        (write_pcap([(0, b"a")])[:32] + struct.pack("<II", MAX_PACKET + 1, 9), 24, "cannot have"),
        (bytes.fromhex("d4c3b2a1 03000000") + bytes(16), 4, "version 3.0"),
    ],
)
def test_what_is_no_pcap_file(data: bytes, offset: int, reason: str) -> None:
    told = unreadable(data)
    assert told.offset == offset
    assert reason in told.reason
    with pytest.raises(WireError, match=reason) as raised:
        decode_capture(data)
    assert raised.value.offset == offset


def test_only_its_own_walker_takes_a_pcap_file() -> None:
    with pytest.raises(WireError, match="not a pcap file"):
        next(walk_pcap(Blocks().section()))


def test_a_time_that_no_file_can_hold() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        write_pcap([(-1, b"")])


# --- pcapng ---------------------------------------------------------------------------------------

ORDERS = [pytest.param("<", id="little"), pytest.param(">", id="big")]


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_of_either_order(order: str) -> None:
    b = Blocks(order)
    head = b.section() + b.interface()
    unknown = b.block(0x0BAD, b"statistics and names are stepped over")
    data = head + unknown + b.enhanced(b"abcde", 7_000_001) + b.simple(b"fg")
    first, second = decode_capture(data)
    at = len(head + unknown)
    assert first == Captured(1, at, 7_000_001_000, 1, b"abcde", 5)
    assert second == Captured(2, at + 40, None, 1, b"fg", 2)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("resolution", "stamp", "time_ns"),
    [
        (b"\x06", 5_000_001, 5_000_001_000),
        (b"\x09", 5_000_000_001, 5_000_000_001),
        (b"\x00", 5, 5_000_000_000),
        (b"\x8a", 5 * 1024 + 512, 5_500_000_000),
        (b"\x0c", 5_000_000_001_999, 5_000_000_001),
        (b"\xff", 1, 0),
        (b"\x00", 1 << 62, None),  # a year that nobody can mean
    ],
)
def test_the_resolution_of_times(
    order: str, resolution: bytes, stamp: int, time_ns: int | None
) -> None:
    b = Blocks(order)
    options = b.option(2, b"eth0") + b.option(9, resolution) + b.option(0, b"")
    data = b.section() + b.interface(options=options) + b.enhanced(b"x", stamp)
    assert decode_capture(data)[0].time_ns == time_ns


@pytest.mark.parametrize("order", ORDERS)
def test_an_offset_of_times(order: str) -> None:
    b = Blocks(order)
    offset = b.option(14, b.pack("q", 100))
    data = b.section() + b.interface(options=offset) + b.enhanced(b"x", 1_000_000)
    assert decode_capture(data)[0].time_ns == 101_000_000_000
    before = b.interface(options=b.option(14, b.pack("q", -100)))
    assert decode_capture(b.section() + before + b.enhanced(b"x", 1))[0].time_ns is None


def test_options_that_are_cut_or_of_another_size_mean_nothing() -> None:
    b = Blocks()
    for options in (
        b.pack("HH", 9, 200),
        b.option(9, b"\x09\x09"),
        b.option(14, b"\x01"),
        b.option(0, b"") + b.option(9, b"\x09"),
    ):
        data = b.section() + b.interface(options=options) + b.enhanced(b"x", 2)
        assert decode_capture(data)[0].time_ns == 2000


def test_interfaces_belong_to_their_section() -> None:
    little, big = Blocks("<"), Blocks(">")
    first = little.section() + little.interface(1) + little.interface(113)
    second = big.section() + big.interface(101)
    data = first + little.enhanced(b"a", interface=1) + second + big.enhanced(b"b", interface=0)
    assert [p.link_type for p in decode_capture(data)] == [113, 101]
    told = unreadable(data + big.enhanced(b"c", interface=1))
    assert told == Unreadable(len(data), "packet 3 names interface 1, which is not described", 3)


def test_a_simple_packet_is_cut_by_its_interface() -> None:
    b = Blocks()
    data = b.section() + b.interface(snap=3) + b.simple(b"abc", 10)
    (found,) = decode_capture(data)
    assert (found.data, found.original, found.cut) == (b"abc", 10, 7)


def test_a_block_that_is_wrong_inside_is_stepped_over() -> None:
    b = Blocks()
    bad = [
        (b.block(6, bytes(16)), "too short for its fields"),
        (b.block(3, b""), "too short for its field"),
        (b.simple(b"abc", 99), "do not fit in their block"),
        (b.block(6, b.pack("IIIII", 0, 0, 0, 99, 99)), "do not fit in their block"),
        (b.block(1, bytes(4)), "interface description is too short"),
    ]
    data, ends = b.section() + b.interface(), []
    for block, _ in bad:
        ends.append(len(data))
        data += block
    data += b.enhanced(b"good") + b.enhanced(b"of the broken interface", interface=1)
    *told, good, strange = walk_capture(data)
    assert [each.offset for each in told] == ends
    for each, (_, reason) in zip(told, bad, strict=True):
        assert isinstance(each, Unreadable)
        assert reason in each.reason
    assert isinstance(good, Captured)
    assert isinstance(strange, Captured)
    assert (good.number, good.data, strange.link_type) == (5, b"good", -1)


def test_a_simple_packet_without_an_interface() -> None:
    b = Blocks()
    assert "interface 0" in unreadable(b.section() + b.simple(b"x")).reason


def test_there_are_only_so_many_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcapng, "_MAX_INTERFACES", 2)
    b = Blocks()
    data = b.section() + b.interface() * 3 + b.enhanced(b"x", interface=1)
    told, packet = walk_capture(data)
    assert isinstance(told, Unreadable)
    assert "more than 2 interfaces" in told.reason
    assert told.offset == len(b.section() + b.interface() * 2)
    assert isinstance(packet, Captured)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (b"\x06\0\0\0", "ends within a block"),
        (struct.pack("<III", 6, 13, 0), "cannot have 13 bytes"),
        (struct.pack("<III", 6, 8, 0), "cannot have 8 bytes"),
        (struct.pack("<III", 6, 1 << 31, 0), "cannot have 2147483648 bytes"),
        (struct.pack("<III", 6, 64, 0), "ends 52 bytes before the end of a block"),
        (Blocks().block(6, b"", again=16), "ends with length 16"),
        (Blocks().section()[:20], "ends within a section header"),
        (Blocks().section(2), "version 2.0"),
    ],
)
def test_where_lengths_are_wrong_there_is_no_way_on(end: bytes, reason: str) -> None:
    b = Blocks()
    start = b.section() + b.interface() + b.enhanced(b"good")
    first, last = walk_capture(start + end + b.enhanced(b"lost") * (len(end) < 12))
    assert isinstance(first, Captured)
    assert isinstance(last, Unreadable)
    assert last.offset == len(start)
    if len(end) >= 12:
        assert reason in last.reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x0d\x0d\x0a" + bytes(10), "ends within a section header"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "byte order is unknown"),
        (Blocks().section(7), "version 7.0"),
    ],
)
def test_what_does_not_even_begin(data: bytes, reason: str) -> None:
    (told,) = walk_capture(data)
    assert isinstance(told, Unreadable)
    assert reason in told.reason


@given(st.lists(st.binary(max_size=40), max_size=4), st.data())
def test_a_cut_pcapng_gives_its_first_packets(content: list[bytes], data: st.DataObject) -> None:
    b = Blocks()
    whole = b.section() + b.interface() + b"".join(b.enhanced(octets) for octets in content)
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    kept = [each for each in walk_capture(cut) if isinstance(each, Captured)]
    assert kept == list(decode_capture(whole))[: len(kept)]


@given(st.binary(max_size=200), st.integers(0, 2))
def test_garbage_raises_nothing(data: bytes, kind: int) -> None:
    beginning = (b"", write_pcap([]), Blocks().section() + Blocks().interface())[kind]
    for each in walk_capture(beginning + data):
        assert isinstance(each, Captured | Unreadable)
