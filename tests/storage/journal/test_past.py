"""The past of a server from its journal: what a simulated enterprise held, in all its faults."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.lab import demo
from mqis.protocol.directory.directory_difference import compare
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.errors import StorageError
from mqis.protocol.journal.folding import UnknownPast
from mqis.protocol.replication.outgoing_changes import unsent_record
from mqis.runtime.entropy import SystemEntropy
from mqis.sim.run_trace import SimTrace
from mqis.sim.scenario import Scenario, draw
from mqis.sim.simulated_server import SimServer
from mqis.sim.steps import Backup, Lie, Restore
from mqis.sim.world import World
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.past import PastMoment, past_directory
from mqis.storage.memory_store import MemoryStore
from mqis.views.comparison.side import objects_in_order
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: Servers crash, lose messages, synchronise anew and take office in it; 4 servers.
SEED = 13


def scenario(seed: int) -> Scenario:
    """Without what changes a store around its journal: disks put back, lies of an authority."""
    drawn = draw(seed)
    steps = tuple(s for s in drawn.steps if not isinstance(s, Backup | Restore | Lie))
    return replace(drawn, steps=steps, journaled=True, streams=False, sqlite=False, skew_s=0.0)


def held(server: SimServer) -> list[DirectoryObject]:
    with server.disk.store.read() as view:
        return list(objects_in_order(view))


def flush(server: SimServer, journals: Path, *, snapshot: bool = False) -> int:
    with closing(Journal(journals / server.name, server.name, server.me.id)) as journal:
        appender = Appender(server.disk.store, journal)
        appender.flush()
        if snapshot:
            appender.snapshot()
        return journal.last_lsn


def rebuilt(journals: Path, name: str, lsn: int) -> list[DirectoryObject]:
    store, last = past_directory(journals / name, PastMoment(lsn=lsn))
    assert last == lsn
    with store.read() as view:
        return list(objects_in_order(view))


def test_every_server_of_a_simulation_is_rebuilt_at_three_moments(tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    moments: list[tuple[str, int, list[DirectoryObject]]] = []
    with closing(World(scenario(SEED), SimTrace(keep=False), tmp_path, journals)) as world:
        world._build_enterprise()
        for phase in (None, world._run_fault_phase, world._run_healing_phase):
            if phase is not None:
                phase()
            for server in world.servers.values():
                lsn = flush(server, journals, snapshot=not moments or server.me.is_pec)
                moments.append((server.name, lsn, held(server)))
    assert any(objects != moments[0][2] for _, _, objects in moments)
    for name, lsn, objects in moments:
        if segments(journals / name):
            past = rebuilt(journals, name, lsn)
            assert list(compare(past, objects)) == [], (name, lsn)


def test_a_moment_is_a_time_or_a_record() -> None:
    assert PastMoment.parse("1200").lsn == 1200
    noon = PastMoment.parse("2000-01-01T12:00")
    assert noon.time_us == PastMoment.parse("2000-01-01T13:00+01:00").time_us == 946728000_000_000
    for text in ("", "yesterday", "2000-13-01", "9" * 30):
        with pytest.raises(StorageError, match="is no moment"):
            PastMoment.parse(text)


def test_a_journal_without_anything_tells_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnknownPast, match="no segment and no snapshot"):
        past_directory(tmp_path, PastMoment())


def test_a_time_is_told_from_the_newest_snapshot_before_it(tmp_path: Path) -> None:
    store = MemoryStore()
    demo.build(store)
    names = ("One", "Two", "Three")
    with closing(Journal(tmp_path, "ams-dir1", Guid(b"m" * 16))) as journal:
        appender = Appender(store, journal)
        for number, name in enumerate(names):
            made(store, name, 1_000_000 * (2 * number + 1))
            appender.flush()
            appender.snapshot()

    for time_s, expected in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 3)):
        past, last = past_directory(tmp_path, PastMoment(time_us=time_s * 1_000_000))
        with past.read() as view:
            there = [name for name in names if view.find(ObjectType.CN, name) is not None]
        assert (there, last) == ([*names[:expected]], expected)
    with pytest.raises(UnknownPast, match="begins later at 1970-01-01T00:00:01Z with record 1"):
        past_directory(tmp_path, PastMoment(time_us=999_999))


def made(store: MemoryStore, name: str, time_us: int) -> None:
    with store.write() as tx:

        def record(change: OwnChange) -> None:
            tx.append(unsent_record(change, time_us))

        events = DirectoryEvents(tx, 1, SystemEntropy(), observe=record)
        events.create_directory_object(ObjectType.CN, props({PropId.CN_NAME: name}))
