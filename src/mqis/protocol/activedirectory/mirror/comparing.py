"""Objects of an Active Directory as a store keeps them, and the difference of two of them."""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.activedirectory.importing import NO_SITE, network_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.write_mapping import event_update
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop
from mqis.wire.propvariant import PropVariant


def mirrored(obj: DirectoryObject) -> tuple[DirectoryObject, ...]:
    """Returns what a store keeps of an object: itself, and of a site its connected network too.

    Lists get one order, because a directory's values have none. So reading an object twice gives
    the same.
    """
    kept = {propid: _settled(propid, value, obj.id) for propid, value in obj.properties.items()}
    kept.pop(PropId.Q_NAME_SUFFIX, None)  # the rest of a long name is in the path already
    if obj.type is ObjectType.MACHINE and not kept[PropId.QM_SITE_IDS].value:
        kept[PropId.QM_SITE_IDS] = prop(PropId.QM_SITE_IDS, (NO_SITE,))
    made = replace(obj, properties=kept)
    return (made, network_of(made)) if obj.type is ObjectType.SITE else (made,)


def _settled(propid: int, variant: PropVariant, owner: Guid) -> PropVariant:
    value = variant.value
    if isinstance(value, tuple) and all(isinstance(item, Guid) for item in value):
        return PropVariant(variant.vt, tuple(sorted(value)))  # type: ignore[type-var]
    if propid == PropId.U_SIGN_CERT and isinstance(value, bytes):
        return PropVariant(variant.vt, _listed(value, owner))
    return variant


def _listed(value: bytes, owner: Guid) -> bytes:
    """A list of certificates; a bare certificate gets the user's identifier in it."""
    try:
        listed = UserSignCerts.from_property(value, owner) if value else UserSignCerts(())
        return listed.to_bytes()
    except WireError:
        return value


def changed_properties(old: DirectoryObject, new: DirectoryObject) -> dict[int, PropVariant]:
    """Returns the stored properties that make ``old`` equal to ``new``.

    A property of an entry always has a value, because every attribute has a default. What the store
    itself adds to a new object is left as it is.
    """
    wanted = event_update(old, new.properties)
    return {
        propid: value for propid, value in wanted.items() if old.properties.get(propid) != value
    }
