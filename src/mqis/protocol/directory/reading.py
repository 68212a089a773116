"""The read tables (MS-MQDS 3.1.4.21.8.1): from what is stored to what a property shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    PARTITION_PROPERTY,
    SECURITY_PROPERTY,
    SEQUENCE_PROPERTY,
    DirectoryObject,
)
from mqis.protocol.directory.service import Service
from mqis.protocol.directory.values import MAX_LINK_COST, NEW_DIRECTORY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.security.information import SecurityInformation
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.keys import BASE_PROVIDER, ENHANCED_PROVIDER, PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.security.descriptor import Control, SecurityDescriptor

#: Readable although no table lists it: clients need the protocol they may set (8.1.10).
_ALSO_READABLE = {PropId.CN_PROTOCOLID}

#: Machines of a list that are looked up for their names. Three routing servers are usual; whoever
#: may write the list could make every read of it look up 65,536.
MAX_NAMED = 64

#: What a property shows that no table gives a default, as long as nobody has set it.
_UNSET: dict[int, PropVariant] = {
    PropId.QM_GROUP_IN_CLUSTER: PropVariant(VarType.UI1, 0),
    PropId.E_VERSION: PropVariant(VarType.UI2, NEW_DIRECTORY),
}


def is_readable(propid: int) -> bool:
    """Whether a read table lists the identifier."""
    entry = PROPERTIES.get(propid)
    return entry is not None and (entry.readable or entry.id in _ALSO_READABLE)


def check_readable(object_type: ObjectType, propid: int) -> PropId:
    """The identifier, if a client may read it from an object of this type."""
    entry = PROPERTIES.get(propid)
    if propid >= 1000 or entry is None or entry.object_type is not object_type:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPID,
            f"property {propid} is not one that a client reads of a {object_type.label}",
        )
    if not is_readable(propid):
        raise DirectoryError(
            HResult.E_ADS_PROPERTY_NOT_FOUND, f"{entry.name} is not readable through this protocol"
        )
    return entry.id


def read_property(obj: DirectoryObject, propid: int, view: View) -> PropVariant | None:
    """What ``propid`` shows of ``obj``, computed where it has to be; None if there is no value.

    ``view`` is where other objects are looked up: the sites of a link, the machines of a list.
    """
    entry = PROPERTIES.get(propid)
    if entry is None or entry.object_type is not obj.type:
        return None
    return reader_of(propid)(obj, view)


#: ``read_property`` of one property, for an object that is of its type.
Read = Callable[[DirectoryObject, View], PropVariant | None]


@cache
def reader_of(propid: int) -> Read:
    """How the catalogue's ``propid`` is read."""
    entry = PROPERTIES[propid]
    compute = COMPUTED.get(propid)
    otherwise = entry.default or _UNSET.get(propid)

    def read_stored(obj: DirectoryObject, _view: View) -> PropVariant | None:
        return obj.properties.get(propid) or otherwise

    if compute is None:
        return read_stored
    vt, of = entry.vt, compute

    def read_computed(obj: DirectoryObject, view: View) -> PropVariant | None:
        value = of(obj, view)
        return None if value is None else PropVariant(vt, value)

    return read_computed


_Compute = Callable[[DirectoryObject, View], Value]


def _identifier(obj: DirectoryObject, _view: View) -> Value:
    return obj.id


def _sequence(obj: DirectoryObject, _view: View) -> Value:
    return obj.seq.to_bytes()


def _partition(obj: DirectoryObject, _view: View) -> Value:
    return obj.partition


def _name(obj: DirectoryObject, _view: View) -> Value:
    """FullPath and the qualified names: a directory of its own has just the one name."""
    return obj.path


def _stored(propid: PropId) -> _Compute:
    return lambda obj, _view: obj.value(propid)


def _first_site(obj: DirectoryObject, _view: View) -> Value:
    return next(iter(_guids(obj.value(PropId.QM_SITE_IDS))), None)


def _key(provider: str) -> _Compute:
    """The blob of one provider's encryption key; empty if there is none."""

    def compute(obj: DirectoryObject, _view: View) -> Value:
        keys = obj.value(PropId.QM_ENCRYPT_PKS)
        if not isinstance(keys, bytes) or not keys:
            return b""
        found = PublicKeys.from_bytes(keys).for_provider(provider)
        return b"" if found is None else found.blob

    return compute


def _machine_names(propid: PropId) -> _Compute:
    def compute(obj: DirectoryObject, view: View) -> Value:
        ids = _guids(obj.value(propid))[:MAX_NAMED]
        machines = (view.get(ObjectType.MACHINE, id) for id in ids)  # noqa: A001
        return tuple(machine.path for machine in machines if machine and machine.path)

    return compute


def _site_name(propid: PropId) -> _Compute:
    def compute(obj: DirectoryObject, view: View) -> Value:
        site = _site(obj, propid, view)
        return None if site is None else site.path

    return compute


