"""Looks for inputs whose processor time grows faster than their size.

    python -m fuzz.growth [--seconds S] [--seed SEED] [--table]

Whoever sends bytes before a logon pays for them by sending; the server pays by reading. So each
entry that a stranger reaches has to take about the same time for each byte, however many there are.
The table has shapes that are known to be dangerous: lists, nested parts, long numbers, pieces
without end. The search repeats parts of valid inputs, for all targets of ``fuzz``.

Times are processor times of this process, the best of several runs, and only their ratio decides:
neither a slow machine nor a busy one makes a finding. Of two sizes, the larger one has 32 times as
many bytes: linear time has a ratio of 1 for each byte, quadratic time one of 32, or less where most
of the small input's time is linear.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from fuzz.targets import TARGETS, Target
from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.protocol.rpc.server_side import CallReceived, ServerConnection
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import MemoryAccounts
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.http import MAX_REQUEST, _head, _misdirected, _parse
from mqis.server.monitoring.status import ServerStatus
from mqis.wire.errors import WireError
from mqis.wire.ldap.ber import element
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_bodies import AlterContext, Bind, CoCancel, ContextElement, Request
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags

KB = 1024
SIZES = (KB, 32 * KB, 1024 * KB)
#: The greatest ratio of the times for a byte of two sizes.
MOST = 3.0
#: Seconds below which a time says nothing.
LEAST_S = 0.004
#: The sizes of the search.
SMALL, LARGE = 16 * KB, 512 * KB
ERRORS = (WireError, AuthenticationError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class Entry:
    """One shape of what a stranger sends: ``make`` makes an input of about so many bytes."""

    name: str
    make: Callable[[int], bytes]
    run: Callable[[bytes], object]


def seconds_of(run: Callable[[bytes], object], data: bytes, times: int = 3) -> float:
    """The processor time of an input, the best of some runs."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        with suppress(*ERRORS, RecursionError):
            run(data)
        best = min(best, time.process_time() - began)
        if best > 1.0:
            break
    return best


def is_superlinear(small: tuple[int, float], large: tuple[int, float]) -> bool:
    """Compares two inputs by bytes and seconds."""
    if large[1] < LEAST_S or large[0] <= small[0]:
        return False
    each = max(small[1], LEAST_S / 16) / small[0]
    return large[1] / large[0] > MOST * each


# --- tokens ---------------------------------------------------------------------------------------


_SPNEGO, _NTLM = bytes.fromhex("06062b0601050502"), bytes.fromhex("060a2b06010401823702020a")
_SERVER = PyspnegoAuthenticator(MemoryAccounts(), "server", "LAB")
_CLIENT = PyspnegoInitiator(LogonCredentials("alice", "LAB", "password"))
_NTLM_FLAGS = 0x2088_8211


def _accept(data: bytes) -> None:
    _SERVER.acceptor(AuthType.SPNEGO, AuthLevel.PRIVACY).step(data)


def _authenticate(data: bytes) -> None:
    context = _SERVER.acceptor(AuthType.NTLM, AuthLevel.INTEGRITY)
    context.step(_negotiate(b""))
    context.step(data)


def _challenge(data: bytes) -> None:
    """A client reads the challenge of a hostile server."""
    context = _CLIENT.initiator(AuthType.NTLM, AuthLevel.INTEGRITY, "host/server")
    context.step(None)
    context.step(data)


def _init(mechanisms: bytes, *fields: bytes) -> bytes:
    types = element(0xA0, element(0x30, mechanisms))
    return element(0x60, _SPNEGO, element(0xA0, element(0x30, types, *fields)))


def _nested(size: int) -> bytes:
    data = b""
    while len(data) < min(size, 64 * KB):
        data = element(0x60, _SPNEGO, data)
    return data


def _negotiate(name: bytes) -> bytes:
    fields = struct.pack("<HHIHHI", 0, 0, 32, len(name) & 0xFFFF, len(name) & 0xFFFF, 32)
    return b"NTLMSSP\0" + struct.pack("<II", 1, _NTLM_FLAGS) + fields + name


def _third(nt: bytes, user: bytes) -> bytes:
    """AUTHENTICATE_MESSAGE (MS-NLMP 2.2.1.3)."""
    fields, at = b"", 88
    for value in (b"", nt, b"", user, b"", b""):
        fields += struct.pack("<HHI", len(value), len(value), at)
        at += len(value)
    head = b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", _NTLM_FLAGS)
    return head.ljust(88, b"\0") + nt + user


