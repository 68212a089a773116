"""Whole partitions at once: Remove Directory Objects (MS-MQDS 3.1.6.10, note <134>).

A full synchronisation marks what a replica holds (operation 0), takes what the authority sends, and
removes what was not sent. The text removes everything then (operation 1), which would include what
just came (E38); here operation 1 is for the partition of a site that is no more. Neither leaves
tombstones: the authority has not deleted anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.ownership import SITE_TYPES
from mqis.protocol.ports import Transaction, View
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber


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
