"""Objects of another directory in this one: identifiers translated, tombstones reanimated."""

from __future__ import annotations

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.errors import ProtocolError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    EntryChange,
    ModifyEntry,
    ModifyKind,
)
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value

#: A tombstone keeps its class; the directory keeps identifiers and writes descriptors itself.
_KEPT = frozenset({"objectclass", "objectguid", "ntsecuritydescriptor"})


class Renumbering:
    """The identifiers that a directory has given to objects, by those that they had elsewhere."""

    def __init__(self) -> None:
        self._given: dict[Guid, Guid] = {}

    def note(self, before: Guid, now: Guid) -> None:
        self._given[before] = now

    def of(self, guid: Guid) -> Guid:
        return self._given.get(guid, guid)

    def translated(self, obj: DirectoryObject) -> DirectoryObject:
        """The object with the identifiers that are valid here."""
        changes: dict[int, PropVariant] = {}
        for propid, variant in obj.properties.items():
            if ROWS[PropId(propid)].refers_to is not None:
                changes[propid] = PropVariant(variant.vt, self._here(variant.value))
        return obj.with_properties(changes, obj.seq) if changes else obj

    def _here(self, value: Value) -> Value:
        return self.of(value) if isinstance(value, Guid) else tuple(map(self.of, guids_of(value)))


def reanimation(tombstone: str, made: EntryChange) -> ModifyEntry:
    """Puts a deleted entry back at the place and with the attributes of ``made``.

    ``tombstone`` is its name now; Samba does not take its GUID here. The request goes out with the
    show-deleted control. It has to bring every attribute that the class needs, for a tombstone has
    lost most of them (MS-ADTS 3.1.1.5.3.7.2).
    """
    if not isinstance(made, AddEntry):
        raise ProtocolError("only an entry that could be made can be put back")
    changes = [
        AttributeChange(ModifyKind.DELETE, "isDeleted"),
        AttributeChange(ModifyKind.REPLACE, "distinguishedName", (made.name.encode(),)),
    ]
    for attribute, values in made.attributes:
        if attribute.lower() not in _KEPT:
            changes.append(AttributeChange(ModifyKind.REPLACE, attribute, values))
    return ModifyEntry(tombstone, tuple(changes))