def _pairs(size: int) -> bytes:
    """AV pairs without contents."""
    return struct.pack("<HH", 9, 0) * (min(size, 60 * KB) // 4) + bytes(4)


def _second(size: int) -> bytes:
    """CHALLENGE_MESSAGE (MS-NLMP 2.2.1.2) with many AV pairs."""
    info = _pairs(size)
    head = b"NTLMSSP\0" + struct.pack("<IHHII", 2, 0, 0, 56, _NTLM_FLAGS) + bytes(16)
    return head + struct.pack("<HHI", len(info), len(info), 56) + bytes(8) + info


TOKENS = (
    Entry("SPNEGO: mechanisms", lambda n: _init(b"\x06\x01\x2b" * (n // 3)), _accept),
    Entry("SPNEGO: identifier", lambda n: _init(element(0x06, b"\xff" * n)), _accept),
    Entry("SPNEGO: fields", lambda n: _init(_NTLM, b"\xa2\x02\x04\x00" * (n // 4)), _accept),
    Entry("SPNEGO: nested", _nested, _accept),
    Entry(
        "SPNEGO: name in NTLM",
        lambda n: _init(_NTLM, element(0xA2, element(0x04, _negotiate(bytes(n))))),
        _accept,
    ),
    Entry("NTLM: name", lambda n: _third(bytes(60), b"A\0" * min(n // 2, 30 * KB)), _authenticate),
    Entry("NTLM: AV pairs", lambda n: _third(bytes(44) + _pairs(n), b"A\0"), _authenticate),
    Entry("NTLM: AV pairs of a server", _second, _challenge),
)

# --- PDUs and stubs -------------------------------------------------------------------------------

_ECHO = Interface("echo", SyntaxId(SystemEntropy().guid(), 1), 4)
_BIND = encode_pdu(
    Bind(5840, 5840, 0, (ContextElement(0, _ECHO.syntax, (NDR20,)),)), call_id=1, flags=FIRST_LAST
)


def _receive(data: bytes, piece: int) -> None:
    endpoint = ServerEndpoint((_ECHO,), AssociationGroups(SystemEntropy()), _SERVER)
    machine = ServerConnection(endpoint, "peer", 0.0)
    for at in range(0, len(data), piece):
        events = machine.receive(data[at : at + piece], 0.0)
        while events or (machine.stalled and machine.wants_data):
            for event in events:
                if isinstance(event, CallReceived):
                    machine.respond(event.call, b"", 0.0)
            events = machine.receive(b"", 0.0)
        machine.data_to_send()


def _at_once(data: bytes) -> None:
    _receive(data, 64 * KB)


def _byte_by_byte(data: bytes) -> None:
    _receive(data, 1)


def _fragments(size: int) -> bytes:
    first = encode_pdu(Request(0, 1, b"x"), call_id=2, flags=PfcFlags.FIRST)
    following = encode_pdu(Request(0, 1, b"x"), call_id=2, flags=0)
    return _BIND + first + following * (size // len(following))


def _repeated(pdu: bytes) -> Callable[[int], bytes]:
    return lambda size: _BIND + pdu * (size // len(pdu))


_ALTER = encode_pdu(
    AlterContext(5840, 5840, 0, (ContextElement(0, _ECHO.syntax, (NDR20,)),)),
    call_id=3,
    flags=FIRST_LAST,
)
PDUS = (
    Entry("PDU: fragments", _fragments, _at_once),
    Entry("PDU: byte by byte", _fragments, _byte_by_byte),
    Entry(
        "PDU: calls",
        _repeated(encode_pdu(Request(0, 1, b""), call_id=2, flags=FIRST_LAST)),
        _at_once,
    ),
    Entry("PDU: cancels", _repeated(encode_pdu(CoCancel(), call_id=2, flags=FIRST_LAST)), _at_once),
    Entry("PDU: contexts", _repeated(_ALTER), _at_once),
)


def _create(values: Callable[[int], PropVariant]) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        request = dscomm.CreateObject(1, "a\\b", None, (1,), (values(size),), None)
        return dscomm.CREATE_OBJECT.request.encode(request, Syntax.NDR20)

    return make


def _decode_create(data: bytes) -> None:
    dscomm.CREATE_OBJECT.request.decode(data, Syntax.NDR20)


def _ids(size: int) -> bytes:
    count = min(size // 20, 128)
    request = dscomm.CreateObject(
        1, "x" * (size // 2), None, (1,) * count, (PropVariant(VarType.NULL, None),) * count, None
    )
    return dscomm.CREATE_OBJECT.request.encode(request, Syntax.NDR20)


STUBS = (
    Entry(
        "NDR: strings",
        _create(lambda n: PropVariant(VarType.VECTOR_LPWSTR, ("",) * min(n // 20, 65_536))),
        _decode_create,
    ),
    Entry("NDR: octets", _create(lambda n: PropVariant(VarType.BLOB, bytes(n))), _decode_create),
    Entry("NDR: path and properties", _ids, _decode_create),
)

# --- everything else ------------------------------------------------------------------------------


def _target(name: str) -> Target:
    return next(target for target in TARGETS if target.name == name)


def _corpus(name: str) -> bytes:
    """The longest valid input of a target, of those that are much smaller than the sizes."""
    return max((data for data in _target(name).corpus() if len(data) < 16 * KB), key=len)


def _again(name: str, skip: int = 0) -> Entry:
    """The longest valid input of a target, behind its first bytes again and again."""
    data = _corpus(name)
    part = data[skip:]
    return Entry(name, lambda n: data + part * (n // len(part)), _target(name).run)


def _http(data: bytes) -> None:
    async def read() -> bytes | None:
        reader = asyncio.StreamReader(limit=MAX_REQUEST)
        reader.feed_data(data)
        reader.feed_eof()
        return await _head(reader)

    head = asyncio.run(read())
    if head is not None:
        _misdirected(_parse(head)[3])


def _status(data: bytes) -> None:
    ServerStatus.from_json(json.loads(data))


def _searched(attributes: bytes) -> bytes:
    entry = element(0x64, element(0x04, b"cn=x"), element(0x30, attributes))
    return element(0x30, element(0x02, b"\x07"), entry)


OTHERS = (
    _again("mqqb"),
    _again("queueing-acceptor"),
    _again("mqsd"),
    _again("discovery-server"),
    _again("multiplexer"),
    Entry("HTTP: headers", lambda n: b"GET / HTTP/1.1\r\n" + b"Host: a\r\n" * (n // 9), _http),
    Entry("HTTP: host", lambda n: b"GET / HTTP/1.1\r\nHost: " + b"[" * n + b"\r\n\r\n", _http),
    Entry(
        "LDAP: attributes",
        lambda n: _searched(element(0x30, element(0x04, b"a"), b"\x31\x00") * (n // 7)),
        _target("ldap").run,
    ),
    Entry(
        "LDAP: values",
        lambda n: _searched(
            element(0x30, element(0x04, b"a"), element(0x31, b"\x04\x00" * (n // 2)))
        ),
        _target("ldap").run,
    ),
    Entry("LDIF: folds", lambda n: b"dn: cn=x\ncn: " + b"a\n " * (n // 3), _target("ldif").run),
    Entry("LDIF: values", lambda n: b"dn: cn=x\n" + b"cn: a\n" * (n // 6), _target("ldif").run),
    Entry("JSON: lists", lambda n: b"[" * n, _status),
    Entry("JSON: digits", lambda n: b'{"a": ' + b"9" * n + b"}", _status),
    Entry("JSON: objects", lambda n: b"[" + b'{"a": 1},' * (n // 9) + b"0]", _status),
    _again("pcap", 24),
    _again("capture", 24),
)

ENTRIES = (*TOKENS, *PDUS, *STUBS, *OTHERS)


# --- the table ------------------------------------------------------------------------------------


def measured(entry: Entry) -> list[tuple[int, float]]:
    """The bytes and seconds of each size."""
    found = []
    for size in SIZES:
        data = entry.make(size)
        found.append((len(data), seconds_of(entry.run, data)))
    return found


def row_of(name: str, found: list[tuple[int, float]]) -> str:
    cells = (f"{seconds / size * 1e6:12.4f}" for size, seconds in found)
    return f"{name:28}{found[-1][0]:12,}{''.join(cells)}"


def table() -> Iterator[str]:
    """Prints the rows; yields the findings."""
    print(f"{'entry':28}{'bytes':>12}{'us/B: 1 kB':>12}{'32 kB':>12}{'1 MB':>12}", flush=True)
    for entry in ENTRIES:
        found = measured(entry)
        print(row_of(entry.name, found), flush=True)
        if is_superlinear(found[1], found[2]):
            yield f"{entry.name}: more time for each byte of a large input than of a small one"


# --- the search -----------------------------------------------------------------------------------


def grown(data: bytes, rng: Random) -> Callable[[int], bytes]:
    """Makes inputs of any size: a part of a valid one, again and again in its place."""
    at = rng.randrange(len(data))
    part = data[at : at + rng.choice((1, 2, 4, 8, 16, 32, 64, 256))]
    return lambda size: data[:at] + part * (size // len(part)) + data[at:]


def searched(target: Target, rng: Random) -> str | None:
    """Tries one input of a target in two sizes; returns what is wrong."""
    make = grown(rng.choice([data for data in target.corpus() if data]), rng)
    small, large = make(SMALL), make(LARGE)
    first = seconds_of(target.run, small, 1), seconds_of(target.run, large, 1)
    if not is_superlinear((len(small), first[0]), (len(large), first[1])):
        return None
    again = seconds_of(target.run, small, 7), seconds_of(target.run, large, 5)
    if not is_superlinear((len(small), again[0]), (len(large), again[1])):
        return None
    return (
        f"{target.name}: {again[0]:.4f} s for {len(small)} bytes, {again[1]:.4f} s for {len(large)}"
    )


def search(seconds: float, seed: int) -> Iterator[str]:
    deadline, rng = time.process_time() + seconds, Random(seed)
    tried = 0
    while time.process_time() < deadline:
        for target in TARGETS:
            found = searched(target, rng)
            tried += 1
            if found is not None:
                yield found
    print(f"fuzz.growth: {tried:,} inputs in two sizes, seed {seed}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.growth")
    parser.add_argument("--seconds", type=float, default=15.0, help="CPU time of the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="no search")
    options = parser.parse_args()
    findings = list(table())
    if not options.table:
        findings += search(options.seconds, options.seed)
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
