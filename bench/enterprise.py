"""The measured directory: one site, its machines, and a hundred queues on each.

A queue has the properties that a client would send, a unique label and a security descriptor. The
directory adds the rest, so that it has fourteen properties.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, Sid

QUEUES_PER_MACHINE = 100
#: The maximum number of machines; more queues go to the first ones again.
MACHINES = 1_000
NOW = 946_684_800
OWNER = Sid.parse("S-1-5-21-1004336348-1177238915-682003330-1103")
#: Grants everything to owner and administrators, reading properties and sending to everyone, and
#: sending to anonymous users.
DESCRIPTOR = SecurityDescriptor(
    owner=OWNER,
    group=Sid.parse("S-1-5-21-1004336348-1177238915-682003330-513"),
    dacl=Acl(
        (
            allow(OWNER, 0x000F003F),
            allow(ADMINISTRATORS, 0x000F003F),
            allow(EVERYONE, 0x00020024),
            allow(ANONYMOUS, 0x00000004),
        )
    ),
)
_SECURITY = PropVariant(VarType.BLOB, DESCRIPTOR.to_bytes())
_ENTROPY = SystemEntropy()


def label(number: int) -> str:
    return f"orders of customer {number}"


def path(number: int) -> str:
    return f"SERVER{number // QUEUES_PER_MACHINE % MACHINES:05}\\queue{number:07}"


def create_queue(number: int) -> Callable[[Transaction], DirectoryObject]:
    """The operation that a client's create runs."""

    def operation(transaction: Transaction) -> DirectoryObject:
        properties: dict[int, PropVariant] = props(
            {
                PropId.Q_LABEL: label(number),
                PropId.Q_SECURITY: _SECURITY,
            }
        )
        events = DirectoryEvents(transaction, NOW, _ENTROPY)
        return events.create(ObjectType.QUEUE, path(number), properties)

    return operation


def create_machines(store: Store, queues: int) -> list[Guid]:
    """Creates a site, and machines for so many queues; returns the machines' identifiers."""
    machines = min(MACHINES, -(-queues // QUEUES_PER_MACHINE))
    with store.write() as transaction:
        events = DirectoryEvents(transaction, NOW, _ENTROPY)
        psc = "SERVER00000"
        site = events.create(ObjectType.SITE, "HEADQUARTERS", props({PropId.S_PSC: psc}))
        events = DirectoryEvents(transaction, NOW, _ENTROPY, own_site=site.id)
        return [
            events.create(ObjectType.MACHINE, f"SERVER{number:05}", {}).id
            for number in range(machines)
        ]


def create_queues(store: Store, numbers: range) -> list[Guid]:
    """Creates queues in one transaction, which shows a bulk load without waiting for the disk."""
    with store.write() as transaction:
        return [create_queue(number)(transaction).id for number in numbers]
