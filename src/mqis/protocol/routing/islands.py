"""Groups of sites between which messages find a route.

Two sites are in one group if messages between them arrive in both directions, or if a chain of such
pairs joins them. Linked sites are tried first: where they reach each other, one group remains and
no other pair has to be tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

from mqis.protocol.routing.route_trace import HOP_LIMIT
from mqis.protocol.routing.routing_table import UNREACHABLE, RoutingTable, build_table, roots_of
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.guid import Guid


def islands(snapshot: Snapshot, closed: Collection[Guid]) -> list[tuple[Guid, ...]]:
    """The groups, the largest first, without the ``closed`` sites.

    A site that has no gate and is not closed counts as if it had one.
    """
    return _Search(snapshot, closed).groups()


class _Search:
    def __init__(self, snapshot: Snapshot, closed: Collection[Guid]) -> None:
        self._graph = snapshot.graph
        self._open = [n for n, site in enumerate(self._graph.sites) if site not in closed]
        #: The sites of the gate in charge of each site; none if it is closed.
        self._roots: list[tuple[int, ...]] = [()] * len(self._graph.sites)
        for number in self._open:
            gates = snapshot.gates.get(self._graph.sites[number], ())
            homes = snapshot.machines[gates[0]].sites if gates else ()
            self._roots[number] = roots_of(self._graph, homes) or (number,)
        self._tables: dict[tuple[int, ...], RoutingTable] = {}
        self._leader = list(range(len(self._graph.sites)))

    def groups(self) -> list[tuple[Guid, ...]]:
        for first, second in self._likely():
            self._join(first, second)
        if len({self._group(number) for number in self._open}) > 1:
            for first, second in combinations(self._open, 2):
                self._join(first, second)
        found: dict[int, list[Guid]] = {}
        for number in self._open:
            found.setdefault(self._group(number), []).append(self._graph.sites[number])
        return sorted(map(tuple, found.values()), key=lambda group: (-len(group), group[0]))

    def _likely(self) -> Iterator[tuple[int, int]]:
        """Yields linked sites, and sites of one gate."""
        yield from self._graph.links
        for number in self._open:
            yield from ((number, root) for root in self._roots[number] if root != number)

    def _join(self, first: int, second: int) -> None:
        here, there = self._group(first), self._group(second)
        if here != there and self._arrives(first, second) and self._arrives(second, first):
            self._leader[there] = here

    def _group(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number

    def _arrives(self, source: int, destination: int) -> bool:
        """Follows a message from gate to gate."""
        here = source
        for _ in range(HOP_LIMIT + 1):
            roots = self._roots[here]
            if not roots:
                return False
            if destination in roots:
                return True
            here = self._table(roots).next_hop[destination]
            if here == UNREACHABLE:
                return False
        return False

    def _table(self, roots: tuple[int, ...]) -> RoutingTable:
        if roots not in self._tables:
            self._tables[roots] = build_table(self._graph, roots)
        return self._tables[roots]
