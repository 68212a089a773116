"""Quotas and budgets: changes that another server executes, the settings, the metric."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.directory.guard import Allowance
from mqis.protocol.errors import DirectoryError
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ANONYMOUS, EVERYONE, Sid
from tests.server.monitoring.pair import fetch
from tests.server.monitoring.pair import pec_config as monitored
from tests.server.test_forwarding import Enterprise
from tests.server.test_replication_serve import MACHINE, QUEUE, client_of, with_values
from tests.waiting import in_time

OPEN = parse_sddl("D:(A;;0xF00F7;;;WD)").to_bytes()
GIFT = parse_sddl("O:WDD:(A;;0xF003F;;;WD)").to_bytes()
TOO_MUCH = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


@pytest.fixture(scope="module")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    made = Enterprise(tmp_path_factory.mktemp("enterprise"))

    async def machine() -> None:
        async with client_of(made.psc) as client:
            await client.create(MACHINE, "host", props({PropId.QM_SITE_ID: made.site("Leiden")}))
            await client.set_security(MACHINE, 4, OPEN, path="host")

    made.run(machine())
    made.everywhere(MACHINE, "host")
    yield made
    made.close()


def limit(server: DirectoryServer, **limits: int) -> None:
    """Nobody is an administrator of this server from now on, and all have new limits."""
    directory = server._directory
    assert directory is not None
    settings = replace(
        directory.settings, administrators=frozenset(), allowance=Allowance(**limits)
    )
    directory.reconfigure(settings)


def created(server: DirectoryServer, account: Sid) -> int:
    directory = server._directory
    assert directory is not None
    with directory.store.read() as view:
        return view.count_created(account.to_bytes())


async def create(server: DirectoryServer, path: str, descriptor: bytes | None = None) -> int:
    async with client_of(server) as client:
        try:
            await client.create(QUEUE, path, props({PropId.Q_LABEL: "x"}), descriptor=descriptor)
        except DirectoryError as error:
            return error.hresult
    return 0


@pytest.mark.req("SEC-20-01", "SEC-20-02")
def test_a_forwarded_gift_counts_for_who_asked(enterprise: Enterprise) -> None:
    bsc = enterprise.bsc
    before = created(bsc, ANONYMOUS)
    limit(bsc, max_owned=before + 3)
    results = []
    for number in range(4):
        results.append(enterprise.run(create(bsc, f"host\\gift{number}", GIFT)))
        if not results[-1]:
            enterprise.everywhere(QUEUE, f"host\\gift{number}")
    assert results == [0, 0, 0, TOO_MUCH]
    assert created(bsc, ANONYMOUS) == before + 3
    assert created(bsc, EVERYONE) == 0
    assert created(enterprise.psc, EVERYONE) == 3  # it does not know who asked

    async def delete() -> None:
        async with client_of(enterprise.psc) as client:
            await client.delete(QUEUE, path="host\\gift0")

    enterprise.run(delete())
    enterprise.wait(lambda: enterprise.find(bsc, QUEUE, "host\\gift0") is None or None)
    assert created(bsc, ANONYMOUS) == before + 2
    assert enterprise.run(create(bsc, "host\\gift9", GIFT)) == 0


@pytest.mark.req("SEC-19-01")
def test_the_server_that_was_called_charges_forwarded_changes(enterprise: Enterprise) -> None:
    bsc, psc = enterprise.bsc, enterprise.psc
    directory, replication = bsc._directory, bsc._replication
    assert directory is not None
    assert replication is not None
    statistics = replication.driver.statistics
    limit(bsc, max_changes=10_000)
    hours = directory.budgets.changes._hours
    used = hours[ANONYMOUS].used if ANONYMOUS in hours else 0
    limit(bsc, max_changes=used + 2)
    asked = statistics.forwarded
    results = [enterprise.run(create(bsc, f"host\\budget{n}")) for n in range(4)]
    assert results == [0, 0, TOO_MUCH, TOO_MUCH]
    assert statistics.forwarded == asked + 2
    assert enterprise.run(create(psc, "host\\budget9")) == 0


@pytest.mark.req("SEC-19-02")
def test_the_settings_are_live_and_a_metric_counts(tmp_path: Path) -> None:
    async def scenario() -> str:
        config = monitored(tmp_path / "pec1", free_ports(2))
        async with DirectoryServer(config, 1) as server:
            async with client_of(server) as client:
                await client.create(MACHINE, "host", props({PropId.QM_SITE_ID: site_of(server)}))
                await client.set_security(MACHINE, 4, OPEN, path="host")
            security: dict[str, object] = {"administrators": [], "max_changes_per_hour": 4}
            server.reread(with_values(config, security=security))
            results = [await create(server, f"host\\q{n}") for n in range(6)]
            assert results == [0, 0, 0, 0, TOO_MUCH, TOO_MUCH]
            security |= {"max_changes_per_hour": 1000, "max_written_mb_per_hour": 1}
            server.reread(with_values(config, security=security))
            large = parse_sddl("D:" + "(A;;0x3F;;;S-1-5-21-1-2-3-4)" * 1000).to_bytes()
            codes = [await create(server, f"host\\large{n}", large) for n in range(60)]
            assert codes == [*[0] * codes.count(0), *[TOO_MUCH] * codes.count(TOO_MUCH)]
            assert 20 < codes.count(0) < 40  # of some 36 kB each
            return (await fetch(server.ready.monitoring_port, "/metrics"))[1].decode()

    text = asyncio.run(in_time(scenario()))
    assert 'mqis_changes_over_budget_total{budget="changes"} 2' in text
    refused = re.search(r'mqis_changes_over_budget_total{budget="bytes"} (\d+)', text)
    assert refused is not None
    assert 20 < int(refused[1]) < 40


def site_of(server: DirectoryServer) -> Guid:
    directory = server._directory
    assert directory is not None
    with directory.store.read() as view:
        found = view.find(ObjectType.SITE, "Delft")
    assert found is not None
    return found.id
