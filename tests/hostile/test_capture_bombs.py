"""Capture files made to take time or memory: small on disk, long to decode.

What a bomb takes is compared with a plain capture of as many packets in the same run, so that a
slow machine is slow at both.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from mqis.cli import capture_input
from mqis.cli.capture_input import mapped_capture
from mqis.protocol.capture.decoder import CaptureDecoder, decode_rows
from mqis.protocol.capture.limits import CaptureLimits
from mqis.testing.pcap import write_pcap
from mqis.wire.errors import MqisError
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import LinkType
from tests.waiting import DEADLINE_S

HERE, THERE = b"\x0a\0\0\1", b"\x0a\0\0\2"
SYN, ACK = 0x02, 0x10
UDP, TCP = 17, 6
#: How many times as long as a plain capture a bomb may take. These bombs took 18 to 70.
TIMES = 10
#: Less than any of these takes where nothing is wrong, on any machine.
LEAST_S = 0.05


def ip(
    source: bytes, target: bytes, protocol: int, payload: bytes, *, length: int | None = None,
    at: int = 0, more: bool = False, number: int = 0,
) -> bytes:  # fmt: skip
    length = 20 + len(payload) if length is None else length
    flags = at // 8 | (0x2000 if more else 0)
    head = (0x45, 0, length, number, flags, 64, protocol, 0, source, target)
    return struct.pack(">BBHHHBBH4s4s", *head) + payload


def tcp(ports: tuple[int, int], seq: int, ack: int, flags: int, data: bytes = b"") -> bytes:
    return struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 65_535, 0, 0) + data


def capture(packets: list[bytes]) -> bytes:
    return write_pcap(((n * 1000, packet) for n, packet in enumerate(packets)), LinkType.RAW)


def handshake(port: int) -> list[bytes]:
    return [
        ip(HERE, THERE, TCP, tcp((40_000, port), 0, 0, SYN)),
        ip(THERE, HERE, TCP, tcp((port, 40_000), 0, 1, SYN | ACK)),
    ]


def plain(count: int) -> list[bytes]:
    """One connection, one byte a packet."""
    return [ip(HERE, THERE, TCP, tcp((1000, 2000), n, 0, ACK, b"x")) for n in range(count)]


def false_beginnings(count: int) -> list[bytes]:
    """A stream from the middle on, in which every eighth byte begins a PDU that is none."""
    octets = b"\x05\0\0\x03\x10\0\0\0" * (count // 8 + 1)
    ports = (40_000, 40_001)
    return [
        ip(HERE, THERE, TCP, tcp(ports, 1 + n, 0, ACK, octets[n : n + 1])) for n in range(count)
    ]


def the_same_byte_again(count: int) -> list[bytes]:
    """Behind a gap, the same byte, each time with more behind it that the snap length cut."""
    ports = (40_000, 40_001)
    again = [
        ip(HERE, THERE, TCP, tcp(ports, 100, 1, ACK, b"x"), length=41 + n % 4000)
        for n in range(count)
    ]
    return [*handshake(40_001), *again]


def calls_within_calls(count: int) -> list[bytes]:
    """Each side answers a call with a callback, under one number."""
    request = struct.pack("<BBBBIHHIIHH", 5, 0, 0, 3, 0x10, 24, 0, 7, 0, 0, 0)
    packets = handshake(135)
    for n in range(count // 2):
        at = 1 + 24 * n
        packets.append(ip(HERE, THERE, TCP, tcp((40_000, 135), at, at, ACK, request)))
        packets.append(ip(THERE, HERE, TCP, tcp((135, 40_000), at, at + 24, ACK, request)))
    return packets


def fragments_out_of_order(count: int) -> list[bytes]:
    """Of one packet that never becomes whole, its last one first."""
    places = list(range(8, 8 * min(count, 8000), 8))
    random.Random(1).shuffle(places)
    last = ip(HERE, THERE, UDP, bytes(8), at=65_504, number=7)
    return [last, *(ip(HERE, THERE, UDP, bytes(8), at=p, more=True, number=7) for p in places)]


def seconds(packets: list[bytes]) -> float:
    data = capture(packets)
    start = time.process_time()
    for _ in decode_rows(data):
        pass
    return time.process_time() - start


@pytest.mark.req("SEC-10-04")
@pytest.mark.parametrize(
    ("bomb", "count"),
    [(false_beginnings, 4000), (the_same_byte_again, 4000), (fragments_out_of_order, 8000)],
)
def test_a_small_capture_does_not_take_forever(
    bomb: Callable[[int], list[bytes]], count: int
) -> None:
    assert seconds(bomb(count)) < TIMES * max(LEAST_S, seconds(plain(count)))


@pytest.mark.req("SEC-10-04")
def test_callbacks_within_callbacks_end_somewhere() -> None:
    """Twice as many took four times as long; now the nesting is bounded."""
    decoder = CaptureDecoder(CaptureLimits(max_nested=4))
    for each in walk_capture(capture(calls_within_calls(200))):
        decoder.receive(each)
    rows = decoder.take()
    assert len(rows) == 200
    assert max(len(stack) for stack in _calls(decoder)) == 4


def _calls(decoder: CaptureDecoder) -> list[list[object]]:
    (connection,) = decoder._connections.values()
    return list(connection._reader._calls.values())  # type: ignore[union-attr]


@pytest.mark.req("SEC-10-04")
def test_overlapping_fragments_do_not_pile_up() -> None:
    limits = CaptureLimits(max_fragment_bytes=1 << 20)
    decoder = CaptureDecoder(limits)
    for number in range(4):
        for at in range(8, 1600, 8):
            packet = ip(HERE, THERE, UDP, bytes(40_000 - at), at=at, more=True, number=number)
            for each in walk_capture(capture([packet])):
                decoder.receive(each)
            fragments = decoder._fragments
            kept = sum(len(d) for p in fragments._under_way.values() for d in p.parts.values())
            assert kept == fragments._bytes <= limits.max_fragment_bytes
    assert any("fragments" in str(row.error) for row in decoder.take())


def _no_more_than(octets: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (octets, octets))


#: Files of a few bytes whose lengths are near 4 GiB: of a packet, of a packet on the wire, of a
#: block, and of a packet in its block.
_SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
LIARS = {
    "packet.pcap": capture([]) + struct.pack("<IIII", 0, 0, 0xFFFF_FFFF, 0xFFFF_FFFF) + bytes(64),
    "wire.pcap": capture([])
    + struct.pack("<IIII", 0, 0, 40, 0xFFFF_FFFF)
    + ip(HERE, THERE, TCP, tcp((1, 1801), 0, 0, ACK), length=0),
    "block.pcapng": _SECTION + struct.pack("<II", 6, 0xFFFF_FFFC) + bytes(64),
    "captured.pcapng": _SECTION
    + struct.pack("<IIHHIHHBxxxI", 1, 28, 101, 0, 0, 9, 1, 0x7F, 28)
    + struct.pack("<IIIIIIII", 6, 32, 0, 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF, 1 << 31, 32),
}


@pytest.mark.req("SEC-10-04")
def test_lengths_that_lie_take_no_memory(tmp_path: Path) -> None:
    for name, data in LIARS.items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-m", "mqis.cli.main", "capture", str(tmp_path), "--json", "--all"]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        timeout=DEADLINE_S,
        preexec_fn=_no_more_than(2 << 30),
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {Path(row["file"]).name for row in told} == set(LIARS)


@pytest.mark.req("SEC-12-12")
def test_a_packed_bomb_is_refused_before_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture whose packets are zeros shrinks to a thousandth."""
    monkeypatch.setattr(capture_input, "FREE_OF_RATIO", 1 << 20)
    path = tmp_path / "bomb.pcap.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(capture([bytes(60_000)] * 200))
    assert path.stat().st_size < 100_000
    with pytest.raises(MqisError, match="unpacks to more than 200"), mapped_capture(path):
        pass


@pytest.mark.parametrize(
    ("start", "reason"), [(capture([]), "this is more than"), (b"\0" * 24, "neither a pcap")]
)
@pytest.mark.req("SEC-12-12")
def test_an_endless_pipe_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes, reason: str
) -> None:
    monkeypatch.setattr(capture_input, "MAX_COPIED", 4 << 20)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def pour() -> None:
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as out:
            out.write(start)
            while True:
                out.write(bytes(1 << 16))

    pouring = Thread(target=pour)
    pouring.start()
    with pytest.raises(MqisError, match=reason), mapped_capture(pipe):
        pass
    pouring.join(DEADLINE_S)
    assert not pouring.is_alive()
