"""One verdict: status, doctor, /health and the console turn red together, and green again."""

from __future__ import annotations

import asyncio
import json
import shlex
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mqis.config.file import default_toml, override, read
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.enterprise.collected_status import Collector
from mqis.findings import Gravity
from mqis.protocol.directory.objects import DirectoryObject
from mqis.server.monitoring import monitoring_endpoint
from mqis.storage.sqlite import SqliteStore
from mqis.testing.ports import free_ports
from mqis.views.console.server_places import Places
from mqis.views.doctor.examination import check_run
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import encode_properties
from mqis.wire.propvariant import PropVariant
from tests.cli.commands import run as command
from tests.server.enterprises import Site, create
from tests.server.monitoring.pair import fetch
from tests.waiting import until
from tests.web.asking import Visitor

QUEUE = "pec1\\orders"
_GRADES = {"good": "green", "late": "amber", "bad": "red"}


@dataclass(frozen=True)
class Enterprise:
    """A PEC and the PSC of another site, each of which compares itself with the other."""

    run: Path
    store: Path
    ports: dict[str, int]
    console: Visitor

    async def grades(self) -> dict[str, str]:
        """The verdict of each view."""
        status = await asyncio.to_thread(Collector.of_run(self.run).collect)
        doctor = await asyncio.to_thread(check_run, self.run)
        page = (await asyncio.to_thread(self.console.get, "/replication")).html
        worst = "red" if any(f.gravity is Gravity.ERROR for f in doctor) else "green"
        style = page.partition('<p class="note ')[2].partition('"')[0]
        return {
            "status": status.verdict.gravity.colour,
            "doctor": worst,
            "console": _GRADES[style],
            **{name: await self.health(name) for name in self.ports},
        }

    async def health(self, name: str) -> str:
        code, body = await fetch(self.ports[name], "/health")
        found = json.loads(body)
        assert found["healthy"] is (code == 200)
        assert (found["verdict"]["grade"] == "red") is (code == 503)
        return str(found["verdict"]["grade"])

    async def metrics(self, name: str) -> set[str]:
        """The samples that tell of faults."""
        _, body = await fetch(self.ports[name], "/metrics")
        told = ("mqis_partition_contents_", "mqis_verdict_findings{")
        lines = body.decode().splitlines()
        return {line for line in lines if line.startswith(told) and not line.endswith(" 0.0")}

    async def become(self, **grades: str) -> None:
        wanted = {"status", "doctor", "console", *self.ports}

        async def look() -> bool:
            found = await self.grades()
            return all(found[name] == grades.get(name, "red") for name in wanted)

        await until(look)

    def queue(self) -> DirectoryObject:
        with closing(SqliteStore(self.store)) as store, store.read() as view:
            found = view.find(ObjectType.QUEUE, QUEUE)
        assert found is not None
        return found


def monitored(home: Path, port: int, peer: int) -> None:
    config = override(
        read(home / "mqis.toml"),
        {
            "monitoring": {
                "enabled": True,
                "port": port,
                "peers": [f"http://127.0.0.1:{peer}"],
                "verify_s": 1,
            }
        },
        "test",
    )
    (home / "mqis.toml").write_text(default_toml(config))


@asynccontextmanager
async def enterprise(directory: Path) -> AsyncIterator[Enterprise]:
    site = Site(directory)
    ports = dict(zip(("pec1", "psc2"), free_ports(2), strict=True))
    monitored(site.found("pec1"), ports["pec1"], ports["psc2"])
    async with site.serving("pec1") as pec:
        monitored(await site.join(pec, "psc2", "psc", "Leiden"), ports["psc2"], ports["pec1"])
        async with site.serving("psc2"):
            await create(pec, QUEUE, "orders")
            save_nodes(directory, Nodes("Acme", tuple(place(site, n, p) for n, p in ports.items())))
            settings = ConsoleSettings(Places(directory), port=0)
            with running_console(settings) as url:
                visitor = await asyncio.to_thread(Visitor, url)
                yield Enterprise(directory, site.homes["psc2"] / "d.db", ports, visitor)


