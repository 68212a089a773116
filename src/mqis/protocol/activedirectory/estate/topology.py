"""Checks of routing links, sites, servers' settings and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.findings import Finding
from mqis.protocol.activedirectory.estate.facts import (
    LinkFact,
    MachineFact,
    SettingsFact,
    SiteFact,
    name_of,
)
from mqis.protocol.activedirectory.estate.findings import EstateCheck, finding
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.wire.ldap.changes import (
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)

_DELETED = "\\0adel:"


def links_without_gates(index: EstateIndex) -> Iterator[Finding]:
    for link in index.facts.links:
        if not link.gates:
            yield finding(
                EstateCheck.LINK_WITHOUT_GATES,
                link.where,
                " and ".join(link.sites),
                "name a routing server of each site as a gate",
                _with_gates(index, link, ()),
            )


def bad_gates(index: EstateIndex) -> Iterator[Finding]:
    """Finds gates that are deleted, route nothing or stand in neither site."""
    for link in index.facts.links:
        faults = {gate: _gate_fault(index, link, gate) for gate in link.gates}
        good = tuple(gate for gate, fault in faults.items() if not fault)
        for gate, fault in faults.items():
            if fault:
                yield finding(
                    EstateCheck.BAD_GATE,
                    link.where,
                    f"{gate} {fault}",
                    "name routing servers of the two sites only",
                    _with_gates(index, link, good),
                )


def _gate_fault(index: EstateIndex, link: LinkFact, gate: str) -> str:
    if _DELETED in name_of(gate):
        return "is deleted"
    machine = index.machines.get(name_of(gate))
    if machine is None:
        return "does not exist" if index.was_read(gate) else ""
    if not machine.routing:
        return "is no routing server"
    if index.facts.sites and not set(index.sites_of(machine)) & set(link.sites):
        return "is in neither site"
    return ""


def _with_gates(
    index: EstateIndex, link: LinkFact, good: tuple[str, ...]
) -> tuple[EntryChange, ...]:
    """Names the good gates; if there is none, routing servers of the sites; else it takes people.

    Replaced as a whole: the value of a deleted gate cannot be named to remove it.
    """
    gates = good or tuple(router.where for router in index.routers_of(link.sites))
    if not gates:
        return ()
    values = tuple(gate.encode() for gate in gates)
    change = AttributeChange(ModifyKind.REPLACE, "mSMQSiteGates", values)
    return (ModifyEntry(link.where, (change,)),)


def sites_without_router(index: EstateIndex) -> Iterator[Finding]:
    """An estate in one site routes nothing, so one site alone needs no routing server."""
    members: dict[str, list[MachineFact]] = {}
    for machine in index.facts.machines:
        for name in index.sites_of(machine):
            members.setdefault(name, []).append(machine)
    if len(members) < 2:
        return
    for name, machines in members.items():
        site = index.site_names[name]
        if not site.foreign and not any(machine.routing for machine in machines):
            yield _without_router(site, machines)


def _without_router(site: SiteFact, machines: list[MachineFact]) -> Finding:
    return finding(
        EstateCheck.SITE_WITHOUT_ROUTER,
        site.where,
        f"{len(machines)} queue managers, such as {min(machine.where for machine in machines)}",
        "install the routing service on a server of the site: Install-WindowsFeature MSMQ-Routing",
    )


def left_settings(index: EstateIndex) -> Iterator[Finding]:
    for settings in index.facts.settings:
        fault = _settings_fault(index, settings)
        if fault:
            yield finding(
                EstateCheck.LEFT_SETTINGS,
                settings.where,
                fault,
                "delete the settings",
                (DeleteEntry(settings.where),),
            )


def _settings_fault(index: EstateIndex, settings: SettingsFact) -> str:
    if settings.machine is None:
        return "they name no queue manager"
    machine = index.machine_ids.get(settings.machine)
    if machine is None:
        # A server of another domain has its settings here too.
        return "" if index.facts.domains[1:] else f"queue manager {settings.machine} is gone"
    return "" if machine.serves else f"{machine.where} is no server any more"


def addresses_outside_site(index: EstateIndex) -> Iterator[Finding]:
    for machine in index.facts.machines:
        computer = index.computer_of(machine)
        addresses = machine.addresses or (computer.addresses if computer is not None else ())
        own = set(index.sites_of(machine))
        for address in addresses if own else ():
            subnet = index.subnet_of(address)
            if subnet is None or subnet.site in own:
                continue
            site = index.site_names.get(subnet.site)
            yield finding(
                EstateCheck.ADDRESS_OUTSIDE_SITE,
                machine.where,
                f"{address} is of subnet {subnet.network}, which is {subnet.site}",
                "let the queue manager find its site again (restart Message Queuing), or correct "
                "the subnet",
                _moved(machine, site),
            )


def _moved(machine: MachineFact, site: SiteFact | None) -> tuple[EntryChange, ...]:
    """A server has settings in its sites, which move with it; so only a restart moves one."""
    if site is None or machine.serves:
        return ()
    change = AttributeChange(ModifyKind.REPLACE, "mSMQSites", (site.id.raw,))
    return (ModifyEntry(machine.where, (change,)),)
