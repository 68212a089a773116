"""Small enterprises by name: ``World("A-B 3", "B-C 1", a="A gate", x="A in=a")``."""

from __future__ import annotations

from mqis.protocol.routing.breakage import Breakage, RouteFault
from mqis.protocol.routing.explain import Explanation, explain
from mqis.protocol.routing.keeper import routing_table
from mqis.protocol.routing.model import Link, RoutingObject, RoutingQueueManager, RoutingSite
from mqis.protocol.routing.nexthops import Decision, decide
from mqis.protocol.routing.route_trace import Route, trace
from mqis.protocol.routing.routing_table import RoutingTable
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


def guid(name: str) -> Guid:
    """Ascending as the names are; upper case before lower case."""
    return Guid.from_big_endian(name.encode().ljust(16, b"\1"))


class World:
    """Links as ``"A-B 3"``; machines as their sites and what they are: ``"AB gate"`` belongs to
    both sites and is a gate of each, ``"A router out=b,c in=d"``. Sites are single letters; ? and !
    are none of the directory."""

    def __init__(self, *links: str, sites: str = "", **machines: str) -> None:
        self.machines = {name: _machine(name, text) for name, text in machines.items()}
        gates = {name for name, text in machines.items() if "gate" in text.split()}
        names = {end for text in links for end in (text[0], text[2])} | set(sites)
        names |= {site for text in machines.values() for site in text.split()[0]}
        self.sites = {name: self._site(name, gates) for name in sorted(names - {"?", "!"})}
        self.links = [_link(number, text) for number, text in enumerate(links)]
        objects: list[RoutingObject] = [*self.sites.values(), *self.machines.values(), *self.links]
        self.snapshot = Snapshot.make(objects)

    def _site(self, name: str, gates: set[str]) -> RoutingSite:
        mine = [guid(g) for g in sorted(gates) if guid(name) in self.machines[g].sites]
        return RoutingSite(guid(name), name, tuple(mine))

    def table(self, machine: str) -> RoutingTable:
        return routing_table(self.snapshot, guid(machine))

    def rows(self, machine: str) -> dict[str, tuple[str, int]]:
        return {
            called(row.destination): (called(row.next_hop), row.distance)
            for row in self.table(machine)
        }

    def decide(self, source: str, destination: str) -> Decision:
        return decide(self.snapshot, self.table(source), guid(source), guid(destination))

    def hops(self, source: str, destination: str) -> list[str]:
        return [called(hop) for hop in self.decide(source, destination).hops]

    def broken(self, source: str, destination: str) -> tuple[RouteFault, str]:
        breakage = self.decide(source, destination).breakage
        assert breakage is not None
        return told(breakage)

    def trace(self, source: str, destination: str) -> Route:
        return trace(self.snapshot, guid(source), guid(destination))

    def way(self, source: str, destination: str) -> list[str]:
        return [called(machine) for machine in self.trace(source, destination).machines]

    def explain(self, source: str, destination: str) -> Explanation:
        return explain(self.snapshot, guid(source), guid(destination))


def told(breakage: Breakage) -> tuple[RouteFault, str]:
    return breakage.fault, called(breakage.subject)


def called(found: Guid) -> str:
    return found.big_endian.rstrip(b"\1").decode()


def _machine(name: str, text: str) -> RoutingQueueManager:
    homes, *words = text.split()
    lists = dict(word.split("=") for word in words if "=" in word)
    servers = {k: tuple(guid(n) for n in v.split(",")) for k, v in lists.items()}
    routing = "gate" in words or "router" in words
    sites = tuple(guid(site) for site in homes)
    return RoutingQueueManager(
        guid(name), name, sites, routing, servers.get("in", ()), servers.get("out", ())
    )


def _link(number: int, text: str) -> Link:
    ends, cost, *gates = text.split()
    named = tuple(guid(g) for g in gates[0].split(",")) if gates else ()
    first, second = (guid(end) if end != "?" else guid("nowhere") for end in ends.split("-"))
    return Link(guid(f"link{number}"), first, second, int(cost), named)
