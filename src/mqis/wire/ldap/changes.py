"""Changes of entries (RFC 4511 4.6 to 4.9): the requests of a client, the records of LDIF, plans.

Each class has its tag, the layout above it, ``encode`` for the whole element, and ``decode`` for
its contents. ``controls`` go beside the element in the same message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from mqis.wire.ldap import ber
from mqis.wire.ldap.attributes import (
    AttributeRows,
    Values,
    decode_attribute,
    decode_attributes,
    encode_attribute,
    encode_attributes,
)
from mqis.wire.ldap.ber import APPLICATION, CONSTRUCTED, CONTEXT, BerReader
from mqis.wire.ldap.controls import LdapControl, SdFlags, sd_flags, tree_delete

_NEW_SUPERIOR: Final = CONTEXT


class ModifyKind(IntEnum):
    """The effect of a modification on the values of one attribute."""

    ADD = 0
    DELETE = 1
    REPLACE = 2


# ModifyRequest ::= [APPLICATION 6] SEQUENCE { object LDAPDN, changes SEQUENCE OF SEQUENCE {
#     operation ENUMERATED, modification PartialAttribute } }
@dataclass(frozen=True, slots=True)
class AttributeChange:
    """Adds, deletes or replaces values; replacing by none removes the attribute."""

    kind: ModifyKind
    attribute: str
    values: Values = ()

    def encode(self) -> bytes:
        change = encode_attribute(self.attribute, self.values)
        return ber.sequence(ber.enumerated(self.kind), change)

    @classmethod
    def decode(cls, reader: BerReader) -> AttributeChange:
        kind = reader.integer("the operation of a change", ber.ENUMERATED)
        if kind not in list(ModifyKind):
            raise reader.error(f"{kind} is not an operation of a change")
        return cls(ModifyKind(kind), *decode_attribute(reader))


@dataclass(frozen=True, slots=True)
class ModifyEntry:
    """Changes an entry. ``descriptor_parts`` goes with a change of nTSecurityDescriptor.

    It is the value of the SD flags control (MS-ADTS 3.1.1.3.4.1.11): 1 owner, 2 group, 4 DACL,
    8 SACL. Without it a directory resets the parts that a new descriptor does not have.
    """

    name: str
    changes: tuple[AttributeChange, ...]
    descriptor_parts: int = 0

    TAG: ClassVar[int] = APPLICATION | CONSTRUCTED | 6

    @property
    def controls(self) -> tuple[LdapControl, ...]:
        parts = SdFlags(self.descriptor_parts)
        return (sd_flags(parts),) if parts else ()

    def encode(self) -> bytes:
        changes = ber.sequence(*(change.encode() for change in self.changes))
        return ber.element(self.TAG, ber.text(self.name), changes)

    @classmethod
    def decode(cls, reader: BerReader) -> ModifyEntry:
        name, rows, changes = reader.text("a name"), reader.enter("changes"), []
        while rows.tag >= 0:
            row = rows.enter("a change")
            changes.append(AttributeChange.decode(row))
            row.expect_end("a change")
        return cls(name, tuple(changes))


# AddRequest ::= [APPLICATION 8] SEQUENCE { entry LDAPDN, attributes SEQUENCE OF Attribute }
@dataclass(frozen=True, slots=True)
class AddEntry:
    """Makes an entry; also a record of an LDIF file that only describes one."""

    name: str
    attributes: AttributeRows

    TAG: ClassVar[int] = APPLICATION | CONSTRUCTED | 8
    controls: ClassVar[tuple[LdapControl, ...]] = ()

    def values(self, attribute: str) -> Values:
        """All values of an attribute, whose case does not matter; none if it is absent."""
        wanted = attribute.lower()
        return tuple(v for name, vs in self.attributes if name.lower() == wanted for v in vs)

    def encode(self) -> bytes:
        return ber.element(self.TAG, ber.text(self.name), encode_attributes(self.attributes))

    @classmethod
    def decode(cls, reader: BerReader) -> AddEntry:
        return cls(reader.text("a name"), decode_attributes(reader))


# DelRequest ::= [APPLICATION 10] LDAPDN
@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """Deletes an entry, and with ``tree`` everything below it (the tree-delete control)."""

    name: str
    tree: bool = False

    TAG: ClassVar[int] = APPLICATION | 10

    @property
    def controls(self) -> tuple[LdapControl, ...]:
        return (tree_delete,) if self.tree else ()

    def encode(self) -> bytes:
        return ber.text(self.name, self.TAG)

    @classmethod
    def decode(cls, reader: BerReader) -> DeleteEntry:
        return cls(reader.rest_text("a name"))


# ModifyDNRequest ::= [APPLICATION 12] SEQUENCE { entry LDAPDN, newrdn RelativeLDAPDN,
#     deleteoldrdn BOOLEAN, newSuperior [0] LDAPDN OPTIONAL }
@dataclass(frozen=True, slots=True)
class RenameEntry:
    """ModifyDNRequest: another name, or another place if ``parent`` is given."""

    name: str
    new_leaf: str
    delete_old_leaf: bool = True
    parent: str | None = None

    TAG: ClassVar[int] = APPLICATION | CONSTRUCTED | 12
    controls: ClassVar[tuple[LdapControl, ...]] = ()

    def encode(self) -> bytes:
        return ber.element(
            self.TAG,
            ber.text(self.name),
            ber.text(self.new_leaf),
            ber.boolean(self.delete_old_leaf),
            b"" if self.parent is None else ber.text(self.parent, _NEW_SUPERIOR),
        )

    @classmethod
    def decode(cls, reader: BerReader) -> RenameEntry:
        names = reader.text("a name"), reader.text("a new name")
        delete_old_leaf, parent = reader.boolean("deleteoldrdn"), None
        if reader.tag == _NEW_SUPERIOR:
            parent = reader.text("a new parent", _NEW_SUPERIOR)
        return cls(*names, delete_old_leaf, parent)


#: The changes that LDIF files and plans consist of.
EntryChange = AddEntry | ModifyEntry | DeleteEntry