def place(site: Site, name: str, monitor: int) -> NodePlace:
    home = site.homes[name]
    paths = str(home), str(home / "mqis.toml"), str(home / "d.db"), "", ""
    # The run directory still has the role from before a promotion.
    return NodePlace(name, "bsc", "x", "127.0.0.1", 0, 0, 0, 0, monitor, *paths)


def test_all_views_turn_red_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One enterprise for all of it: it takes seconds to start."""
    monkeypatch.setattr(monitoring_endpoint, "COMPARE_S", 0.1)

    async def run() -> None:
        async with enterprise(tmp_path) as both:
            await both.become(**dict.fromkeys(await both.grades(), "green"))
            await _equal(both)
            await _edited_file(both)
            await _other_contents(both)

    asyncio.run(run())


async def _equal(both: Enterprise) -> None:
    status = await asyncio.to_thread(Collector.of_run(both.run).collect)
    assert status.summary == "Every replica is equal to its authority"
    assert [server.role for server in status.servers] == ["pec", "psc"]
    assert {cell.text for row in status.rows for cell in row.cells} == {"authority", "equal"}
    assert await both.metrics("pec1") == await both.metrics("psc2") == set()


async def _edited_file(both: Enterprise) -> None:
    """One byte of a quota changes in the file of the PSC: neither numbers nor digest tell."""
    obj = both.queue()
    body = encode_properties(obj.properties)
    more: dict[int, PropVariant] = props({PropId.Q_QUOTA: int(str(obj.value(PropId.Q_QUOTA))) ^ 1})
    edited = encode_properties({**obj.properties, **more})
    assert sum(a != b for a, b in zip(body, edited, strict=True)) == 1
    _write(both.store, edited, obj)
    await both.become(pec1="green")
    _, answer = await fetch(both.ports["psc2"], "/health")
    (problem,) = json.loads(answer)["problems"]
    assert problem.startswith("the contents of Delft were changed by something else than mqis")
    assert await both.metrics("psc2") == {
        'mqis_partition_contents_changed{partition="Delft"} 1.0',
        'mqis_verdict_findings{grade="red",kind="problem"} 1.0',
    }
    _write(both.store, body, obj)
    await both.become(**dict.fromkeys(await both.grades(), "green"))


def _write(store: Path, body: bytes, obj: DirectoryObject) -> None:
    with closing(sqlite3.connect(store)) as database:
        database.execute("UPDATE objects SET body=? WHERE id=?", (body, obj.id.raw))
        database.commit()


async def _other_contents(both: Enterprise) -> None:
    """The store of the PSC gets another label through mqis: the digest fits, and differs."""
    old = both.queue()
    new = replace(old, properties={**old.properties, **props({PropId.Q_LABEL: "other"})})
    with closing(SqliteStore(both.store)) as store, store.write() as tx:
        tx.update(old, new)
    await both.become(pec1="green")
    status = await asyncio.to_thread(Collector.of_run(both.run).collect)
    (finding,) = status.verdict.findings
    assert finding.what == (
        "psc2: Delft has the same last number as at pec1, but different contents"
    )
    assert "mqis diff --replicated server:psc2 server:pec1" in finding.todo
    pasted = finding.todo.partition("'")[2].rpartition("'")[0]
    shown = await asyncio.to_thread(command, *shlex.split(pasted)[1:])
    assert shown.exit_code == 1, shown.output
    assert "server:psc2 -> server:pec1: 1 changed" in shown.stdout
    assert f"~ {QUEUE}\n      label: other -> orders" in shown.stdout
    _, answer = await fetch(both.ports["psc2"], "/health")
    assert json.loads(answer)["problems"] == [finding.what]
    assert await both.metrics("pec1") == set()
    assert await both.metrics("psc2") == {
        'mqis_partition_contents_different{partition="Delft"} 1.0',
        'mqis_verdict_findings{grade="red",kind="contents"} 1.0',
    }
    page = await asyncio.to_thread(both.console.get, "/replication")
    assert "contents differ" in page.html
    assert "mqis diff --replicated server:psc2 server:pec1" in page.html
