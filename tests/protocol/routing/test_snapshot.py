"""The snapshot that routing takes of the directory: its gates, and how it applies changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DeletedObject, Scope
from mqis.protocol.ports import Change
from mqis.protocol.routing.model import (
    PROPERTIES,
    Link,
    RoutingObject,
    RoutingQueueManager,
    RoutingSite,
    routing_object,
)
from mqis.protocol.routing.nexthops import get_site_gates, get_site_gates_for_site, is_site_gate
from mqis.protocol.routing.snapshot import Snapshot
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests import builders
from tests.builders import guid as numbered
from tests.protocol.routing.worlds import World, guid
from tests.strategies.routing import (
    as_directory,
    as_stored,
    enterprises,
    everything,
    named,
    unhurried,
)

ONE, TWO = numbered(11), numbered(12)


@pytest.mark.req("MQBR-3.1.1.1-01")
def test_what_is_read_of_each_object() -> None:
    lists = {PropId.QM_INFRS: (numbered(3),), PropId.QM_OUTFRS: (numbered(4), numbered(5))}
    store = MemoryStore()
    with store.write() as tx:
        tx.insert(builders.site(11, "one", gates=(numbered(1),)))
        tx.insert(
            builders.link(21, neighbours=(ONE, TWO), cost=7, gates=(numbered(1), numbered(2)))
        )
        tx.insert(builders.machine(1, "m", sites=(ONE, TWO), service=0x1, others=lists))
        tx.insert(builders.machine(6, "n", sites=(TWO,), service=0x4))
        tx.insert(builders.queue(31))
    with store.read() as view:
        snapshot = Snapshot.read(view)

    assert snapshot.sites == {ONE: RoutingSite(ONE, "one", (numbered(1),))}
    assert snapshot.links == {
        numbered(21): Link(numbered(21), ONE, TWO, 7, (numbered(1), numbered(2)))
    }
    assert snapshot.machines == {
        numbered(1): RoutingQueueManager(
            numbered(1), "m", (ONE, TWO), True, (numbered(3),), (numbered(4), numbered(5))
        ),
        numbered(6): RoutingQueueManager(numbered(6), "n", (TWO,)),
    }


@pytest.mark.req("MQBR-3.1.3.1-02")
def test_all_sites_and_all_links_are_read() -> None:
    store = MemoryStore()
    ends = [(12, 13), (11, 13), (11, 12)]
    with store.write() as tx:
        for n in (11, 12, 13):
            tx.insert(builders.site(n))
        for n, (one, two) in enumerate(ends, 21):
            tx.insert(builders.link(n, neighbours=(numbered(one), numbered(two)), cost=n))
    with store.read() as view:
        snapshot = Snapshot.read(view)

    assert snapshot.sites == {
        numbered(n): RoutingSite(numbered(n), f"site{n}") for n in (11, 12, 13)
    }
    assert snapshot.links == {
        numbered(n): Link(numbered(n), numbered(one), numbered(two), n)
        for n, (one, two) in enumerate(ends, 21)
    }


@pytest.mark.req("MQBR-3.1-01")
def test_priorities_play_no_part() -> None:
    """A queue's base priority is not even read; messages are not asked for."""

    def snapshot(priority: int) -> Snapshot:
        store = MemoryStore()
        with store.write() as tx:
            tx.insert(builders.machine(1))
            tx.insert(builders.queue(31, others={PropId.Q_BASEPRIORITY: priority}))
        with store.read() as view:
            return Snapshot.read(view)

    assert snapshot(-5) == snapshot(5)
    assert all(p.name != "Q_BASEPRIORITY" for ids in PROPERTIES.values() for p in ids)


def test_values_of_the_wrong_kind_name_nobody() -> None:
    """Replication takes what a peer sends; routing does not stumble over it."""
    obj = builders.link(21)
    odd: dict[int, PropVariant] = props(
        {
            PropId.L_NEIGHBOR1: PropVariant(VarType.UI4, 5),
            PropId.L_ACTUAL_COST: PropVariant(VarType.LPWSTR, "much"),
            PropId.L_GATES: (Guid.NULL, ONE, ONE),
        }
    )
    made = routing_object(obj.with_properties(odd, obj.seq))

    assert isinstance(made, Link)
    assert (made.site1, made.cost, made.gates) == (Guid.NULL, 0, (ONE,))
    assert routing_object(builders.queue()) is None


