"""Strangers at the queue port: silent connections, and sessions that claim to be a server.

The attackers are plain sockets at loopback addresses of their own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_port
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqqb.internal import EstablishConnection
from mqis.wire.mqqb.packet import decode_packet
from mqis.wire.mqqb.ping import Ping
from mqis.wire.propvariant import PropVariant
from tests.server.enterprises import Site, client_of, id_of
from tests.waiting import DEADLINE_S, in_time

STRANGER, OTHER = "127.0.0.66", "127.0.0.67"

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def pec(directory: Path, **replication: object) -> AsyncIterator[tuple[DirectoryServer, int]]:
    """A PEC, and the port of its queue manager. Its directory has a second server."""
    site = Site(directory)
    site.found("pec1")
    site.write("pec1", server={"role": "pec", "site": "Delft"}, replication=replication)
    async with site.serving("pec1") as server:
        assert server.ready.queue_port is not None
        yield server, server.ready.queue_port


async def another_server(server: DirectoryServer) -> Guid:
    """The GUID of a backup controller that the directory lists."""
    async with client_of(server) as client:
        site = await id_of(client, ObjectType.SITE, "Delft")
        properties: dict[int, PropVariant] = props(
            {
                PropId.QM_SITE_ID: site,
                PropId.QM_SERVICE: 2,
                PropId.QM_SIGN_PKS: key_list(MachineKey.generate().public),
            }
        )
        await client.create(ObjectType.MACHINE, "bsc3", properties)
        return await id_of(client, ObjectType.MACHINE, "bsc3")


async def connect(port: int, source: str) -> Ends:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def hang_up(ends: list[Ends]) -> None:
    for _, writer in ends:
        writer.transport.abort()


async def ended(reader: asyncio.StreamReader, within_s: float) -> bool:
    """Returns whether the server closes a connection without sending anything."""
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


async def ask_for_a_session(port: int, source: str, claimed: Guid) -> tuple[Ends, bool]:
    """Establish a connection as the queue manager ``claimed``; whether the server agrees."""
    reader, writer = await connect(port, source)
    asked = EstablishConnection(claimed, Guid.NULL, 0).to_bytes()
    writer.write(asked)
    async with asyncio.timeout(DEADLINE_S):
        answer = decode_packet(await reader.readexactly(len(asked)))
    assert isinstance(answer, EstablishConnection)
    return (reader, writer), not answer.refused


@pytest.mark.req("SEC-7-06")
def test_one_address_cannot_hold_the_port_with_silent_connections(tmp_path: Path) -> None:
    async def attack() -> None:
        async with pec(tmp_path, silence_s=600) as (_, port):
            held = [await connect(port, STRANGER) for _ in range(60)]
            over = [await ended(reader, DEADLINE_S) for reader, _ in held[:44]]
            assert all(over), f"{over.count(False)} of the first 44 silent connections are open"
            assert not await ended(held[-1][0], 0.2)
            await hang_up(held)

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-06")
@pytest.mark.parametrize("said", [b"", b"\x10\0\0\0LIOR"], ids=["nothing", "half a packet"])
def test_who_does_not_finish_a_first_packet_is_cut_off(tmp_path: Path, said: bytes) -> None:
    async def attack() -> None:
        async with pec(tmp_path, silence_s=1) as (_, port):
            reader, writer = await connect(port, STRANGER)
            writer.write(said)
            assert await ended(reader, DEADLINE_S)
            writer.transport.abort()

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-06")
def test_silent_connections_of_many_addresses_leave_room_for_a_server(tmp_path: Path) -> None:
    async def attack() -> None:
        async with pec(tmp_path, max_connections=20, max_sessions=10) as (server, port):
            known = await another_server(server)
            held = [await connect(port, f"127.0.0.{70 + n // 10}") for n in range(40)]
            ends, agreed = await ask_for_a_session(port, OTHER, known)
            assert agreed
            await hang_up([*held, ends])

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-06")
def test_an_address_that_holds_sessions_gets_no_silent_connection_more(tmp_path: Path) -> None:
    """Sessions count for the limit of an address; other addresses find room."""

    async def attack() -> None:
        async with pec(tmp_path, silence_s=600, max_connections_per_address=3) as (server, port):
            known = await another_server(server)
            held = [(await ask_for_a_session(port, STRANGER, known))[0] for _ in range(3)]
            silent = await connect(port, STRANGER)
            assert await ended(silent[0], DEADLINE_S)
            ends, agreed = await ask_for_a_session(port, OTHER, known)
            assert agreed
            await hang_up([*held, silent, ends])

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-06")
def test_sessions_in_the_name_of_a_server_do_not_keep_it_out(tmp_path: Path) -> None:
    """The GUIDs of servers are no secret, and the first packet of a session proves nothing."""

    async def attack() -> None:
        async with pec(tmp_path, max_sessions=5) as (server, port):
            known = await another_server(server)
            taken = [await ask_for_a_session(port, STRANGER, known) for _ in range(6)]
            assert [agreed for _, agreed in taken] == [True] * 5 + [False]
            ends, agreed = await ask_for_a_session(port, OTHER, known)
            assert agreed
            assert await ended(taken[0][0][0], DEADLINE_S)
            await hang_up([ends, *(ends for ends, _ in taken)])

    asyncio.run(in_time(attack()))


@pytest.mark.req("SEC-7-06")
def test_pings_are_not_reflected_at_somebody_without_end(tmp_path: Path) -> None:
    """A ping is answered to whoever its sender claims to be."""

    async def attack() -> None:
        ping_port = free_port()
        async with pec(tmp_path, ping=True, ping_port=ping_port):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
                victim.setblocking(False)
                victim.bind((STRANGER, 0))
                for number in range(200):
                    victim.sendto(
                        Ping(number, Guid(bytes(16))).to_bytes(), ("127.0.0.1", ping_port)
                    )
                loop = asyncio.get_running_loop()
                for _ in range(20):
                    assert await loop.sock_recv(victim, 100)
                more = 0
                try:
                    async with asyncio.timeout(0.5):
                        while await loop.sock_recv(victim, 100):
                            more += 1
                except TimeoutError:
                    pass
                assert more < 40

    asyncio.run(in_time(attack()))
