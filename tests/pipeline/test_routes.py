"""Routes, failures and hygiene of a directory that is made for them."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from mqis.pipeline.report import report
from mqis.pipeline.runs import Failed, Routed, hygiene, ingest, routes, traffic, what_if
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.network import RoutingArrays, packed, unpacked
from mqis.pipeline.transforms.routes import routes_block
from mqis.protocol.directory.export_format import ExportHeader, format_entry, format_header, sealed
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject, Partition
from mqis.protocol.hygiene.checks import Check
from mqis.protocol.routing.bulk.sitegraph import site_graph
from mqis.protocol.routing.route_trace import RoutingTables
from mqis.protocol.routing.sites import explain_between
from mqis.protocol.routing.snapshot import Snapshot
from mqis.views.routes.looking_up import find_end, find_links
from mqis.views.sitemap.picture import picture_of_objects
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.seqnum import SequenceNumber
from tests.cli.commands import run
from tests.strategies.routing import enterprises, unhurried

OPEN, SHUT = "O:BAG:BAD:(A;;GA;;;WD)", "O:BAG:BAD:(A;;GA;;;BA)"


def guid(number: int) -> Guid:
    return Guid(number.to_bytes(16, "big"))


def made(kind: ObjectType, number: int, partition: Guid, **values: Any) -> DirectoryObject:
    properties: dict[int, PropVariant] = props(
        {PropId[name]: value for name, value in values.items()}
    )
    return DirectoryObject(kind, guid(number), partition, SequenceNumber(number), properties)


SITES = {name: 10 + index for index, name in enumerate("ABCDEF")}
#: F is joined to nobody, E has no gate.
LINKS = (("A", "B", 1), ("B", "C", 1), ("A", "C", 5), ("C", "D", 2), ("D", "E", 1))


def objects() -> list[DirectoryObject]:
    top = ENTERPRISE_PARTITION
    found = [made(ObjectType.ENTERPRISE, 1, top, E_NAME="Routed", E_PECNAME="gA")]
    for name, number in SITES.items():
        gates = () if name == "E" else (guid(100 + number),)
        found.append(made(ObjectType.SITE, number, top, S_PATHNAME=name, S_GATES=gates))
    for index, (first, second, cost) in enumerate(LINKS):
        ends = {"L_NEIGHBOR1": guid(SITES[first]), "L_NEIGHBOR2": guid(SITES[second])}
        found.append(made(ObjectType.ROUTINGLINK, 40 + index, top, L_ACTUAL_COST=cost, **ends))
    stray = {"L_NEIGHBOR1": guid(SITES["A"]), "L_NEIGHBOR2": guid(999)}
    found.append(made(ObjectType.ROUTINGLINK, 60, top, L_ACTUAL_COST=1, **stray))
    for name, number in SITES.items():
        found.append(machine(100 + number, f"g{name}", number, ServiceBits.ROUTING))
    found.append(machine(200, "lost", 998, 0))
    found.append(machine(201, "GA", SITES["B"], 0))  # a name that A's gate has
    found += [
        queue(300, "gA\\open", 110, OPEN),
        queue(301, "gA\\shut", 110, SHUT),
        queue(302, "gone\\orphan", 997, SHUT),
    ]
    return found


def machine(number: int, name: str, site: int, bits: int) -> DirectoryObject:
    home = guid(site)
    values = {"QM_PATHNAME": name, "QM_SITE_IDS": (home,), "QM_SERVICE": int(bits)}
    return made(ObjectType.MACHINE, number, guid(SITES["A"]), **values)


def queue(number: int, path: str, owner: int, sddl: str) -> DirectoryObject:
    security = parse_sddl(sddl).to_bytes()
    values = {"Q_PATHNAME": path, "Q_QMID": guid(owner), "Q_SECURITY": security}
    return made(ObjectType.QUEUE, number, guid(SITES["A"]), **values)


@pytest.fixture(scope="module")
def routed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableDirectory:
    directory: Path = tmp_path_factory.mktemp("routed")
    parts = tuple(Partition(id_, "gA") for id_ in (ENTERPRISE_PARTITION, guid(SITES["A"])))
    lines = [format_header(ExportHeader("Routed", parts)), *map(format_entry, objects())]
    (directory / "gA.jsonl").write_text("\n".join([*sealed(lines), ""]), encoding="ascii")
    tables = TableDirectory(spark, directory / "tables")
    done = ingest(tables, exports=str(directory / "gA.jsonl"))
    assert done.errors == 0
    return tables


def test_every_pair_as_mqis_route_finds_it(routed: TableDirectory) -> None:
    done = routes(routed)
    found = {(row.source, row.destination): row for row in routed.read("routes").collect()}
    snapshot = Snapshot.of(objects())
    for source, destination in permutations(SITES, 2):
        single = explain_between(snapshot, guid(SITES[source]), guid(SITES[destination]))
        got = found.pop((source, destination))
        if single.breakage is not None:
            assert (got.cost, got.next_hop, got.path) == (None, None, [])
            assert {source, destination} & {"E", "F"}  # no gate, no link
        else:
            assert got.cost == single.cost
            assert (got.path[0], got.path[1], got.path[-1]) == (source, got.next_hop, destination)
            assert len(got.path) == len(single.machines)
    assert not found
    assert done == Routed(6, 30, 18)


@unhurried
@given(enterprises())
def test_the_table_and_mqis_route_never_contradict_each_other(drawn: Snapshot) -> None:
    """Compares the rows that a task computes with the routes that the command explains."""
    sites = (replace(site, name=str(site.id)) for site in drawn.sites.values())
    snapshot = Snapshot.make([*sites, *drawn.links.values(), *drawn.machines.values()])
    tables = RoutingTables(snapshot)
    count = len(snapshot.sites)
    network = unpacked(packed(RoutingArrays.of(snapshot)))
    rows = routes_block(network, np.arange(count), paths=True).to_pylist()
    assert len(rows) == count * (count - 1)
    for row in rows:
        source, destination = (find_end(snapshot, row[end]) for end in ("source", "destination"))
        single = explain_between(snapshot, source, destination, tables)
        assert (row["cost"] is None) == (single.breakage is not None)
        if single.breakage is None:
            assert row["cost"] == single.cost
            crossed = [str(step.crossing.to_site) for step in single.steps if step.crossing]
            ended = [] if crossed[-1:] == [row["destination"]] else [row["destination"]]
            assert row["path"] == [row["source"], *crossed, *ended]
            assert row["next_hop"] == row["path"][1]


def test_every_failure(routed: TableDirectory) -> None:
    done = what_if(routed)
    rows = {(row.kind, row.name): row for row in routed.read("what_if").collect()}
    assert done.failures == len(rows) == len(LINKS) + 5
    # Without A - B its traffic takes the dear link: 5 instead of 1 + 1, and the other way round.
    detour = rows["link", "A - B"]
    assert (detour.cut_off, detour.worst) == (0, 5)
    assert rows["link", "A - C"].changed == 0
    assert rows["link", "C - D"].cut_off == 6  # D to and from A, B, C; E has no gate anyway
    assert rows["gate", "gC"].cut_off > 0
    assert isinstance(done, Failed)


def test_commands_know_the_links_by_the_names_of_the_tables() -> None:
    """``--without`` takes a name that ``what_if`` has; parallel links are taken together."""
    snapshot = Snapshot.of(objects())
    _, _, links = site_graph(snapshot)
    names = RoutingArrays.of(snapshot).links
    assert [find_links(snapshot, name) for name in names] == [[link] for link in links]


@pytest.fixture(scope="module")
def counted(routed: TableDirectory) -> dict[str, int]:
    return hygiene(routed)


def test_hygiene(routed: TableDirectory, counted: dict[str, int]) -> None:
    found = {(row.check, row.path or row.id) for row in routed.read("hygiene").collect()}
    assert found == {
        ("duplicate_name", "gA"),
        ("duplicate_name", "GA"),
        ("orphaned_queue", "gone\\orphan"),
        ("orphaned_machine", "lost"),
        ("unknown_site", str(guid(60))),
        ("no_gate", "E"),
        ("cut_off", "F"),
        ("writable", "gA\\open"),
    }
    assert sum(counted.values()) == len(found)
    assert routed.read("directory").count() == len(objects())


@pytest.mark.usefixtures("counted")
def test_hygiene_findings_are_explained(routed: TableDirectory, tmp_path: Path) -> None:
    rows = routed.read("hygiene").select("check", "explanation").collect()
    assert {row.explanation for row in rows} == {Check[row.check.upper()].value for row in rows}
    shown = run("pipeline", "hygiene", "--tables", str(routed.directory))
    assert shown.exit_code == 0, shown.output
    drawn = report(routed, tmp_path / "report.html", draw=picture_of_objects)
    assert "Sites and links" in drawn
    page = unescape((tmp_path / "report.html").read_text("utf-8"))
    said = " ".join(shown.output.split())  # a narrow terminal wraps lines
    for row in rows:
        assert row.explanation in page
        assert f": {row.explanation}" in said


def test_traffic_with_and_without_a_link(routed: TableDirectory, tmp_path: Path) -> None:
    csv = tmp_path / "messages.csv"
    csv.write_text(
        "source,destination,messages\n"
        "GA,gC,10\n"  # names ignore case; two have this one, the first site's is meant
        "gB,gD,5\ngD,gF,3\ngC,nobody,7\n"
    )
    with pytest.raises(MqisError, match="no link 'X - Y'"):
        traffic(routed, str(csv), failed="X - Y")
    done = traffic(routed, str(csv), failed="B - C")
    found = {(row.kind, row.name): row for row in routed.read("traffic").collect()}
    loads = {key: (row.messages, row.messages_after) for key, row in found.items()}
    assert loads["link", "C - D"] == (5, 5)
    assert loads["link", "A - C"] == (0, 15)
    assert loads["link", "B - C"] == (15, 0)
    assert loads["link", "A - B"] == (10, 5)
    assert loads["gate", "gC"] == (15, 15)
    assert loads["gate", "gB"] == (15, 5)
    assert loads["undeliverable", ""] == (3, 3)
    assert done.undeliverable == 3


def test_traffic_can_be_made_up(routed: TableDirectory) -> None:
    assert traffic(routed).messages > 0
