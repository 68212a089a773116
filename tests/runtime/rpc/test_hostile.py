"""Clients that mean no good: what they get, and what everybody else still gets."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import tracemalloc
from random import Random

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.budget import Quota
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.rpc import server_connection as driver
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.runtime.rpc.typed import invoke
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_bodies import Bind, ContextElement, Request
from mqis.wire.rpc.pdu_header import FIRST_LAST, Header, PacketType, PfcFlags
from tests.runtime.rpc.desk import (
    DESK,
    FILL,
    HOST,
    OPEN,
    WAIT,
    Desk,
    Number,
    Raw,
    connected,
    count,
    refused,
    serving,
)
from tests.waiting import run, until

MPX = PfcFlags.CONC_MPX


def bind(flags: int = FIRST_LAST | MPX) -> bytes:
    body = Bind(5840, 5840, 0, (ContextElement(0, DESK.syntax, (NDR20,)),))
    return encode_pdu(body, call_id=1, flags=flags)


def request(
    opnum: int, n: int = 0, call_id: int = 2, flags: int = FIRST_LAST, stub: bytes | None = None
) -> bytes:
    data = struct.pack("<I", n) if stub is None else stub
    return encode_pdu(Request(0, opnum, data), call_id=call_id, flags=flags)


async def bound(port: int, flags: int = FIRST_LAST | MPX) -> Raw:
    raw = await Raw.connect(port)
    await raw.send(bind(flags))
    assert Header.decode(await raw.pdu()).type == PacketType.BIND_ACK
    return raw


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.req("SEC-17-04")
def test_no_more_connections_than_allowed() -> None:
    """A new one takes the place of the one that has waited longest."""

    async def main() -> None:
        async with serving(max_connections=3) as (server, port):
            clients = [await connected(port) for _ in range(8)]
            await until(lambda: server.connections == 3)
            assert server.endpoint.statistics.evicted == 5
            assert server.endpoint.statistics.refused == 0
            assert [await count(client) for client in clients[5:]] == [2, 2, 2]
            with pytest.raises(RpcConnectionError):
                await count(clients[0])
            for client in clients:
                await client.close()

    run(main())


@pytest.mark.req("SEC-17-04")
def test_who_has_logged_on_keeps_a_place() -> None:
    """Three of four places are for strangers; where users have all of them, others are refused."""

    async def main() -> None:
        secret = SharedSecret()
        async with serving(authenticator=secret, max_connections=4) as (server, port):
            user = Credentials(secret, AuthType.NTLM, AuthLevel.INTEGRITY, "host/here")
            named = [await connected(port, credentials=user)]
            strangers = [await connected(port) for _ in range(9)]
            await until(lambda: server.connections == 4)
            assert await count(named[0]) == 2
            named += [await connected(port, credentials=user) for _ in range(3)]
            assert [await count(client) for client in named] == [2] * 4
            with pytest.raises(RpcConnectionError):
                await connected(port)
            assert server.endpoint.statistics.refused == 1
            for client in (*named, *strangers):
                await client.close()

    run(main())


def test_no_more_connections_of_one_peer_than_allowed() -> None:
    async def main() -> None:
        async with serving(max_connections=10, max_connections_per_peer=2) as (server, port):
            try:
                other = socket.create_connection((HOST, port), source_address=("127.0.0.9", 0))
            except OSError:
                pytest.skip("this host has one loopback address")
            with other:
                await until(lambda: server.connections == 1)
                mine = [await connected(port) for _ in range(3)]
                await until(lambda: server.connections == 3)
                assert [await count(client) for client in mine[1:]] == [2, 2]
                assert server.endpoint.statistics.evicted == 1
            await until(lambda: server.connections == 2)
            for client in mine:
                await client.close()

    run(main())


def test_half_open_connections_end_in_time() -> None:
    async def main() -> None:
        limits = RpcLimits(bind_timeout_s=0.5)
        async with serving(limits=limits) as (server, port):
            silent, started, leaving = [await Raw.connect(port) for _ in range(3)]
            await started.send(bind()[:30])
            leaving.writer.write_eof()
            async with await connected(port) as client:
                assert await silent.rest() == await started.rest() == await leaving.rest() == b""
                assert await count(client) == 2
                for raw in (silent, started, leaving):
                    await raw.close()
                await until(lambda: server.connections == 1)

    run(main())


def test_a_last_answer_reaches_a_client_that_goes_on_talking() -> None:
    """Closing over unread bytes would reset the connection, and the fault could be lost."""

    async def main() -> None:
        async with serving() as (server, port):
            for _ in range(10):
                raw = await bound(port)
                nonsense = Header(PacketType.SHUTDOWN, 3, 9, 16).encode()
                await raw.send(nonsense + bytes(500_000))
                answer = await raw.pdu()
                assert Header.decode(answer).type == PacketType.FAULT
                assert answer[24:28] == struct.pack("<I", FaultStatus.PROTO_ERROR)
                assert await raw.rest() == b""
                await raw.close()
            await until(lambda: server.connections == 0)

    run(main())


# --- slowness -------------------------------------------------------------------------------------


def test_slow_senders_are_cut_off_and_others_do_not_notice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def rate(port: int, seconds: float) -> float:
        loop = asyncio.get_running_loop()
        async with await connected(port) as client:
            done, start = 0, loop.time()
            while loop.time() < start + seconds:
                await count(client)
                done += 1
            return done / (loop.time() - start)

    async def drip(port: int) -> float:
        loop = asyncio.get_running_loop()
        raw = await bound(port)
        start = loop.time()
        closed = asyncio.ensure_future(raw.rest())
        for byte in request(0) * 10:
            raw.writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
            if closed.done():
                break
        else:
            raise AssertionError("never cut off")
        await closed
        await raw.close()
        return loop.time() - start

    async def main() -> tuple[float, float, list[float]]:
        async with serving(limits=RpcLimits(pdu_timeout_s=0.3)) as (_, port):
            alone = await rate(port, 0.4)
            drips = [asyncio.create_task(drip(port)) for _ in range(40)]
            beside = await rate(port, 0.8)
            return alone, beside, list(await asyncio.gather(*drips))

    alone, beside, lasted = run(main())
    with capsys.disabled():
        print(
            f"\n  {alone:.0f} calls/s alone, {beside:.0f} beside 40 slow senders, "
            f"which lasted {min(lasted):.2f} to {max(lasted):.2f} s of 0.30 allowed"
        )
    assert min(lasted) >= 0.25
    assert beside > alone / 20


@pytest.mark.parametrize("flags", [FIRST_LAST, FIRST_LAST | MPX], ids=["one by one", "together"])
def test_calls_beyond_the_limit_wait_unread(flags: int) -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk, limits=RpcLimits(max_calls=4)) as (_, port):
            raw = await bound(port, flags)
            await raw.send(b"".join(request(1, 5, call_id=n) for n in range(2, 62)))
            answered, most = 0, 0
            while answered < 60:
                await raw.pdu()
                answered += 1
                most = max(most, desk.started - desk.finished)
            assert desk.finished == 60
            assert most <= (4 if flags & MPX else 1)
            await raw.close()

    run(main())


def test_a_client_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred answers of a megabyte are asked for; few of them are ever made."""
    monkeypatch.setattr(driver, "LINGER_S", 0.1)

    async def main() -> None:
        desk = Desk()
        async with serving(desk, limits=RpcLimits(idle_timeout_s=1.0)) as (server, port):
            raw = await bound(port)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await raw.send(b"".join(request(3, 1_000_000, call_id=n) for n in range(2, 202)))
            async with await connected(port) as other:
                await asyncio.sleep(0.2)
                assert server.endpoint.statistics.calls_in < 40
                assert await count(other) == 2
            await until(lambda: server.connections == 0)
            raw.abort()

    run(main())


