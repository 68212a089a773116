"""Facts of an estate from a store: a mirror of an Active Directory, or a directory of our own.

A store keeps what MS-MQDS knows. Computers' accounts, service principal names, subnets and the
settings of servers are not among it.
"""

from __future__ import annotations

from dataclasses import replace
from time import time

from mqis.admin.activedirectory.estate.sources import expiry_of
from mqis.findings import CheckReport, Finding
from mqis.protocol.activedirectory.estate.examining import examine_estate
from mqis.protocol.activedirectory.estate.facts import (
    CertificatesFact,
    EstateFacts,
    LinkFact,
    MachineFact,
    QueueFact,
    SiteFact,
)
from mqis.protocol.activedirectory.estate.findings import EstateCheck
from mqis.protocol.activedirectory.estate.open_queues import messages_open_for
from mqis.protocol.activedirectory.estate.sight import EstateSight, name_of
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.directory.user_certificates import certificates_of
from mqis.protocol.ports import View
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.descriptor import SecurityDescriptor

_NO_ACCOUNTS = "a store has no accounts of computers"
_UNTOLD = {
    EstateCheck.NO_COMPUTER: _NO_ACCOUNTS,
    EstateCheck.DISABLED_COMPUTER: _NO_ACCOUNTS,
    EstateCheck.SERVICE_NAME_MISSING: _NO_ACCOUNTS,
    EstateCheck.SERVICE_NAME_DOUBLED: _NO_ACCOUNTS,
    EstateCheck.COMPUTER_NAME_DOUBLED: _NO_ACCOUNTS,
    EstateCheck.LEFT_SETTINGS: "a store has no settings of servers",
    EstateCheck.UNKNOWN_USER: "a store has no accounts of users",
    EstateCheck.ALIAS_TO_NOWHERE: "a store has no aliases",
    EstateCheck.BAD_LIST_MEMBER: "a store has no distribution lists",
    EstateCheck.ADDRESS_OUTSIDE_SITE: "a store has no subnets",
}
_DAY_S = 86_400
_NAMED = (ObjectType.SITE, ObjectType.MACHINE)


def check_stored(view: View) -> CheckReport:
    """Examines a store as one view shows it. Repairs are commands: a store has no LDAP names."""
    facts = EstateFacts(untold=dict(_UNTOLD), sight=EstateSight(everything=True))
    names = {obj.id: _name(obj) for kind in _NAMED for obj in view.objects(kind)}
    facts.sites = [_site(obj) for obj in view.objects(ObjectType.SITE)]
    facts.machines = [_machine(obj) for obj in view.objects(ObjectType.MACHINE)]
    gates = {obj.id: _guids(obj, PropId.S_GATES) for obj in view.objects(ObjectType.SITE)}
    facts.links = [_link(obj, names, gates) for obj in view.objects(ObjectType.ROUTINGLINK)]
    facts.queues = [_queue(obj, names) for obj in view.objects(ObjectType.QUEUE)]
    now = int(time())
    facts.certificates = [_certificates(obj, now) for obj in view.objects(ObjectType.USER)]
    report = examine_estate(facts)
    shown = tuple(_shown(finding) for finding in report.findings)
    return replace(report, findings=shown)


def _shown(finding: Finding) -> Finding:
    return replace(finding, where=DistinguishedName.parse(finding.where).leaf, repair=())


def _name(obj: DirectoryObject) -> str:
    """The checks compare distinguished names, so an object gets one for as long as they run."""
    return str(DistinguishedName().child("CN", obj.path or str(obj.id)))


def _missing(id_: object) -> str:
    return str(DistinguishedName().child("CN", str(id_)))


def _guids(obj: DirectoryObject, propid: int) -> tuple[Guid, ...]:
    value = obj.value(propid)
    listed = value if isinstance(value, tuple) else (value,)
    return tuple(guid for guid in listed if isinstance(guid, Guid) and guid)


def _site(obj: DirectoryObject) -> SiteFact:
    return SiteFact(_name(obj), obj.id, obj.value(PropId.S_FOREIGN) == 1)


def _machine(obj: DirectoryObject) -> MachineFact:
    services, keys = ServiceAttributes.of(obj), obj.value(PropId.QM_ENCRYPT_PKS)
    return MachineFact(
        _name(obj),
        obj.id,
        name_of(_name(obj)),
        _guids(obj, PropId.QM_SITE_IDS),
        services.routing,
        services.routing or services.directory_server,
        obj.value(PropId.QM_FOREIGN) == 1,
        keys if isinstance(keys, bytes) else b"",
    )


def _link(
    obj: DirectoryObject, names: dict[Guid, str], site_gates: dict[Guid, tuple[Guid, ...]]
) -> LinkFact:
    """A directory of our own may name the gates at the sites instead."""
    ends = [*_guids(obj, PropId.L_NEIGHBOR1), *_guids(obj, PropId.L_NEIGHBOR2)]
    of_sites = [gate for end in ends for gate in site_gates.get(end, ())]
    gates = dict.fromkeys((*_guids(obj, PropId.L_GATES), *of_sites))
    return LinkFact(
        _name(obj),
        tuple(name_of(names.get(end, _missing(end))) for end in ends),
        tuple(names.get(gate, _missing(gate)) for gate in gates),
    )


def _queue(obj: DirectoryObject, names: dict[Guid, str]) -> QueueFact:
    host = next(iter(_guids(obj, PropId.Q_QMID)), None)
    machine = name_of(names.get(host, _missing(host)) if host is not None else _missing(host))
    octets = obj.value(SECURITY_PROPERTY[ObjectType.QUEUE])
    try:
        found = SecurityDescriptor.from_bytes(octets) if isinstance(octets, bytes) else None
    except (WireError, ValueError):
        found = None
    if found is None:
        return QueueFact(_name(obj), machine, descriptor_seen=False)
    return QueueFact(_name(obj), machine, messages_open_for(found))


def _certificates(obj: DirectoryObject, now: int) -> CertificatesFact:
    moments = (expiry_of(found.certificate) for found in certificates_of(obj.properties))
    expired = tuple((now - m) // _DAY_S for m in moments if m is not None and m < now)
    return CertificatesFact(_name(obj), expired=expired)
