"""Simulated enterprises: their journals and stores are input, their own rule says what is found.

Part of ``make slices``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.admin.transfer import import_file
from mqis.pipeline.rebuilding import Rebuilt, rebuild
from mqis.pipeline.runs import audit, ingest, lag
from mqis.pipeline.tables import TableDirectory
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.replication.convergence import differences
from mqis.sim.checkers import Picture, _is_authority
from mqis.sim.run_trace import SimTrace
from mqis.sim.scenario import Scenario, draw
from mqis.sim.steps import Backup, Lie, Restore
from mqis.sim.world import EPOCH, World
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.keeping import retain
from mqis.storage.memory_store import MemoryStore
from tests.pipeline import messages

#: (server, partition, object, kind, properties)
Wrong = set[tuple[str, str, str, str, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Seen:
    """An enterprise at one moment: what its servers hold, and what is wrong with that."""

    time: datetime
    exports: Path
    #: Lines of the partitions that a server decides about, by server.
    own: dict[str, list[str]]
    wrong: Wrong


def look(world: World, directory: Path) -> Seen:
    directory.mkdir()
    own: dict[str, list[str]] = {}
    for server in world.servers.values():
        with server.disk.store.read() as view:
            lines = list(exported_lines(view)[1])
            decided = [s.id for s in view.partitions() if _is_authority(server, s)]
        (directory / f"{server.name}.jsonl").write_text("\n".join([*lines, ""]), "ascii")
        marks = [f'"partition":"{id_}"' for id_ in decided]
        own[server.name] = [line for line in lines[1:] if any(mark in line for mark in marks)]
    time = datetime.fromtimestamp(EPOCH + world.now, tz=UTC)
    return Seen(time, directory, own, wrong_in(world))


def scenario(seed: int) -> Scenario:
    """Without disks that are put back, which takes changes out of their own history.

    And without lies: a liar uses numbers that its journal does not have.
    """
    drawn = draw(seed)
    steps = tuple(s for s in drawn.steps if not isinstance(s, Backup | Lie | Restore))
    return replace(drawn, steps=steps, journaled=True, streams=False, sqlite=False, skew_s=0.0)


@contextmanager
def simulated(seed: int, directory: Path) -> Iterator[World]:
    world = World(scenario(seed), SimTrace(keep=False), directory, directory / "journals")
    with closing(world):
        world._build_enterprise()
        yield world


def wrong_in(world: World) -> Wrong:
    """The rule that a simulation ends with, of every replica."""
    pictures = [Picture(server) for server in world.servers.values()]
    found: Wrong = set()
    for true in pictures:
        decided = [s.id for s in true.partitions.values() if _is_authority(true.server, s)]
        for partition, other in product(decided, pictures):
            same_site = other.server.me.site == partition
            held = other.holds(partition)
            found |= {
                (other.server.name, str(partition), str(d.id), d.kind.value, d.properties)
                for d in differences(true.holds(partition), held, same_site=same_site)
            }
    return found


def until_it_differs(world: World) -> None:
    """Runs the enterprise up to a moment at which replicas differ."""
    whole, start = world.scenario, world.now
    for number, step in enumerate(whole.steps):
        world.network.weather = whole.weather
        world.run_until(max(world.now, start + step.at))
        world._perform(step)
        if number > len(whole.steps) // 3 and len(wrong_in(world)) > 2:
            left = tuple(replace(s, at=s.at - step.at) for s in whole.steps[number + 1 :])
            world.scenario = replace(whole, steps=left, fault_s=whole.fault_s - step.at)
            return


def audited(spark: SparkSession, journals: Path, seen: Seen, place: Path) -> tuple[Wrong, set[str]]:
    """The differences that the audit finds, with the causes that it gives."""
    tables = TableDirectory(spark, place)
    ingest(tables, str(journals), str(seen.exports))
    audit(tables)
    rows = tables.read("divergence").collect()
    found = {(r.server, r.partition, r.id, r.difference, tuple(r.properties)) for r in rows}
    assert len(found) == len(rows)
    return found, {row.cause for row in rows}


def snapshots(world: World) -> None:
    """Of those who decide about something, behind everything that they have written so far."""
    for server in world.servers.values():
        assert world._journal is not None
        place = world._journal / server.name
        with closing(Journal(place, server.name, server.me.id)) as journal:
            appender = Appender(server.disk.store, journal)
            appender.flush()
            if server.me.is_psc:
                appender.snapshot()


@dataclass(frozen=True, slots=True)
class Run:
    """One seed: in the middle with the journals of then, healed with what retention has left."""

    then: Path
    middle: Seen
    retained: Path
    end: Seen
    begin: datetime


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("sim")
    with simulated(0, directory) as world:
        snapshots(world)  # what an enterprise is founded with is in no journal
        begin = datetime.fromtimestamp(EPOCH + world.now, tz=UTC)
        until_it_differs(world)
        middle = look(world, directory / "middle")
        snapshots(world)
        shutil.copytree(directory / "journals", directory / "then")
        world._run_fault_phase()
        world._run_healing_phase()
        end = look(world, directory / "end")
    for place in (directory / "journals").iterdir():
        retain(place, 1)
    return Run(directory / "then", middle, directory / "journals", end, begin)


def check_rebuilt(tables: TableDirectory, seen: Seen) -> Rebuilt:
    """Checks that a rebuild yields what the authorities had, in a form that can be restored."""
    out = tables.directory / "rebuilt.jsonl"
    done = rebuild(tables, out, at_time=seen.time)
    first, *lines, end = out.read_text("ascii").splitlines()
    assert sorted(lines) == sorted(line for own in seen.own.values() for line in own)
    store = MemoryStore()
    import_file(store, out, restore=True)
    with store.read() as view:
        assert list(exported_lines(view)[1]) == [first, *lines, end]
    return done


@dataclass(frozen=True, slots=True)
class Stopped:
    tables: TableDirectory
    found: Wrong
    causes: set[str]


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    place = tmp_path_factory.mktemp("stopped")
    found, causes = audited(spark, run.then, run.middle, place)
    return Stopped(TableDirectory(spark, place), found, causes)


def test_a_seed_that_is_stopped_differs_where_the_rule_says(run: Run, stopped: Stopped) -> None:
    assert run.middle.wrong
    assert stopped.found == run.middle.wrong
    # Unknown is what became of the objects that the enterprise was founded with.
    assert stopped.causes <= {"never_sent", "queued", "lost", "pending", "refused", "unknown"}
    check_rebuilt(stopped.tables, run.middle)


def test_nothing_is_wrong_with_the_journals_of_a_seed(run: Run, stopped: Stopped) -> None:
    assert stopped.tables.read("evidence").collect() == []
    journals = stopped.tables.read("journals").collect()
    assert len(journals) > 3
    assert all(row.complete for row in journals)


def test_rounds_and_margins_are_what_the_messages_say(run: Run, stopped: Stopped) -> None:
    tables = stopped.tables
    lag(tables)
    journals = messages.of(run.then)
    rounds = tables.read("rounds").collect()
    told = {
        (r.server, r.peer): messages.Round(*(r[f.name] for f in fields(messages.Round)))
        for r in rounds
    }
    assert told == messages.rounds(journals)
    assert any(r.sync_rounds for r in told.values())
    states = tables.read("partitions").collect()
    margins = tables.read("margins").collect()
    acked = messages.acked(journals)
    assert any(acked.values())
    for row in margins:
        known = acked.get((row.authority, row.psc.lower(), row.partition), 0)
        assert row.acked_seq == known
        assert row.margin == known - row.purged_seq
        assert row.behind == row.last_seq - known
    own = [s for s in states if s.owner.lower() == s.server.lower()]
    others = len({s.server for s in own}) - 1
    assert others
    assert len(margins) == len(own) * others
    rows = tables.read("gaps").filter("kind = 'gap'").collect()
    found = {(r.server, r.partition, r.first_seq, r.last_seq) for r in rows}
    assert found == messages.gaps(run.then)
