"""The partition an object lies in, and the server that is its authority.

Enterprise-wide objects (enterprise, sites, links, users, networks) lie in the enterprise
partition, which the PEC owns. Machines and queues lie in the partition of their site, which the
PSC of that site owns (MS-MQDS 3.1.4.21.1, MC-MQDSRP 1.3.1). A server without an enterprise or its
own site in the directory answers no calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
)
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction, View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.seqnum import SequenceNumber

#: Types whose objects a site owns; all others belong to the enterprise.
SITE_TYPES = frozenset({ObjectType.QUEUE, ObjectType.MACHINE})


def enterprise(view: View) -> DirectoryObject | None:
    """The one Enterprise object, found by being the only one of its type (3.1.1.14)."""
    return next(iter(view.objects(ObjectType.ENTERPRISE)), None)


def machine_of(path: str, view: View) -> DirectoryObject:
    """The machine that hosts the queue ``path``."""
    computer = QueuePath.parse(path).computer
    machine = view.find(ObjectType.MACHINE, computer)
    if machine is None:
        raise DirectoryError(
            HResult.MQ_ERROR_MACHINE_NOT_FOUND, f"no machine {computer!r} for queue {path!r}"
        )
    return machine


def site_of(stored: Properties) -> Guid:
    """The site that a new machine names, which is its partition too."""
    sites = stored.get(PropId.QM_SITE_IDS)
    listed = sites.value if sites is not None and isinstance(sites.value, tuple) else ()
    first = next(iter(listed), None)
    if not isinstance(first, Guid):
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, "a machine needs its site (PROPID_QM_SITE_ID)"
        )
    return first


def authority(partition: Guid, view: View) -> str | None:
    """The machine name of the server that owns a partition; None if the directory has none."""
    if partition == ENTERPRISE_PARTITION:
        root = enterprise(view)
        name = None if root is None else root.value(PropId.E_PECNAME)
    else:
        site = view.get(ObjectType.SITE, partition)
        name = None if site is None else site.value(PropId.S_PSC)
    return name if isinstance(name, str) and name else None


def partition_or_new(partition: Guid, view: View) -> Partition:
    """The stored state of a partition, or the state that it starts with."""
    found = view.partition(partition)
    return found or Partition(partition, authority(partition, view) or "")


# --- Whole partitions at once: Remove Directory Objects (MS-MQDS 3.1.6.10, note <134>) ------------
# A full synchronisation marks what a replica holds (operation 0), takes what the authority sends,
# and removes what was not sent. The text removes everything then (operation 1), which would include
# what just came (E38); here operation 1 is for the partition of a site that is no more. Neither
# leaves tombstones: the authority has not deleted anything.


def mark(tx: Transaction, partition: Guid) -> None:
    """Operation 0: gives every object of a partition the sequence number zero."""
    for obj in list(objects_of(tx, partition)):
        tx.update(obj, replace(obj, seq=SequenceNumber.MIN))


def remove(tx: Transaction, partition: Guid) -> list[DirectoryObject]:
    """Operation 1: removes every object of a partition and returns what it removed."""
    found = list(objects_of(tx, partition))
    for obj in found:
        tx.delete(obj)
    return found


def objects_of(view: View, partition: Guid) -> Iterator[DirectoryObject]:
    """Queues and machines of a site's partition; all else lies in the enterprise's."""
    for object_type in ObjectType:
        if (object_type in SITE_TYPES) != (partition == ENTERPRISE_PARTITION):
            for obj in view.objects(object_type):
                if obj.partition == partition:
                    yield obj


def check_ready(view: View, own_site: Guid | None) -> None:
    """Raise ``DirectoryError`` unless there are an enterprise and the site of this server."""
    if enterprise(view) is None:
        raise _empty("the directory has no enterprise")
    if own_site is None:
        raise _empty("it is not configured which site this server is in")
    if view.get(ObjectType.SITE, own_site) is None:
        raise _empty(f"the directory does not know the site {own_site} of this server")


def _empty(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_MQIS_SERVER_EMPTY, detail)
