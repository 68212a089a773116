"""Settings entries of servers, and what makes a machine one (MS-MQDSSM 3.1.6.1.1.3, 3.1.6.7.1.9).

A machine with a service has an entry ``MSMQ Settings`` below CN=Servers of each of its sites, which
repeats its services, so that others find the servers of a site without searching all domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.forest import SETTINGS_CLASS, server_name, settings_name
from mqis.protocol.activedirectory.made import services
from mqis.protocol.activedirectory.steps import (
    ENTRY_ALREADY_EXISTS,
    NO_SUCH_OBJECT,
    PlanStep,
    value_in,
)
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties

#: What to read of a machine before it is changed or deleted.
SERVER_ATTRIBUTES = (
    "objectClass",
    "objectGUID",
    "mSMQSites",
    "mSMQServiceType",
    "mSMQRoutingServices",
    "mSMQDsServices",
    "mSMQDependentClientServices",
)
_NO_SERVICES = ServiceAttributes()


@dataclass(frozen=True, slots=True)
class MachineServices:
    """The services of a machine and the sites that it offers them in."""

    attributes: ServiceAttributes = _NO_SERVICES
    dependent_clients: bool = False
    sites: tuple[Guid, ...] = ()

    @classmethod
    def of(cls, view: EntryView) -> MachineServices:
        """Reads them from a machine's entry."""
        values = view.entry.values("mSMQDependentClientServices")
        supporting = bool(values) and codecs.FLAG.decode(values) == 1
        sites = tuple(Guid(value) for value in view.entry.values("mSMQSites") if len(value) == 16)
        return cls(services(view), supporting, sites)

    @property
    def is_server(self) -> bool:
        found = self.attributes
        return found.routing or found.directory_server or self.dependent_clients

    def with_properties(self, given: Properties) -> MachineServices:
        """After a write: what is not given stays as it was (E-MQDSSM-21)."""
        found, bits = self.attributes, value_in(given, PropId.QM_SERVICE)
        if isinstance(bits, int):
            found = ServiceAttributes.from_bits(bits)
        if PropId.QM_SERVICE_ROUTING in given:
            found = found.with_routing(value_in(given, PropId.QM_SERVICE_ROUTING) == 1)
        if PropId.QM_SERVICE_DSSERVER in given:
            flag = value_in(given, PropId.QM_SERVICE_DSSERVER) == 1
            if not (flag and found.role is not None):
                found = found.with_directory_server(flag)
        clients, sites = value_in(given, PropId.QM_SERVICE_DEPCLIENTS), self.sites
        if isinstance(listed := value_in(given, PropId.QM_SITE_IDS), tuple):
            sites = tuple(site for site in listed if isinstance(site, Guid))
        elif isinstance(site := value_in(given, PropId.QM_SITE_ID), Guid):
            sites = (site, *(other for other in sites if other != site))
        supporting = self.dependent_clients if clients is None else clients == 1
        return replace(self, attributes=found, dependent_clients=supporting, sites=sites)

    def machine_attributes(self) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        """The attributes of the machine's entry that the service properties become."""
        yield "mSMQServiceType", (b"%d" % self.attributes.bits,)
        yield "mSMQRoutingServices", codecs.FLAG.encode(int(self.attributes.routing))
        yield "mSMQDsServices", codecs.FLAG.encode(int(self.attributes.directory_server))

    def settings_attributes(self, machine: Guid) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
        return (
            ("objectClass", (SETTINGS_CLASS.encode(),)),
            ("mSMQQMID", (machine.raw,)),
            ("mSMQServices", (b"%d" % self.attributes.bits,)),
            ("mSMQRoutingService", codecs.FLAG.encode(int(self.attributes.routing))),
            ("mSMQDsService", codecs.FLAG.encode(int(self.attributes.directory_server))),
            ("mSMQDependentClientService", codecs.FLAG.encode(int(self.dependent_clients))),
        )


def writes_services(given: Properties) -> bool:
    """Returns whether properties say something about mSMQServiceType."""
    asked = PropId.QM_SERVICE, PropId.QM_SERVICE_ROUTING, PropId.QM_SERVICE_DSSERVER
    return any(propid in given for propid in asked)


def make_settings(
    computer: DistinguishedName,
    sites: Iterable[DistinguishedName],
    machine: Guid,
    found: MachineServices,
) -> Iterator[PlanStep]:
    """Makes the settings of a server in each site anew, and the entries above (E-MQDSSM-13)."""
    exists = frozenset({ENTRY_ALREADY_EXISTS})
    for site in sites:
        server = server_name(site, computer.leaf)
        settings = str(settings_name(site, computer.leaf))
        container = (("objectClass", (b"serversContainer",)),)
        yield PlanStep(AddEntry(str(server.parent), container), exists)
        about = (("objectClass", (b"server",)), ("serverReference", (str(computer).encode(),)))
        yield PlanStep(AddEntry(str(server), about), exists)
        yield PlanStep(DeleteEntry(settings), frozenset({NO_SUCH_OBJECT}))
        yield PlanStep(AddEntry(settings, found.settings_attributes(machine)))


def remove_settings(computer: str, sites: Iterable[DistinguishedName]) -> Iterator[PlanStep]:
    """Deletes the settings of a machine that is no server of these sites any more."""
    for site in sites:
        target = DeleteEntry(str(settings_name(site, computer)))
        yield PlanStep(target, frozenset({NO_SUCH_OBJECT}))
