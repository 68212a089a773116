"""Access control entries and lists (MS-DTYP 2.4.4, 2.4.5).

    ACE_HEADER  AceType 1, AceFlags 1, AceSize 2 (a multiple of 4, header included)
    plain       header, Mask 4, Sid
    object      header, Mask 4, Flags 4, [ObjectType 16], [InheritedObjectType 16], Sid

    ACL         AclRevision 1, Sbz1 1, AclSize 2, AceCount 2, Sbz2 2, then the ACEs

Access allowed, access denied and audit, plain or for an object, become typed values. Any other
type, conditional ("callback") ones included, keeps its bytes. What the specification tells a reader
to ignore is not part of the value: bytes after the SID of a typed ACE, bytes after the last ACE,
the reserved fields. Nor is the revision, which follows from the types in the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.security.sid import Sid
from mqis.wire.writer import Writer

ACL_REVISION = 2
ACL_REVISION_DS = 4
ACE_HEADER_SIZE = 4
ACL_HEADER_SIZE = 8
#: AclSize and AceSize have sixteen bits and are multiples of four.
MAX_SIZE = 0xFFFC

_OBJECT_TYPE_PRESENT = 0x1
_INHERITED_OBJECT_TYPE_PRESENT = 0x2


class AceType(IntEnum):
    """The ACE types of 2.4.4.1, named as there without _ACE_TYPE. Unknown types are kept."""

    ACCESS_ALLOWED = 0x00
    ACCESS_DENIED = 0x01
    SYSTEM_AUDIT = 0x02
    SYSTEM_ALARM = 0x03
    ACCESS_ALLOWED_COMPOUND = 0x04
    ACCESS_ALLOWED_OBJECT = 0x05
    ACCESS_DENIED_OBJECT = 0x06
    SYSTEM_AUDIT_OBJECT = 0x07
    SYSTEM_ALARM_OBJECT = 0x08
    ACCESS_ALLOWED_CALLBACK = 0x09
    ACCESS_DENIED_CALLBACK = 0x0A
    ACCESS_ALLOWED_CALLBACK_OBJECT = 0x0B
    ACCESS_DENIED_CALLBACK_OBJECT = 0x0C
    SYSTEM_AUDIT_CALLBACK = 0x0D
    SYSTEM_ALARM_CALLBACK = 0x0E
    SYSTEM_AUDIT_CALLBACK_OBJECT = 0x0F
    SYSTEM_ALARM_CALLBACK_OBJECT = 0x10
    SYSTEM_MANDATORY_LABEL = 0x11
    SYSTEM_RESOURCE_ATTRIBUTE = 0x12
    SYSTEM_SCOPED_POLICY_ID = 0x13


class AceFlags(IntFlag):
    OBJECT_INHERIT = 0x01
    CONTAINER_INHERIT = 0x02
    NO_PROPAGATE_INHERIT = 0x04
    INHERIT_ONLY = 0x08
    INHERITED = 0x10
    SUCCESSFUL_ACCESS = 0x40
    FAILED_ACCESS = 0x80


_NO_FLAGS = AceFlags(0)
PLAIN_TYPES = frozenset((AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED, AceType.SYSTEM_AUDIT))
OBJECT_TYPES = frozenset(
    (AceType.ACCESS_ALLOWED_OBJECT, AceType.ACCESS_DENIED_OBJECT, AceType.SYSTEM_AUDIT_OBJECT)
)
#: A callback ACE is one of these types with application data, usually a condition, after the SID.
_UNCONDITIONAL: dict[int, AceType] = {
    AceType.ACCESS_ALLOWED_CALLBACK: AceType.ACCESS_ALLOWED,
    AceType.ACCESS_DENIED_CALLBACK: AceType.ACCESS_DENIED,
    AceType.SYSTEM_AUDIT_CALLBACK: AceType.SYSTEM_AUDIT,
    AceType.ACCESS_ALLOWED_CALLBACK_OBJECT: AceType.ACCESS_ALLOWED_OBJECT,
    AceType.ACCESS_DENIED_CALLBACK_OBJECT: AceType.ACCESS_DENIED_OBJECT,
    AceType.SYSTEM_AUDIT_CALLBACK_OBJECT: AceType.SYSTEM_AUDIT_OBJECT,
}
#: 2.4.5 lists what revision 2 may hold but not the plain callback types, which need no more.
_REVISION_2_TYPES = PLAIN_TYPES | {
    AceType.SYSTEM_ALARM,
    AceType.ACCESS_ALLOWED_CALLBACK,
    AceType.ACCESS_DENIED_CALLBACK,
    AceType.SYSTEM_AUDIT_CALLBACK,
    AceType.SYSTEM_MANDATORY_LABEL,
    AceType.SYSTEM_RESOURCE_ATTRIBUTE,
    AceType.SYSTEM_SCOPED_POLICY_ID,
}


@dataclass(frozen=True, slots=True)
class PlainAce:
    """ACCESS_ALLOWED_ACE, ACCESS_DENIED_ACE or SYSTEM_AUDIT_ACE (2.4.4.2, .4, .10)."""

    type: AceType
    mask: int
    sid: Sid
    flags: AceFlags = _NO_FLAGS

    def __post_init__(self) -> None:
        if self.type not in PLAIN_TYPES:
            raise ValueError(f"{self.type!r} is not a plain ACE type")
        _check_mask_and_flags(self.mask, self.flags)

    @property
    def size(self) -> int:
        return ACE_HEADER_SIZE + 4 + self.sid.size

    def encode(self, writer: Writer) -> None:
        _encode_header(writer, self.type, self.flags, self.size)
        writer.u32(self.mask)
        self.sid.encode(writer)


@dataclass(frozen=True, slots=True)
class ObjectAce:
    """The same three types for a property, property set or kind of child (2.4.4.3, .5, .11)."""

    type: AceType
    mask: int
    sid: Sid
    object_type: Guid | None = None
    inherited_object_type: Guid | None = None
    flags: AceFlags = _NO_FLAGS

    def __post_init__(self) -> None:
        if self.type not in OBJECT_TYPES:
            raise ValueError(f"{self.type!r} is not an object ACE type")
        _check_mask_and_flags(self.mask, self.flags)

    @property
    def size(self) -> int:
        guids = (self.object_type is not None) + (self.inherited_object_type is not None)
        return ACE_HEADER_SIZE + 8 + 16 * guids + self.sid.size

    def encode(self, writer: Writer) -> None:
        _encode_header(writer, self.type, self.flags, self.size)
        writer.u32(self.mask)
        present = _OBJECT_TYPE_PRESENT if self.object_type is not None else 0
        if self.inherited_object_type is not None:
            present |= _INHERITED_OBJECT_TYPE_PRESENT
        writer.u32(present)
        for guid in (self.object_type, self.inherited_object_type):
            if guid is not None:
                writer.guid(guid)
        self.sid.encode(writer)


@dataclass(frozen=True, slots=True)
class OpaqueAce:
    """An ACE of any other type, with the undecoded bytes after its header."""

    type: int
    body: bytes
    flags: AceFlags = _NO_FLAGS

    def __post_init__(self) -> None:
        if self.type in PLAIN_TYPES or self.type in OBJECT_TYPES:
            raise ValueError(f"ACE type {self.type} has a typed form")
        if not 0 <= self.type <= 0xFF:
            raise ValueError(f"an ACE type has 8 bits, {self.type} does not fit")
        if len(self.body) % 4:
            raise ValueError(f"an ACE is a multiple of 4 bytes long, its body has {len(self.body)}")
        if self.size > MAX_SIZE:
            raise ValueError(f"an ACE has at most {MAX_SIZE} bytes, not {self.size}")
        _check_mask_and_flags(0, self.flags)

    @property
    def size(self) -> int:
        return ACE_HEADER_SIZE + len(self.body)

    def encode(self, writer: Writer) -> None:
        _encode_header(writer, self.type, self.flags, self.size)
        writer.bytes(self.body)

    def unconditional(self) -> PlainAce | ObjectAce | None:
        """A callback ACE as if its condition held; None if it is another type or malformed."""
        counterpart = _UNCONDITIONAL.get(self.type)
        if counterpart is None:
            return None
        decode = _decode_plain if counterpart in PLAIN_TYPES else _decode_object
        try:
            return decode(Reader(self.body), counterpart, self.flags)
        except WireError:
            return None


Ace = PlainAce | ObjectAce | OpaqueAce


def allow(sid: Sid, mask: int, flags: AceFlags = _NO_FLAGS) -> PlainAce:
    """An entry that grants rights: ``allow(sid, QueueRights.WRITE_MESSAGE)``."""
    return PlainAce(AceType.ACCESS_ALLOWED, mask, sid, flags)


def decode_ace(reader: Reader) -> Ace:
    at = reader.offset
    number, flags, size = reader.u8(), AceFlags(reader.u8()), reader.u16()
    if size < ACE_HEADER_SIZE or size % 4:
        reason = f"AceSize {size} is not a multiple of 4 that holds the ACE's header"
        raise reader.error(reason, at + 2)
    body = reader.sub(size - ACE_HEADER_SIZE, "ACE")
    if number in PLAIN_TYPES:
        return _decode_plain(body, AceType(number), flags)
    if number in OBJECT_TYPES:
        return _decode_object(body, AceType(number), flags)
    return OpaqueAce(number, body.bytes(body.remaining), flags)


def _decode_plain(body: Reader, ace_type: AceType, flags: AceFlags) -> PlainAce:
    return PlainAce(ace_type, body.u32(), Sid.decode(body), flags)


def _decode_object(body: Reader, ace_type: AceType, flags: AceFlags) -> ObjectAce:
    mask = body.u32()
    at = body.offset
    present = body.u32()
    if present & ~(_OBJECT_TYPE_PRESENT | _INHERITED_OBJECT_TYPE_PRESENT):
        raise body.error(f"object ACE flags 0x{present:08x} have undefined bits", at)
    object_type = body.guid() if present & _OBJECT_TYPE_PRESENT else None
    inherited = body.guid() if present & _INHERITED_OBJECT_TYPE_PRESENT else None
    return ObjectAce(ace_type, mask, Sid.decode(body), object_type, inherited, flags)


def _encode_header(writer: Writer, ace_type: int, flags: int, size: int) -> None:
    writer.u8(ace_type)
    writer.u8(flags)
    writer.u16(size)


def _check_mask_and_flags(mask: int, flags: int) -> None:
    if not 0 <= mask < 1 << 32:
        raise ValueError(f"an access mask has 32 bits, {mask} does not fit")
    if not 0 <= flags <= 0xFF:
        raise ValueError(f"ACE flags have 8 bits, {flags} does not fit")


@dataclass(frozen=True, slots=True)
class Acl:
    """The ACEs of a list, in order. An empty list grants nothing."""

    aces: tuple[Ace, ...] = ()

    EMPTY: ClassVar[Acl]

    def __post_init__(self) -> None:
        if self.size > MAX_SIZE:
            raise ValueError(f"an ACL has at most {MAX_SIZE} bytes, not {self.size}")

    @property
    def size(self) -> int:
        return ACL_HEADER_SIZE + sum(ace.size for ace in self.aces)

    @property
    def revision(self) -> int:
        plain = all(ace.type in _REVISION_2_TYPES for ace in self.aces)
        return ACL_REVISION if plain else ACL_REVISION_DS

    @classmethod
    def decode(cls, reader: Reader) -> Acl:
        at = reader.offset
        revision, _sbz1, size, count, _sbz2 = (
            reader.u8(),
            reader.u8(),
            reader.u16(),
            reader.u16(),
            reader.u16(),
        )
        if revision not in (ACL_REVISION, ACL_REVISION_DS):
            raise reader.error(f"ACL revision is 2 or 4, not {revision}", at)
        if size < ACL_HEADER_SIZE or size % 4:
            reason = f"AclSize {size} is not a multiple of 4 that holds the ACL's header"
            raise reader.error(reason, at + 2)
        body = reader.sub(size - ACL_HEADER_SIZE, "ACL")
        if count * ACE_HEADER_SIZE > body.remaining:
            raise reader.error(f"{count} ACEs do not fit in {body.remaining} bytes", at + 4)
        return cls(tuple(decode_ace(body) for _ in range(count)))

    def encode(self, writer: Writer) -> None:
        writer.u8(self.revision)
        writer.u8(0)
        writer.u16(self.size)
        writer.u16(len(self.aces))
        writer.u16(0)
        for ace in self.aces:
            ace.encode(writer)


Acl.EMPTY = Acl()
