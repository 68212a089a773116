"""Rebuilding from a journal that lost a record and its end: refused only where that matters."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate.delivery import Delivery
from mqis.lab.generate.generated_history import ChangeHistory
from mqis.lab.generate.plan import GeneratePlan
from mqis.lab.generate.spoiling import add_stranger
from mqis.pipeline import schemas
from mqis.pipeline.evidence.findings import EvidenceKind, evidence, evidence_row
from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.runs import ingest
from mqis.pipeline.tables import TableDirectory
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.directory.objects import Partition
from mqis.storage.journal.journal_files import snapshot_name
from mqis.storage.memory_store import MemoryStore
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordState, Whole, segment_header, walk
from mqis.wire.seqnum import SequenceNumber

START = datetime(2024, 3, 1, 8, tzinfo=UTC)
#: Sequence numbers of the site: of a corrupt record, of a snapshot, and of the journal's last one.
CORRUPT, SNAPSHOT, END = 15, 25, 35
CHANGES = 45


@dataclass(frozen=True, slots=True)
class Past:
    """The tables of the damaged journal, and the true history of the site's partition."""

    tables: TableDirectory
    site: Guid
    #: By sequence number: the lines of the partition, and the time of the change.
    states: dict[int, list[str]]
    times: dict[int, datetime]

    def at(self, out: Path, number: int) -> list[str]:
        rebuild(self.tables, out, partition=self.site, at_seq=number)
        return out.read_text("ascii").splitlines()[1:-1]


def make_history(directory: Path) -> tuple[Guid, dict[int, list[str]], dict[int, datetime]]:
    """Writes a journal with a snapshot, and a newer export."""
    store = MemoryStore()
    states: dict[int, list[str]] = {}
    times: dict[int, datetime] = {}
    with store.write() as tx:
        plan = GeneratePlan(sites=1, machines=3, queues=5, backups=0, faults=0, seed=3)
        made = ChangeHistory(plan, tx)
        delivery = Delivery(made.members, directory / "journals", made.random)
        (server,) = made.members
        now = START
        made.now_us = delivery.now_us = int(now.timestamp() * 1_000_000)
        made.build()
        lsn = 0
        while max(states, default=0) < CHANGES:
            for change in made.take():
                sent = delivery.made(change)
                lsn += 1
                number = sent.change.seq.value
                lines = list(exported_lines(tx)[1])
                if sent.change.partition == server.site:
                    marked = f'"partition":"{server.site}"'
                    states[number] = [line for line in lines[1:] if marked in line]
                    times[number] = now
            if max(states, default=0) == SNAPSHOT:
                text = "\n".join([*lines, ""])
                place = directory / "journals" / server.name / snapshot_name(lsn)
                place.write_text(text, "ascii")
            now += timedelta(seconds=1)
            made.now_us = delivery.now_us = int(now.timestamp() * 1_000_000)
            made.step()
        delivery.close()
        (directory / "exports").mkdir()
        export = directory / "exports" / f"{server.name}.jsonl"
        export.write_text("\n".join([*exported_lines(tx)[1], ""]), "ascii")
        like = made.queues[0]
        state = Partition(server.site, server.name, SequenceNumber(END))
        add_stranger(directory / "journals", made.entropy.guid(), like, state, made.now_us)
    return server.site, states, times


def damage(path: Path, site: Guid) -> None:
    """Makes one change of the site unreadable, and cuts off the last ones."""
    data = bytearray(path.read_bytes())
    _, start = segment_header(bytes(data))
    own: dict[int, Whole] = {}
    for entry in walk(bytes(data), start):
        assert isinstance(entry, Whole)
        if entry.record.partition == site and entry.record.state is RecordState.LOCAL:
            own[entry.record.seq.value] = entry
    data[own[CORRUPT].offset + 60] ^= 0xFF
    path.write_bytes(data[: own[END].offset + own[END].length])


@pytest.fixture(scope="module")
def past(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Past:
    directory = tmp_path_factory.mktemp("past")
    site, states, times = make_history(directory)
    damage(directory / "journals/s001-psc/segment-0000000001.mqj", site)
    tables = TableDirectory(spark, directory / "tables")
    ingest(tables, str(directory / "journals"), str(directory / "exports"))
    return Past(tables, site, states, times)


def test_before_the_damage(past: Past, tmp_path: Path) -> None:
    number = CORRUPT - 1
    assert past.at(tmp_path / "out.jsonl", number) == past.states[number]


def test_behind_a_later_snapshot(past: Past, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = rebuild(past.tables, out, partition=past.site, at_seq=END)
    assert done.snapshots
    header, *lines, _ = out.read_text("ascii").splitlines()
    assert lines == past.states[END]
    # The stranger's journal has the same number and later ones.
    assert '"owner":"s001-psc"' in header
    assert "made by nobody" not in "".join(lines)


def test_between_the_damage_and_the_snapshot(past: Past, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(MqisError, match=f"changes {CORRUPT} to {CORRUPT} are missing"):
        past.at(out, CORRUPT)
    late = past.times[SNAPSHOT - 1]
    with pytest.raises(MqisError, match=f"changes {CORRUPT} to {CORRUPT} are missing"):
        rebuild(past.tables, out, partition=past.site, at_time=late)
    assert not out.exists()


def test_beyond_the_end(past: Past, tmp_path: Path) -> None:
    """The exports know later changes."""
    out = tmp_path / "out.jsonl"
    with pytest.raises(MqisError, match=f"of s001-psc ends at change {END}"):
        past.at(out, END + 1)
    late = past.times[CHANGES]
    expected = f"end of the journal of s001-psc is missing: it ends at change {END}, but an export"
    with pytest.raises(MqisError, match=expected):
        rebuild(past.tables, out, partition=past.site, at_time=late)
    assert not out.exists()


def test_a_time_between_the_snapshot_and_the_end(past: Past, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = rebuild(past.tables, out, partition=past.site, at_time=past.times[END - 2])
    assert out.read_text("ascii").splitlines()[1:-1] == past.states[END - 2]
    assert done.warnings == ()


def test_a_journal_that_was_altered(past: Past, spark: SparkSession, tmp_path: Path) -> None:
    """All numbers are there, but somebody wrote some of the changes: the result says so."""
    shutil.copytree(past.tables.directory, tmp_path / "tables", symlinks=True)
    tables = TableDirectory(spark, tmp_path / "tables")
    text = "segment 1 is not what the server sealed"
    finding = evidence(EvidenceKind.TAMPERED, "s001-psc", text, "segment-0000000001.mqj")
    tables.write("evidence", spark.createDataFrame([evidence_row(finding)], schemas.EVIDENCE))
    for moment in ({"at_seq": END}, {"at_time": past.times[END - 2]}):
        done = rebuild(tables, tmp_path / "out.jsonl", partition=past.site, **moment)
        assert done.warnings == (f"the journal of s001-psc was altered: {text}",)
