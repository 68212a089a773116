"""``mqis key rotate`` on running servers: no message is refused, and only the new key is left."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from mqis.config.stores import open_store
from mqis.runtime.node.keyring import KeyRing, KeyStage
from mqis.storage.journal.checking import check_journal
from tests import waiting
from tests.cli.commands import run
from tests.server.enterprises import create_soon, until
from tests.server.rotations import ROLES, Rotating, rotating


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "signature" in line or "no key" in line]


async def exchange(made: Rotating, text: str) -> None:
    """Every server makes a change, and every other one gets it."""
    machines = {"pec1": "pec1", "psc2": "psc2", "bsc3": "psc2"}
    for name in made.running:
        path = f"{machines[name]}\\{text}-by-{name}"
        await create_soon(made[name], path, text)
        for other in made.running:
            await until(made[other], path, text)


@pytest.mark.req("SEC-26-01")
def test_every_server_gets_a_new_key_while_all_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def work() -> None:
        async with rotating(tmp_path) as made:
            for name in ROLES:
                before = made.ring(name)
                began = time.time()
                done = await made.rotate(name)
                ring = made.ring(name)
                new = ring.signing.key_id.hex()[:16]
                assert (done["done"], done["stage"], done["key"]) == (True, "steady", new)
                assert ring.signing.key_id != before.signing.key_id
                assert {at: made.listed(at, name) for at in ROLES} == {at: [new] for at in ROLES}
                monitor = f"http://127.0.0.1:{made.monitors[name]}/metrics"
                text = await waiting.in_time(_fetched(monitor))
                line = next(t for t in text.splitlines() if t.startswith("mqis_signing_key_writ"))
                assert float(line.split()[-1]) >= int(began), "its age falls to zero"
            await exchange(made, "after")
            listing = ("key", "list", "--config", made.config("psc2"), "--json")

            async def all_settled() -> bool:
                shown = json.loads((await asyncio.to_thread(run, *listing)).stdout)
                assert [held["server"] for held in shown] == ["psc2", "pec1", "bsc3"]
                assert all(held["accepted_otherwise_by"] == [] for held in shown)
                return all(held["rotation"] is None for held in shown)

            await waiting.until(all_settled)
        for name in ROLES:
            home = made.site.homes[name]
            checked = check_journal(home / "journal", [made.ring(name).signing.public])
            assert not checked.faults

    waiting.run(work())
    assert refusals(caplog) == []


async def _fetched(url: str) -> str:
    def get() -> str:
        with urlopen(url) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(get)


@pytest.mark.req("SEC-26-02")
def test_a_server_that_is_down_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def work() -> None:
        async with rotating(tmp_path) as made:
            old = made.ring("psc2").signing.key_id.hex()[:16]
            await made.stop("bsc3")
            told = await made.rotate("psc2", "--wait", "3", status=1)
            assert told["stage"] == "next"
            assert list(told["waiting"]) == ["bsc3"]
            assert told["key"] == old, "the old key signs"
            again = await made.rotate("psc2", "--wait", "0", status=1)
            assert again["stage"] == "next"
            await made.start("bsc3")
            done = await made.rotate("psc2")
            assert done["done"]
            assert made.listed("bsc3", "psc2") == [done["key"]] != [old]
            await exchange(made, "after")

    waiting.run(work())
    assert refusals(caplog) == []


def test_a_server_that_missed_everything_is_told_by_its_configuration(tmp_path: Path) -> None:
    """The files of all servers are on this computer, as with ``mqis up``."""

    async def work() -> None:
        async with rotating(tmp_path) as made:
            await made.stop("bsc3")
            done = await made.rotate("psc2", "--without", "bsc3")
            assert done["done"]
            assert made.listed("bsc3", "psc2") != [done["key"]]

    waiting.run(work())


@pytest.mark.parametrize("stage", [KeyStage.NEXT, KeyStage.FORMER, KeyStage.WITHDRAWN])
@pytest.mark.req("SEC-26-02")
def test_a_server_that_ends_in_the_middle_goes_on_at_its_next_start(
    tmp_path: Path, stage: KeyStage, caplog: pytest.LogCaptureFixture
) -> None:
    """The key file has the step, and the server ends before it has published anything of it."""
    caplog.set_level(logging.INFO)

    async def work() -> None:
        async with rotating(tmp_path) as made:
            old = made.ring("psc2")
            path = made.site.homes["psc2"] / "signing.key"
            ring = old.announced()
            if stage is not KeyStage.NEXT:
                ring.save(path)
                assert ring.following is not None
                new = ring.following.key_id.hex()[:16]
                await waiting.until(lambda: all(new in made.listed(at, "psc2") for at in ROLES))
                ring = ring.switched(time.time())
            if stage is KeyStage.WITHDRAWN:
                ring.save(path)
                await waiting.until(lambda: all(made.listed(at, "psc2")[0] == new for at in ROLES))
                ring = ring.withdrawn()
            await made.stop("psc2")
            ring.save(path)
            await made.start("psc2")
            done = await made.rotate("psc2")
            assert done["done"]
            assert done["key"] != old.signing.key_id.hex()[:16]
            assert {tuple(made.listed(at, "psc2")) for at in ROLES} == {(done["key"],)}
            await exchange(made, "after")

    waiting.run(work())
    assert refusals(caplog) == []


@pytest.mark.req("SEC-26-01")
def test_a_key_that_nobody_knows_does_not_sign_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with rotating(tmp_path) as made:
            path = made.site.homes["psc2"] / "signing.key"
            stranger = KeyRing.open(tmp_path / "stranger.key")
            stranger.save(path)
            await waiting.until(lambda: "no other server knows" in caplog.text)
            await exchange(made, "after")

    waiting.run(work())
    assert refusals(caplog) == []


@pytest.mark.req("SEC-26-03")
def test_a_withdrawn_key_stays_withdrawn_although_a_seed_names_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with rotating(tmp_path) as made:
            old = made.ring("psc2").signing.key_id.hex()[:16]
            assert (await made.rotate("psc2"))["done"]
            assert "psc2" in made.config("bsc3").read_text()
            for _ in range(2):
                told = json.loads(
                    await _fetched(f"http://127.0.0.1:{made.monitors['bsc3']}/keys?server=psc2")
                )
                assert old not in told["keys"]["psc2"]
                await made.stop("bsc3")
                await made.start("bsc3")
            with closing(open_store(str(made.site.homes["bsc3"] / "d.db"))) as store:
                assert not store.check()

    waiting.run(work())
