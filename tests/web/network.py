"""A made-up network of sites of any size: hubs that are linked, and branches around each hub.

The same numbers give the same sites, links and machines, so that pictures can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from mqis.lab.demo import SeededEntropy
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.ports import Store, Transaction
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value

_NOW = 1_709_280_000
# fmt: off
_CITIES = (
    "Amsterdam", "Berlin", "Chicago", "Dublin", "Essen", "Florence", "Geneva", "Hamburg",
    "Istanbul", "Jakarta", "Kyoto", "Lima", "Madrid", "Nairobi", "Oslo", "Paris", "Quito",
    "Rome", "Seoul", "Toronto", "Utrecht", "Vienna", "Warsaw", "Xiamen", "York", "Zurich",
)
# fmt: on
_COSTS = (1, 5, 10, 20, 50)


@dataclass(frozen=True, slots=True)
class EstatePlan:
    """The size of the network. Links beyond those that join all sites are made up."""

    sites: int = 1000
    links: int = 2000
    seed: int = 1

    @property
    def hubs(self) -> int:
        return max(1, min(self.sites, round(math.sqrt(self.sites) * 0.8)))

    def name(self, site: int) -> str:
        city = site % self.hubs
        turn = city // len(_CITIES)
        hub = _CITIES[city % len(_CITIES)] + (f" {turn + 1}" if turn else "")
        return hub if site < self.hubs else f"{hub}-{site // self.hubs:02}"

    def pairs(self) -> list[tuple[int, int]]:
        """The linked sites: branches with their hub, hubs with an earlier hub, and others."""
        random = Random(self.seed)
        found = {(random.randrange(hub), hub) for hub in range(1, self.hubs)}
        found |= {(site % self.hubs, site) for site in range(self.hubs, self.sites)}
        most = min(self.links, self.sites * (self.sites - 1) // 4)
        while len(found) < most:
            first = random.randrange(self.sites)
            near = (first + self.hubs * random.randint(1, 4)) % self.sites
            second = near if random.random() < 0.9 else random.randrange(self.sites)
            if first != second:
                found.add((min(first, second), max(first, second)))
        return sorted(found)


def fill_estate(store: Store, plan: EstatePlan) -> None:
    """Fills an empty store in one transaction; each site has one machine, its gate."""
    with store.write() as tx:
        _Filling(plan, tx).fill()


class _Filling:
    def __init__(self, plan: EstatePlan, tx: Transaction) -> None:
        self._plan = plan
        self._tx = tx
        self._entropy = SeededEntropy(plan.seed)
        self._random = Random(plan.seed)
        self._sites = [self._entropy.guid() for _ in range(plan.sites)]
        self._gates = [self._entropy.guid() for _ in range(plan.sites)]

    def fill(self) -> None:
        pec = self._machine(0)
        self._tx.put_partition(Partition(ENTERPRISE_PARTITION, pec))
        self._create(ObjectType.ENTERPRISE, {PropId.E_NAME: "Estate", PropId.E_PECNAME: pec})
        for number in range(self._plan.sites):
            self._site(number)
        for first, second in self._plan.pairs():
            self._link(first, second)

    def _machine(self, number: int) -> str:
        return f"{self._plan.name(number).lower().replace(' ', '')}-gw"

    def _site(self, number: int) -> None:
        site, gate = self._sites[number], self._gates[number]
        role = ServiceBits.PSC if number else ServiceBits.PEC
        self._create(
            ObjectType.SITE,
            {
                PropId.S_SITEID: site,
                PropId.S_PATHNAME: self._plan.name(number),
                PropId.S_PSC: self._machine(number),
                PropId.S_GATES: (gate,),
            },
        )
        self._create(
            ObjectType.MACHINE,
            {
                PropId.QM_MACHINE_ID: gate,
                PropId.QM_PATHNAME: self._machine(number),
                PropId.QM_SITE_IDS: (site,),
                PropId.QM_SERVICE: int(ServiceBits.ROUTING | role),
            },
        )

    def _link(self, first: int, second: int) -> None:
        ends: tuple[Guid, Guid] = self._sites[first], self._sites[second]
        self._create(
            ObjectType.ROUTINGLINK,
            {
                PropId.L_ID: self._entropy.guid(),
                PropId.L_NEIGHBOR1: ends[0],
                PropId.L_NEIGHBOR2: ends[1],
                PropId.L_ACTUAL_COST: self._random.choice(_COSTS),
            },
        )

    def _create(self, kind: ObjectType, values: Mapping[int, Value]) -> None:
        DirectoryEvents(self._tx, _NOW, self._entropy).create_directory_object(kind, props(values))
