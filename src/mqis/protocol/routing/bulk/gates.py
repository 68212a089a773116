"""Which gate speaks for a site, and with that, from which sites its table is rooted."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy.typing as npt

from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.protocol.routing.snapshot import Snapshot

#: The sites of the gate that speaks for a site; none if nobody does.
Roots = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gates:
    """Machines are numbered by the rank of their GUIDs, as sites are."""

    #: Of each site its gates, ascending.
    of_site: tuple[tuple[int, ...], ...]
    #: Of each machine all its sites, ascending.
    homes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, count: int, machine: npt.ArrayLike, site: npt.ArrayLike) -> Gates:
        """From pairs (machine, site) that make each machine a gate of all of its sites."""
        members = sorted(set(zip(_whole(machine), _whole(site), strict=True)))
        return cls._make(count, members, members)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> tuple[Gates, tuple[Guid, ...]]:
        """And the machines by number: all gates of the snapshot."""
        index = snapshot.graph.index
        ids = sorted({gate for gates in snapshot.gates.values() for gate in gates})
        number = {gate: rank for rank, gate in enumerate(ids)}
        members = [(number[g], index[s]) for s, gates in snapshot.gates.items() for g in gates]
        homes = [
            (rank, index[site])
            for gate, rank in number.items()
            for site in snapshot.machines[gate].sites
            if site in index
        ]
        return cls._make(len(index), sorted(members), sorted(homes)), tuple(ids)

    @classmethod
    def _make(
        cls, count: int, members: list[tuple[int, int]], homes: list[tuple[int, int]]
    ) -> Gates:
        of_site: list[list[int]] = [[] for _ in range(count)]
        for machine, site in members:
            of_site[site].append(machine)
        lived: list[list[int]] = [[] for _ in range(max((m for m, _ in homes), default=-1) + 1)]
        for machine, site in homes:
            lived[machine].append(site)
        return cls(tuple(map(tuple, of_site)), tuple(map(tuple, lived)))

    def roots(self, gone: Container[int] = ()) -> list[Roots]:
        """Of each site, when these machines are not there."""
        speakers = (next((m for m in gates if m not in gone), None) for gates in self.of_site)
        return [() if m is None else self.homes[m] for m in speakers]


def _whole(given: npt.ArrayLike) -> list[int]:
    import numpy as np  # noqa: PLC0415

    return [int(number) for number in np.asarray(given).ravel()]
