"""Reads the whole directory from a server, as objects in the order of exports.

A client of MS-MQDS sees what its user may read. It does not see sequence numbers (all are 0 here),
tombstones, nor the properties in ``UNTOLD``. Partitions follow from the sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqis.client.remote import Remote
from mqis.protocol.directory.descriptors import descriptor_of
from mqis.protocol.directory.export_format import ORDER
from mqis.protocol.directory.object_sources import Record
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    SECURITY_PROPERTY,
    DirectoryObject,
)
from mqis.protocol.directory.ownership import SITE_TYPES
from mqis.protocol.directory.types.catalogue import COMPUTED, ROWS, ids_where
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation, extract
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber

#: (objects read, objects of the types so far).
ReadProgress = Callable[[int, int], None]

_PERMISSIONS = frozenset(SECURITY_PROPERTY.values())
_PARTS = SecurityInformation.OWNER | SecurityInformation.GROUP | SecurityInformation.DACL
#: The stored properties that no call of the protocol returns.
UNTOLD: frozenset[int] = ids_where(
    lambda row: (
        row.object_type in ORDER
        and row.stored
        and not row.readable
        and row.alias_of is None
        and row.id not in COMPUTED
        and row.id not in _PERMISSIONS
    )
)


def stored_columns(object_type: ObjectType) -> list[PropId]:
    """The stored properties of a type that a lookup returns."""
    return [
        row.id
        for propid, row in ROWS.items()
        if row.object_type is object_type
        and row.readable
        and not row.reserved
        and (row.also_stored or propid not in COMPUTED)
    ]


def whole_directory(
    remote: Remote, progress: ReadProgress, *, permissions: bool
) -> Iterator[DirectoryObject]:
    """Yields all objects. Reading ``permissions`` takes one more call for each object."""
    sites: dict[Guid, Guid] = {}
    done = total = 0
    for object_type in ORDER:
        found = remote.lookup(object_type, stored_columns(object_type), (), ())
        found.sort(key=lambda record: record.id.raw)
        total += len(found)
        for record in found:
            obj = _object(record, sites)
            if permissions and object_type in SECURITY_PROPERTY:
                obj = obj.with_properties(_permissions(remote, obj), obj.seq)
            done += 1
            progress(done, total)
            yield obj


def _object(record: Record, sites: dict[Guid, Guid]) -> DirectoryObject:
    values: dict[int, PropVariant] = {
        int(p): value for p, value in record.values.items() if value is not None
    }
    partition = ENTERPRISE_PARTITION
    if record.type is ObjectType.MACHINE:
        listed = record.values.get(PropId.QM_SITE_IDS)
        partition = _first(None if listed is None else listed.value)
        sites[record.id] = partition
    elif record.type in SITE_TYPES:
        machine = record.values.get(PropId.Q_QMID)
        partition = sites.get(_first(None if machine is None else machine.value), Guid.NULL)
    return DirectoryObject(record.type, record.id, partition, SequenceNumber.MIN, values)


def _first(value: object) -> Guid:
    found = next(iter(value), None) if isinstance(value, tuple) else value
    return found if isinstance(found, Guid) else Guid.NULL


def _permissions(remote: Remote, obj: DirectoryObject) -> dict[int, PropVariant]:
    """The owner, the group and the list of permissions; the audit list takes another right."""
    try:
        data = remote.security(obj.type, str(obj.id), int(_PARTS))
    except DirectoryError as error:
        if error.hresult != HResult.MQ_ERROR_ACCESS_DENIED:
            raise
        what = f"{obj.type.label} {obj.path or obj.id}"
        raise DirectoryError(
            error.hresult,
            f"this user may not read the permissions of {what}: log on as an administrator "
            "(--user), or leave permissions out (--no-permissions)",
        ) from error
    if data == extract(descriptor_of(obj), _PARTS).to_bytes():  # nobody gave it one
        return {}
    propid = SECURITY_PROPERTY[obj.type]
    return {propid: prop(propid, data)}
