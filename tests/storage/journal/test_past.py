"""The past of a server from its journal: what a simulated enterprise held, in all its faults."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.directory.comparing import compare
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.journal.folding import UnknownPast
from mqis.sim.scenario import Scenario, draw
from mqis.sim.server import SimServer
from mqis.sim.steps import Backup, Lie, Restore
from mqis.sim.trace import SimTrace
from mqis.sim.world import World
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.files import segments
from mqis.storage.journal.past import PastMoment, past_directory
from mqis.views.comparison.stored import objects_in_order

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
