"""``/health`` of one server among several speaks for that server, and says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from mqis.config.file import default_toml, load, override, read
from mqis.findings import Gravity
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_ports
from mqis.views.doctor.examination import check_server
from tests.server.enterprises import Site
from tests.server.monitoring.pair import fetch
from tests.waiting import until

ALONE = "One server, with the only copy of the directory"
NAMES = ("pec1", "psc2", "bsc3")


def sentence(name: str, others: str) -> str:
    return (
        f"{name} speaks for itself: no fault is known here; 'mqis status' compares it with "
        f"{others} that it replicates with"
    )


def monitored(home: Path, port: int) -> None:
    values = {"monitoring": {"enabled": True, "port": port}}
    config = override(read(home / "mqis.toml"), values, "test")
    (home / "mqis.toml").write_text(default_toml(config))


async def _verdict(server: DirectoryServer) -> dict[str, str]:
    code, body = await fetch(server.ready.monitoring_port, "/health")
    assert code == 200, body
    found: dict[str, str] = json.loads(body)["verdict"]
    return found


async def _becomes(server: DirectoryServer, summary: str) -> None:
    async def look() -> bool:
        return (await _verdict(server))["summary"] == summary

    await until(look, summary)
    assert (await _verdict(server))["grade"] == "green"


def test_a_server_among_others_speaks_for_itself(tmp_path: Path) -> None:
    site = Site(tmp_path)
    ports = dict(zip(NAMES, free_ports(3), strict=True))

    async def run() -> None:
        monitored(site.found("pec1"), ports["pec1"])
        async with site.serving("pec1") as pec:
            await _becomes(pec, ALONE)
            monitored(await site.join(pec, "psc2", "psc", "Leiden"), ports["psc2"])
            monitored(await site.join(pec, "bsc3", "bsc", "Delft", "pec1"), ports["bsc3"])
            async with site.serving("psc2") as psc, site.serving("bsc3") as bsc:
                await _becomes(pec, sentence("pec1", "the 2 servers"))
                await _becomes(psc, sentence("psc2", "the server"))
                await _becomes(bsc, sentence("bsc3", "the server"))
                config = load(site.homes["psc2"] / "mqis.toml")
                (doctor,) = await asyncio.to_thread(check_server, config)
                assert doctor.gravity is Gravity.OK
                assert doctor.what == sentence("psc2", "the server")

    asyncio.run(run())
