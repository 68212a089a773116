"""The pipeline on the journal of a mirror: an Active Directory at any moment, and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.admin.transfer import export_file, import_file
from mqis.config.stores import open_store
from mqis.lab.generate.generated_exports import replica_of
from mqis.pipeline.rebuilding import rebuild
from mqis.pipeline.runs import audit, history, hygiene, ingest, routes, what_if
from mqis.pipeline.tables import TableDirectory
from mqis.protocol.directory.export_format import ORDER, format_entry, parse_entry, sealed
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import RenameEntry
from mqis.wire.mqds.objecttype import ObjectType
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored

#: The properties of every object, by type and identifier.
Contents = dict[tuple[str, Guid], Mapping[int, object]]


def contents(store: Store) -> Contents:
    with store.read() as view:
        return {
            (kind.label, obj.id): dict(obj.properties)
            for kind in ORDER
            for obj in view.objects(kind)
        }


@dataclass(slots=True)
class MirroredPast:
    """What a mirror wrote, and the directory itself at each moment."""

    journal: Path
    exports: Path
    moments: list[tuple[datetime, Contents]]


async def change_an_estate(estate: MirroredEstate, past: MirroredPast, store: Store) -> None:
    async def follow() -> None:
        await estate.follow(store, past.journal)
        # The judge is the directory of this moment, read afresh.
        await EstateMirror(estate.client, now := MemoryStore(), "corp.example").round()
        past.moments.append((datetime.now(UTC), contents(now)))

    server = estate.server
    rome = server.add_site("Rome")
    await follow()
    estate.label(estate.orders, b"Orders *()\\")
    server.change(RenameEntry(f"CN=Paris,CN=Sites,{server.configuration}", "CN=Lyon"))
    estate.add_queue("new")
    await follow()
    estate.delete(estate.bills)
    estate.delete(rome)
    await follow()
    estate.delete(estate.machine, tree=True)
    estate.set(estate.user, "mSMQDigests")
    await follow()


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> MirroredPast:
    directory = tmp_path_factory.mktemp("mirror")
    made = MirroredPast(directory / "estate-journal", directory / "exports", [])
    made.exports.mkdir()
    with closing(open_store(str(directory / "estate.db"), create=True)) as store:

        async def test(estate: MirroredEstate) -> None:
            await change_an_estate(estate, made, store)

        mirrored(test)
        export_file(store, made.exports / "corp.example.jsonl")
    return made


@pytest.fixture(scope="module")
def mirror_tables(
    spark: SparkSession, past: MirroredPast, tmp_path_factory: pytest.TempPathFactory
) -> TableDirectory:
    made = TableDirectory(spark, tmp_path_factory.mktemp("mirror-tables"))
    done = ingest(made, str(past.journal), str(past.exports))
    assert (done.errors, done.evidence, done.servers) == (0, 0, 1)
    return made


def test_rebuilt_at_each_moment(
    mirror_tables: TableDirectory, past: MirroredPast, tmp_path: Path
) -> None:
    for number, (moment, held) in enumerate(past.moments):
        out = tmp_path / f"{number}.jsonl"
        assert rebuild(mirror_tables, out, at_time=moment).warnings == ()
        import_file(again := MemoryStore(), out, restore=True)
        assert contents(again) == held
    first, last = past.moments[0][1], past.moments[-1][1]
    kinds = Counter(kind for kind, _ in first)
    assert (kinds["site"], kinds["network"], kinds["queue"]) == (3, 3, 2)
    assert Counter(kind for kind, _ in last) == {
        "enterprise": 1,
        "site": 2,
        "network": 2,
        "link": 1,
    }


def test_versions_of_a_site_and_of_its_network(mirror_tables: TableDirectory) -> None:
    """Both have one identifier: a change of the one ends no version of the other."""
    done = history(mirror_tables)
    changes = mirror_tables.read("changes").orderBy("partition", "seq").collect()
    assert done.changes == len(changes)
    following: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, str, str], int] = {}
    for row in changes:
        key = row.partition, row.type, row.id
        if key in last:
            following[row.partition, last[key]] = row.seq
        last[key] = row.seq
    found = mirror_tables.read("versions").collect()
    assert {(row.partition, row.valid_from_seq): row.valid_to_seq for row in found} == {
        (row.partition, row.seq): following.get((row.partition, row.seq))
        for row in changes
        if row.operation != "delete"
    }
    shared = {row.id for row in changes if row.type == "site"}
    assert shared == {row.id for row in changes if row.type == "network"}


def test_everything_else_works_as_for_servers(mirror_tables: TableDirectory) -> None:
    assert audit(mirror_tables).differences == 0
    # All machines are deleted in the end, so no gate is left.
    assert hygiene(mirror_tables).keys() == {"no_gate"}
    told = routes(mirror_tables)
    assert (told.sites, told.pairs) == (2, 2)
    assert what_if(mirror_tables).failures == 1


def test_a_replica_of_an_imported_estate(
    spark: SparkSession, past: MirroredPast, tmp_path: Path
) -> None:
    """The authority exports a site and its network; a replica lacks the network alone."""
    (exported,) = past.exports.iterdir()
    header, *lines, _ = exported.read_text("ascii").splitlines()
    objects = [
        entry for line in lines if isinstance(entry := parse_entry(line, 0), DirectoryObject)
    ]
    lost = [obj for obj in objects if obj.type is ObjectType.CN and obj.path == "Lyon"]
    held = [format_entry(replica_of(obj)) for obj in objects if obj not in lost]
    assert len(held) == len(objects) - 1
    for name, told in (("corp.example", lines), ("bsc", held)):
        text = "\n".join(sealed((header, *told))) + "\n"
        (tmp_path / f"{name}.jsonl").write_text(text, "ascii")
    tables = TableDirectory(spark, tmp_path / "tables")
    ingest(tables, exports=str(tmp_path))
    assert audit(tables).differences == 1
    (row,) = tables.read("divergence").collect()
    assert (row.server, row.type, row.path, row.difference) == ("bsc", "network", "Lyon", "missing")
