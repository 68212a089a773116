"""Compares a mirror's copy with a domain: the entries are read here without the mirror's code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqis.protocol.activedirectory.mirror.comparing import MirrorDifference
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.sim.run_trace import Violation
from mqis.testing.ldap import name_of
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.ldap.responses import SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command

#: An object of the copy; a site and its connected network have one identifier.
ObjectKey = tuple[ObjectType, Guid]

_CLASSES = {
    b"mSMQQueue": ObjectType.QUEUE,
    b"mSMQConfiguration": ObjectType.MACHINE,
    b"site": ObjectType.SITE,
    b"mSMQSiteLink": ObjectType.ROUTINGLINK,
    b"mSMQEnterpriseSettings": ObjectType.ENTERPRISE,
}
_COMPARED = {
    ObjectType.QUEUE: (PropId.Q_LABEL, PropId.Q_QMID),
    ObjectType.MACHINE: (PropId.QM_SITE_IDS, PropId.QM_OUTFRS),
    ObjectType.SITE: (PropId.S_GATES,),
    ObjectType.ROUTINGLINK: (
        PropId.L_NEIGHBOR1,
        PropId.L_NEIGHBOR2,
        PropId.L_ACTUAL_COST,
        PropId.L_GATES,
    ),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is compared of an object: its name, and some of its values."""

    name: str
    values: tuple[object, ...] = ()
    #: The machine of a queue.
    host: Guid | None = None


def held(view: View) -> dict[ObjectKey, Facts]:
    """The objects of a copy."""
    found = (obj for kind in ORDER for obj in view.objects(kind))
    return {(obj.type, obj.id): _stored(obj) for obj in found}


def _stored(obj: DirectoryObject) -> Facts:
    name = "" if obj.type is ObjectType.ENTERPRISE else (obj.path or "").casefold()
    values = tuple(obj.value(propid) for propid in _COMPARED.get(obj.type, ()))
    host = obj.value(PropId.Q_QMID) if obj.type is ObjectType.QUEUE else None
    return Facts(name, values, host if isinstance(host, Guid) else None)


class DomainFacts:
    """The objects that the entries of a controller stand for."""

    def __init__(self, entries: Iterable[SearchEntry]) -> None:
        live = [e for e in entries if e.name and not e.values("isDeleted")]
        self._named = {name_of(e.name).key: e for e in live}
        self.objects: dict[ObjectKey, Facts] = {}
        for entry in live:
            kind = _kind(entry)
            if kind is not None:
                guid = Guid(entry.values("objectGUID")[0])
                self.objects[kind, guid] = facts = self._facts(kind, entry)
                if kind is ObjectType.SITE:
                    self.objects[ObjectType.CN, guid] = Facts(facts.name)

    def _facts(self, kind: ObjectType, entry: SearchEntry) -> Facts:
        name = name_of(entry.name)
        match kind:
            case ObjectType.QUEUE:
                host = Guid(self._named[name.parent.key].values("objectGUID")[0])
                label = entry.values("mSMQLabelEx")[0].decode()
                path = f"{self._called(name.parent.parent)}\\{name.leaf}"
                return Facts(path.casefold(), (label, host), host)
            case ObjectType.MACHINE:
                routers = self._guids(entry.values("mSMQOutRoutingServers"))
                return Facts(self._called(name.parent).casefold(), (_sites(entry), routers))
            case ObjectType.SITE:
                return Facts(name.leaf.casefold(), (self._gates_of(entry),))
            case ObjectType.ROUTINGLINK:
                ends = (*entry.values("mSMQSite1"), *entry.values("mSMQSite2"))
                cost = int(entry.values("mSMQCost")[0])
                gates = self._guids(entry.values("mSMQSiteGates"))
                return Facts("", (*(self._guid(end) for end in ends), cost, gates))
        return Facts("")

    def _called(self, computer: DistinguishedName) -> str:
        account = self._named[computer.key].values("sAMAccountName")
        return account[0].decode().removesuffix("$") if account else computer.leaf

    def _guid(self, name: bytes) -> Guid:
        return Guid(self._named[name_of(name.decode()).key].values("objectGUID")[0])

    def _guids(self, names: Iterable[bytes]) -> tuple[Guid, ...]:
        return tuple(sorted(map(self._guid, names)))

    def _gates_of(self, site: SearchEntry) -> tuple[Guid, ...]:
        """The gates of the site's links that are machines of the site."""
        gates: set[Guid] = set()
        for link in self._named.values():
            ends = (*link.values("mSMQSite1"), *link.values("mSMQSite2"))
            for gate in link.values("mSMQSiteGates") if site.name.encode() in ends else ():
                machine = self._named[name_of(gate.decode()).key]
                if site.values("objectGUID")[0] in machine.values("mSMQSites"):
                    gates.add(self._guid(gate))
        return tuple(sorted(gates))


