"""TCP connections as captures have them: in pieces, out of order, twice, and not all of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.capture.fragments import Fragments
from mqis.protocol.capture.halfstream import Chunk, HalfStream
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import DecodedRow, PacketPosition
from mqis.protocol.capture.rpc_dissector import RpcDissector
from mqis.testing.pcap import tcp_frame, write_pcap
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import Syntax
from mqis.wire.pcap.tcp_udp import Fragment, TcpFlags
from tests.protocol.capture import samples
from tests.protocol.capture.made import (
    FEW,
    MQQB,
    RPC,
    STRANGE,
    ack,
    bind,
    bind_ack,
    capture,
    decode,
    frames_of,
    request,
    response,
    rows_of,
    segment,
    told,
    user_message,
)

#: So that whatever begins late is still waited for.
PATIENT = CaptureLimits(settle_packets=10_000)
MISSING = "are missing: they were not captured"


def said(rows: Sequence[DecodedRow]) -> list[tuple[object, ...]]:
    """Everything but where it stood, each side's messages in order."""
    both = [
        (row.to_server, row.kind, row.summary, row.detail, row.call_id, row.length, row.error)
        for row in rows
    ]
    return sorted(both, key=lambda each: bool(each[0]))


def conversation() -> list[tuple[bool, bytes]]:
    """Questions and answers that can be read only in their order."""
    operation, asked, answered, given = samples.DSCOMM[2]
    stub = operation.request.encode(asked, Syntax.NDR20)
    back = operation.response.encode(answered, Syntax.NDR20, given=given)
    parts = [(True, bind(dscomm.SYNTAX)), (False, bind_ack())]
    for number in (2, 3):
        parts += [
            (True, request(number, 2, stub, size=50)),
            (False, response(number, back, size=70)),
        ]
    return parts


TALK = conversation()
TALKED = said(rows_of(frames_of(RPC, TALK)))


def test_the_conversation_is_whole() -> None:
    assert len(TALKED) == 6
    assert {each[-1] for each in TALKED} == {None}


@FEW
@given(st.data())
def test_any_order_and_any_repetition_gives_the_same_messages(data: st.DataObject) -> None:
    size = data.draw(st.integers(30, 400), label="segment")
    first = data.draw(st.sampled_from([(1000, 5000), (2**32 - 100, 2**32 - 1)]), label="numbers")
    frames = frames_of(RPC, TALK, segment=size, first_seq=first)
    again = data.draw(st.lists(st.sampled_from(frames), max_size=8), label="again")
    shuffled = data.draw(st.permutations(frames + again), label="order")
    assert said(rows_of(shuffled, PATIENT)) == TALKED


@FEW
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20)), min_size=1, max_size=8))
def test_any_segmentation_gives_the_same_messages(pieces: list[tuple[int, int]]) -> None:
    """Down to single bytes, with segments that overlap, and without the handshake."""
    sent, following = {True: 100, False: 900}, cycle(pieces)
    frames = []
    for from_client, octets in TALK:
        at = 0
        while at < len(octets):
            size, again = next(following)
            back = min(at, again)
            seq = sent[from_client] + at - back
            piece = octets[at - back : at + size]
            frames.append(segment(RPC, from_client, seq, piece, ack=sent[not from_client]))
            at += size
        sent[from_client] += len(octets)
    assert said(rows_of(frames)) == TALKED


def test_packets_shortly_before_the_first_one_count() -> None:
    """No handshake, and the file has the first packet second."""
    frames = frames_of(MQQB, [(True, ack(1)), (True, ack(2))])[3:7]
    first, _, second, _ = frames
    assert [row.summary for row in rows_of([second, first])] == [
        "has 1, recoverable 0",
        "has 2, recoverable 0",
    ]
    late = rows_of([second, first], CaptureLimits(settle_packets=1))
    assert [row.summary for row in late] == ["has 2, recoverable 0"]


# --- what is missing ------------------------------------------------------------------------------

MESSAGES = [(True, user_message(n, body=bytes(300))) for n in range(1, 9)]
WHOLE = {row.summary: row for row in rows_of(frames_of(MQQB, MESSAGES))}