def test_answers_resume_when_the_client_reads_again() -> None:
    async def main() -> None:
        async with serving() as (server, port):
            raw = await bound(port)
            raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await raw.send(b"".join(request(3, 300_000, call_id=n) for n in range(2, 32)))
            await asyncio.sleep(0.1)
            before = server.endpoint.statistics.calls_in
            assert before < 30
            raw.writer.transport.resume_reading()  # type: ignore[attr-defined]
            size, calls = 0, set()
            while size < 30 * 300_008:
                pdu = await raw.pdu()
                size += len(pdu) - 24
                calls.add(Header.decode(pdu).call_id)
            assert calls == set(range(2, 32))
            await raw.close()

    run(main())


# --- floods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_flood_of_fragments(size: int) -> None:
    async def main() -> bytes:
        limits = RpcLimits(max_stub=2000) if size else RpcLimits(call_timeout_s=0.3)
        async with serving(limits=limits) as (_, port):
            raw = await bound(port)
            await raw.send(request(0, flags=PfcFlags.FIRST))
            answer = asyncio.ensure_future(raw.rest())
            while not answer.done():
                raw.writer.write(request(0, flags=0, stub=bytes(size)) * 100)
                await asyncio.sleep(0.001)
            await raw.close()
            async with await connected(port) as client:
                assert await count(client) == 2
            return await answer

    answer = run(main())
    if size:  # above max_stub
        assert answer[24:28] == struct.pack("<I", FaultStatus.ACCESS_DENIED)
    else:  # nothing but time
        assert answer == b""


