"""Servers that take the place of lost ones, with real servers that go on meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.admin.promote.following import plan_follow
from mqis.admin.promote.promotion_plan import rewrite
from mqis.admin.promote.rebuilding import RebuildRequest, plan_rebuild
from mqis.admin.promote.takeover import Takeover, plan_takeover
from mqis.client.remote import Remote
from mqis.config.errors import ConfigError
from mqis.config.file import default_toml, load, override, parse, read
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.sections import ConfiguredRole
from mqis.config.stores import open_store
from mqis.enterprise.replacing import Replacing
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import PurgeState
from mqis.server.directory_server import DirectoryServer
from mqis.wire.errors import MqisError
from mqis.wire.mqds.propid import PropId
from tests import waiting
from tests.server.enterprises import (
    MACHINE,
    SITE,
    Site,
    client_of,
    create,
    create_soon,
    until,
)


class Threaded:
    """A loop for ``Remote`` in a thread of its own, as a command has it."""

    def run(self, coro: object, /) -> object:
        return asyncio.run_coroutine_threadsafe(coro, self.loop).result(30)  # type: ignore[arg-type]

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop


async def taken_over(pec: DirectoryServer, file: Path, *, dry: bool = False) -> Takeover:
    async with client_of(pec) as client:
        remote = Remote(Threaded(asyncio.get_running_loop()), client)  # type: ignore[arg-type]

        def work() -> Takeover:
            takeover = plan_takeover(file, remote)
            if not dry:
                takeover.carry_out(remote)
            return takeover

        return await asyncio.to_thread(work)


async def psc_of(server: DirectoryServer, site: str) -> object:
    async with client_of(server) as client:
        return (await client.get(SITE, [PropId.S_PSC], path=site))[PropId.S_PSC].value


async def role_of(server: DirectoryServer, name: str) -> ServiceBits | None:
    async with client_of(server) as client:
        bits = (await client.get(MACHINE, [PropId.QM_SERVICE], path=name))[PropId.QM_SERVICE].value
        assert isinstance(bits, int)
        return ServiceAttributes.from_bits(bits).role


async def becomes_role(server: DirectoryServer, name: str, role: ServiceBits) -> None:
    async def look() -> bool:
        return await role_of(server, name) is role

    await waiting.until(look, f"{name} is {role.name} at {server.ready.server}")


async def two_backups(site: Site, stack: AsyncExitStack) -> dict[str, DirectoryServer]:
    """A PEC, and a site with a PSC and two backups; the PSC is lost with a change of its own."""
    site.found("pec1")
    pec = await stack.enter_async_context(site.serving("pec1"))
    await site.join(pec, "psc2", "psc", "Leiden")
    async with site.serving("psc2") as psc:
        for name in ("bsc3", "bsc4"):
            await site.join(pec, name, "bsc", "Leiden", psc="psc2")
        async with site.serving("bsc3") as third, site.serving("bsc4") as fourth:
            await create(psc, "psc2\\known", "everywhere")
            for server in (pec, third, fourth):
                await until(server, "psc2\\known", "everywhere")
    async with site.serving("psc2") as psc:
        await create(psc, "psc2\\late", "the PEC has it")
        await until(pec, "psc2\\late", "the PEC has it")
    return {"pec1": pec}


async def next_steps(pec: DirectoryServer, run: Path, *up: str) -> tuple[str, ...]:
    """What 'mqis promote bsc3' leaves to the operator of 'mqis up', while ``up`` run."""
    homes = sorted((run / "servers").iterdir())
    places = (
        NodePlace(
            *(home.name, home.name[:3], "Leiden", "127.0.0.1", 1, 2, 3, 4, 5),
            *(str(home), str(home / "mqis.toml"), str(home / "d.db"), "", ""),
            pid=7 if home.name in up else None,
        )
        for home in homes
    )
    save_nodes(run, Nodes("Acme", tuple(places)))
    async with client_of(pec) as client:
        remote = Remote(Threaded(asyncio.get_running_loop()), client)  # type: ignore[arg-type]
        return (await asyncio.to_thread(Replacing(run, "bsc3").planned, remote)).next


async def check_next_steps(pec: DirectoryServer, run: Path) -> None:
    """'mqis up' does what has to be typed where there is no run directory."""
    homes = run / "servers"
    file, other = homes / "bsc3" / "mqis.toml", homes / "bsc4" / "mqis.toml"
    shown = (await taken_over(pec, file, dry=True)).plan
    assert shown.next[0].startswith(f"mqis serve --config {file}; ")
    assert shown.next[1:] == (
        "on bsc4: mqis promote --follow bsc3; mqis serve",
        "if psc2 comes back, there: mqis promote --follow bsc3; else delete its machine",
    )
    assert plan_follow(other, "bsc3").plan.next == (f"mqis serve --config {other}",)
    by_up = (
        "'mqis up' lets psc2 follow bsc3, or join again if its directory is gone; "
        "'mqis up --adopt' writes the new roles into the file"
    )
    by_hand = f"mqis stop bsc4 && mqis promote --follow bsc3 --config {other} && mqis start bsc4"
    assert await next_steps(pec, run, "bsc3", "bsc4") == (by_up,)
    assert await next_steps(pec, run, "bsc3") == (by_hand, by_up)
    shown = (await taken_over(pec, file, dry=True)).plan
    assert shown.next[0].startswith("mqis start bsc3; ")
    assert shown.next[1:] == (by_hand, by_up)
    assert plan_follow(other, "bsc3").plan.next == ("mqis start bsc4",)
    (run / "nodes.json").unlink()


def test_a_backup_takes_the_place_of_a_lost_psc(tmp_path: Path) -> None:
    """With signatures required, the other backup and the lost PSC accept the promoted one."""

    async def run() -> None:
        # Long enough for the PEC to answer on a busy machine; the lost PSC never does.
        (tmp_path / "servers").mkdir()
        site = Site(tmp_path / "servers", signing="require", recovery_wait_s=8)
        async with AsyncExitStack() as stack:
            pec = (await two_backups(site, stack))["pec1"]
            last = site.numbers("psc2")["Leiden"]
            file = site.homes["bsc3"] / "mqis.toml"
            before = file.read_bytes()

            await check_next_steps(pec, tmp_path)
            shown = (await taken_over(pec, file, dry=True)).plan
            assert shown.title == "bsc3 becomes the PSC of Leiden in the place of psc2"
            assert [step.where for step in shown.steps] == ["pec1", "bsc3", "bsc3", "bsc3", "bsc4"]
            assert file.read_bytes() == before
            assert await psc_of(pec, "Leiden") == "psc2"

            await taken_over(pec, file)
            assert await psc_of(pec, "Leiden") == "bsc3"
            assert (read(file).server.role, read(file).replication.psc) == (ConfiguredRole.PSC, "")
            other = site.homes["bsc4"] / "mqis.toml"
            plan_follow(other, "bsc3").carry_out()

            async with site.serving("bsc3") as new, site.serving("bsc4") as fourth:
                await until(new, "psc2\\late", "the PEC has it")
                await create_soon(new, "bsc3\\mine", "decided here")
                for server in (pec, fourth):
                    await until(server, "psc2\\late", "the PEC has it")
                    await until(server, "bsc3\\mine", "decided here")
                    await becomes_role(server, "bsc3", ServiceBits.PSC)
                    await becomes_role(server, "psc2", ServiceBits.BSC)
                assert site.numbers("bsc3")["Leiden"] > last + (1 << 20)

                # The lost one comes back as it was, and decides nothing.
                async with site.serving("psc2") as old:
                    await until(old, "bsc3\\mine", "decided here")
                    await create_soon(old, "psc2\\forwarded", "by the new one")
                    await until(new, "psc2\\forwarded", "by the new one")

                # And then as a backup.
                plan_follow(site.homes["psc2"] / "mqis.toml", "bsc3").carry_out()
                async with site.serving("psc2") as old:
                    await until(old, "bsc3\\mine", "decided here")
                    await becomes_role(new, "psc2", ServiceBits.BSC)
                    await create_soon(old, "psc2\\again", "through the new one")
                    await until(fourth, "psc2\\again", "through the new one")
                await site.settled(lambda: site.numbers("bsc4") == site.numbers("bsc3"))

    asyncio.run(run())


def believe(file: Path, seed: Path) -> None:
    """Replaces the older seed line of a server by the new one, as an operator does."""
    config = read(file)
    line = seed.read_text().strip()
    name = line.partition(" ")[0]
    kept = [s for s in config.replication.seeds if not s.startswith(f"{name} ")]
    values: dict[str, dict[str, object]] = {"replication": {"seeds": [*kept, line]}}
    file.write_text(default_toml(override(config, values, "test")))


def test_a_lost_pec_is_built_anew_from_the_copy_of_a_psc(tmp_path: Path) -> None:
    """Under its name and GUID, with another key, while the PSC goes on."""

    async def run() -> None:
        site = Site(tmp_path, signing="require")
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2") as psc:
                await create(pec, "pec1\\q", "kept")
                await until(psc, "pec1\\q", "kept")
        last = site.numbers("psc2")
        async with site.serving("psc2") as psc:
            file = site.homes["psc2"] / "mqis.toml"
            before = file.read_bytes()
            wish = RebuildRequest(
                "pec1", tmp_path / "new", port=site.rpc_ports["pec1"], queue_port=site.ports["pec1"]
            )
            rebuilding = await asyncio.to_thread(plan_rebuild, file, wish)
            assert "pec1 (pec of Delft) is rebuilt" in rebuilding.plan.title
            assert not wish.to.exists()
            await asyncio.to_thread(rebuilding.carry_out)
            site.homes["pec1"] = wish.to
            made = load(wish.to / "mqis.toml")
            assert (made.server.role, made.replication.signing.value) == (
                ConfiguredRole.PEC,
                "require",
            )
            believe(file, wish.to / "seed.txt")
            (wish.to / "directory.db").rename(wish.to / "d.db")
            text = (wish.to / "mqis.toml").read_text().replace("directory.db", "d.db")
            (wish.to / "mqis.toml").write_text(text)
        async with site.serving("psc2") as psc, site.serving("pec1") as pec:
            assert pec.ready.partitions == ("enterprise", "Delft")
            await create_soon(pec, "pec1\\new", "decided anew")
            await until(psc, "pec1\\new", "decided anew")
            await until(pec, "pec1\\q", "kept")
            numbers = site.numbers("pec1")
            assert numbers["enterprise"] >= last["enterprise"] + (1 << 20)
            assert numbers["Delft"] > last["Delft"] + (1 << 20)
            await site.settled(lambda: site.numbers("psc2") == site.numbers("pec1"))
            await site.settled(lambda: site.mark("pec1") is None)
        # Its new key is in the directory now, and the seed has served its time.
        (site.homes["psc2"] / "mqis.toml").write_bytes(before)
        async with site.serving("psc2") as psc, site.serving("pec1") as pec:
            await create(pec, "pec1\\signed", "by the new key")
            await until(psc, "pec1\\signed", "by the new key")

    asyncio.run(run())


# --- what is refused ------------------------------------------------------------------------------


def test_a_psc_that_answers_is_not_lost(tmp_path: Path) -> None:
    async def run() -> None:
        site = Site(tmp_path)
        site.found("pec1")
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")
            async with site.serving("psc2"):
                await site.join(pec, "bsc3", "bsc", "Leiden", psc="psc2")
                file = site.homes["bsc3"] / "mqis.toml"
                async with site.serving("bsc3"):
                    with pytest.raises(MqisError, match="has this store open; stop it first"):
                        await taken_over(pec, file)
                with pytest.raises(MqisError, match=r"psc2 answers at .*: it is not lost"):
                    await taken_over(pec, file)
            with pytest.raises(MqisError, match="pec1 is a pec: only a backup of the site"):
                await taken_over(pec, site.homes["pec1"] / "mqis.toml")
            psc = site.homes["psc2"] / "mqis.toml"
            wish = RebuildRequest("bsc3", tmp_path / "new")
            for changed, message in (
                (wish, "a backup simply joins again"),
                (replace(wish, name="pec1"), "pec1 answers at"),
                (replace(wish, name="psc2"), "psc2 is this server"),
                (replace(wish, name="x"), "has no machine x"),
                (replace(wish, to=tmp_path), "is not empty"),
            ):
                with pytest.raises(MqisError, match=message):
                    await asyncio.to_thread(plan_rebuild, psc, changed)
            with closing(open_store(load(psc).store.url, claim=True)) as store, store.write() as tx:
                for state in list(tx.partitions())[-1:]:
                    tx.put_partition(replace(state, purge_state=PurgeState.STARTING_SYNC0))
            with pytest.raises(MqisError, match="here is being synchronised; wait"):
                await asyncio.to_thread(plan_rebuild, psc, replace(wish, name="pec1"))
            with pytest.raises(MqisError, match="pec1 is not a server of site Leiden"):
                plan_follow(psc, "pec1")
            with closing(sqlite3.connect(site.homes["psc2"] / "d.db")) as database:
                database.execute("DELETE FROM commits")
                database.commit()
            with pytest.raises(MqisError, match="the store here is damaged, so it cannot replace"):
                await asyncio.to_thread(plan_rebuild, psc, replace(wish, name="pec1"))

    asyncio.run(run())


def test_a_configuration_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    home = tmp_path / "gone" / "mqis.toml"
    with pytest.raises(ConfigError, match=r"mqis\.toml: cannot be written: No such file"):
        rewrite(home, parse({}))
