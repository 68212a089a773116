"""Whole captures: datagrams, fragments, shares, what is damaged, what there is too much of."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import Enum, IntFlag
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.capture import plain, registry
from mqis.protocol.capture.conversations import Summary
from mqis.protocol.capture.decoder import CaptureDecoder, CaptureFilter, decode_rows, parse_network
from mqis.protocol.capture.flow import flow_key, share_of
from mqis.protocol.capture.framing import Dissector
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.recognition import StreamProtocol
from mqis.protocol.capture.row import DecodedRow, Meaning, PacketPosition, file_error
from mqis.testing.pcap import Ends, udp_frame, write_pcap
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.serverlist import ServerSpec
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqsd.discovery_packet import TopologyServerReply
from mqis.wire.mqsd.request import TopologyClientRequest
from mqis.wire.pcap.capture_file import walk_capture
from tests.protocol.capture.made import (
    FEW,
    MQQB,
    STRANGE,
    ack,
    capture,
    decode,
    frames_of,
    rows_of,
    told,
    user_message,
)

DISCOVERY = Ends("10.0.0.7", 1801, "10.0.0.1", 1801)
SITE = Guid(b"the client's one")
ASKED = TopologyClientRequest(SITE, Guid(b"a first question"), SITE).to_bytes()
SERVERS = tuple(ServerSpec(f"server{n:03}.some.example.com") for n in range(40))
ANSWERED = TopologyServerReply(Guid(b"a first question"), (SITE,), 0, SITE, SERVERS).to_bytes()


# --- datagrams ------------------------------------------------------------------------------------


def test_discovery() -> None:
    alone = TopologyClientRequest(SITE, Guid(b"a first question"), Guid.NULL).to_bytes()
    own = TopologyServerReply(Guid(b"a first question"), (SITE,)).to_bytes()
    few = TopologyServerReply(SITE, (SITE,), 0, SITE, SERVERS[:2]).to_bytes()
    sent = [(True, ASKED), (False, few), (True, alone), (False, own)]
    found = rows_of(udp_frame(DISCOVERY, *part) for part in sent)
    first = Guid(b"a first question")
    names = tuple(spec.name for spec in SERVERS[:2])
    assert [(row.kind, row.summary) for row in found] == [
        ("TopologyClientRequest", f"{first}: a client of site {SITE}"),
        ("TopologyServerReply", f"{SITE}: site {SITE} has {', '.join(names)}"),
        ("TopologyClientRequest", f"{first}: a client of no site"),
        ("TopologyServerReply", f"{first}: your site"),
    ]
    assert found[1].machines == names
    assert [row.to_server for row in found] == [True, False, True, False]
    assert {(row.transport, row.carrier, row.protocol, row.stream) for row in found} == {
        ("udp", "mqsd", "mqsd", 1)
    }


def test_pings_on_any_port() -> None:
    ends = Ends("10.0.0.7", 40_000, "10.0.0.1", 9999)
    pings = [Ping(0xABCD, SITE), Ping(0xABCD, SITE, refused=True)]
    found = rows_of(udp_frame(ends, True, ping.to_bytes()) for ping in pings)
    assert [(row.protocol, row.summary) for row in found] == [
        ("ping", "cookie 0000abcd"),
        ("ping", "cookie 0000abcd, refused"),
    ]
    assert found[0].queue_manager == SITE


def test_a_datagram_that_is_not_what_its_port_says() -> None:
    (row,) = rows_of([udp_frame(DISCOVERY, True, b"\0\x09\0\0")])
    assert (row.protocol, row.kind) == ("mqsd", "datagram")
    assert row.error == "packet type 9 is neither a request nor a reply at offset 1"
    cut = decode(write_pcap([(0, udp_frame(DISCOVERY, True, ASKED))], snap_length=60))
    assert [row.error for row in cut] == ["the snap length cut the datagram"]
    assert cut[0].length == len(ASKED)


def test_datagrams_that_nothing_knows_are_one_row_a_flow() -> None:
    ends = Ends("10.0.0.7", 40_000, "10.0.0.1", 53)
    (row,) = rows_of(udp_frame(ends, *part) for part in [(True, b"query"), (False, b"answer")])
    assert (row.protocol, row.kind, row.length) == ("udp", "unrecognised", 11)
    assert row.summary == "2 datagrams, 11 bytes, the first beginning with 7175657279"


# --- fragments ------------------------------------------------------------------------------------


def fragments(frame: bytes, sizes: list[int], identification: int = 5) -> list[bytes]:
    """The IPv4 packet of a frame in parts of so many bytes, each a multiple of eight."""
    payload, parts, at = frame[34:], [], 0
    for size in [*sizes, 1 << 16]:
        piece = payload[at : at + size]
        if piece:
            more = 0x2000 if at + size < len(payload) else 0
            head = frame[14:16] + struct.pack(
                ">HHH", 20 + len(piece), identification, more | at // 8
            )
            parts.append(frame[:14] + head + frame[22:34] + piece)
        at += size
    return parts


@FEW
@given(st.data())
def test_a_fragmented_answer_in_any_order(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 100).map(lambda n: 8 * n), min_size=1, max_size=6))
    parts = fragments(udp_frame(DISCOVERY, False, ANSWERED), sizes)
    twice = data.draw(st.lists(st.sampled_from(parts), max_size=2))
    found = rows_of(data.draw(st.permutations(parts)) + twice)
    assert found[0].kind == "TopologyServerReply"
    assert (found[0].frame, found[0].length) == (len(parts), len(ANSWERED))


def test_fragments_that_are_missing() -> None:
    frame = udp_frame(DISCOVERY, False, ANSWERED)
    first, second, third = fragments(frame, [800, 800])
    for kept in ([first, second], [second, third], [first, third]):
        (row,) = rows_of(kept)
        assert (row.kind, row.frame, row.transport) == ("packet", 1, "")
        assert row.error == ("10.0.0.1 to 10.0.0.7: other fragments of this packet are missing")
    last = fragments(frame, [800], identification=6)[1]
    assert len(rows_of([first, last])) == 2


def test_fragments_are_bounded() -> None:
    frame = udp_frame(DISCOVERY, False, ANSWERED)
    begun = [fragments(frame, [800], identification=n)[0] for n in range(5)]
    assert len(rows_of(begun, CaptureLimits(max_fragmented=2))) == 5
    decoder = CaptureDecoder(CaptureLimits(max_fragmented=2))
    for each in walk_capture(capture(begun)):
        decoder.receive(each)
    assert len(decoder.take()) == 3  # told at once, not at the end


def test_fragments_that_are_cut_or_lie_outside() -> None:
    frame = udp_frame(DISCOVERY, False, ANSWERED)
    first, second = fragments(frame, [800])
    cut = decode(write_pcap([(0, first), (0, second)], snap_length=500))
    assert [row.error for row in cut] == [
        "10.0.0.1 to 10.0.0.7: a fragment was cut by the snap length"
    ] * 2
    outside = bytearray(second)
    outside[20:22] = b"\x1f\xff"
    assert "outside of any packet" in str(rows_of([bytes(outside)])[0].error)


def test_what_is_put_together_can_be_wrong() -> None:
    frame = bytearray(udp_frame(DISCOVERY, False, ANSWERED))
    frame[38:40] = b"\0\x03"  # the length of the datagram
    (row,) = rows_of(fragments(bytes(frame), [800]))
    assert row.error == "put together: UDP length 3 is impossible in 2392 bytes at offset 4"


# --- files ----------------------------------------------------------------------------------------


def test_what_is_damaged_is_a_row() -> None:
    whole = capture(frames_of(MQQB, [(True, ack(1))]))
    *rows, last = decode_rows(whole[:-10])
    assert [row.kind for row in rows] == ["SessionAck"]
    assert (last.kind, last.frame, last.carrier) == ("packet", 8, "")
    assert last.error == "the file ends 10 bytes before the end of packet 8"
    (row,) = decode_rows(b"nonsense")
    assert row == file_error(0, "this is neither a pcap nor a pcapng file")
    assert row.kind == "file"


def test_a_packet_that_is_wrong_is_a_row_of_its_own() -> None:
    good = frames_of(MQQB, [(True, ack(1))])
    found = rows_of([*good, good[0][:14] + b"\x40" + good[0][15:]])
    assert told(found) == [
        ("SessionAck", None),
        ("packet", "an IPv4 header cannot begin with 0x40 at offset 14"),
    ]
    assert found[1].time_ns == 9000
    cut = decode(write_pcap([(0, good[0])], snap_length=30))
    assert cut[0].error is not None
    assert cut[0].error.endswith(": the snap length cut 24 bytes")


def test_a_link_that_nobody_knows_is_told_once() -> None:
    data = write_pcap([(0, b"abc"), (0, b"def")], link_type=147)
    (row,) = decode(data)
    assert row.error == "link type 147 is unknown at offset 0"


def test_other_packets_say_nothing() -> None:
    assert rows_of([bytes(12) + b"\x08\x06" + bytes(30)]) == []


@FEW
@given(st.integers(0, 2000), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255))))
def test_damage_anywhere_raises_nothing(size: int, hits: list[tuple[int, int]]) -> None:
    frames = frames_of(MQQB, [(True, ack(1)), (False, user_message(1, body=bytes(500)))])
    frames += [udp_frame(DISCOVERY, True, ASKED)]
    data = bytearray(capture(frames))
    for at, value in hits:
        data[at % len(data)] = value
    for row in decode_rows(bytes(data[: len(data) - size])):
        assert isinstance(row, DecodedRow)


# --- shares and choices ---------------------------------------------------------------------------


def several() -> bytes:
    """Twenty connections, two flows, a broken packet and a cut end."""
    frames = []
    for number in range(20):
        ends = Ends(f"10.0.1.{number}", 40_000 + number, "10.0.0.1", 1801)
        frames += frames_of(ends, [(True, ack(number))])
    frames += [udp_frame(DISCOVERY, True, ASKED), b"\0" * 12 + b"\x08\0"]
    frames += fragments(udp_frame(DISCOVERY, False, ANSWERED), [800])
    frames += fragments(udp_frame(DISCOVERY, False, ANSWERED), [800], 9)[:1]
    frames += [udp_frame(DISCOVERY, True, ASKED)]
    return capture(frames)[:-3]


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_shares_are_the_whole(shares: int) -> None:
    data = several()
    parts = [decode(data, share=(number, shares)) for number in range(shares)]
    together = sorted((row for part in parts for row in part), key=_order)
    assert together == sorted(decode(data), key=_order)
    if shares == 2:
        assert all(sum(row.protocol == "mqqb" for row in part) > 3 for part in parts)


def _order(row: DecodedRow) -> tuple[int, int, str]:
    return row.frame, row.stream, row.kind


def test_both_directions_have_one_share() -> None:
    one, other = ip_address("10.0.0.1").packed, ip_address("fe80::1").packed
    key, side = flow_key(6, one, 5, other, 6)
    back, other_side = flow_key(6, other, 6, one, 5)
    assert (key, side) == (back, 1 - other_side)
    assert share_of(key, 1000) == share_of(back, 1000) == 13


def test_only_some_addresses() -> None:
    def found(*networks: str) -> set[str]:
        rows = decode(several(), networks=[parse_network(text) for text in networks])
        return {row.source for row in rows if row.carrier}

    assert found("10.0.1.3") == {"10.0.1.3"}
    assert found("10.0.1.0/30", "10.0.1.9") == {"10.0.1.9", *(f"10.0.1.{n}" for n in range(4))}
    assert found("10.0.0.7") == {"10.0.0.7", "10.0.0.1"}
    assert found("fe80::/10") == set()
    with pytest.raises(ValueError, match="nonsense"):
        parse_network("nonsense")


def test_fragments_of_other_addresses_are_not_told() -> None:
    rows = decode(several(), networks=[parse_network("10.0.1.3")])
    assert not [row for row in rows if "fragments" in str(row.error)]
    assert [row for row in decode(several()) if "fragments" in str(row.error)]


def test_the_silent_go_first() -> None:
    def ends(number: int) -> Ends:
        return Ends("10.0.0.7", 40_000 + number, "10.0.0.1", 1801)

    frames = []
    for number in range(6):
        frames += frames_of(ends(number), [(True, ack(number)[:9])])[:5]
        frames.append(udp_frame(Ends("10.0.0.7", 50_000 + number, "10.0.0.9", 53), True, b"?"))
    decoder = CaptureDecoder(CaptureLimits(max_conversations=4))
    for each in walk_capture(capture(frames)):
        decoder.receive(each)
    early = decoder.take()
    assert {row.kind for row in early} == {"damage", "unrecognised"}
    decoder.finish()
    rows = early + decoder.take()
    assert [row.kind for row in rows].count("unrecognised") == 6
    assert [row.kind for row in rows].count("damage") == 6


def test_who_decodes_what_is_forgotten_and_found_again() -> None:
    frames = []
    for number in range(30):
        ends = Ends(f"10.0.1.{number % 10}", 40_000, "10.0.0.1", 1801)
        frames += frames_of(ends, [(True, ack(number))], first_seq=(number * 1000, 1))
    data = capture(frames)
    whole = decode(data)
    few = [decode(data, limits=CaptureLimits(max_conversations=2), share=(n, 3)) for n in range(3)]
    assert sorted((row for rows in few for row in rows), key=_order) == sorted(whole, key=_order)


def test_choices() -> None:
    (row,) = rows_of(frames_of(MQQB, [(True, ack(1))]))
    assert row.time_ns == 4000
    damage = file_error(0, "no")
    for choice, wanted in (
        (CaptureFilter(), True),
        (CaptureFilter(frozenset({"mqqb"})), True),
        (CaptureFilter(frozenset({"rpc"})), False),
        (CaptureFilter(since_ns=4000), True),
        (CaptureFilter(since_ns=4001), False),
        (CaptureFilter(until_ns=4001), True),
        (CaptureFilter(until_ns=4000), False),
        (CaptureFilter(errors_only=True), False),
    ):
        assert choice.wants(row) is wanted
        assert choice.wants(damage)
    assert CaptureFilter(since_ns=9).wants(row._replace(time_ns=None))
    assert CaptureFilter(errors_only=True).wants(row._replace(error="no"))
    inner = row._replace(protocol="mqdsrp")
    assert CaptureFilter(frozenset({"mqqb"})).wants(inner)
    with pytest.raises(ValueError, match="unknown protocol 'http'; known are mqqb, rpc, "):
        CaptureFilter(frozenset({"http"}))


def test_a_summary() -> None:
    data = several()
    made = Summary()
    for row in decode(data):
        made.add(row)
    (first, *_) = made.conversations()
    assert (first.client, first.server, first.port) == ("10.0.0.7", "10.0.0.1", 1801)
    assert (first.protocol, first.messages, first.errors, first.streams) == ("mqsd", 2, 0, {161})
    assert first.bytes == len(ASKED) + len(ANSWERED)
    assert (first.first_ns, first.last_ns) == (161_000, 164_000)
    assert len(made.conversations()) == 21
    assert [row.kind for row in made.damage] == ["packet", "packet", "packet"]
    lost = rows_of(frames_of(MQQB, [(False, ack(1)[:9])]))
    again = Summary()
    again.add(lost[0]._replace(time_ns=None))
    (only,) = again.conversations()
    assert (only.client, only.messages, only.errors) == ("10.0.0.7", 0, 1)
    assert only.first_ns is None


# --- a later protocol -----------------------------------------------------------------------------


class Lines(Dissector):
    """A length, a byte, and so many bytes."""

    NAME = "lines"
    HEAD = 2

    @classmethod
    def length(cls, head: bytes) -> int:
        if head[0] != 0x77:
            raise WireError("no line", 0)
        return 2 + head[1]

    @classmethod
    def find(cls, data: bytes | bytearray, at: int) -> int:
        return data.find(b"\x77", at)

    def message(self, side: int, data: bytes, place: PacketPosition) -> None:
        text = data[2:].decode("ascii")
        self.tell(side, place, len(data), Meaning(self.NAME, "line", text))


def test_a_protocol_is_one_line_of_a_table() -> None:
    streams = (*registry.STREAMS, StreamProtocol(Lines, frozenset({7777})))
    parts = [(True, b"\x77\x05hello"), (False, b"\x77\x03you"), (True, ack(1))]
    found = decode(capture(frames_of(STRANGE, parts)), streams=streams)
    assert [(row.protocol, row.summary) for row in found[:2]] == [
        ("lines", "hello"),
        ("lines", "you"),
    ]
    assert found[2].error == "no lines message: no line at offset 0"


def test_what_a_protocol_has_to_say_and_what_it_may_leave() -> None:
    class Silent(Dissector):
        NAME, HEAD = "silent", 1

        @classmethod
        def length(cls, head: bytes) -> int:
            return len(head)

        @classmethod
        def find(cls, data: bytes | bytearray, at: int) -> int:
            return at if data else -1

        def message(self, side: int, data: bytes, place: PacketPosition) -> None:
            raise AssertionError(side, data, place)

    def tell(_side: int, _place: PacketPosition, _length: int, _meaning: Meaning) -> None:
        raise AssertionError

    assert Dissector.__abstractmethods__ == {"length", "find", "message"}
    silent = Silent(tell, CaptureLimits())
    silent.lost(0)
    silent.opened_by(0)


def test_names_of_protocols_are_unique() -> None:
    assert len(set(registry.PROTOCOLS)) == len(registry.PROTOCOLS)
    assert {"mqqb", "mqdsrp", "mqcn", "mqsd", "rpc", "dscomm", "cmp"} <= set(registry.PROTOCOLS)


# --- details --------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1


class Bits(IntFlag):
    ONE = 1
    TWO = 2


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    guid: Guid
    colour: Colour
    _memory: int = 0


def test_any_value_as_json() -> None:
    thing = Thing("a", SITE, Colour.RED)
    value = {1: thing, "bits": Bits.TWO, "list": [True, None, 1.5, 1 << 70], "data": (b"\0" * 9,)}
    text = plain.as_text(value, 8)
    assert json.loads(text) == {
        "1": {"name": "a", "guid": str(SITE), "colour": "RED"},
        "bits": ["TWO"],
        "list": [True, None, 1.5, "0x400000000000000000"],
        "data": ["0000000000000000... (9 bytes)"],
    }
    assert plain.as_text(memoryview(b"\xff"), 8) == '"ff"'


def test_details_can_be_left_out() -> None:
    (row,) = decode(capture(frames_of(MQQB, [(True, ack(1))])), detail=False)
    assert row.detail == ""
    assert row.summary == "has 1, recoverable 0"
