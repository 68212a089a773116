"""Changes of entries (RFC 4511 4.6 to 4.8) as values.

LDIF files and plans consist of them; an LDAP client sends each of them as one request.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: Attributes with their values, in the order in which they are written.
Attributes = tuple[tuple[str, tuple[bytes, ...]], ...]


class ModifyKind(Enum):
    """The effect of a modification on the values of one attribute."""

    ADD = "add"
    DELETE = "delete"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """Adds, deletes or replaces values; replacing by none removes the attribute."""

    kind: ModifyKind
    attribute: str
    values: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Makes an entry; also a record of an LDIF file that only describes one."""

    name: str
    attributes: Attributes

    def values(self, attribute: str) -> tuple[bytes, ...]:
        """All values of an attribute, whose case does not matter; none if it is absent."""
        wanted = attribute.lower()
        return tuple(v for name, vs in self.attributes if name.lower() == wanted for v in vs)


@dataclass(frozen=True, slots=True)
class ModifyEntry:
    """Changes an entry. ``descriptor_parts`` goes with a change of nTSecurityDescriptor.

    It is the value of the SD flags control (MS-ADTS 3.1.1.3.4.1.11): 1 owner, 2 group, 4 DACL,
    8 SACL. Without it a directory resets the parts that a new descriptor does not have.
    """

    name: str
    changes: tuple[AttributeChange, ...]
    descriptor_parts: int = 0


@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """Deletes an entry, and with ``tree`` everything below it (the tree-delete control)."""

    name: str
    tree: bool = False


EntryChange = AddEntry | ModifyEntry | DeleteEntry