def test_a_flood_of_handles() -> None:
    async def main() -> None:
        desk = Desk()
        async with serving(desk) as (server, port):
            server.endpoint.groups.budget.quota = Quota(50, 120, 120, 120)
            greedy = [await connected(port) for _ in range(3)]
            made = 0
            for client in greedy:
                for n in range(60):
                    if made < 120 and n < 50:
                        await invoke(client, DESK, OPEN, Number(n))
                        made += 1
                    else:
                        call = invoke(client, DESK, OPEN, Number(n))
                        await refused(FaultStatus.REMOTE_NO_MEMORY, call)
            assert made == 120
            assert await count(greedy[0]) == 2
            await greedy[0].close()
            await until(lambda: len(desk.run_down) == 50)
            async with await connected(port) as modest:
                await invoke(modest, DESK, OPEN, Number(1))
            for client in greedy[1:]:
                await client.close()
            await until(lambda: server.endpoint.groups.budget.used == 0)

    run(main())


def test_many_calls_at_once_from_many_clients() -> None:
    async def main() -> None:
        async with serving() as (server, port):
            clients = [await connected(port) for _ in range(16)]
            calls = [count(client, n) for n in range(20) for client in clients]
            assert sorted(await asyncio.gather(*calls)) == sorted([*range(1, 21)] * 16)
            slow = [invoke(client, DESK, WAIT, Number(1)) for client in clients]
            assert await asyncio.gather(*slow) == [Number(1)] * 16
            big = [invoke(client, DESK, FILL, Number(50_000)) for client in clients]
            assert all(len(blob.octets) == 50_000 for blob in await asyncio.gather(*big))
            assert server.connections == 16
            for client in clients:
                await client.close()

    run(main())


HELLO, CALL, OPENED, SLOW = bind(), request(0), request(4, 1), request(1, 10_000)
BEGUN, FILLED = request(0, flags=PfcFlags.FIRST), request(3, 50_000)


def hostile(rng: Random) -> list[bytes]:
    """The bytes that one connection sends: sometimes valid for a while, never for long."""
    garbage = rng.randbytes(rng.randint(1, 300))
    broken = bytearray(HELLO + CALL + OPENED + SLOW)
    broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    return rng.choice(
        [
            [garbage],
            [HELLO, garbage],
            [bytes(broken)],
            [HELLO + OPENED + SLOW, garbage],
            [HELLO, BEGUN, BEGUN],
            [HELLO[:40]],
            [HELLO, FILLED],
        ]
    )


def test_memory_does_not_grow_over_two_thousand_hostile_connections(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def attack(port: int, rng: Random) -> None:
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, (HOST, port))
            for data in hostile(rng):
                await loop.sock_sendall(sock, data)
            if rng.random() < 0.5:
                async with asyncio.timeout(0.01):
                    await loop.sock_recv(sock, 4096)
        except (OSError, TimeoutError):
            pass
        finally:
            sock.close()

    async def main() -> tuple[int, int]:
        rng = Random(1)
        desk = Desk()
        async with serving(desk) as (server, port):

            async def attacks(number: int) -> int:
                for _ in range(number // 20):
                    await asyncio.gather(*(attack(port, rng) for _ in range(20)))
                await until(lambda: server.connections == 0)
                desk.run_down.clear()
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            before = await attacks(200)
            after = await attacks(2000)
            assert len(server.endpoint.groups) == 0
            assert server.endpoint.groups.budget.used == 0
            assert server.endpoint.statistics.refused > 500
            async with await connected(port) as client:
                assert await count(client) == 2
            return before, after

    tracemalloc.start()
    try:
        before, after = run(main())
    finally:
        tracemalloc.stop()
    with capsys.disabled():
        print(f"\n  {(after - before) / 1024:+.0f} KiB after 2,000 hostile connections")
    assert after - before < 256 * 1024
