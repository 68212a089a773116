"""GET /status and /health of servers that run."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from mqis.config.errors import ConfigError
from mqis.server.directory_server import DirectoryServer
from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.testing.ports import free_ports
from mqis.wire.seqnum import SequenceNumber
from tests.server.monitoring.pair import (
    Pair,
    client_of,
    fetch,
    pair,
    pec_config,
    psc_config,
    status_of,
    with_values,
)
from tests.waiting import until


def named(status: ServerStatus, name: str) -> PartitionStatus:
    return next(p for p in status.partitions if p.name == name)


async def _look_at(both: Pair) -> None:
    """One pair for all of it: each takes a second to start."""
    pec, psc = await status_of(both.pec), await status_of(both.psc)
    assert (pec.server, pec.role, pec.site, pec.enterprise) == ("pec1", "pec", "Delft", "Acme")
    assert (psc.server, psc.role, psc.site, psc.enterprise) == ("psc2", "psc", "Leiden", "Acme")
    assert pec.pid == os.getpid()
    assert 0 <= time.time() - pec.started < 60
    assert pec.partitions[0].name == "enterprise"
    assert {(p.name, p.owner, p.authority) for p in pec.partitions} == {
        ("enterprise", "pec1", True),
        ("Delft", "pec1", True),
        ("Leiden", "psc2", False),
    }
    assert [(p.name, p.authority) for p in psc.partitions if p.authority] == [("Leiden", True)]
    assert {p.state for p in (*pec.partitions, *psc.partitions)} <= {"normal", "sync"}

    before = SequenceNumber.parse(named(pec, "Delft").last_seq)
    await both.create(both.psc, "pec1\\forwarded")
    await both.create(both.pec, "pec1\\own")
    await both.converged()
    pec, psc = await status_of(both.pec), await status_of(both.psc)
    assert SequenceNumber.parse(named(psc, "Delft").last_seq).value == before.value + 2
    assert [p.missing for p in psc.partitions] == [0, 0, 0]
    assert psc.counters["forwarded"] == 1
    assert psc.counters["calls"] >= 2
    assert pec.counters["commits"] >= 2
    assert pec.counters["journal_lsn"] > 0
    assert pec.counters["sessions"] >= 2, "one in each direction"

    (neighbour,) = pec.neighbours
    assert (neighbour.name, neighbour.connected) == ("psc2", True)
    assert set(neighbour.acknowledged) == {named(pec, "enterprise").id, named(pec, "Delft").id}
    (other,) = psc.neighbours
    assert (other.name, set(other.acknowledged)) == ("pec1", {named(psc, "Leiden").id})

    status, body = await fetch(both.pec.ready.monitoring_port, "/health")
    found = json.loads(body)
    assert (status, found["healthy"], found["problems"]) == (200, True, [])
    assert found["verdict"]["grade"] == "green"

    assert [p.digest for p in pec.partitions] == [p.digest for p in psc.partitions]
    assert len({p.digest for p in pec.partitions}) == 3
    assert [p.name for p in pec.partitions if p.own_site] == ["Delft"]
    assert [p.name for p in psc.partitions if p.own_site] == ["Leiden"]


def test_two_servers(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as both:
            await _look_at(both)

    asyncio.run(run())


def test_a_neighbour_that_is_down(tmp_path: Path) -> None:
    async def run() -> None:
        async with pair(tmp_path) as both:
            await both.psc.__aexit__()
            await both.create(both.pec, "pec1\\q")

            async def waits() -> bool:
                (neighbour,) = (await status_of(both.pec)).neighbours
                return neighbour.queued > 0 and not neighbour.connected

            await until(waits)

    asyncio.run(run())


def test_a_new_server_tells_how_it_is_before_it_serves(tmp_path: Path) -> None:
    """One whose PEC is not there waits for its directory, for hours if need be."""

    async def run() -> None:
        ports = free_ports(3)
        async with DirectoryServer(pec_config(tmp_path / "pec1", ports[:2]), grace_s=1) as pec:
            config = await psc_config(pec, tmp_path / "psc2", ports[1])
        config = with_values(config, monitoring={"port": ports[2]})
        starting = asyncio.ensure_future(DirectoryServer(config, grace_s=1).start())
        try:

            async def asks() -> bool:
                try:
                    code, body = await fetch(ports[2], "/status")
                except ConnectionRefusedError:
                    return False
                assert code == 200
                status = ServerStatus.from_json(json.loads(body))
                assert (status.server, status.role) == ("psc2", "psc")
                return [(p.name, p.state) for p in status.partitions] == [("enterprise", "sync")]

            await until(asks)
            code, body = await fetch(ports[2], "/health")
            assert (code, json.loads(body)["problems"]) == (503, ["clients are not served yet"])
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    asyncio.run(run())


def test_a_server_without_a_role(tmp_path: Path) -> None:
    async def run() -> None:
        config = with_values(
            pec_config(tmp_path / "pec1", [0, 0]), server={"role": "none"}, rpc={"mapper": False}
        )
        async with DirectoryServer(config, grace_s=1) as server:
            status = await status_of(server)
            assert (status.role, status.site, status.neighbours) == ("none", "Delft", ())
            assert all(p.authority for p in status.partitions)
            async with client_of(server):
                assert (await status_of(server)).counters["connections"] == 1

    asyncio.run(run())


def test_nothing_listens_unless_it_is_wanted(tmp_path: Path) -> None:
    async def run() -> None:
        config = with_values(
            pec_config(tmp_path / "pec1", [0, 0]),
            server={"role": "none"},
            monitoring={"enabled": False},
        )
        async with DirectoryServer(config, grace_s=1) as server:
            assert server.ready.monitoring_port is None

    asyncio.run(run())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    async def run() -> None:
        config, other = (
            with_values(pec_config(tmp_path / name, [0, 0]), server={"role": "none"})
            for name in ("pec1", "pec2")
        )
        async with DirectoryServer(config, grace_s=1) as server:
            port = server.ready.monitoring_port
            taken = with_values(other, monitoring={"port": port})
            with pytest.raises(ConfigError, match=r"monitoring\.port"):
                await DirectoryServer(taken, grace_s=1).start()

    asyncio.run(run())
