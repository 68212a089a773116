"""Measures encoding and decoding of boxcars, and messages through two joined multiplexers."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from bench.measure import Sample, contest, timed_together
from bench.results import Results, Row
from bench.run import Bench, Run
from mqis.protocol.multiplexer.events import (
    AskForConnections,
    ConnectionRequested,
    MessageReceived,
    SendBoxcar,
)
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.testing.cmp import user_message
from mqis.wire.cmp.boxcar import HEADER_SIZE, MAX_SIZE, BoxcarReader
from mqis.wire.cmp.builder import BoxcarBuilder, size_in_boxcar
from mqis.wire.cmp.packet import PACKET_SIZE, RESERVED, MsgTag

#: Body sizes: none, that of the specification's example, a longer one, and the longest.
BODIES = (0, 60, 1000, 81_880)
_STRUCT = Struct("<6I")


def _run(run: Run) -> Results:
    results = Results()
    for size in BODIES:
        run.say(f"boxcars: bodies of {size} bytes")
        results.rows += _codec(run, size)
    for size in (60, 1000):
        run.say(f"boxcars: a session with bodies of {size} bytes")
        results.rows.append(_session(run, size))
    return results


BENCH = Bench("boxcars", "MS-CMP boxcars, messages and megabytes per second", _run)


# --- bytes to messages and back -------------------------------------------------------------------


def _codec(run: Run, size: int) -> list[Row]:
    count = (MAX_SIZE - HEADER_SIZE) // size_in_boxcar(size)
    table = f"full boxcars of {count:,} message{'s' * (count > 1)} with {size:,} bytes"
    body = bytes(size)
    data = _encode(count, body)
    assert _pack(count, body) == data[HEADER_SIZE:]
    assert sum(len(packet.data) for packet in BoxcarReader(data)) == count * size
    contenders = {
        "encode": lambda: _encode(count, body),
        "encode: struct": lambda: _pack(count, body),
        "decode": lambda: _decode(data),
        "decode: struct": lambda: _unpack(data, count),
    }
    samples = contest(
        run.rounds, {name: _timed(run, work, count) for name, work in contenders.items()}
    )
    each = len(data) / count
    rows = []
    for name in ("encode", "decode"):
        floor = f"{name}: struct"
        peer = "struct", samples[floor]
        rows.append(Row.of(table, name, samples[name], peer=peer, size=each))
        rows.append(Row.of(table, floor, samples[floor], size=each))
    return rows


def _timed(run: Run, work: Callable[[], object], count: int) -> Callable[[], Sample]:
    def batch() -> int:
        work()
        return count

    return lambda: timed_together(batch, run.sample_s / 2)


def _encode(count: int, body: bytes) -> bytes:
    builder = BoxcarBuilder()
    for _ in range(count):
        builder.add(user_message(1, 0x2001, body, is_master=True))
    return builder.to_bytes()


def _decode(data: bytes) -> int:
    return sum(1 for _ in BoxcarReader(data))


def _pack(count: int, body: bytes) -> bytes:
    """The minimum that makes these bytes: no limits, no values, no header."""
    buffer = bytearray()
    filler = bytes(-len(body) % 8)
    for _ in range(count):
        buffer += _STRUCT.pack(MsgTag.USER_MESSAGE, 1, 1, 0x2001, len(body), RESERVED)
        buffer += body
        buffer += filler
    return bytes(buffer)


def _unpack(data: bytes, count: int) -> int:
    """The minimum that reads them: no checks, and a copy of every body."""
    at, found = HEADER_SIZE, 0
    for _ in range(count):
        length = _STRUCT.unpack_from(data, at)[4]
        body = data[at + PACKET_SIZE : at + PACKET_SIZE + length]
        at += PACKET_SIZE + length + -length % 8
        found += len(body) == length
    return found


# --- two multiplexers -----------------------------------------------------------------------------


def _session(run: Run, size: int) -> Row:
    """Measures messages from queue to event, over boxcars, but without RPC."""
    here, there = Multiplexer(), Multiplexer()
    here.session_up(0.0)
    there.session_up(0.0)
    connections = [here.connect(0x101) for _ in range(64)]
    _carry(here, there)
    _carry(here, there)
    body = bytes(size)

    def batch() -> int:
        for connection in connections * 10:
            here.send(connection, 0x2001, body)
        received = _carry(here, there)
        assert received == len(connections) * 10
        return received

    samples = contest(run.rounds, {"session": lambda: timed_together(batch, run.sample_s)})
    table = "one session, 64 connections, without RPC"
    return Row.of(table, f"bodies of {size} bytes", samples["session"], size=size)


def _carry(here: Multiplexer, there: Multiplexer) -> int:
    """Carries all boxcars from ``here`` to ``there``; returns the number of messages received."""
    received = 0
    while effects := here.effects():
        for effect in effects:
            if isinstance(effect, SendBoxcar):
                there.receive(effect.data, effect.count, 0.0)
                here.boxcar_delivered(0.0)
            elif isinstance(effect, AskForConnections):
                here.resources_granted(there.resources_requested(effect.count), 0.0)
        while (event := there.next_event()) is not None:
            if isinstance(event, ConnectionRequested):
                there.accept(event.connection, 0.0)
            received += isinstance(event, MessageReceived)
    while here.next_event() is not None:
        pass
    return received
