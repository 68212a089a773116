"""Deleted objects as a journal shows them."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

#: The properties of a routing link that name its two sites.
LINK_ENDS = tuple(
    row.id
    for row in ROWS.values()
    if row.object_type is ObjectType.ROUTINGLINK and row.refers_to is ObjectType.SITE
)


@dataclass(frozen=True, slots=True)
class LostObject:
    """An object that was deleted, with its content just before if the journal has that."""

    type: ObjectType
    id: Guid
    partition: Guid
    #: The record of the deletion, and its time in microseconds since 1970.
    lsn: int
    time_us: int
    #: The user or server that asked for the deletion; empty: the journal does not say.
    by: str = ""
    #: The deleted site that took this object along.
    with_site: Guid | None = None
    obj: DirectoryObject | None = None

    @property
    def path(self) -> str | None:
        return None if self.obj is None else self.obj.path

    @property
    def label(self) -> str:
        return f"{self.type.label} {self.path or self.id}"
