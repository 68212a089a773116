"""Computed values that properties of several types show (MS-MQDS 3.1.4.21.8.1)."""

from __future__ import annotations

from mqis.protocol.directory.types.property_row import Compute, ObjectLookup, StoredObject
from mqis.protocol.security.information import SecurityInformation
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value
from mqis.wire.security.descriptor import Control, SecurityDescriptor


def identifier(obj: StoredObject, _view: ObjectLookup) -> Value:
    return obj.id


def sequence(obj: StoredObject, _view: ObjectLookup) -> Value:
    return obj.seq.to_bytes()


def partition(obj: StoredObject, _view: ObjectLookup) -> Value:
    return obj.partition


def name(obj: StoredObject, _view: ObjectLookup) -> Value:
    return obj.path


def given_name(propid: PropId, otherwise: Compute = name) -> Compute:
    """Makes the reader of a FullPath or qualified name.

    Active Directory gives an object such names beside its path (MS-MQDSSM 3.1.6.11). A store of our
    own has the path alone (E-MQDS-08).
    """

    def compute(obj: StoredObject, view: ObjectLookup) -> Value:
        given = obj.value(propid)
        return otherwise(obj, view) if given is None else given

    return compute


def stored(propid: PropId) -> Compute:
    """Makes the reader of another name of the stored property ``propid``."""
    return lambda obj, _view: obj.value(propid)


def owner(security: PropId) -> Compute:
    """Makes the reader of the owner's SID in the descriptor that ``security`` stores."""

    def compute(obj: StoredObject, _view: ObjectLookup) -> Value:
        descriptor = _descriptor(obj, security)
        return descriptor.owner.to_bytes() if descriptor and descriptor.owner else None

    return compute


def security_information(security: PropId) -> Compute:
    """Makes the reader of the parts that the descriptor in ``security`` has.

    No text says how it is computed (MQDS-3.1.4.21.8.1-07).
    """
    part = SecurityInformation

    def compute(obj: StoredObject, _view: ObjectLookup) -> Value:
        descriptor = _descriptor(obj, security)
        if descriptor is None:
            return int(part.OWNER | part.GROUP | part.DACL)
        present = {
            part.OWNER: descriptor.owner is not None,
            part.GROUP: descriptor.group is not None,
            part.DACL: Control.DACL_PRESENT in descriptor.control,
            part.SACL: Control.SACL_PRESENT in descriptor.control,
        }
        return sum(int(flag) for flag, there in present.items() if there)

    return compute


def guids_of(value: Value) -> tuple[Guid, ...]:
    """Returns the GUIDs of a list; none if the value is no list."""
    return tuple(v for v in value if isinstance(v, Guid)) if isinstance(value, tuple) else ()


def _descriptor(obj: StoredObject, security: PropId) -> SecurityDescriptor | None:
    data = obj.value(security)
    if not isinstance(data, bytes) or not data:
        return None
    try:
        return SecurityDescriptor.from_bytes(data)
    except WireError:  # such a descriptor grants nobody anything, and shows no parts
        return None
