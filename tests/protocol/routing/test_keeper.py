"""The routing table through time: its timer, the directory's changes and its absences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Change
from mqis.protocol.routing.keeper import (
    QUERY_PERIOD_S,
    RETRY_S,
    RoutingTableKeeper,
    changed_pairs,
    routing_table,
    update_table,
)
from mqis.protocol.routing.model import Link, RoutingSite
from mqis.protocol.routing.nexthops import is_site_gate
from mqis.protocol.routing.routing_table import EMPTY, RoutingTable, TableRow, build_table
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from tests.protocol.routing.test_snapshot import applied, changes_of, gone
from tests.protocol.routing.worlds import World, called, guid
from tests.strategies.routing import (
    as_stored,
    enterprises,
    graphs,
    named,
    site_links,
    unhurried,
)


class Directory:
    """A directory that returns a snapshot, or raises an error."""

    def __init__(self, snapshot: Snapshot | Exception) -> None:
        self.state = snapshot
        self.reads = 0

    def read(self) -> Snapshot:
        self.reads += 1
        if isinstance(self.state, Exception):
            raise self.state
        return self.state


NEAR = World("A-B 1", "B-C 1", a="A gate", b="B gate", c="C gate")
FAR = World("A-B 1", "B-C 1", "C-D 1", a="A gate", b="B gate", c="C gate", d="D gate")
AWAY = DirectoryError(HResult.MQ_ERROR_NO_DS, "away")


def sites_of(keeper: RoutingTableKeeper) -> list[str]:
    return [called(row.destination) for row in keeper.table]


@pytest.mark.req("MQBR-3.1.2.1-01", "MQBR-3.1.3-01")
def test_the_table_is_built_at_once_and_every_hour() -> None:
    directory = Directory(NEAR.snapshot)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 1000.0)
    assert sites_of(keeper) == ["A", "B", "C"]
    assert keeper.next_timer() == 1000 + 3600 == 1000 + QUERY_PERIOD_S

    directory.state = FAR.snapshot
    assert not keeper.handle_timer(4599.9)
    assert directory.reads == 1
    assert sites_of(keeper) == ["A", "B", "C"]
    assert keeper.handle_timer(4600)
    assert sites_of(keeper) == ["A", "B", "C", "D"]
    assert keeper.next_timer() == 4600 + 3600, "it repeats"
    assert not keeper.handle_timer(8200), "nothing changed"
    assert directory.reads == 3


@pytest.mark.req("MQBR-3.1.3.1-01")
def test_who_is_no_gate_has_an_empty_table() -> None:
    world = World("A-B 1", a="A gate", r="A router", x="A")
    for machine in ("r", "x", "nobody"):
        keeper = RoutingTableKeeper(guid(machine), Directory(world.snapshot).read, 0)
        assert list(keeper.table) == []


@pytest.mark.req("MQBR-3.1.3.1-03")
def test_without_links_the_table_is_empty() -> None:
    world = World(a="A gate", b="B gate")
    assert is_site_gate(world.snapshot, guid("a"))

    assert list(RoutingTableKeeper(guid("a"), Directory(world.snapshot).read, 0).table) == []
    assert list(routing_table(Snapshot({}, {}, world.snapshot.machines), guid("a"))) == []


@pytest.mark.req("MQBR-3.1.3.1-03")
@pytest.mark.parametrize("error", [AWAY, StorageError("no disk")])
def test_an_outage_leaves_the_table_and_is_tried_again_soon(error: Exception) -> None:
    directory = Directory(NEAR.snapshot)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 0)
    directory.state = error

    assert not keeper.handle_timer(3600)
    assert sites_of(keeper) == ["A", "B", "C"]
    assert [called(hop) for hop in keeper.next_hops(guid("c")).hops] == ["b"]
    assert keeper.error is error
    assert keeper.next_timer() == 3600 + RETRY_S
    directory.state = FAR.snapshot
    assert keeper.handle_timer(3600 + RETRY_S)
    assert keeper.error is None
    assert sites_of(keeper) == ["A", "B", "C", "D"]
    assert keeper.next_timer() == 3600 + RETRY_S + QUERY_PERIOD_S


def test_a_start_without_a_directory() -> None:
    directory = Directory(AWAY)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 0)
    assert keeper.error is AWAY
    assert keeper.table is EMPTY

    directory.state = NEAR.snapshot
    assert keeper.handle_timer(RETRY_S)
    assert sites_of(keeper) == ["A", "B", "C"]


@pytest.mark.req("MQBR-3.1.6.1-01")
def test_a_queue_manager_changes_its_role_with_the_timer() -> None:
    demoted = World("A-B 1", "B-C 1", a="A router", b="B gate", c="C gate")
    directory = Directory(NEAR.snapshot)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 0)

    directory.state = demoted.snapshot
    assert keeper.handle_timer(3600)
    assert list(keeper.table) == []
    directory.state = NEAR.snapshot
    assert keeper.handle_timer(7200)
    assert sites_of(keeper) == ["A", "B", "C"]


@pytest.mark.req("MQBR-3.1.6.1-01")
def test_a_finished_table_takes_the_place_of_the_old_one() -> None:
    """A holder of the old table keeps it unchanged."""
    directory = Directory(NEAR.snapshot)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 0)
    held = keeper.table
    rows = list(held)
    keeper.refreshed(applied(NEAR.snapshot, [gone(NEAR.links[0])]), 0)

    assert list(held) == rows
    assert keeper.table is not held


def test_a_refreshed_table_follows_the_snapshot() -> None:
    keeper = RoutingTableKeeper(guid("a"), Directory(NEAR.snapshot).read, 0)
    dearer = Link(guid("link9"), guid("A"), guid("C"), 1)
    linked = applied(NEAR.snapshot, [as_stored(dearer)])

    assert keeper.refreshed(linked, 0)
    assert keeper.table.get(guid("C")) == TableRow(guid("C"), guid("C"), 1)
    assert not keeper.refreshed(linked, 0), "nothing new"
    island = as_stored(RoutingSite(guid("Z"), "Z"))
    assert not keeper.refreshed(applied(linked, [island]), 0), "no row for an island"
    assert keeper.refreshed(NEAR.snapshot, 0)
    assert keeper.table.get(guid("C")) == TableRow(guid("C"), guid("B"), 2)
    assert keeper.refreshed(applied(NEAR.snapshot, [gone(NEAR.machines["a"])]), 0)
    assert list(keeper.table) == []


@unhurried
@given(enterprises(), st.data())
def test_refreshed_tables_are_those_of_a_full_rebuild(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    machine = data.draw(st.sampled_from(list(snapshot.machines)))
    keeper = RoutingTableKeeper(machine, Directory(snapshot).read, 0)
    for _ in range(3):
        before = list(keeper.table)
        changes: list[Change] = data.draw(changes_of(keeper.snapshot))
        after = applied(keeper.snapshot, changes)
        different = keeper.refreshed(after, 0)
        rebuilt = RoutingTableKeeper(machine, Directory(after).read, 0)
        assert list(keeper.table) == list(rebuilt.table)
        assert different == (before != list(keeper.table))
        if not keeper.snapshot.sites or not keeper.snapshot.machines:
            break


@unhurried
@given(graphs(max_sites=20), st.data())
def test_updates_are_rebuilds(drawn: tuple[list[Guid], list[Link]], data: st.DataObject) -> None:
    """Link by link, however many links there are, from tables that were updates themselves."""
    sites, links = drawn
    snapshot = Snapshot.make([*(RoutingSite(site, "") for site in sites), *links])
    vertices = st.integers(0, len(sites) - 1)
    roots = tuple(sorted(data.draw(st.lists(vertices, min_size=1, max_size=2, unique=True))))
    table = build_table(snapshot.graph, roots)
    for round_ in range(4):
        changed = data.draw(site_links(sites))[:2]
        known = dict(snapshot.links)
        for serial, link in enumerate(changed):
            taken = data.draw(st.sampled_from([*known, named(f"new{round_}{serial}")]))
            known[taken] = Link(taken, link.site1, link.site2, link.cost)
        for lost in (
            data.draw(st.lists(st.sampled_from(sorted(known)), max_size=1)) if known else ()
        ):
            known.pop(lost)
        snapshot = Snapshot(snapshot.sites, known, {})
        table = forced_update(table, snapshot)
        assert table.same_rows(build_table(snapshot.graph, roots))


def forced_update(table: RoutingTable, snapshot: Snapshot) -> RoutingTable:
    """Without the short cut of starting over where there are few links."""
    from mqis.protocol.routing.keeper import _Update

    return _Update(table, snapshot.graph).after(changed_pairs(table.graph, snapshot.graph))


def test_a_single_change_among_many_links_is_an_update() -> None:
    """And gives what a rebuild gives, here too."""
    ring = [
        f"{a}-{b} 2" for a, b in zip("ABCDEFGHIJKLMNOPQRST", "BCDEFGHIJKLMNOPQRSTA", strict=True)
    ]
    world = World(*ring, a="A gate")
    table = world.table("a")
    cut = world.snapshot.without_links([world.links[3].id])
    updated = update_table(table, cut.graph, table.roots)

    assert updated.same_rows(build_table(cut.graph, table.roots))
    assert len(changed_pairs(table.graph, cut.graph)) == 1
    assert updated.get(guid("E")) == TableRow(guid("E"), guid("T"), 32)
    assert not updated.same_rows(table)


def test_what_was_done_is_counted() -> None:
    directory = Directory(NEAR.snapshot)
    keeper = RoutingTableKeeper(guid("a"), directory.read, 0.0)
    assert (keeper.builds, keeper.failures) == (1, 0)
    directory.state = AWAY
    keeper.handle_timer(QUERY_PERIOD_S)
    assert (keeper.builds, keeper.failures) == (1, 1)
    directory.state = FAR.snapshot
    keeper.handle_timer(QUERY_PERIOD_S + RETRY_S)
    assert (keeper.builds, keeper.failures) == (2, 1)
