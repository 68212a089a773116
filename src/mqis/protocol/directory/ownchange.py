"""A change that this server makes as the authority of a partition, and one that it may not make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject
from mqis.wire.propertybag import PropertyBag, packed_value
from mqis.wire.security.sid import Sid

#: Numbers, names and frames of a change, beside its properties.
OVERHEAD_BYTES = 512


class ChangeKind(IntEnum):
    """iOperation of the events that replication is told with (MC-MQDSRP 3.1.7.1)."""

    CREATE = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class OwnChange:
    """The change of one object.

    ``obj`` is the object afterwards, or as it was if it is gone; ``before`` is None for a new one.
    ``changed`` are the stored properties that were set, whether or not their values differ.
    """

    kind: ChangeKind
    obj: DirectoryObject
    before: DirectoryObject | None = None
    changed: tuple[int, ...] = ()
    tombstone: DeletedObject | None = None
    #: The user or server that asked for the change; empty if nobody did.
    by: str = ""
    #: The account that a new object counts for; None: the owner that its descriptor names.
    creator: Sid | None = None

    @property
    def size(self) -> int:
        """About the bytes that the journal gets of it, and every message that tells of it."""
        properties = self.obj.properties
        if isinstance(properties, PropertyBag) and len(self.changed) == len(properties):
            return OVERHEAD_BYTES + properties.values_size
        packed = (packed_value(properties, propid) for propid in self.changed)
        return OVERHEAD_BYTES + sum(len(value) for value in packed if value is not None)


class NotAuthority(Exception):
    """Another server decides about this: the change is complete and checked, but not made."""

    def __init__(self, change: OwnChange) -> None:
        super().__init__(f"partition {change.obj.partition} has another authority")
        self.change = change