@pytest.mark.req("MQBR-3.1.5.8-03")
def test_gates_are_those_that_links_name_and_that_can_be_gates() -> None:
    """Both ends are mixed in the list; w does not route, x does not exist, b is of B."""
    world = World("A-B 1 a,b,w,x", "B-C 1 c", a="A router", b="B router", w="A", c="C router")

    assert world.snapshot.gates == {
        guid("A"): (guid("a"),),
        guid("B"): (guid("b"),),
        guid("C"): (guid("c"),),
    }


@pytest.mark.req("MQBR-3.1.5.8-03", "MQBR-1.5-01")
def test_gates_that_the_site_itself_names_count_as_well() -> None:
    """Directories of their own keep PROPID_S_GATES; the same pruning applies."""
    objects: list[RoutingObject] = [
        RoutingSite(guid("A"), "A", (guid("a"), guid("b"), guid("w"), guid("x"))),
        RoutingSite(guid("B"), "B"),
        RoutingQueueManager(guid("a"), "a", (guid("A"),), True),
        RoutingQueueManager(guid("b"), "b", (guid("B"),), True),
        RoutingQueueManager(guid("w"), "w", (guid("A"),), False),
    ]
    snapshot = Snapshot.make(objects)

    assert snapshot.gates == {guid("A"): (guid("a"),)}
    assert get_site_gates_for_site(snapshot, guid("B")) == ()


@pytest.mark.req("MQBR-3.1.5.8-03")
def test_the_same_gates_everywhere() -> None:
    """Or a router and a non-router that is listed as a gate would send to each other for ever."""
    world = World("A-B 1 w", w="A", r="A router", b="B gate", t="B")

    assert get_site_gates(world.snapshot, guid("r")) == ()
    assert get_site_gates_for_site(world.snapshot, guid("A")) == ()
    assert not is_site_gate(world.snapshot, guid("w"))


# --- changes --------------------------------------------------------------------------------------


def derived(snapshot: Snapshot) -> tuple[object, ...]:
    graph = snapshot.graph
    return (
        snapshot,
        {site: frozenset(links) for site, links in snapshot.links_at.items()},
        snapshot.gates,
        snapshot.routers,
        graph.sites,
        graph.costs,
        graph.links,
    )


def gone(obj: RoutingObject) -> DeletedObject:
    kinds = {RoutingSite: ObjectType.SITE, Link: ObjectType.ROUTINGLINK}
    kind = kinds.get(type(obj), ObjectType.MACHINE)
    return DeletedObject(obj.id, ENTERPRISE_PARTITION, SequenceNumber(9), kind, Scope.ENTERPRISE)


@st.composite
def changes_of(draw: st.DrawFn, snapshot: Snapshot) -> list[Change]:
    """Deletions, changes and additions of what is there."""
    found: list[Change] = []
    for obj in draw(st.lists(st.sampled_from(everything(snapshot)), max_size=4)):
        if draw(st.booleans()):
            found.append(gone(obj))
        else:
            found.append(as_stored(draw(_varied(obj, snapshot))))
    return found


@st.composite
def _varied(draw: st.DrawFn, obj: RoutingObject, snapshot: Snapshot) -> RoutingObject:
    guid_of = draw(st.sampled_from([obj.id, named(f"new {type(obj)}")]))
    sites = st.sampled_from([*snapshot.sites, named("nowhere")])
    machines = st.lists(st.sampled_from(list(snapshot.machines)), max_size=2, unique=True).map(
        tuple
    )
    if isinstance(obj, RoutingSite):
        return RoutingSite(guid_of, "another" if guid_of != obj.id else obj.name, draw(machines))
    if isinstance(obj, Link):
        return Link(guid_of, draw(sites), draw(sites), draw(st.integers(0, 5)), draw(machines))
    homes = tuple(draw(st.lists(sites, min_size=1, max_size=2, unique=True)))
    return RoutingQueueManager(guid_of, f"{obj.name}2", homes, draw(st.booleans()))


def applied(snapshot: Snapshot, changes: list[Change]) -> Snapshot:
    """The snapshot after these changes of the directory, as reading it anew gives it."""
    books: dict[Guid, RoutingObject] = {obj.id: obj for obj in everything(snapshot)}
    for change in changes:
        made = None if isinstance(change, DeletedObject) else routing_object(change)
        books.pop(change.id, None)
        if made is not None:
            books[change.id] = made
    return Snapshot.make(books.values())


@unhurried
@given(enterprises())
def test_a_snapshot_of_stored_objects(snapshot: Snapshot) -> None:
    stored = Snapshot.of(as_directory(everything(snapshot)))
    assert derived(stored) == derived(snapshot)
