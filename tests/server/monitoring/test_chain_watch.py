"""A running server checks the files of its journal now and then, and its metrics tell of faults."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import enumerate as threads

import pytest

from mqis.config.sections import Config
from mqis.server.directory_server import DirectoryServer
from mqis.server.monitoring import status_sources
from mqis.storage.journal.journal_files import segments
from mqis.testing.ports import free_ports
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from tests.server.monitoring.pair import client_of, pec_config, scrape, with_values
from tests.waiting import DEADLINE_S, until


def faults(text: str) -> float:
    (line,) = (line for line in text.splitlines() if line.startswith("mqis_journal_faults "))
    return float(line.split()[1])


async def create(server: DirectoryServer, name: str) -> None:
    async with client_of(server) as client:
        queue: dict[int, PropVariant] = props({PropId.Q_LABEL: name})
        await client.create(ObjectType.QUEUE, f"pec1\\{name}", queue)


def _segment(config: Config, label: str) -> Path | None:
    """The file that has a record with this label; None if there is none yet."""
    found = segments(Path(config.replication.journal)).values()
    return next((path for path in found if label.encode("utf-16-le") in path.read_bytes()), None)


def test_damage_of_a_record_shows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    base = pec_config(tmp_path / "pec1", free_ports(2))
    config = with_values(base, monitoring={"verify_s": 1})

    async def run() -> None:
        async with DirectoryServer(config, grace_s=1) as server:
            for name in ("one", "two"):
                await create(server, name)
            segment = await until(lambda: _segment(config, "two"), "it is in the journal")
            assert faults(await scrape(server)) == 0
            assert "the journal is damaged" not in caplog.text
            whole = segment.read_bytes()
            place = whole.index("one".encode("utf-16-le"))
            with segment.open("r+b") as file:
                file.seek(place)
                file.write(b"O")

            async def told() -> bool:
                return faults(await scrape(server)) > 0

            await until(told, "the fault is counted")
            lines = [r.message for r in caplog.records if "journal is damaged" in r.message]
            assert f"{segment.name}: offset" in lines[0]
            assert "checksum" in lines[0]
            with segment.open("r+b") as file:
                file.seek(place)
                file.write(b"o")
            await until(lambda: _is_zero(server), "it is whole again")

    asyncio.run(run())


async def _is_zero(server: DirectoryServer) -> bool:
    return faults(await scrape(server)) == 0


def test_a_server_that_ends_ends_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A check of gigabytes takes hours; here its first pause does."""
    monkeypatch.setattr(status_sources, "_PAUSE", 1e9)
    config = pec_config(tmp_path / "pec1", free_ports(2))

    async def start() -> None:
        async with DirectoryServer(config, grace_s=1) as server:
            await create(server, "one")

    async def run() -> None:
        async with DirectoryServer(config, grace_s=1):
            await until(lambda: "mqis-contents" in {t.name.rpartition("_")[0] for t in threads()})

    asyncio.run(start())
    asyncio.run(asyncio.wait_for(run(), DEADLINE_S))
    assert "the journal" not in caplog.text
