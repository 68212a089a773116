"""The column of a property's row that says where Active Directory keeps it (MS-MQDSSM 3.1.6.11)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag, auto

from mqis.wire.propvariant import Value


class Use(IntFlag):
    """The operations in which a property is an attribute of its own entry."""

    NONE = 0
    CREATE = 1
    WRITE = 2
    FILTER = 4


ALL = Use.CREATE | Use.WRITE | Use.FILTER
MAKE = Use.CREATE | Use.FILTER
CHANGE = Use.WRITE | Use.FILTER
KEEP = Use.CREATE | Use.WRITE
FIND = Use.FILTER
NONE = Use.NONE


class AttributeSyntax(Enum):
    """The form of an attribute's values; ``activedirectory.codecs`` reads and writes them."""

    ANY_FLAG = auto()
    ANY_GUID = auto()
    FLAG = auto()
    GUID = auto()
    GUIDS = auto()
    OCTETS = auto()
    PRIVACY = auto()
    SID = auto()
    SIGNED_16 = auto()
    STUB = auto()
    SYSTEM = auto()
    TEXT = auto()
    TIME = auto()
    UNSIGNED = auto()
    UNSIGNED_16 = auto()
    VERSION = auto()
    DESCRIPTOR = auto()
    #: The property has identifiers where the attribute has names of entries.
    NAME = auto()
    NAMES = auto()
    #: Names of entries, as they are.
    DN = auto()
    DN_LIST = auto()


@dataclass(frozen=True, slots=True)
class Ldap:
    """An attribute of the object's entry."""

    attribute: str
    syntax: AttributeSyntax
    uses: Use
    #: What the property shows while the attribute is absent; None if that is an error.
    absent: Value = None


@dataclass(frozen=True, slots=True)
class Unkept:
    """Active Directory does not keep the property: it shows the same for all objects."""

    value: Value
