"""Controls (RFC 4511 4.1.11) and the ones that mqis sends to Active Directory.

    Control ::= SEQUENCE { controlType LDAPOID, criticality BOOLEAN DEFAULT FALSE,
        controlValue OCTET STRING OPTIONAL }

Names and values of Active Directory's controls are in MS-ADTS 3.1.1.3.4.1. All requests here are
critical: a server that does not know one refuses the operation, rather than doing something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import BerReader

PAGED_RESULTS: Final = "1.2.840.113556.1.4.319"
SD_FLAGS: Final = "1.2.840.113556.1.4.801"
SHOW_DELETED: Final = "1.2.840.113556.1.4.417"
DIR_SYNC: Final = "1.2.840.113556.1.4.841"
NOTIFICATION: Final = "1.2.840.113556.1.4.528"
TREE_DELETE: Final = "1.2.840.113556.1.4.805"
EXTENDED_DN: Final = "1.2.840.113556.1.4.529"

#: Cookies of pages and of DirSync: Active Directory's have some hundred octets.
MAXIMUM_COOKIE: Final = 1 << 20


class SdFlags(IntFlag):
    """The parts of a security descriptor that are read or written (MS-ADTS 3.1.1.3.4.1.11)."""

    OWNER = 1
    GROUP = 2
    DACL = 4
    SACL = 8


class DirSyncFlags(IntFlag):
    """MS-ADTS 3.1.1.3.4.1.3."""

    NONE = 0
    #: Only objects that the caller may read; without it a special right is needed.
    OBJECT_SECURITY = 1
    ANCESTORS_FIRST = 0x800
    PUBLIC_DATA_ONLY = 0x2000
    #: Single values of linked attributes that changed, not all of them.
    INCREMENTAL_VALUES = -0x80000000


@dataclass(frozen=True, slots=True)
class LdapControl:
    oid: str
    critical: bool = False
    value: bytes | None = None

    def encode(self) -> bytes:
        critical = ber.boolean(True) if self.critical else b""
        value = b"" if self.value is None else ber.octet_string(self.value)
        return ber.sequence(ber.text(self.oid), critical, value)

    @classmethod
    def decode(cls, reader: BerReader) -> LdapControl:
        oid, critical, value = reader.text("the name of a control"), False, None
        if reader.tag == ber.BOOLEAN:
            critical = reader.boolean("the criticality of a control")
        if reader.tag == ber.OCTET_STRING:
            value = reader.octets("the value of a control")
        reader.expect_end("a control")
        return cls(oid, critical, value)


def find_control(controls: Iterable[LdapControl], oid: str) -> bytes | None:
    """The value of the control with this name; None if there is none or it has no value."""
    return next((control.value for control in controls if control.oid == oid), None)


@dataclass(frozen=True, slots=True)
class PagedResults:
    """realSearchControlValue ::= SEQUENCE { size INTEGER, cookie OCTET STRING } (RFC 2696)."""

    size: int
    cookie: bytes = b""

    def control(self) -> LdapControl:
        value = ber.sequence(ber.integer(self.size), ber.octet_string(self.cookie))
        return LdapControl(PAGED_RESULTS, True, value)

    @classmethod
    def from_bytes(cls, data: bytes) -> PagedResults:
        outer = BerReader(data)
        reader = outer.enter("the value of the paging control")
        found = cls(reader.integer("a page size"), _cookie(reader))
        reader.expect_end("the value of the paging control")
        return found


@dataclass(frozen=True, slots=True)
class DirSync:
    """SEQUENCE { flags INTEGER, maxBytes INTEGER, cookie OCTET STRING } (MS-ADTS 3.1.1.3.4.1.3).

    In an answer the first field says whether there is more to fetch.
    """

    flags: int = 0
    max_bytes: int = 0
    cookie: bytes = b""

    @property
    def more(self) -> bool:
        return self.flags != 0

    def control(self) -> LdapControl:
        sizes = ber.integer(self.flags), ber.integer(self.max_bytes)
        value = ber.sequence(*sizes, ber.octet_string(self.cookie))
        return LdapControl(DIR_SYNC, True, value)

    @classmethod
    def from_bytes(cls, data: bytes) -> DirSync:
        reader = BerReader(data).enter("the value of DirSync")
        found = cls(reader.integer("flags"), reader.integer("a size"), _cookie(reader))
        reader.expect_end("the value of DirSync")
        return found


def _cookie(reader: BerReader) -> bytes:
    at, cookie = reader.offset, reader.octets("a cookie")
    if len(cookie) > MAXIMUM_COOKIE:
        raise WireError(f"a cookie of {len(cookie)} bytes; at most {MAXIMUM_COOKIE}", at)
    return cookie


def sd_flags(parts: SdFlags) -> LdapControl:
    """Reads or writes these parts of ``nTSecurityDescriptor`` only."""
    return LdapControl(SD_FLAGS, True, ber.sequence(ber.integer(parts)))


def extended_dn() -> LdapControl:
    """Asks for names with GUID and SID in their text forms: ``<GUID=...>;<SID=...>;CN=...``."""
    return LdapControl(EXTENDED_DN, True, ber.sequence(ber.integer(1)))


#: Finds deleted objects too.
show_deleted: Final = LdapControl(SHOW_DELETED, True)
#: Keeps a search open; the server sends each entry that changes.
notification: Final = LdapControl(NOTIFICATION, True)
#: Deletes an entry with everything below it.
tree_delete: Final = LdapControl(TREE_DELETE, True)
