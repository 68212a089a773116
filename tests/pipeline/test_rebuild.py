"""Rebuilding at every number of a history equals replaying it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.admin.transfer import import_file
from mqis.lab.generate.delivery import Delivery
from mqis.lab.generate.generated_exports import replica_of
from mqis.lab.generate.generated_history import ChangeHistory
from mqis.lab.generate.plan import GeneratePlan
from mqis.pipeline import sources
from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.runs import ingest
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.rebuild import folded, lines, local_changes, snapshot_changes
from mqis.protocol.directory.export_format import ORDER, format_entry, parse_entry, parse_header
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DeletedObject, DirectoryObject
from mqis.protocol.replication.replicated import is_own
from mqis.storage.memory_store import MemoryStore
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
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
    assert done.lines == len(end) - 2
    import_file(MemoryStore(), out, restore=True)

    partition, seq = sorted(states)[30]
    rebuild(tables, out, partition=Guid(partition), at_seq=seq)
    assert out.read_text(encoding="ascii").splitlines()[1:-1] == states[partition, seq]

    middle = datetime.fromtimestamp((START + 30_500_000) / 1_000_000, tz=UTC)
    rebuild(tables, out, at_time=middle)
    kept = out.read_text(encoding="ascii").splitlines()[1:-1]
    number = sorted(seq for held, seq in states if held == partition)[29]
    site = f'"partition":"{Guid(partition)}"'
    assert [line for line in kept if site in line] == states[partition, number]


def test_what_the_pec_made_for_a_new_site_is_given_as_its_psc_has_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The PEC makes the PSC's machine; the PSC gets it without what only its maker stores."""
    store = MemoryStore()
    with store.write() as tx:
        plan = GeneratePlan(sites=2, machines=4, queues=6, backups=0, faults=0, seed=4)
        made = ChangeHistory(plan, tx)
        pec, psc = made.members
        delivery = Delivery(made.members, tmp_path / "journals", made.random)
        made.now_us = delivery.now_us = START
        delivery.authorities[psc.site] = pec.name
        made.build()
        for change in made.take():
            delivery.send([delivery.made(change)])
        founded = delivery.now_us
        by_pec = {obj.id for kind in ORDER for obj in tx.objects(kind)}
        # A change of a site that says nothing about its PSC.
        seven: dict[int, PropVariant] = props({PropId.S_INTERVAL1: 7})
        held = next(each for each in tx.objects(ObjectType.SITE) if each.id == psc.site)
        made.events().update(held, seven)
        delivery.authorities[psc.site] = psc.name
        for _ in range(12):
            made.now_us = delivery.now_us = max(made.now_us, delivery.now_us) + 1_000_000
            made.step()
            for change in made.take():
                delivery.send([delivery.made(change)])
        delivery.close()
        seen = {obj.id: obj for kind in ORDER for obj in tx.objects(kind)}
    tables = TableDirectory(spark, tmp_path / "tables")
    ingest(tables, str(tmp_path / "journals"))
    out = tmp_path / "rebuilt.jsonl"

    def rebuilt(time_us: int) -> tuple[dict[Guid, str], dict[Guid, DirectoryObject]]:
        rebuild(tables, out, at_time=datetime.fromtimestamp(time_us / 1_000_000, tz=UTC))
        first, *others = out.read_text(encoding="ascii").splitlines()
        owners = {state.id: state.owner for state in parse_header(first).partitions}
        entries = (parse_entry(line, 0) for line in others[:-1])
        return owners, {e.id: e for e in entries if isinstance(e, DirectoryObject)}

    owners, found = rebuilt(made.now_us)
    assert owners == {Guid.NULL: pec.name, pec.site: pec.name, psc.site: psc.name}
    assert found.keys() == seen.keys()
    kinds = set()
    for id_, obj in seen.items():
        if obj.partition != psc.site or id_ not in by_pec:
            assert found[id_] == obj
        elif found[id_].seq == obj.seq and made_once(obj, found[id_]):
            assert found[id_] == replica_of(obj)
            kinds.add(obj.type)
    assert ObjectType.MACHINE in kinds
    machine = found[psc.id]
    assert not is_own(machine)
    assert is_own(found[pec.id])

    owners, found = rebuilt(founded)  # it has applied the changes, and has made none yet
    assert owners[psc.site] == psc.name
    assert found[psc.id] == replica_of(found[psc.id])


def made_once(obj: DirectoryObject, found: DirectoryObject) -> bool:
    """Returns whether no later change of the PSC itself may have set more values."""
    return set(found.properties) <= set(replica_of(obj).properties)


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
    with pytest.raises(MqisError, match="needs either a time, or a partition"):
        rebuild(tables, Path("nowhere"))
    early = datetime(2000, 1, 1, tzinfo=UTC)
    with pytest.raises(MqisError, match="begin later"):
        rebuild(tables, Path("nowhere"), at_time=early)