def _kind(entry: SearchEntry) -> ObjectType | None:
    classes = entry.values("objectClass")
    if b"person" in classes:
        return ObjectType.USER if entry.values("mSMQDigests") else None
    return next((_CLASSES[name] for name in classes if name in _CLASSES), None)


def _sites(entry: SearchEntry) -> tuple[Guid, ...]:
    return tuple(sorted(Guid(raw) for raw in entry.values("mSMQSites")))


def check_equal(copy: dict[ObjectKey, Facts], domain: DomainFacts, unread: set[Guid]) -> None:
    """The copy is the domain. What cannot be read may be missing, or be as it was.

    So may an object whose name such a one still has, or one with the same name.
    """
    excused = _excused(copy, domain, unread)
    wanted = domain.objects
    for key in sorted(wanted.keys() - copy.keys() - excused):
        raise Violation("nothing is missing", f"{_text(key)} {wanted[key].name}")
    for key in sorted(key for key in copy.keys() - wanted.keys() if key[1] not in unread):
        raise Violation("nothing deleted stays", f"{_text(key)} {copy[key].name}")
    for key in sorted((copy.keys() & wanted.keys()) - excused):
        if copy[key] != wanted[key]:
            raise Violation("the copy is equal", f"{_text(key)}: {copy[key]}, not {wanted[key]}")


def _excused(
    copy: dict[ObjectKey, Facts], domain: DomainFacts, unread: set[Guid]
) -> set[ObjectKey]:
    found = {key for key in domain.objects if key[1] in unread}
    holders = {(key[0], facts.name): key for key, facts in copy.items() if facts.name}
    while True:
        blocked = {
            key
            for key, facts in domain.objects.items()
            if key not in found and _is_blocked(key, facts, found, holders, domain)
        }
        if not blocked:
            return found
        found |= blocked


def _is_blocked(
    key: ObjectKey,
    facts: Facts,
    excused: set[ObjectKey],
    holders: dict[tuple[ObjectType, str], ObjectKey],
    domain: DomainFacts,
) -> bool:
    if facts.host is not None and (ObjectType.MACHINE, facts.host) in excused:
        return True
    holder = holders.get((key[0], facts.name), key)
    rightful = holder in domain.objects and domain.objects[holder].name == facts.name
    return holder != key and (holder in excused or rightful)


def check_named(
    copy: dict[ObjectKey, Facts], domain: DomainFacts, unread: set[Guid], left_out: set[Guid]
) -> None:
    """What the copy lacks or has otherwise, the mirror names as left out."""
    for key, wanted in sorted(domain.objects.items(), key=lambda pair: pair[0]):
        if copy.get(key) != wanted and key[1] not in left_out | unread:
            raise Violation("what is left out is named", f"{_text(key)} {wanted.name}")


def check_spoiled(spoiled: set[Guid], left_out: set[Guid]) -> None:
    """A value that is none is named, although the copy has the object."""
    for guid in sorted(spoiled - left_out):
        raise Violation("what is left out is named", f"a value of {guid}")


def check_differences(told: Iterable[MirrorDifference], *, missed: bool) -> None:
    """A comparison finds differences only if the mirror has missed something."""
    for each in () if missed else told:
        raise Violation("a change is no difference", str(each))


def check_deletions(gone: Iterable[ObjectKey], always: set[ObjectKey]) -> None:
    """What every controller had all the time was deleted because it could not be read."""
    for key in sorted(set(gone) & always):
        raise Violation("nothing unread is deleted", _text(key))


def check_records(view: View, copy: Iterable[ObjectKey]) -> None:
    """The journal's records create and delete each object in turn, and lead to the copy."""
    living: set[ObjectKey] = set()
    for _, record in view.outbox(0, 1_000_000):
        key = ObjectType(int(record.object_type or 0)), record.object_id
        if (record.operation == Command.CREATE) == (key in living):
            raise Violation("a change is recorded once", f"{_text(key)} {record.operation}")
        if record.operation == Command.CREATE:
            living.add(key)
        elif record.operation == Command.DELETE:
            living.discard(key)
    if living != set(copy):
        key = min(living ^ set(copy))
        raise Violation("every change is recorded", f"{_text(key)} is in one of them only")


def _text(key: ObjectKey) -> str:
    return f"{key[0].label} {key[1]}"
