"""The facts of an estate by name and by identifier, so that each check finds others at once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from mqis.protocol.activedirectory.estate.facts import (
    AccountFact,
    EstateFacts,
    IpAddress,
    MachineFact,
    QueueFact,
    SiteFact,
    SubnetFact,
)
from mqis.protocol.activedirectory.estate.questions import gate_names, linked_names
from mqis.protocol.activedirectory.estate.sight import name_of
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName


@dataclass(slots=True)
class EstateIndex:
    """The facts, and ways to find them."""

    facts: EstateFacts
    accounts: dict[str, AccountFact] = field(init=False)
    machines: dict[str, MachineFact] = field(init=False)
    machine_ids: dict[Guid, MachineFact] = field(init=False)
    site_ids: dict[Guid, SiteFact] = field(init=False)
    site_names: dict[str, SiteFact] = field(init=False)
    queues_of: dict[str, list[QueueFact]] = field(init=False)
    #: Some entry exists, because others refer to it, and is not seen: more may be hidden.
    is_veiled: bool = field(init=False)
    _computers: dict[str, AccountFact] = field(init=False)

    def __post_init__(self) -> None:
        facts = self.facts
        self.accounts = {name_of(found.where): found for found in facts.accounts}
        self.machines = {name_of(found.where): found for found in facts.machines}
        self.machine_ids = {found.id: found for found in facts.machines}
        self.site_ids = {found.id: found for found in facts.sites}
        self.site_names = {name_of(found.where): found for found in facts.sites}
        computers = [found for found in facts.accounts if found.is_computer]
        self._computers = {found.account.casefold(): found for found in computers}
        for found in computers:
            self._computers[DistinguishedName.parse(found.where).leaf.casefold()] = found
        self.queues_of = defaultdict(list)
        for queue in facts.queues:
            self.queues_of[queue.machine].append(queue)
        sight = facts.sight
        self.is_veiled = (
            bool(sight.damaged)
            or any(sight.is_hidden(name, exists=True) for name in linked_names(facts))
            or any(sight.is_hidden(name, exists=False) for name in gate_names(facts))
        )

    def computer_named(self, name: str) -> AccountFact | None:
        """The computer whose entry or account has a name."""
        return self._computers.get(name.casefold())

    def computer_of(self, machine: MachineFact) -> AccountFact | None:
        found = self.accounts.get(machine.computer)
        return found if found is not None and found.is_computer else None

    def routers_of(self, sites: tuple[str, ...]) -> list[MachineFact]:
        """The first routing server of each site, by name."""
        found: dict[str, MachineFact] = {}
        for machine in sorted(self.facts.machines, key=lambda machine: machine.where):
            for name in self.sites_of(machine) if machine.routing else ():
                if name in sites:
                    found.setdefault(name, machine)
        return list(dict.fromkeys(found.values()))

    def sites_of(self, machine: MachineFact) -> tuple[str, ...]:
        """The names of a machine's sites, as far as they exist."""
        known = (self.site_ids.get(site) for site in machine.sites)
        return tuple(name_of(site.where) for site in known if site is not None)

    def subnet_of(self, address: IpAddress) -> SubnetFact | None:
        """The narrowest subnet that an address lies in."""
        containing = (subnet for subnet in self.facts.subnets if address in subnet.network)
        return max(containing, key=lambda subnet: subnet.network.prefixlen, default=None)
