"""The load: everything that somebody without an account can send, from many addresses at once.

Each kind of load is a function that takes one step from one address. Connections that are worth
keeping are kept, so that the server has to bound them; the oldest goes when there are too many.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import socket
import struct
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from time import monotonic

from impacket.dcerpc.v5.ndr import NDRCALL

from mqis.wire.guid import Guid
from mqis.wire.mqqb.internal import EstablishConnection
from mqis.wire.mqsd.request import TopologyClientRequest
from tests.hostile import plain_rpc as rpc
from tests.hostile.nobody import validation
from tests.hostile.rawrpc import FIRST, LAST, lookup_begin, request
from tests.hostile.spnego_tokens import offering
from tests.interop import mqds_impacket as mqds
from tests.runtime.authentication.handmade import FLAGS, message, negotiate

ADDRESSES = tuple(f"127.0.16.{number}" for number in range(1, 17))
#: The address at which a console listens.
CONSOLE_HOST = "127.0.0.1"
#: Connections that one address keeps open for one kind of load.
KEPT = 40
#: Seconds between two steps of one kind from one address, on average.
PAUSE_S = 0.25
#: Seconds for which an answer is waited for.
_ANSWER_S = 5.0
#: Bytes of a call that is never completed.
_HALF_CALL = 200_000
_BIND = rpc.pdu(rpc.BIND, rpc.proposal(mqds.DSCOMM))
_DISCOVERY = TopologyClientRequest(Guid.NULL, Guid(b"number of asking"), Guid.NULL).to_bytes()
_PROOF_OF_NOBODY = message(FLAGS, lm=b"", nt=b"", domain="", user="")
#: The PROPID of a queue's label, as often as a lookup may name columns.
_COLUMNS = (108,) * 128


@dataclass(frozen=True, slots=True)
class Target:
    """The ports of a server, and those of a console."""

    host: str
    rpc: int
    queue: int
    discovery: int
    monitor: int
    console: int


@dataclass
class Tally:
    """Steps that were taken, and connections that the server ended or calls that it refused."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


class Refused(Exception):
    """The server refuses, or has closed the connection."""


class TooSlow(Exception):
    """No connection came about in time, on a busy machine."""


