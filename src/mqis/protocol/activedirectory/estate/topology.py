"""Checks of routing links, sites, servers' settings and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.findings import Finding
from mqis.protocol.activedirectory.estate.facts import (
    LinkFact,
    MachineFact,
    SettingsFact,
    SiteFact,
)
from mqis.protocol.activedirectory.estate.findings import EstateCheck, Unseen, finding
from mqis.protocol.activedirectory.estate.identities import SHOWING
from mqis.protocol.activedirectory.estate.index import EstateIndex
from mqis.protocol.activedirectory.estate.questions import DELETED
from mqis.protocol.activedirectory.estate.sight import SeenKind, name_of, parent_of
from mqis.texts import counted, joined
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import (
    AttributeChange,
    DeleteEntry,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)

_GATES = "mSMQSiteGates"
_READING = "give the account the right Read all properties on the {}, or dump these attributes"
_UNSEEN_END = "a site of a routing link is not seen"
#: The way to look at domains that were not read.
ASKING = (
    "let the check reach a global catalogue (port 3269, or 3268 without TLS, or --catalogue URL), "
    "or check a dump of all domains of the forest with its crossRef entries"
)


def links_to_nowhere(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds links whose site is deleted. No other repair is proposed for such a link."""
    for link in index.facts.links:
        if len(link.sites) < 2:
            yield _unread_link(EstateCheck.LINK_TO_NOWHERE, link)
        faults = {end: _end_fault(index, link, end) for end in link.sites}
        gone = [f"{end} {fault}" for end, fault in faults.items() if isinstance(fault, str)]
        yield from (fault for fault in faults.values() if isinstance(fault, Unseen) and not gone)
        if gone:
            yield finding(
                EstateCheck.LINK_TO_NOWHERE,
                link.where,
                "; ".join(gone),
                "delete the link",
                (DeleteEntry(link.where),),
            )


def _unread_link(check: EstateCheck, link: LinkFact) -> Unseen:
    reason = "the attributes of a routing link cannot be read"
    return Unseen(check, link.where, reason, _READING.format("links"))


def _end_fault(index: EstateIndex, link: LinkFact, end: str) -> str | Unseen | None:
    """Returns why a link does not lead to a site; None if it does.

    The name of a deleted entry says so. Any other site that is not seen is gone only if other sites
    are seen beside it, its name was looked for, and nothing else shows that it exists or that
    entries are hidden.
    """
    if end in index.site_names:
        return None
    if DELETED in end:
        return "is deleted"
    sight = index.facts.sight
    if sight.everything:
        return "does not exist"
    beside = any(parent_of(end) == parent_of(site) for site in index.site_names)
    if not beside or index.is_veiled or not sight.is_gone(end) or _is_referred_to(index, end):
        return Unseen(EstateCheck.LINK_TO_NOWHERE, link.where, _UNSEEN_END, SHOWING)
    return "does not exist"


def _is_referred_to(index: EstateIndex, site: str) -> bool:
    """Returns whether subnets are of a site or entries below it are seen: then it exists."""
    below = f",{site}"
    return any(subnet.site == site for subnet in index.facts.subnets) or any(
        above == site or above.endswith(below) for above in index.facts.sight.listed
    )


def _leads_nowhere(index: EstateIndex, link: LinkFact) -> bool:
    return any(isinstance(_end_fault(index, link, end), str) for end in link.sites)


def _shows_sites(index: EstateIndex, link: LinkFact) -> bool:
    return all(end in index.site_names for end in link.sites)


def links_without_gates(index: EstateIndex) -> Iterator[Finding | Unseen]:
    for link in index.facts.links:
        if link.gates or _leads_nowhere(index, link):
            continue
        if len(link.sites) < 2:  # a link always has two, so its attributes are not shown
            yield _unread_link(EstateCheck.LINK_WITHOUT_GATES, link)
        else:
            gates = _routers(index, link)
            yield finding(
                EstateCheck.LINK_WITHOUT_GATES,
                link.where,
                joined(link.sites),
                "name a routing server of each site as a gate",
                _modified(link.where, AttributeChange(ModifyKind.ADD, _GATES, gates))
                if gates
                else (),
            )


