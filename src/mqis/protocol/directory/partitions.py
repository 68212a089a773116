"""Whole partitions at once: Remove Directory Objects (MS-MQDS 3.1.6.10, note <134>).

A full synchronisation marks what a replica holds, takes what the authority sends, and sweeps what
was not sent. The text's operation 1 removes everything instead, which would include what just
came (E38), so there is a sweep of its own. None of this leaves tombstones: the authority has not
deleted anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.ownership import SITE_TYPES
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction, View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber


class PartitionOperation(IntEnum):
    """iOperation."""

    MARK = 0
    REMOVE = 1


def remove_directory_objects(tx: Transaction, partition: Guid, operation: int) -> int:
    """3.1.6.10 as replication needs it; how many objects it was about."""
    if operation == PartitionOperation.MARK:
        return mark(tx, partition)
    if operation == PartitionOperation.REMOVE:
        return _remove(tx, objects_of(tx, partition))
    raise DirectoryError(
        HResult.MQ_ERROR_INVALID_PARAMETER, f"operation {operation} is neither 0 nor 1"
    )


def mark(tx: Transaction, partition: Guid) -> int:
    """Number every object of a partition zero."""
    found = list(objects_of(tx, partition))
    for obj in found:
        tx.update(obj, replace(obj, seq=SequenceNumber.MIN))
    return len(found)


def sweep(tx: Transaction, partition: Guid) -> int:
    """Remove the objects that still bear the mark."""
    marked = (obj for obj in objects_of(tx, partition) if obj.seq == SequenceNumber.MIN)
    return _remove(tx, marked)


def objects_of(view: View, partition: Guid) -> Iterator[DirectoryObject]:
    """Queues and machines of a site's partition; all else lies in the enterprise's."""
    for object_type in ObjectType:
        if (object_type in SITE_TYPES) != (partition == ENTERPRISE_PARTITION):
            for obj in view.objects(object_type):
                if obj.partition == partition:
                    yield obj


def _remove(tx: Transaction, objects: Iterator[DirectoryObject]) -> int:
    found = list(objects)
    for obj in found:
        tx.delete(obj)
    return len(found)
