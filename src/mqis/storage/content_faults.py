"""The faults that ``mqis store check`` looks for in the contents of any store.

A check goes on past the first fault and names each one, so nothing here raises for bad data.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.ports import View
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber


def view_faults(view: View) -> Iterator[str]:
    """Yields the faults of the contents: numbers, partitions, tombstones, properties."""
    known = {partition.id: partition for partition in view.partitions()}
    for object_type in ObjectType:
        for obj in view.objects(object_type):
            yield from _object_faults(obj)
            if obj.partition not in known:
                yield f"{_name(obj)} is in partition {obj.partition}, which does not exist"
            if any(gone.partition == obj.partition for gone in view.tombstones(obj.id)):
                yield f"{_name(obj)} exists and also has a tombstone"
    for partition in known.values():
        previous = None
        for change in view.changes(partition.id, SequenceNumber.MIN):
            if change.seq == previous:
                yield f"number {change.seq} of partition {partition.id} is used twice"
            previous = change.seq
        if previous is not None and previous > partition.last_seq:
            yield (
                f"partition {partition.id} ends at {partition.last_seq}, "
                f"but holds a change numbered {previous}"
            )


def _object_faults(obj: DirectoryObject) -> Iterator[str]:
    for propid, variant in obj.properties.items():
        entry = PROPERTIES.get(propid)
        if entry is None or entry.object_type is not obj.type:
            yield f"{_name(obj)} has property {propid}, which its type does not have"
        elif entry.vt is not variant.vt:
            yield f"{_name(obj)} has {entry.name} as {variant.vt}, not {entry.vt}"


def _name(obj: DirectoryObject) -> str:
    return f"{obj.type.label} {obj.path or obj.id}"
