"""Finding an object by what a client calls it (MS-MQDS 3.1.6.12)."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.objects import NAME_PROPERTY, DirectoryObject, without_path_name
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_LINK_PATH_DIGITS = 64
#: All but the tombstone, which is internal to replication (3.1.4.21.1).
_FOR_CLIENTS = {int(kind): kind for kind in ObjectType if kind is not ObjectType.DELETEDOBJECT}


def object_type_of(
    number: int, refusal: HResult = HResult.MQ_ERROR_INVALID_PARAMETER
) -> ObjectType:
    """The type that a client names; NDR lets 1 to 58 pass, eight of them mean something."""
    object_type = _FOR_CLIENTS.get(number)
    if object_type is None:
        raise DirectoryError(refusal, f"object type {number} is not for clients")
    return object_type


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a call is about, by path or by identifier."""

    object_type: ObjectType
    path: str | None = None
    guid: Guid | None = None

    @classmethod
    def from_wire(cls, number: int, path: str | None = None, guid: Guid | None = None) -> Target:
        return cls(object_type_of(number), path, guid)


def locate(view: View, target: Target) -> DirectoryObject:
    """The object of that path, or of that identifier where no path is given."""
    object_type, path, guid = target.object_type, target.path, target.guid
    if object_type is ObjectType.ENTERPRISE:
        found = enterprise(view)
    elif path is not None:
        found = _by_path(view, object_type, path)
    elif guid is not None:
        found = view.get(object_type, guid)
        if found is None and object_type is ObjectType.USER:
            # Clients name a user by the digest of a certificate (3.2.6.3.7).
            found = next(view.having(ObjectType.USER, PropId.U_DIGEST, guid.raw), None)
    else:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"a {object_type.label} needs a path or a GUID"
        )
    if found is None:
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND, f"no {object_type.label} {path or guid}"
        )
    return found


def _by_path(view: View, object_type: ObjectType, path: str) -> DirectoryObject | None:
    if object_type is ObjectType.ROUTINGLINK:
        return _link_by_path(view, path) or view.find(object_type, path)
    if object_type not in NAME_PROPERTY:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, without_path_name(object_type))
    found = view.find(object_type, path)
    if found is None and object_type is ObjectType.MACHINE:
        found = view.find(object_type, path.partition(".")[0])  # QualifiedComputerName
        if found is not None and found.value(PropId.QM_PATHNAME_DNS):
            return None  # Active Directory gives it another one
    return found


def _link_by_path(view: View, path: str) -> DirectoryObject | None:
    """FullPath of a link: both sites' GUIDs in hexadecimal."""
    if len(path) != _LINK_PATH_DIGITS:
        return None
    try:
        first, second = (Guid.from_big_endian(bytes.fromhex(p)) for p in (path[:32], path[32:]))
    except ValueError:
        return None
    links = view.having(ObjectType.ROUTINGLINK, PropId.L_NEIGHBOR1, first.raw)
    return next((link for link in links if link.value(PropId.L_NEIGHBOR2) == second), None)
