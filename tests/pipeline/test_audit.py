"""The audit finds the planted faults with their causes, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.building import TableBuilder, settled
from mqis.pipeline.runs import Audited, audit
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.causes import (
    carriers,
    explained_differences,
    hops,
    made_changes,
    traced_differences,
)
from mqis.pipeline.transforms.divergence import differences, suspects
from mqis.pipeline.transforms.expressions import guid_text
from mqis.protocol.directory.export_format import is_end, parse_entry, parse_header
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.replication import convergence
from mqis.protocol.replication.convergence import copy_of
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.pipeline.conftest import Enterprise

COLUMNS = (
    "server",
    "difference",
    "cause",
    "type",
    "id",
    "partition",
    "seq",
    "source",
    "target",
    "reason",
)


def told(row: Any) -> tuple[object, ...]:
    return (*(row[name] for name in COLUMNS), tuple(row["properties"]))


@pytest.fixture(scope="module")
def audited(tables: TableDirectory) -> Audited:
    return audit(tables)


def test_planted_faults_and_nothing_else(
    audited: Audited, tables: TableDirectory, enterprise: Enterprise
) -> None:
    planted = enterprise.manifest["faults"]
    found = [told(row) for row in tables.read("divergence").collect()]
    assert len(found) == len(set(found)) == audited.differences
    assert set(found) == {told(fault) for fault in planted}
    assert {fault["cause"] for fault in planted} == {
        "lost",
        "never_sent",
        "refused",
        "expired",
        "corrupted",
        "foreign",
        "unknown",
        "authority_corrupted",
        "export_older",
        "export_damaged",
    }
    assert {fault["difference"] for fault in planted} == {"missing", "extra", "different"}
    assert audited.unaudited == ()
    assert audited.servers == 5


def plain_differences(enterprise: Enterprise) -> set[tuple[object, ...]]:
    """The rule of the simulation, in one process."""
    held: dict[str, list[DirectoryObject]] = {}
    owners: dict[Guid, str] = {}
    for path in Path(enterprise.exports).glob("*.jsonl"):
        first, *lines = path.read_bytes().splitlines()
        lines = [line for line in lines if not is_end(line)]
        owners |= {state.id: state.owner for state in parse_header(first.decode()).partitions}
        entries = (parse_entry(line.decode(), 0) for line in lines if line.isascii())
        held[path.stem] = [entry for entry in entries if isinstance(entry, DirectoryObject)]
    found: set[tuple[object, ...]] = set()
    for partition, owner in owners.items():
        true = copy_of(obj for obj in held[owner] if obj.partition == partition)
        for server, objects in held.items():
            copy = copy_of(obj for obj in objects if obj.partition == partition)
            same_site = site_of(server, objects) == partition
            for difference in convergence.differences(true, copy, same_site=same_site):
                listed = difference.properties
                found.add(
                    (server, str(partition), str(difference.id), difference.kind.value, listed)
                )
    return found


def site_of(server: str, objects: list[DirectoryObject]) -> Guid:
    own = next(o for o in objects if o.type is ObjectType.MACHINE and o.path == server)
    sites = own.value(PropId.QM_SITE_IDS)
    assert isinstance(sites, tuple)
    assert isinstance(sites[0], Guid)
    return sites[0]


def test_differences_are_those_of_the_simulations_rule(
    audited: Audited, tables: TableDirectory, enterprise: Enterprise
) -> None:
    rows = tables.read("divergence").collect()
    (odd,) = (row for row in rows if row.cause == "authority_corrupted")
    rows.remove(odd)
    found = {(r.server, r.partition, r.id, r.difference, tuple(r.properties)) for r in rows}
    assert len(found) == len(rows)
    # By the rule, all four replicas differ from the authority that contradicts itself.
    by_rule = plain_differences(enterprise)
    opposed = {row for row in by_rule if row[2] == odd.id}
    assert found == by_rule - opposed
    assert len(opposed) == 4
    assert {row[1:] for row in opposed} == {
        (odd.partition, odd.id, "different", tuple(odd.properties))
    }


def test_what_a_missing_journal_would_tell_is_unknown(
    tables: TableDirectory, enterprise: Enterprise
) -> None:
    """Never lost: a server without a journal may have got everything."""
    lost = next(f for f in enterprise.manifest["faults"] if f["cause"] == "lost")
    made = TableBuilder(tables)
    copies = made.frame("replicas").filter(F.col("server") == lost["server"])
    of_lost = made.frame("used_objects").filter(guid_text(F.col("id")) == lost["id"])
    found = settled(differences(suspects(of_lost, copies), copies))
    records = tables.read("records").filter(F.col("server") != lost["target"])
    whole = settled(tables.read("journals").filter(F.col("server") != lost["target"]))
    of_change = settled(traced_differences(found, made_changes(found, records), whole))
    ways = settled(hops(of_change, made.frame("authorities"), made.frame("members")))
    told = carriers(ways, records)
    rows = explained_differences(of_change, ways, told, records, whole).collect()
    assert [(row.difference, row.cause) for row in rows] == [(lost["difference"], "unknown")]
