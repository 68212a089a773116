"""Attacks on the queue port: forged numbers, replayed requests, unsigned messages, strangers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.node.node import Node
from mqis.server.directory_server import DirectoryServer
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeRequest,
    Heartbeat,
    PartitionSeqNumbers,
    decode_message,
)
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.seqnum import SequenceNumber
from tests import waiting
from tests.hostile.queue_port import QueuePort, Tap, again, unsigned
from tests.server.enterprises import (
    MACHINE,
    QUEUE,
    SITE,
    Site,
    client_of,
    create_soon,
    id_of,
    label_of,
    until,
)


@asynccontextmanager
async def two_servers(site: Site, tap: Tap | None = None) -> AsyncIterator[list[DirectoryServer]]:
    """A PEC and the PSC of another site, which reaches the PEC through the tap if there is one."""
    site.found("pec1")
    async with site.serving("pec1") as pec:
        await site.join(pec, "psc2", "psc", "Leiden")
        if tap is not None:
            path = site.homes["psc2"] / "mqis.toml"
            real, through = f"127.0.0.1:{site.ports['pec1']}", f"127.0.0.1:{await tap.listen()}"
            path.write_text(path.read_text().replace(real, through))
        async with site.serving("psc2") as psc:
            yield [pec, psc]
        if tap is not None:
            await tap.close()


async def guid_of(server: DirectoryServer, kind: ObjectType, name: str) -> Guid:
    async with client_of(server) as client:
        return await id_of(client, kind, name)


# --- forged numbers -------------------------------------------------------------------------------


@pytest.mark.req("SEC-3-04")
def test_two_forged_packets_do_not_wedge_a_partition(tmp_path: Path) -> None:
    """One makes the replica ask, the other says that all it asks for is purged, up to a number
    that the authority will not reach in a thousand years."""

    async def run() -> None:
        site = Site(tmp_path, signing="accept")
        async with two_servers(site) as (pec, psc):
            await create_soon(pec, "pec1\\before", "one")
            await until(psc, "pec1\\before", "one")
            delft, liar = await guid_of(pec, SITE, "Delft"), await guid_of(pec, MACHINE, "pec1")
            last = site.numbers("psc2")["Delft"]
            ahead = PartitionSeqNumbers(delft, SequenceNumber(last + 1), SequenceNumber.MIN)
            beat = ChangePropagation(delft, (), Heartbeat("pec1", (ahead,)))
            purged = AlreadyPurged(delft, delft, SequenceNumber(last + (1 << 31)))
            attacker = await QueuePort.open(site.ports["psc2"], liar)
            forged = [unsigned(liar, "psc2", message) for message in (beat, purged)]
            await attacker.send(*forged)
            counters = _node(psc).replication.counters
            await waiting.until(lambda: counters.sync0_started > 0)
            await create_soon(pec, "pec1\\after", "two")
            await until(psc, "pec1\\after", "two")
            await until(psc, "pec1\\before", "one")
            await attacker.close()
            assert counters.sync0_started == 1, "one full synchronisation was for nothing"

    asyncio.run(run())


# --- replayed requests ----------------------------------------------------------------------------


@pytest.mark.req("SEC-4-01")
def test_a_recorded_change_request_is_not_executed_again(tmp_path: Path) -> None:
    """The attacker saw how a queue was created, and sends the same signed bytes years later."""

    async def run() -> None:
        site = Site(tmp_path)
        tap = Tap(site.ports["pec1"])
        async with two_servers(site, tap) as (pec, psc):
            await create_soon(psc, "pec1\\gone", "created by request")
            await until(pec, "pec1\\gone", "created by request")
            [recorded] = [m for m in tap.messages() if _creates(m, "pec1\\gone")]
            assert recorded.security is not None
            assert recorded.security.signature
            await _delete(pec, "pec1\\gone")
            await _forget_answers(pec, psc)
            delivered = _delivered(pec)
            attacker = await QueuePort.open(site.ports["pec1"], recorded.header.source)
            await attacker.send(again(recorded))
            await waiting.until(lambda: _delivered(pec) > delivered)
            await create_soon(psc, "pec1\\fence", "decided after the replay")
            await attacker.close()
            assert await label_of(pec, "pec1\\gone") is None

    asyncio.run(run())


def _node(server: DirectoryServer) -> Node:
    assert server._replication is not None
    return server._replication.driver.node


def _delivered(server: DirectoryServer) -> int:
    return _node(server).queue.statistics.delivered


def _creates(message: UserMessage, path: str) -> bool:
    try:
        body = decode_message(message.properties.body)
    except WireError:  # a change notification
        return False
    return isinstance(body, ChangeRequest) and body.change.path == path


async def _delete(server: DirectoryServer, path: str) -> None:
    async with client_of(server) as client:
        await client.delete(QUEUE, path=path)


async def _forget_answers(pec: DirectoryServer, psc: DirectoryServer) -> None:
    """Makes the PEC forget its answers at once, not after a day and some hundred requests."""
    machine = _node(pec).replication
    kept, machine.settings = machine.settings, replace(machine.settings, reply_memory_s=0.0)
    machine.memory.answers = 255
    await asyncio.sleep(0.1)
    await create_soon(psc, "pec1\\one-more", "makes the PEC look through its answers")
    await asyncio.sleep(0.1)
    machine.memory.answers = 255
    await create_soon(psc, "pec1\\and-another", "and forget that of the last one too")
    machine.settings = kept


# --- unsigned, wrongly signed, strangers ----------------------------------------------------------


@pytest.mark.req("SEC-3-05")
def test_who_does_not_sign_or_is_unknown_is_refused_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    def logged(words: str) -> list[str]:
        return [line for line in caplog.messages if words in line]

    async def run() -> None:
        site = Site(tmp_path)
        async with two_servers(site) as (pec, _psc):
            liar = await guid_of(pec, MACHINE, "psc2")
            alive = BscAck(Guid.NULL, liar, "psc2")
            attacker = await QueuePort.open(site.ports["pec1"], liar)
            address = "127.0.0.1"
            await attacker.send(*(unsigned(liar, "pec1", alive) for _ in range(500)))
            await attacker.send(unsigned(liar, "pec1", alive, signature=b"\x01" * 128))
            await waiting.until(lambda: bool(logged("the signature is wrong")))
            assert _node(pec).queue.statistics.refused >= 501
            assert logged(f"refused from psc2 at {address}: not signed")
            assert logged(f"refused from psc2 at {address}: the signature is wrong")
            assert len(logged("not signed")) <= 5, "a flood of messages is no flood of lines"
            await attacker.close()

            for n in range(1, 300):
                with pytest.raises(ConnectionRefusedError):
                    await QueuePort.open(site.ports["pec1"], Guid(n.to_bytes(16, "big")))
            strangers = logged("connection from 127.0.0.1: refused: ")
            assert "is not among the peers" in strangers[0]
            assert len(strangers) <= 30
        assert logged("more like these"), "and what was left out is told"

    asyncio.run(run())


@pytest.mark.req("SEC-3-05")
def test_what_replication_refuses_is_logged_with_peer_and_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        site = Site(tmp_path, signing="accept")
        async with two_servers(site) as (pec, _psc):
            liar = await guid_of(pec, MACHINE, "psc2")
            purged = AlreadyPurged(Guid.NULL, Guid.NULL, SequenceNumber(9))
            attacker = await QueuePort.open(site.ports["pec1"], liar)
            await attacker.send(unsigned(liar, "pec1", purged))
            # On a slow machine the PSC refuses a message of the PEC for the same reason.
            reason = "this server is the authority of the partition"
            refused = f"refused from psc2 at 127.0.0.1: {reason}"
            await waiting.until(lambda: refused in caplog.messages)
            await attacker.close()
        assert caplog.messages.count(refused) == 1

    caplog.set_level(logging.WARNING)
    asyncio.run(run())