def bad_gates(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds gates that are deleted, route nothing or stand in neither site."""
    for link in index.facts.links:
        if _leads_nowhere(index, link):
            continue
        faults: dict[str, str] = {}
        for gate in link.gates:
            fault = _gate_fault(index, link, gate)
            if isinstance(fault, Unseen):
                yield fault
            elif fault:
                faults[gate] = fault
        if faults:
            yield finding(
                EstateCheck.BAD_GATE,
                link.where,
                "; ".join(f"{gate} {fault}" for gate, fault in faults.items()),
                "name routing servers of the two sites only",
                _with_gates(index, link, tuple(faults)),
            )


def _gate_fault(index: EstateIndex, link: LinkFact, gate: str) -> str | Unseen:
    name = name_of(gate)
    if DELETED in name:
        return "is deleted"
    machine = index.machines.get(name)
    if machine is None:
        return _missing_gate(index, gate)
    if not machine.routing:
        if machine.routing_seen:
            return "is no routing server"
        reading = _READING.format("queue managers")
        return Unseen(EstateCheck.BAD_GATE, gate, "the services of a gate cannot be read", reading)
    return _place_fault(index, link, machine)


def _place_fault(index: EstateIndex, link: LinkFact, machine: MachineFact) -> str | Unseen:
    elsewhere = index.facts.sites and machine.sites
    if not elsewhere or set(index.sites_of(machine)) & set(link.sites):
        return ""
    if _shows_sites(index, link):
        return "is in neither site"
    return Unseen(EstateCheck.BAD_GATE, link.where, _UNSEEN_END, SHOWING)


def _missing_gate(index: EstateIndex, gate: str) -> str | Unseen:
    name, sight = name_of(gate), index.facts.sight
    kind = sight.kind_of(name)
    if kind is not None:  # a queue manager of another domain is judged there
        return "" if kind is SeenKind.MACHINE else "is no queue manager"
    if sight.is_gone(name):
        return "does not exist"
    return Unseen(EstateCheck.BAD_GATE, gate, "a gate is not seen", f"{SHOWING}; or {ASKING}")


def _with_gates(
    index: EstateIndex, link: LinkFact, bad: tuple[str, ...]
) -> tuple[EntryChange, ...]:
    """Takes the bad gates away; if no other is left, names routing servers of the sites.

    It does nothing if there are none: that takes people. The values are deleted one by one, so that
    the change fails if somebody has changed the gates meanwhile. Only a deleted gate cannot be
    named: then all values are replaced.
    """
    good = tuple(gate.encode() for gate in link.gates if gate not in bad)
    routers = () if good else _routers(index, link)
    if not good and not routers:
        return ()
    if any(DELETED in name_of(gate) for gate in bad):
        change = AttributeChange(ModifyKind.REPLACE, _GATES, good or routers)
        return _modified(link.where, change)
    gone = AttributeChange(ModifyKind.DELETE, _GATES, tuple(gate.encode() for gate in bad))
    added = (AttributeChange(ModifyKind.ADD, _GATES, routers),) if routers else ()
    return _modified(link.where, gone, *added)


def _routers(index: EstateIndex, link: LinkFact) -> tuple[bytes, ...]:
    """A routing server of each site; none while a site is not seen: it may not exist."""
    if not _shows_sites(index, link):
        return ()
    return tuple(router.where.encode() for router in index.routers_of(link.sites))


def _modified(name: str, *changes: AttributeChange) -> tuple[EntryChange, ...]:
    return (ModifyEntry(name, changes),)


def sites_without_router(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """An estate in one site routes nothing, so one site alone needs no routing server.

    A routing server of another domain has settings in the site too.
    """
    members: dict[str, list[MachineFact]] = {}
    for machine in index.facts.machines:
        for name in index.sites_of(machine):
            members.setdefault(name, []).append(machine)
    if len(members) < 2:
        return
    elsewhere = {
        parent_of(parent_of(parent_of(settings.where)))
        for settings in index.facts.settings
        if settings.routing and settings.machine not in index.machine_ids
    }
    for name, machines in members.items():
        site = index.site_names[name]
        if site.foreign or name in elsewhere or any(machine.routing for machine in machines):
            continue
        if not all(machine.routing_seen for machine in machines):
            yield Unseen(
                EstateCheck.SITE_WITHOUT_ROUTER,
                site.where,
                "the services of queue managers of the site cannot be read",
                _READING.format("queue managers"),
            )
        else:
            yield _without_router(site, machines)


def _without_router(site: SiteFact, machines: list[MachineFact]) -> Finding:
    return finding(
        EstateCheck.SITE_WITHOUT_ROUTER,
        site.where,
        f"{counted(len(machines), 'queue manager')}, such as "
        f"{min(machine.where for machine in machines)}",
        "install the routing service on a server of the site: Install-WindowsFeature MSMQ-Routing",
    )


def left_settings(index: EstateIndex) -> Iterator[Finding | Unseen]:
    for settings in index.facts.settings:
        fault = _settings_fault(index, settings)
        if isinstance(fault, Unseen):
            yield fault
        elif fault:
            yield finding(
                EstateCheck.LEFT_SETTINGS,
                settings.where,
                fault,
                "delete the settings",
                (DeleteEntry(settings.where),),
            )


def _settings_fault(index: EstateIndex, settings: SettingsFact) -> str | Unseen:
    check, where = EstateCheck.LEFT_SETTINGS, settings.where
    if settings.machine is None:
        if settings.machine_seen:
            return "they name no queue manager"
        reading = _READING.format("settings")
        return Unseen(check, where, "the attributes of settings cannot be read", reading)
    machine = index.machine_ids.get(settings.machine)
    if machine is None:
        return _missing_machine(index, settings, settings.machine)
    if machine.serves or machine.serves_seen:
        return "" if machine.serves else f"{machine.where} is no server any more"
    reading = _READING.format("queue managers")
    return Unseen(check, where, "the services of a queue manager cannot be read", reading)


def _missing_machine(index: EstateIndex, settings: SettingsFact, id_: Guid) -> str | Unseen:
    """A queue manager is gone if no domain has it, and nothing that others refer to is hidden.

    Active Directory takes the reference of a server away when its computer is deleted. So a
    computer that a server refers to exists, and who does not see it may not see more.
    """
    sight, check = index.facts.sight, EstateCheck.LEFT_SETTINGS
    if id_ in sight.ids:  # it is judged where it is
        return ""
    if not sight.is_whole:
        words = "the queue manager of settings may be in a domain that was not looked at"
        return Unseen(check, settings.where, words, ASKING)
    seen = parent_of(settings.where) in index.facts.servers
    if index.is_veiled or not (seen or sight.everything):
        words = (
            "entries that others refer to are not seen; the queue manager of settings may be too"
        )
        return Unseen(check, settings.where, words, SHOWING)
    return f"queue manager {id_} is gone"


def machines_without_site(index: EstateIndex) -> Iterator[Finding | Unseen]:
    """Finds queue managers that name no site, or one that is deleted."""
    for machine in index.facts.machines:
        gone = [str(site) for site in machine.sites if site not in index.site_ids]
        if not machine.sites and not machine.sites_seen:
            yield Unseen(
                EstateCheck.MACHINE_WITHOUT_SITE,
                machine.where,
                "the attributes of a queue manager cannot be read",
                _READING.format("queue managers"),
            )
        elif gone or not machine.sites:
            yield finding(
                EstateCheck.MACHINE_WITHOUT_SITE,
                machine.where,
                f"site {', '.join(gone)} does not exist" if gone else "it names no site",
                "let the queue manager find its site again: restart Message Queuing there; its "
                "address has to be in a subnet of a site",
            )


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
    old = tuple(id_.raw for id_ in machine.sites if id_ != site.id)
    gone = AttributeChange(ModifyKind.DELETE, "mSMQSites", old)
    added = AttributeChange(ModifyKind.ADD, "mSMQSites", (site.id.raw,))
    return _modified(machine.where, gone, added)