def _site(obj: DirectoryObject, propid: PropId, view: View) -> DirectoryObject | None:
    id = obj.value(propid)  # noqa: A001
    return view.get(ObjectType.SITE, id) if isinstance(id, Guid) else None


def _cost(obj: DirectoryObject, view: View) -> Value:
    """PROPID_L_COST: the actual cost, and 999,999 more for each end that is a foreign site."""
    cost = obj.value(PropId.L_ACTUAL_COST)
    if not isinstance(cost, int):
        return None
    ends = (_site(obj, end, view) for end in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2))
    foreign = sum(1 for site in ends if site is not None and site.value(PropId.S_FOREIGN) == 1)
    return cost + MAX_LINK_COST * foreign


def _link_path(obj: DirectoryObject, _view: View) -> Value:
    """Both sites' GUIDs as 64 hexadecimal digits, the name clients give (3.2.6.1.4)."""
    ends = [obj.value(end) for end in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)]
    return "".join(end.big_endian.hex().upper() for end in ends if isinstance(end, Guid))


def _descriptor(obj: DirectoryObject) -> SecurityDescriptor | None:
    data = obj.value(SECURITY_PROPERTY[obj.type])
    if not isinstance(data, bytes) or not data:
        return None
    try:
        return SecurityDescriptor.from_bytes(data)
    except WireError:  # such a descriptor grants nobody anything, and shows no parts
        return None


def _owner(obj: DirectoryObject, _view: View) -> Value:
    descriptor = _descriptor(obj)
    return descriptor.owner.to_bytes() if descriptor and descriptor.owner else None


def _security_information(obj: DirectoryObject, _view: View) -> Value:
    """The parts that are there; no text says how it is computed (MQDS-3.1.4.21.8.1-07)."""
    part = SecurityInformation
    descriptor = _descriptor(obj)
    if descriptor is None:
        return int(part.OWNER | part.GROUP | part.DACL)
    present = {
        part.OWNER: descriptor.owner is not None,
        part.GROUP: descriptor.group is not None,
        part.DACL: Control.DACL_PRESENT in descriptor.control,
        part.SACL: Control.SACL_PRESENT in descriptor.control,
    }
    return sum(int(flag) for flag, there in present.items() if there)


def _guids(value: Value) -> tuple[Guid, ...]:
    return tuple(v for v in value if isinstance(v, Guid)) if isinstance(value, tuple) else ()


#: What is never looked up as it is stored.
COMPUTED: dict[int, _Compute] = {
    **dict.fromkeys(IDENTIFIER_PROPERTY.values(), _identifier),
    **dict.fromkeys(SEQUENCE_PROPERTY.values(), _sequence),
    **dict.fromkeys(PARTITION_PROPERTY.values(), _partition),
    PropId.Q_FULL_PATH: _name,
    PropId.Q_PATHNAME_DNS: _name,
    PropId.Q_OBJ_SECURITY: _stored(PropId.Q_SECURITY),
    PropId.Q_SECURITY_INFORMATION: _security_information,
    PropId.QM_SITE_ID: _first_site,
    PropId.QM_ENCRYPTION_PK: _key(BASE_PROVIDER),
    PropId.QM_ENCRYPTION_PK_BASE: _key(BASE_PROVIDER),
    PropId.QM_ENCRYPTION_PK_ENHANCED: _key(ENHANCED_PROVIDER),
    PropId.QM_SERVICE: lambda obj, _view: Service.of(obj).bits,
    PropId.QM_SERVICE_ROUTING: lambda obj, _view: int(Service.of(obj).routing),
    PropId.QM_SERVICE_DSSERVER: lambda obj, _view: int(Service.of(obj).directory_server),
    PropId.QM_FULL_PATH: _name,
    PropId.QM_PATHNAME_DNS: _name,
    PropId.QM_OUTFRS_DN: _machine_names(PropId.QM_OUTFRS),
    PropId.QM_INFRS_DN: _machine_names(PropId.QM_INFRS),
    PropId.QM_OBJ_SECURITY: _stored(PropId.QM_SECURITY),
    PropId.QM_SECURITY_INFORMATION: _security_information,
    PropId.QM_OWNER_SID: _owner,
    PropId.QM_SIGN_PK: _stored(PropId.QM_SIGN_PKS),
    PropId.QM_ENCRYPT_PK: _stored(PropId.QM_ENCRYPT_PKS),
    PropId.S_FULL_NAME: _name,
    PropId.S_SECURITY_INFORMATION: _security_information,
    PropId.L_COST: _cost,
    PropId.L_FULL_PATH: _link_path,
    PropId.L_NEIGHBOR1_DN: _site_name(PropId.L_NEIGHBOR1),
    PropId.L_NEIGHBOR2_DN: _site_name(PropId.L_NEIGHBOR2),
}
