"""A mirror that is killed at any moment misses nothing and repeats nothing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path

from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.config.stores import open_store
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.ports import View
from mqis.storage.journal.checking import StoreEnd, check_journal
from mqis.storage.journal.journal_reader import load_behind
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import Whole
from mqis.wire.mqdsrp.change import Command
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored

QUEUES = 450
#: Searches that a mirror makes before it is killed: in the middle of everything, and behind it.
MOMENTS = (3, 40, 260, 480, 900)


def contents(view: View) -> dict[Guid, dict[int, object]]:
    return {obj.id: dict(obj.properties) for kind in ORDER for obj in view.objects(kind)}


def created(directory: Path) -> Counter[tuple[int, Guid]]:
    """The number of journal records that create each object."""
    return Counter(
        (int(entry.record.object_type or 0), entry.record.object_id)
        for segment in load_behind(directory, 0)
        for entry in segment.entries()
        if isinstance(entry, Whole) and entry.record.operation == Command.CREATE
    )


async def run(estate: MirroredEstate, store: Path, kill_after: int | None = None) -> int:
    """Runs the command against the estate; kills it when it has made so many searches."""
    command = (sys.executable, "-m", "mqis.cli.main", "mirror", estate.server.url, "--once")
    process = await asyncio.create_subprocess_exec(
        *command, "--store", str(store), "--method", "anonymous",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    seen = 0

    def count(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_after and process.returncode is None:
            process.send_signal(signal.SIGKILL)
        estate.server.before_search.append(count)

    estate.server.before_search[:] = [count]
    _, errors = await process.communicate()
    estate.server.before_search.clear()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode or 0


def test_killed_at_any_moment(tmp_path: Path) -> None:
    store, journal = tmp_path / "estate.db", tmp_path / "estate-journal"

    async def test(estate: MirroredEstate) -> None:
        for number in range(QUEUES):
            estate.add_queue(f"q{number}")
        killed = [await run(estate, store, moment) for moment in MOMENTS]
        assert -signal.SIGKILL in killed[:3]
        assert await run(estate, store) == 0
        for number in range(5):
            estate.label(estate.orders, b"%d" % number)
            estate.delete(estate.add_queue(f"short{number}"))
            estate.add_queue(f"late{number}")
            await run(estate, store, 4 + 7 * number)
        assert await run(estate, store) == 0
        await EstateMirror(estate.client, fresh := MemoryStore(), "corp.example").round()
        found = open_store(str(store))
        with found.read() as view, fresh.read() as whole:
            assert contents(view) == contents(whole)
            check = check_journal(journal, end=StoreEnd.of(view))
        found.close()
        assert check.faults == ()
        assert set(created(journal).values()) == {1}

    mirrored(test)