class Wire:
    """One connection from one address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, host: str, port: int, source: str) -> Wire:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return cls(*await asyncio.open_connection(host, port, local_addr=(source, 0)))
        except TimeoutError as error:
            raise TooSlow from error
        except OSError as error:
            raise Refused from error

    @property
    def is_closed(self) -> bool:
        """True if the server has closed it."""
        return self.reader.at_eof() or self.reader.exception() is not None

    async def send(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            async with asyncio.timeout(_ANSWER_S):
                await self.writer.drain()
        except TimeoutError:
            return  # the server does not read: it owes nothing
        except OSError as error:
            raise Refused from error

    async def exactly(self, size: int) -> bytes:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self.reader.readexactly(size)
        except TimeoutError:
            return b""
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Refused from error

    async def pdu(self) -> bytes:
        """The next PDU; empty if none comes in time. A fault or a rejected bind is a refusal."""
        head = await self.exactly(16)
        if not head:
            return b""
        answer = head + await self.exactly(struct.unpack_from("<H", head, 8)[0] - 16)
        if rpc.kind_of(answer) in (rpc.FAULT, rpc.BIND_NAK):
            raise Refused
        return answer

    async def bound(self) -> Wire:
        await self.send(_BIND)
        await self.pdu()
        return self

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class Stranger:
    """Somebody at one address, who does one kind of thing."""

    target: Target
    source: str
    rng: random.Random
    kept: deque[Wire] = field(default_factory=deque)

    async def wire(self, port: int) -> Wire:
        """A connection, which is kept for later."""
        made = await Wire.open(self.target.host, port, self.source)
        self.kept.append(made)
        return made


Step = Callable[[Stranger], Awaitable[None]]


# --- the RPC port ---------------------------------------------------------------------------------


async def silent(who: Stranger) -> None:
    await who.wire(who.target.rpc)


async def binds(who: Stranger) -> None:
    await (await who.wire(who.target.rpc)).bound()


async def contexts(who: Stranger) -> None:
    """Security contexts of nobody, whom NTLM lets log on."""
    wire = await who.wire(who.target.rpc)
    for number in range(12):
        kind = rpc.ALTER if number else rpc.BIND
        first = rpc.trailer(rpc.INTEGRITY, negotiate(), context_id=number)
        await wire.send(rpc.pdu(kind, rpc.proposal(mqds.DSCOMM), first))
        if not await wire.pdu():
            return
        proof = rpc.trailer(rpc.INTEGRITY, _PROOF_OF_NOBODY, context_id=number)
        await wire.send(rpc.pdu(rpc.AUTH3, bytes(4), proof))


async def tokens(who: Stranger) -> None:
    """Large SPNEGO tokens in S_DSValidateServer; a callback is never answered."""
    wire = await (await who.wire(who.target.rpc)).bound()
    (opnum, stub), room = who.rng.choice(_tokens()), 5840 - 24
    for at in range(0, len(stub), room):
        flags = (0 if at else FIRST) | (LAST if at + room >= len(stub) else 0)
        await wire.send(request(opnum, stub[at : at + room], flags))
    answer = await wire.pdu()
    if rpc.kind_of(answer) == rpc.RESPONSE and rpc.result_of(answer):
        raise Refused


@cache
def _tokens() -> tuple[tuple[int, bytes], ...]:
    """Stubs of S_DSValidateServer: many bytes, many mechanisms, rubbish."""
    found = []
    for token in (offering(16, 50_000), offering(8_000), bytes(range(256)) * 280):
        call = validation()
        call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = len(token)
        call["pClientBuff"] = token
        found.append(_stub(call))
    return tuple(found)


async def malformed(who: Stranger) -> None:
    wire = await who.wire(who.target.rpc)
    rubbish = who.rng.randbytes(300)
    await wire.send(
        who.rng.choice(
            (
                rubbish,
                rpc.pdu(rpc.BIND, rubbish),
                _BIND + rpc.pdu(rpc.REQUEST, struct.pack("<IHH", 300, 0, 0) + rubbish),
                _BIND + rpc.pdu(rpc.REQUEST, rubbish, rpc.trailer(rpc.PRIVACY, rubbish)),
                _BIND[:8] + b"\xff\xff" + _BIND[10:],
            )
        )
    )
    await wire.pdu()
    await wire.pdu()


async def fragments(who: Stranger) -> None:
    """The beginning of a call that never ends."""
    wire = await (await who.wire(who.target.rpc)).bound()
    part, flags = bytes(5_000), FIRST
    for _ in range(_HALF_CALL // len(part)):
        await wire.send(request(0, part, flags))
        flags = 0


async def handles(who: Stranger) -> None:
    """Context handles, and lookups that are never read to their end."""
    wire = await (await who.wire(who.target.rpc)).bound()
    for _ in range(8):
        await wire.send(request(_VALIDATION[0], _VALIDATION[1]))
        answer = await wire.pdu()
        if not answer:
            return
        if rpc.result_of(answer):
            raise Refused
        opnum, stub = _lookup_with(answer[24:44])
        await wire.send(request(opnum, stub))
        answer = await wire.pdu()
        if answer and rpc.result_of(answer):
            raise Refused


def _stub(call: NDRCALL) -> tuple[int, bytes]:
    return call.opnum, call.getData()


_VALIDATION = _stub(validation())
_MARK = bytes(4) + b"the handle goes "
_LOOKUP = _stub(lookup_begin(_MARK, _COLUMNS))


def _lookup_with(handle: bytes) -> tuple[int, bytes]:
    assert _LOOKUP[1].count(_MARK) == 1
    return _LOOKUP[0], _LOOKUP[1].replace(_MARK, handle)


# --- the other ports ------------------------------------------------------------------------------


async def packets(who: Stranger) -> None:
    """Sessions of queue managers that nobody knows, packets that never end, and rubbish."""
    wire = await who.wire(who.target.queue)
    whole = EstablishConnection(Guid(who.rng.randbytes(16)), Guid.NULL, 0).to_bytes()
    await wire.send(who.rng.choice((whole, whole[:100], who.rng.randbytes(500))))


async def datagrams(who: Stranger) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setblocking(False)
        line.bind((who.source, 0))
        for _ in range(20):
            data = _DISCOVERY if who.rng.random() < 0.7 else who.rng.randbytes(100)
            with suppress(BlockingIOError):
                line.sendto(data, (who.target.host, who.target.discovery))


async def monitoring(who: Stranger) -> None:
    await _head(who, await who.wire(who.target.monitor), who.target.host)


async def console(who: Stranger) -> None:
    wire = await Wire.open(CONSOLE_HOST, who.target.console, who.source)
    who.kept.append(wire)
    await _head(who, wire, CONSOLE_HOST)


async def _head(who: Stranger, wire: Wire, host: str) -> None:
    """A whole request, half of one, one that is too long, or none."""
    whole = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    long = whole[:-2] + b"X: " + b"y" * 20_000
    await wire.send(who.rng.choice((whole, whole[:30], long, b"\r\n\r\n")))


#: The kinds of load at the RPC port; their refusals are counted together.
RPC_KINDS: dict[str, Step] = {
    "silent connections": silent,
    "binds": binds,
    "security contexts": contexts,
    "large tokens": tokens,
    "malformed PDUs": malformed,
    "half fragments": fragments,
    "handles and lookups": handles,
}
QUEUE, DISCOVERY, MONITORING, CONSOLE = (
    "queue packets",
    "discovery datagrams",
    "HTTP heads: monitoring",
    "HTTP heads: console",
)
KINDS: dict[str, Step] = RPC_KINDS | {
    QUEUE: packets,
    DISCOVERY: datagrams,
    MONITORING: monitoring,
    CONSOLE: console,
}


# --- the process of the strangers -----------------------------------------------------------------


def attack(target: Target, seconds: float, seed: int, out: Connection) -> None:
    """Runs all kinds from all addresses, and sends the tally; the main function of a process."""
    # Strangers bring processors of their own: here they leave those of this computer to the server.
    os.nice(5)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _tokens()
    out.send(None)  # it begins
    out.send(asyncio.run(_attack(target, seconds, random.Random(seed))))


async def _attack(target: Target, seconds: float, rng: random.Random) -> Tally:
    tally, until = Tally(), monotonic() + seconds
    await asyncio.gather(
        *(
            _repeat(kind, Stranger(target, source, random.Random(rng.random())), until, tally)
            for kind in KINDS
            for source in ADDRESSES
        )
    )
    return tally


async def _repeat(kind: str, who: Stranger, until: float, tally: Tally) -> None:
    while monotonic() < until:
        await asyncio.sleep(who.rng.uniform(0, 2 * PAUSE_S))
        _tidy(kind, who, tally)
        tally.taken[kind] += 1
        before = len(who.kept)
        try:
            await KINDS[kind](who)
        except Refused:
            tally.refused[kind] += 1
            if len(who.kept) > before:
                who.kept.pop().close()
        except TooSlow:
            pass
    _tidy(kind, who, tally)
    for wire in who.kept:
        wire.close()


def _tidy(kind: str, who: Stranger, tally: Tally) -> None:
    """Forgets connections that the server has closed, and closes the oldest beyond the limit."""
    closed = [wire for wire in who.kept if wire.is_closed]
    tally.refused[kind] += len(closed)
    for wire in closed:
        who.kept.remove(wire)
        wire.close()
    while len(who.kept) > KEPT:
        who.kept.popleft().close()