@FEW
@given(st.sets(st.integers(3, 80)), st.integers(60, 700))
def test_lost_packets_cost_their_messages_and_no_others(lost: set[int], size: int) -> None:
    frames = frames_of(MQQB, MESSAGES, segment=size)
    # Where a frame may be missing: data and acknowledgements, not the handshake.
    kept = [frame for number, frame in enumerate(frames) if number not in lost]
    found = rows_of(kept)
    whole = [row for row in found if row.error is None]
    assert all(row.detail == WHOLE[row.summary].detail for row in whole)
    touched = _touched(lost, size, len(frames))
    assert {row.summary for row in whole} >= set(WHOLE) - touched
    if touched:
        assert any(row.error for row in found)


def _touched(lost: set[int], size: int, count: int) -> set[str]:
    """Messages with bytes in a lost frame, and those that begin right behind one."""
    touched, number = set(), 3
    for index, (_, data) in enumerate(MESSAGES, 1):
        frames = range(number, number + 2 * -(-len(data) // size), 2)
        number += 2 * len(frames)
        if lost.intersection(frames):
            touched.add(index)
    del count
    names = list(WHOLE)
    return {names[index - 1] for index in touched}


def test_bytes_missing_within_a_message_and_the_next_one_is_where_it_should_be() -> None:
    frames = frames_of(MQQB, MESSAGES[:2], segment=100)
    size = len(MESSAGES[0][1])
    del frames[5:7]
    found = rows_of(frames)
    assert told(found) == [
        ("damage", f"100 bytes {MISSING}".replace(": ", ", within a message: ")),
        ("UserMessage", None),
    ]
    assert size > 300


def test_bytes_missing_from_within_a_message_on() -> None:
    """The head of the next one is gone too: the one after that is looked for."""
    frames = frames_of(MQQB, [*MESSAGES[:3]], segment=400)
    del frames[5:9]
    found = rows_of(frames)
    kinds = [row.kind for row in found]
    assert kinds[0] == kinds[1] == "damage"
    assert "from within a message on" in str(found[0].error)
    assert "before the next mqqb message" in str(found[1].error)


def test_a_message_that_is_missing_as_a_whole() -> None:
    frames = frames_of(MQQB, [(True, ack(n)) for n in (1, 2, 3)])
    del frames[5:7]
    found = rows_of(frames)
    assert told(found) == [
        ("SessionAck", None),
        ("damage", f"{len(ack(2))} bytes {MISSING}"),
        ("SessionAck", None),
    ]


def test_the_end_is_missing_but_was_acknowledged() -> None:
    frames = frames_of(MQQB, [(True, ack(1)), (True, ack(2))])[:-3]
    last = frames.pop(5)
    assert len(last) > 54
    found = rows_of(frames)
    assert told(found) == [
        ("SessionAck", None),
        ("damage", f"{len(ack(2))} bytes {MISSING}"),
    ]


def test_a_fin_that_was_not_captured_is_no_loss() -> None:
    frames = frames_of(MQQB, [(True, ack(1))])
    del frames[-3]
    assert told(rows_of(frames)) == [("SessionAck", None)]


def test_a_gap_within_a_message_that_is_broken_already() -> None:
    """Two gaps in one message; and one that reaches beyond it."""
    message = user_message(1, body=bytes(2000))
    frames = frames_of(MQQB, [(True, message), (True, ack(1)), (True, ack(2))], segment=300)
    within = [f for n, f in enumerate(frames) if n not in (5, 6, 9, 10)]
    assert told(rows_of(within)) == [
        ("damage", "300 bytes are missing, within a message: they were not captured"),
        ("damage", "300 bytes are missing, within a message: they were not captured"),
        ("SessionAck", None),
        ("SessionAck", None),
    ]
    last = 3 + 2 * (len(message) // 300)
    beyond = [f for n, f in enumerate(frames) if n not in (5, 6, *range(last, last + 4))]
    found = told(rows_of(beyond))
    assert [kind for kind, _ in found] == ["damage", "damage", "SessionAck"]
    assert "from within a message on" in str(found[1][1])


def test_what_is_missing_is_waited_for_only_so_long() -> None:
    """An answer that acknowledges what never comes goes on when there is no more room."""
    frames = frames_of(MQQB, [(True, ack(1)), *((False, ack(n)) for n in range(2, 9))])
    del frames[3]
    few = CaptureLimits(max_pending_segments=3)
    found = rows_of(frames, few)
    assert [row.kind for row in found].count("SessionAck") == 7
    assert found[-1].kind == "damage"
    little = rows_of(frames, CaptureLimits(max_pending_bytes=100))
    assert said(little) == said(found) == said(rows_of(frames))


def test_a_gap_is_given_up_before_an_answer_that_waits_for_it() -> None:
    frames = frames_of(MQQB, [(True, ack(1)), (True, ack(2)), (False, ack(3)), (True, ack(4))])
    del frames[3:5]
    kinds = [(row.kind, row.to_server) for row in rows_of(frames)]
    assert kinds == [
        ("damage", True),
        ("SessionAck", True),
        ("SessionAck", False),
        ("SessionAck", True),
    ]


def test_one_direction_alone() -> None:
    """A mirror port that shows one way only."""
    frames = frames_of(MQQB, [(True, ack(1)), (False, ack(2)), (True, ack(3))] * 10)
    from_client = [f for f in frames if f[26:30] == bytes([10, 0, 0, 7])]
    found = rows_of(from_client)
    assert told(found) == [("SessionAck", None)] * 20
    # And the other way begins late: its acknowledgements were never there to wait for.
    late = rows_of([*from_client[:-2], *frames_of(MQQB, [(False, ack(9))], first_seq=(1, 77))[3:4]])
    assert len(late) == 21


# --- beginnings and ends --------------------------------------------------------------------------


def test_a_capture_that_begins_in_the_middle() -> None:
    """The rest of a message that began before, then whole ones."""
    tail, *rest = [data for _, data in MESSAGES[:3]]
    octets = tail[40:] + b"".join(rest)
    frames = [
        segment(MQQB, True, 500 + at, octets[at : at + 200], ack=1)
        for at in range(0, len(octets), 200)
    ]
    found = rows_of(frames)
    assert told(found) == [
        ("damage", f"{len(tail) - 40} bytes before the next mqqb message"),
        ("UserMessage", None),
        ("UserMessage", None),
    ]


def test_a_stream_that_ends_within_a_message() -> None:
    message = user_message(1)
    for size, reason in (
        (len(message) - 7, f"after {len(message) - 7} bytes, 7 bytes are missing"),
        (9, "after 9 bytes"),
    ):
        found = rows_of(frames_of(MQQB, [(True, ack(1) + message[:size])]))
        assert told(found) == [
            ("SessionAck", None),
            ("damage", f"the stream ends within a message, {reason}"),
        ]


def test_a_reset_ends_a_connection() -> None:
    frames = frames_of(MQQB, [(True, ack(1)), (True, user_message(1)[:50])])[:-3]
    reset = segment(MQQB, False, 5001, flags=TcpFlags.RST)
    after = segment(MQQB, True, 2000, ack(2), ack=5001)
    found = rows_of([*frames, reset, after])
    assert [row.kind for row in found] == ["SessionAck", "damage"]


def test_the_same_ports_are_used_again() -> None:
    first = frames_of(MQQB, [(True, ack(1))])
    second = frames_of(MQQB, [(True, ack(2))], first_seq=(70_000, 90_000))
    found = rows_of(first + second)
    assert [(row.summary[:5], row.stream) for row in found] == [("has 1", 1), ("has 2", 9)]
    # Before the first has ended, too.
    cut_off = rows_of(first[:-3] + second)
    assert [row.stream for row in cut_off] == [1, 6]


def test_a_handshake_with_data() -> None:
    """TCP Fast Open: data in the SYN."""
    syn = segment(MQQB, True, 9, ack(1), flags=TcpFlags.SYN)
    back = segment(MQQB, False, 50, ack=10 + len(ack(1)), flags=TcpFlags.SYN)
    assert told(rows_of([syn, back])) == [("SessionAck", None)]


def test_a_connection_without_data_says_nothing() -> None:
    assert rows_of(frames_of(MQQB, [])) == []
    assert rows_of(frames_of(MQQB, [])[2:]) == []


def test_keep_alives_are_not_data() -> None:
    frames = frames_of(MQQB, [(True, ack(1)), (True, ack(2))])
    probe = segment(MQQB, True, 1000 + len(ack(1)), b"\0", ack=5001)
    frames.insert(5, probe)
    assert told(rows_of(frames)) == [("SessionAck", None)] * 2


# --- the snap length ------------------------------------------------------------------------------


def cut_short(frames: list[bytes], snap_length: int) -> list[DecodedRow]:
    data = write_pcap(((n, f) for n, f in enumerate(frames)), snap_length=snap_length)
    return decode(data)


def test_messages_that_the_snap_length_cut() -> None:
    message = user_message(1, body=bytes(500))
    found = cut_short(frames_of(MQQB, [(True, ack(1)), (True, message), (True, ack(2))]), 200)
    missing = 54 + len(message) - 200
    assert told(found) == [
        ("SessionAck", None),
        (
            "damage",
            f"{missing} bytes are missing, within a message: the snap length cut them off",
        ),
        ("SessionAck", None),
    ]


def test_headers_alone() -> None:
    """Nothing of any message is there; that it was to be mqqb is known by the port."""
    found = cut_short(frames_of(MQQB, [(True, ack(1)), (False, ack(2))]), 54)
    reason = f"{len(ack(1))} bytes are missing: the snap length cut them off"
    assert told(found) == [("damage", reason)] * 2
    assert {row.carrier for row in found} == {"mqqb"}
    (row,) = cut_short(frames_of(STRANGE, [(True, b"hello")]), 54)
    assert (row.kind, row.length) == ("unrecognised", 5)


def test_what_was_cut_once_may_come_again_whole() -> None:
    """Another capture point, or a retransmission in shorter segments."""
    message = user_message(1, body=bytes(100))
    data = [(0, f) for f in frames_of(MQQB, [(True, message)])]
    cut = write_pcap(data, snap_length=100)
    assert [row.kind for row in decode(cut)] == ["damage"]
    frames = [frame for _, frame in data]
    short = [
        segment(MQQB, True, 1001 + at, message[at : at + 30], ack=5001)
        for at in range(30, len(message), 30)
    ]
    # They come while the first one still waits for the handshake of the other side.
    again = [frames[0], frames[3], *short, frames[1]]
    found = decode(write_pcap(((0, f) for f in again), snap_length=100))
    assert told(found) == [("UserMessage", None)]


@FEW
@given(st.integers(0, 400))
def test_any_snap_length_gives_messages_or_errors(size: int) -> None:
    for row in cut_short(frames_of(MQQB, MESSAGES), size):
        assert row.error is not None or row.detail == WHOLE[row.summary].detail


# --- what it is -----------------------------------------------------------------------------------


def test_a_strange_beginning_on_a_known_port() -> None:
    found = rows_of(frames_of(MQQB, [(True, b"GET / HTTP/1.1\r\n\r\n"), (True, ack(1))]))
    assert told(found) == [
        ("damage", "no mqqb message: packet version 0x47, only 0x10 is known at offset 0"),
        ("damage", "18 bytes before the next mqqb message"),
        ("SessionAck", None),
    ]


def test_only_strange_bytes_on_a_known_port() -> None:
    found = rows_of(frames_of(MQQB, [(True, b"GET / HTTP/1.1\r\n\r\n")]))
    assert told(found)[1] == ("damage", "18 bytes in which no mqqb message begins")
    short = rows_of(frames_of(MQQB, [(False, b"220 hi")]))
    assert told(short) == [("damage", "the stream ends within a message, after 6 bytes")]


def test_what_nothing_here_knows_is_one_row() -> None:
    parts = [
        (True, b"GET / HTTP/1.1\r\n\r\n"),
        (False, b"HTTP/1.1 200 OK\r\n"),
        (True, bytes(3000)),
    ]
    (row,) = rows_of(frames_of(STRANGE, parts))
    assert (row.protocol, row.carrier, row.kind, row.error) == ("tcp", "tcp", "unrecognised", None)
    assert row.summary == (
        "3018 bytes sent, 17 received, beginning with 474554202f20485454502f312e310d0a"
    )
    assert row.length == 3035
    (answer,) = rows_of(frames_of(STRANGE, [(False, b"220 mail.example ESMTP")]))
    assert answer.summary.endswith(b"220 mail.example"[:16].hex())


def test_few_bytes_are_not_enough_to_know() -> None:
    (row,) = rows_of(frames_of(STRANGE, [(True, ack(1)[:7])]))
    assert row.kind == "unrecognised"
    later = rows_of(frames_of(STRANGE, [(True, ack(1)[:7]), (True, ack(1)[7:])]))
    assert told(later) == [("SessionAck", None)]


def test_a_known_protocol_is_looked_for_in_the_middle() -> None:
    """On a port that tells nothing, from a capture that began late."""
    octets = bytes(100) + ack(1) + ack(2)
    found = rows_of([segment(STRANGE, True, 5, octets)])
    assert told(found) == [
        ("damage", "100 bytes before the next mqqb message"),
        ("SessionAck", None),
        ("SessionAck", None),
    ]
    in_pieces = [segment(STRANGE, True, 5 + n, octets[n : n + 1]) for n in range(len(octets))]
    assert said(rows_of(in_pieces)) == said(found)
    few = CaptureLimits(max_search=50)
    assert [row.kind for row in rows_of(in_pieces, few)] == ["unrecognised"]
    # What looks like a beginning and is none, before the one that is.
    false = b"\x10\0\0\0LIOR" + b"\xff" * 8
    decoys = rows_of([segment(STRANGE, True, 5, false + octets)])
    assert told(decoys)[1:] == [("SessionAck", None)] * 2


def test_a_beginning_further_in_does_not_count_where_the_stream_is_known_to_begin() -> None:
    (row,) = rows_of(frames_of(STRANGE, [(True, b"talk" + ack(1))]))
    assert row.kind == "unrecognised"


def test_what_was_given_up_is_only_counted() -> None:
    """Chunks that waited for the first one, and a gap among them."""
    few = CaptureLimits(max_search=50)
    frames = [segment(STRANGE, True, seq, bytes(100)) for seq in (5, 105, 305)]
    (row,) = rows_of(frames, few)
    assert (row.kind, row.length) == ("unrecognised", 400)


def test_a_gap_before_anything_is_known() -> None:
    """Half a header, then nothing for a while: on a known port, on another, and on neither."""
    for ends, kinds in (
        (MQQB, ["damage", "damage", "SessionAck"]),
        (STRANGE, ["damage", "damage", "SessionAck"]),
    ):
        frames = frames_of(
            ends, [(True, ack(1)[:7]), (True, ack(1)[7:]), (True, bytes(9) + ack(2))]
        )
        del frames[5:7]
        assert [row.kind for row in rows_of(frames)] == kinds
    frames = frames_of(
        STRANGE, [(True, b"hello, it is"), (True, b" me, "), (True, b"who else?" * 9)]
    )
    del frames[5:7]
    assert [row.kind for row in rows_of(frames, CaptureLimits(max_search=20))] == ["unrecognised"]
    (lost_only,) = rows_of(_acknowledged_nothing())
    assert lost_only.kind == "damage"


def _acknowledged_nothing() -> list[bytes]:
    """All data of a connection is missing, but was acknowledged."""
    frames = frames_of(MQQB, [(True, ack(1))])
    return [frame for frame in frames if len(frame) == 54]


def test_a_gap_in_what_nothing_knows() -> None:
    parts = [(True, b"x" * 100), (True, b"y" * 100), (True, b"z" * 100)]
    frames = frames_of(STRANGE, parts)
    del frames[5:7]
    (row,) = rows_of(frames)
    assert row.length == 200
    (none,) = rows_of(f for f in frames_of(STRANGE, parts) if len(f) == 54)
    assert none.summary == "300 bytes sent, 0 received, of which none is there"


# --- one half -------------------------------------------------------------------------------------

PLACE = PacketPosition(1, 24, None)


def chunk(data: bytes, lost: int = 0) -> Chunk:
    return Chunk(0, data, lost, None, PLACE)


def drained(half: HalfStream) -> bytes:
    found = b""
    while half.ready is not None:
        found += half.take()[0]
    return found


@given(st.data())
def test_a_half_gives_its_bytes_in_order(data: st.DataObject) -> None:
    octets = bytes(range(200))
    base = data.draw(st.integers(0, 2**32 - 1))
    starts = data.draw(st.lists(st.integers(0, 199), min_size=1, max_size=20))
    half = HalfStream()
    for at in [*starts, *range(0, 200, 50)]:
        size = 50 if at % 50 == 0 else data.draw(st.integers(1, 60))
        half.add((base + at) % 2**32, chunk(octets[at : at + size]))
    assert half.begins_at(base)
    assert drained(half) == octets
    assert half.pending_bytes == 0


def test_the_longer_of_two_copies_counts() -> None:
    half = HalfStream()
    half.begins_at(0)
    half.add(10, chunk(b"cd"))
    half.add(10, chunk(b"cd"))
    half.add(10, chunk(b"cdef"))
    half.add(10, chunk(b"c", lost=3))
    assert [each.data for each in half.pending] == [b"cd", b"cdef"]
    half.skip(10)
    assert drained(half) == b"cdef"


def test_lost_bytes_that_somebody_else_has() -> None:
    half = HalfStream()
    half.begins_at(0)
    half.add(0, chunk(b"ab", lost=6))
    half.add(4, chunk(b"efgh"))
    assert half.ready is not None
    assert half.take() == (b"ab", 2)
    assert half.ready is not None
    assert half.take() == (b"efgh", 0)


@pytest.mark.parametrize("seq", [0, 2**31, 2**32 - 1])
def test_positions_do_not_wrap(seq: int) -> None:
    half = HalfStream()
    half.begins_at(seq)
    for _ in range(3):
        half.skip(1 << 30)
    assert half.position((seq + 3 * (1 << 30) + 5) % 2**32) == 3 * (1 << 30) + 5
    assert half.position((seq + 3 * (1 << 30) - 5) % 2**32) == 3 * (1 << 30) - 5


def test_a_frame_of_another_file_has_its_own_offset() -> None:
    (row,) = rows_of(frames_of(MQQB, [(True, ack(1))]))
    assert (row.frame, row.offset) == (4, 24 + 3 * (16 + 54))
    assert row.time_ns == 4000
    assert capture([tcp_frame(MQQB, True, (0, 0), 0)])[:4] == bytes.fromhex("d4c3b2a1")


# --- what a hostile capture may take --------------------------------------------------------------


def test_the_same_bytes_are_kept_a_few_times_only() -> None:
    half = HalfStream()
    half.begins_at(0)
    for number in range(50):
        half.add(100, Chunk(0, b"x", number, None, PacketPosition(number, 0, None)))
    assert len(half.pending) == 16
    half.add(200, Chunk(0, b"y", 0, None, PacketPosition(51, 0, None)))
    assert len(half.pending) == 17


def test_fragments_are_bounded_in_number_and_bytes() -> None:
    def fragment(number: int, at: int, size: int) -> Fragment:
        return Fragment(b"\1\1\1\1", b"\2\2\2\2", 17, number, at, True, bytes(size))

    few = Fragments(CaptureLimits(max_fragments=4))
    for at in range(8, 56, 8):
        assert few.add(fragment(1, at, 8), PacketPosition(at, 0, None)) is None
    assert [reason for _, _, reason in few.given_up] == ["more than 4 fragments"]

    small = Fragments(CaptureLimits(max_fragment_bytes=100))
    for number in range(1, 4):
        assert small.add(fragment(number, 8, 48), PacketPosition(number, 0, None)) is None
    assert [key[3] for key, _, _ in small.given_up] == [1]
    assert (
        small.add(fragment(2, 8, 16), PacketPosition(9, 0, None)) is None
    )  # a shorter copy adds nothing
    assert small._bytes == 96


def test_overlapping_fragments_do_not_fill_a_gap() -> None:
    """There are more bytes than the packet has, and its first ones are not among them."""
    kept = Fragments(CaptureLimits())
    ends = b"\1\1\1\1", b"\2\2\2\2", 17, 1
    assert kept.add(Fragment(*ends, 16, False, bytes(8)), PacketPosition(1, 0, None)) is None
    assert kept.add(Fragment(*ends, 8, True, bytes(40)), PacketPosition(2, 0, None)) is None
    whole = kept.add(Fragment(*ends, 0, True, bytes(8)), PacketPosition(3, 0, None))
    assert whole is not None
    assert len(whole[1]) == 24


def test_callbacks_nest_so_deep_and_no_deeper() -> None:
    told: list[object] = []
    reader = RpcDissector(lambda *row: told.append(row), CaptureLimits(max_nested=3))
    request = bytes.fromhex("05000003 10000000 18000000 07000000 00000000 00000000")
    for number in range(10):
        reader.data(number % 2, request, PacketPosition(number, 0, None))
    assert len(told) == 10
    assert max(len(stack) for stack in reader._calls.values()) <= 3
