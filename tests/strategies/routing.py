"""Random enterprises: links with faults, gates in several sites, in- and out-routing servers.

Identifiers ascend with their numbers only by chance, so that nothing depends on the order in which
things were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import md5

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from tests import builders

#: How long an enterprise takes to draw, or a route to explain, is not what is tested.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def named(text: str) -> Guid:
    """The same GUID for the same text, in no order at all."""
    return Guid(md5(text.encode(), usedforsecurity=False).digest())


#: Small costs make ties, which is what has to be looked at.
costs = st.integers(1, 4) | st.integers(1, 999_999)


@st.composite
def site_links(
    draw: st.DrawFn, sites: Sequence[Guid], *, faulty: bool = True, connected: bool = False
) -> list[Link]:
    number = len(sites)
    ends = st.integers(0, number - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=3 * number))
    if connected:
        pairs += [(n, draw(st.integers(0, n - 1))) for n in range(1, number)]
    links = []
    for serial, (first, second) in enumerate(pairs):
        cost = draw(costs)
        far = sites[second]
        if faulty and draw(st.integers(0, 9)) == 0:
            cost, far = draw(st.sampled_from([(0, far), (1_000_000, far), (1, named("nowhere"))]))
        links.append(Link(named(f"link{serial}"), sites[first], far, cost))
    return links


@st.composite
def graphs(draw: st.DrawFn, max_sites: int = 12) -> tuple[list[Guid], list[Link]]:
    sites = [named(f"site{n}") for n in range(draw(st.integers(1, max_sites)))]
    return sites, draw(site_links(sites))


@st.composite
def enterprises(draw: st.DrawFn, *, sound: bool = False, max_sites: int = 8) -> Snapshot:
    """Every site has some machines. ``sound``: a gate in every site and a way between all, and
    in- and out-routing servers are routing servers, as their definitions say (1.1)."""
    sites = [named(f"site{n}") for n in range(draw(st.integers(1, max_sites)))]
    links = draw(site_links(sites, faulty=not sound, connected=sound))
    machines = draw(_machines(sites, sound=sound))
    routers = [m.id for m in machines if m.routing_server]
    listable = routers if sound else [*(m.id for m in machines), named("nobody")]
    some = (
        st.lists(st.sampled_from(listable), max_size=2, unique=True).map(tuple)
        if listable
        else st.just(())
    )
    clients = [
        RoutingQueueManager(m.id, m.name, m.sites, m.routing_server, draw(some), draw(some))
        for m in machines
    ]
    gates = [] if sound else draw(st.lists(st.sampled_from([m.id for m in machines])))
    objects: list[RoutingObject] = [*clients]
    for site in sites:
        own = tuple(m.id for m in machines if m.routing_server and m.sites[0] == site)
        objects.append(
            RoutingSite(site, str(site)[:4], own if sound or draw(st.booleans()) else ())
        )
    objects += [Link(k.id, k.site1, k.site2, k.cost, tuple(draw(_some(gates)))) for k in links]
    return Snapshot.make(objects)


def _some(ids: Sequence[Guid]) -> st.SearchStrategy[list[Guid]]:
    return st.lists(st.sampled_from(ids), max_size=3, unique=True) if ids else st.just([])


@st.composite
def _machines(draw: st.DrawFn, sites: Sequence[Guid], *, sound: bool) -> list[RoutingQueueManager]:
    found = []
    for number, site in enumerate(sites):
        for serial in range(draw(st.integers(1, 3))):
            others = draw(st.lists(st.sampled_from(sites), max_size=1))
            routing = (sound and serial == 0) or draw(st.booleans())
            homes = tuple(dict.fromkeys((site, *others)))
            name = f"machine{number}-{serial}"
            found.append(RoutingQueueManager(named(name), name, homes, routing))
    return found


def as_directory(objects: Iterable[RoutingObject]) -> list[DirectoryObject]:
    """As the directory stores them."""
    return [as_stored(obj) for obj in objects]


def as_stored(obj: RoutingObject) -> DirectoryObject:
    if isinstance(obj, RoutingSite):
        made = builders.site(1, obj.name, gates=obj.gates)
    elif isinstance(obj, Link):
        ends = obj.site1, obj.site2
        made = builders.link(1, neighbours=ends, cost=obj.cost, gates=obj.gates)
    else:
        lists = {
            PropId.QM_INFRS: obj.in_routing_servers,
            PropId.QM_OUTFRS: obj.out_routing_servers,
        }
        service = int(obj.routing_server)
        made = builders.machine(1, obj.name, sites=obj.sites, service=service, others=lists)
    return DirectoryObject(made.type, obj.id, made.partition, made.seq, made.properties)


def everything(snapshot: Snapshot) -> list[RoutingObject]:
    return [*snapshot.sites.values(), *snapshot.links.values(), *snapshot.machines.values()]
