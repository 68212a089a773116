"""``mqis restore`` puts one backup back twice: the server gives no number to two changes."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from mqis.config.file import load
from mqis.config.stores import open_store
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.wire.guid import Guid
from tests.cli.commands import run
from tests.server.enterprises import Site, create_soon


def numbers(site: Site, name: str) -> dict[Guid, set[int]]:
    """The numbers of all changes in the store, by partition."""
    config = load(site.homes[name] / "mqis.toml")
    with closing(open_store(config.store.url)) as store, store.read() as view:
        return {
            state.id: {change.seq.value for change in view.changes(state.id, state.purged_seq)}
            for state in view.partitions()
        }


def restored(site: Site, archive: Path) -> None:
    file = site.homes["pec1"] / "mqis.toml"
    done = run("restore", archive, "--config", file, "--force")
    assert done.exit_code == 0, done.output


def test_a_backup_that_is_restored_twice_gives_no_number_twice(tmp_path: Path) -> None:
    """The PSC of another site is off, so nobody can tell the PEC what it gave out before."""
    site = Site(tmp_path, recovery_wait_s=1)
    archive = tmp_path / "pec1.mqisbackup"

    async def life(label: str) -> None:
        async with site.serving("pec1") as pec:
            for index in range(3):
                await create_soon(pec, f"pec1\\{label}{index}", label)
            # Another partition may still be asked about.
            await site.settled(lambda: site.mark("pec1") is None)

    async def begin() -> None:
        async with site.serving("pec1") as pec:
            await site.join(pec, "psc2", "psc", "Leiden")

    site.found("pec1")
    asyncio.run(begin())
    done = run("backup", archive, "--config", site.homes["pec1"] / "mqis.toml")
    assert done.exit_code == 0, done.output
    given = []
    for label in ("first", "second"):
        restored(site, archive)
        asyncio.run(life(label))
        given.append(numbers(site, "pec1"))
    first, second = given
    (delft,) = (id_ for id_ in first if id_ != ENTERPRISE_PARTITION and len(first[id_]) == 3)
    assert max(first[delft]) < min(second[delft])
    assert len(second[delft]) == 3
