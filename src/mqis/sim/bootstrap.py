"""Founding an enterprise, and joining servers to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.ports import Entropy, Transaction
from mqis.protocol.replication.server_identity import Role, Server
from mqis.sim.workload import Properties
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_BITS = {Role.PEC: ServiceBits.PEC, Role.PSC: ServiceBits.PSC, Role.BSC: ServiceBits.BSC}


def site_name(site: int) -> str:
    return f"site{site}"


def found(tx: Transaction, pec: Server, key: RsaPublicKey, entropy: Entropy, now: int) -> None:
    """Creates the enterprise, and the PEC's site and machine, in the PEC's store before it runs."""
    tx.put_partition(Partition(ENTERPRISE_PARTITION, pec.name))
    events = DirectoryEvents(tx, now, entropy)
    events.create_directory_object(
        ObjectType.ENTERPRISE,
        props(
            {
                PropId.E_ID: entropy.guid(),
                PropId.E_NAME: "Simulated",
                PropId.E_PECNAME: pec.name,
            }
        ),
    )
    events.create_directory_object(ObjectType.SITE, _site_properties(pec.site, pec.name, 0))
    events.create_directory_object(ObjectType.MACHINE, _machine_properties(pec, key))


def site_creator(me: Server, site: int) -> Callable[[DirectoryEvents], object]:
    """Returns an operation that creates the site of a new PSC, to be run at the PEC."""
    return lambda events: events.create_directory_object(
        ObjectType.SITE, _site_properties(me.site, me.name, site)
    )


def site_remover(me: Server) -> Callable[[DirectoryEvents], object]:
    """Returns an operation that deletes the site of a former PSC, to be run at the PEC."""

    def remove(events: DirectoryEvents) -> bool:
        site = events.transaction.get(ObjectType.SITE, me.site)
        if site is not None:
            events.delete_directory_object(site)
        return True

    return remove


def machine_creator(me: Server, key: RsaPublicKey) -> Callable[[DirectoryEvents], object]:
    """Returns an operation that creates a new server's machine: a PSC's at the PEC, a BSC's at its
    PSC."""
    return lambda events: events.create_directory_object(
        ObjectType.MACHINE, _machine_properties(me, key), partition=me.site
    )


def psc_setter(me: Server) -> Callable[[DirectoryEvents], object]:
    """Returns an operation that names another PSC of a site, to be run at the PEC."""

    def name(events: DirectoryEvents) -> bool:
        site = events.transaction.get(ObjectType.SITE, me.site)
        if site is not None:
            events.update_directory_object(site, props({PropId.S_PSC: me.name}))
        return True

    return name


def role_setter(me: Server) -> Callable[[DirectoryEvents], bool]:
    """Returns an operation that publishes the role of a promoted PSC, to be run there.

    The former PSC becomes a BSC. The result is False while the server decides nothing.
    """

    def publish(events: DirectoryEvents) -> bool:
        own = events.transaction.get(ObjectType.MACHINE, me.id)
        if own is None or events.owns is None or not events.owns(me.site):
            return False
        for machine in list(events.transaction.owned_by(ObjectType.MACHINE, me.site)):
            service = ServiceAttributes.of(machine)
            role = ServiceBits.PSC if machine.id == me.id else ServiceBits.BSC
            if service.role not in (None, role):
                new = replace(service, directory_server=True, role=role).as_properties()
                events.update_directory_object(machine, new)
        return True

    return publish


def _site_properties(site: Guid, psc: str, index: int) -> Properties:
    return props(
        {
            PropId.S_SITEID: site,
            PropId.S_PATHNAME: site_name(index),
            PropId.S_PSC: psc,
        }
    )


def _machine_properties(me: Server, key: RsaPublicKey) -> Properties:
    return props(
        {
            PropId.QM_MACHINE_ID: me.id,
            PropId.QM_PATHNAME: me.name,
            PropId.QM_SITE_IDS: (me.site,),
            PropId.QM_SERVICE: _BITS[me.role],
            PropId.QM_SIGN_PKS: key_list(key),
        }
    )
