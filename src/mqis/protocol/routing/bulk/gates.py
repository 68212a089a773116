"""The gate in charge of each site, and the sites that its table is rooted at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.protocol.routing.snapshot import Snapshot

#: The sites of the gate in charge of a site; empty if it has no gate.
Roots = tuple[int, ...]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Gates:
    """Gates by site. Machines, sites and links are numbered by the rank of their GUIDs."""

    #: The gates of each site, ascending.
    of_site: tuple[tuple[int, ...], ...]
    #: The sites of each machine, ascending.
    homes: tuple[tuple[int, ...], ...]
    #: For a (site, gate) named only by links, those links: without them it is no gate any more.
    named_by: Mapping[Pair, frozenset[int]]

    @classmethod
    def of(cls, count: int, machine: npt.ArrayLike, site: npt.ArrayLike) -> Gates:
        """Gates from pairs (machine, site); each machine is a gate of all of its sites."""
        machines, sites = (np.asarray(given).ravel().tolist() for given in (machine, site))
        members = set(zip(sites, machines, strict=True))
        last = max(machines, default=-1)
        homes = _grouped(last + 1, ((gate, site) for site, gate in members))
        return cls(_grouped(count, members), homes, {})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> tuple[Gates, tuple[Guid, ...]]:
        """The gates of a snapshot, and their machines by number."""
        index = snapshot.graph.index
        gates = sorted({gate for gates in snapshot.gates.values() for gate in gates})
        number = {gate: rank for rank, gate in enumerate(gates)}
        links = {link: rank for rank, link in enumerate(sorted(snapshot.links))}
        named_by = {
            (index[site], number[gate]): frozenset(
                links[link.id] for link in snapshot.links_at[site] if gate in link.gates
            )
            for site, of_site in snapshot.gates.items()
            for gate in of_site
            if gate not in snapshot.sites[site].gates
        }
        members = [(index[s], number[g]) for s, of_site in snapshot.gates.items() for g in of_site]
        known = ((gate, snapshot.machines[gate].sites) for gate in gates)
        homes = ((number[gate], index[s]) for gate, sites in known for s in sites if s in index)
        made = cls(_grouped(len(index), members), _grouped(len(gates), homes), named_by)
        return made, tuple(gates)

    def roots(self) -> list[Roots]:
        return [self._roots_of(site, (), ()) for site in range(len(self.of_site))]

    def roots_without(self, gates: Collection[int], links: Collection[int]) -> dict[int, Roots]:
        """The new roots of the sites that the loss of these gates and links affects."""
        touched = {site for gate in gates for site in self._sites_of.get(gate, ())}
        touched |= {site for link in links for site in self._sites_of_link.get(link, ())}
        found = {site: self._roots_of(site, gates, links) for site in touched}
        return {site: new for site, new in found.items() if new != self._roots_of(site, (), ())}

    def _roots_of(self, site: int, gates: Collection[int], links: Collection[int]) -> Roots:
        for gate in self.of_site[site]:
            by = self.named_by.get((site, gate))
            if gate not in gates and (by is None or not by.issubset(links)):
                return self.homes[gate]
        return ()

    @cached_property
    def _sites_of(self) -> dict[int, list[int]]:
        return _inverse((site, gate) for site, gates in enumerate(self.of_site) for gate in gates)

    @cached_property
    def _sites_of_link(self) -> dict[int, list[int]]:
        return _inverse(
            (site, link) for (site, _), links in self.named_by.items() for link in links
        )


def _grouped(count: int, pairs: Iterable[Pair]) -> tuple[tuple[int, ...], ...]:
    found: list[set[int]] = [set() for _ in range(count)]
    for key, value in pairs:
        found[key].add(value)
    return tuple(tuple(sorted(values)) for values in found)


def _inverse(pairs: Iterable[Pair]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for value, key in pairs:
        found.setdefault(key, []).append(value)
    return found
