"""Rebuilding at every number of a history equals replaying it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.admin.transfer import import_file
from mqis.lab.generate.delivery import Delivery
from mqis.lab.generate.history import ChangeHistory
from mqis.lab.generate.plan import GeneratePlan
from mqis.pipeline import sources
from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.runs import ingest
from mqis.pipeline.session import PipelineError
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.rebuild import folded, lines, local_changes, snapshot_changes
from mqis.protocol.directory.export_format import format_entry
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DeletedObject, DirectoryObject
from mqis.storage.memory import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from tests.builders import network, site, tombstone

#: Lines by partition and number, as the server itself had them.
States = dict[tuple[bytes, int], list[str]]
START = 1_709_280_000_000_000


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, States, list[str]]:
    """Ninety changes in two partitions, with what the store held after each of them."""
    directory = tmp_path_factory.mktemp("history")
    store = MemoryStore()
    states: States = {}
    with store.write() as tx:
        made = ChangeHistory(
            GeneratePlan(sites=1, machines=3, queues=5, backups=0, faults=0, seed=3), tx
        )
        delivery = Delivery(made.members, directory, made.random)
        made.now_us = delivery.now_us = START
        made.build()
        for change in made.take():
            delivery.made(change)
        for _ in range(70):
            made.now_us = delivery.now_us = made.now_us + 1_000_000
            made.step()
            for change in made.take():
                sent = delivery.made(change)
                partition = sent.change.partition
                _, told = exported_lines(tx)
                text = f'"partition":"{partition}"'
                held = [line for line in list(told)[1:] if text in line]
                states[partition.raw, sent.change.seq.value] = held
        delivery.close()
        _, told = exported_lines(tx)
        end = list(told)
    return directory, states, end


def test_every_number(spark: SparkSession, history: tuple[Path, States, list[str]]) -> None:
    directory, states, _ = history
    points = spark.createDataFrame(
        [(bytearray(partition), seq) for partition, seq in states], "partition binary, at long"
    )
    changes = folded(local_changes(sources.journal(spark, str(directory))))
    rebuilt: States = {key: [] for key in states}
    for row in lines(changes, points).orderBy("place", "key").collect():
        rebuilt[bytes(row.partition), row.at].append(row.line)
    assert len(states) == 70
    assert any('"type":"deleted"' in line for line in rebuilt[max(states)])
    for key, held in states.items():
        assert rebuilt[key] == held, key


def test_a_whole_directory_is_an_export(
    spark: SparkSession, history: tuple[Path, States, list[str]], tmp_path: Path
) -> None:
    directory, states, end = history
    tables = TableDirectory(spark, tmp_path / "tables")
    ingest(tables, str(directory))
    out = tmp_path / "rebuilt.jsonl"
    done = rebuild(tables, out, at_time=datetime(2100, 1, 1, tzinfo=UTC))
    assert out.read_text(encoding="ascii").splitlines() == end
    assert done.lines == len(end) - 1
    import_file(MemoryStore(), out, restore=True)

    partition, seq = sorted(states)[30]
    rebuild(tables, out, partition=Guid(partition), at_seq=seq)
    assert out.read_text(encoding="ascii").splitlines()[1:] == states[partition, seq]

    middle = datetime.fromtimestamp((START + 30_500_000) / 1_000_000, tz=UTC)
    rebuild(tables, out, at_time=middle)
    kept = out.read_text(encoding="ascii").splitlines()[1:]
    number = sorted(seq for held, seq in states if held == partition)[29]
    site = f'"partition":"{Guid(partition)}"'
    assert [line for line in kept if site in line] == states[partition, number]


def test_a_site_and_its_network_may_share_an_identifier(spark: SparkSession) -> None:
    """In Active Directory they do. A store keeps one tombstone for each identifier, the last."""
    entries: list[DirectoryObject | DeletedObject] = [site(7, seq=1), network(7, seq=2)]
    entries += [
        tombstone(7, partition=ENTERPRISE_PARTITION, seq=seq, object_type=kind)
        for seq, kind in ((3, ObjectType.CN), (4, ObjectType.SITE))
    ]
    told = [format_entry(entry) for entry in entries]
    changes = snapshot_changes(spark.createDataFrame([(line,) for line in told], "line string"))
    numbers = [(bytearray(ENTERPRISE_PARTITION.raw), at) for at in (1, 2, 3, 4)]
    points = spark.createDataFrame(numbers, "partition binary, at long")
    rebuilt: dict[int, list[str]] = defaultdict(list)
    for row in lines(changes, points).orderBy("place", "key").collect():
        rebuilt[row.at].append(row.line)
    assert rebuilt == {1: told[:1], 2: told[:2], 3: [told[0], told[2]], 4: told[3:]}


def test_points_that_are_none_are_refused(tables: TableDirectory) -> None:
    with pytest.raises(PipelineError, match="needs either a time, or a partition"):
        rebuild(tables, Path("nowhere"))
    early = datetime(2000, 1, 1, tzinfo=UTC)
    with pytest.raises(PipelineError, match="begin later"):
        rebuild(tables, Path("nowhere"), at_time=early)
