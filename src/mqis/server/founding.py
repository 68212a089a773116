"""Founds an enterprise: creates its object, its first site, and the machine of its PEC."""

from __future__ import annotations

from time import time

from mqis.protocol.directory.descriptors import MachinePolicy, default_descriptor
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, SECURITY_PROPERTY, Partition
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sid import ADMINISTRATORS


def found(
    store: Store,
    name: str,
    site: str,
    server: str,
    address: str = "",
    *,
    key: RsaPublicKey | None = None,
) -> None:
    """Founds an enterprise in an empty store; raises ``StorageError`` if it holds one already.

    ``key`` is the PEC's: the first server that joins needs it, perhaps before the PEC publishes it.
    """
    with store.write() as tx:
        if enterprise(tx) is not None or tx.partitions():
            raise StorageError("the store holds a directory already; name another with store.url")
        tx.put_partition(Partition(ENTERPRISE_PARTITION, server))
        events = DirectoryEvents(tx, int(time()), SystemEntropy())
        events.create_directory_object(
            ObjectType.ENTERPRISE,
            props({PropId.E_NAME: name, PropId.E_PECNAME: server})
            | _secured(ObjectType.ENTERPRISE),
        )
        first = events.create(
            ObjectType.SITE,
            site,
            props({PropId.S_PSC: server}),
            security=_descriptor(ObjectType.SITE),
        )
        machine: dict[int, PropVariant] = props(
            {
                PropId.QM_SITE_ID: first.id,
                PropId.QM_SERVICE: int(ServiceBits.PEC),
            }
        )
        if address:
            listed = AddressList((TaAddress.ip(address),))
            machine[PropId.QM_ADDRESS] = prop(PropId.QM_ADDRESS, listed.to_bytes())
        if key is not None:
            machine[PropId.QM_SIGN_PKS] = prop(PropId.QM_SIGN_PKS, key_list(key))
        events.create(ObjectType.MACHINE, server, machine, security=_descriptor(ObjectType.MACHINE))


def _descriptor(kind: ObjectType) -> bytes:
    """The default descriptor, owned by the administrators: only they may set a machine's key."""
    return default_descriptor(kind, ADMINISTRATORS, MachinePolicy.OWNER).to_bytes()


def _secured(kind: ObjectType) -> dict[int, PropVariant]:
    return props({SECURITY_PROPERTY[kind]: _descriptor(kind)})
