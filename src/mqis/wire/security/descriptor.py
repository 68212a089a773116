"""SECURITY_DESCRIPTOR in self-relative form (MS-DTYP 2.4.6), the only form that travels.

    Revision 1, Sbz1 1, Control 2, OffsetOwner 4, OffsetGroup 4, OffsetSacl 4, OffsetDacl 4

The four parts stand anywhere after that header, in any order. Written here they follow it without
gaps as SACL, DACL, owner, group, which is the order of the example in 2.5.1.4.

The buffer has no length of its own; the message that carries it does. Bytes that no part claims,
between parts or after them, are padding and pass: getters return a descriptor in a buffer of the
size that the client asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import ClassVar, Self, TypeVar

from mqis.wire.reader import Reader
from mqis.wire.security.acl import Acl
from mqis.wire.security.sid import Sid
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

REVISION = 1
HEADER_SIZE = 20
_OWNER_AT = 4
#: The bound that MS-MQDS puts on every descriptor parameter (3.1.4.11).
MAX_SIZE = 524_288

_Part = TypeVar("_Part", Sid, Acl)


class Control(IntFlag):
    """The Control field. The text numbers its bits from the left: OD is the least significant."""

    OWNER_DEFAULTED = 0x0001
    GROUP_DEFAULTED = 0x0002
    DACL_PRESENT = 0x0004
    DACL_DEFAULTED = 0x0008
    SACL_PRESENT = 0x0010
    SACL_DEFAULTED = 0x0020
    DACL_TRUSTED = 0x0040
    SERVER_SECURITY = 0x0080
    DACL_COMPUTED_INHERITANCE_REQUIRED = 0x0100
    SACL_COMPUTED_INHERITANCE_REQUIRED = 0x0200
    DACL_AUTO_INHERITED = 0x0400
    SACL_AUTO_INHERITED = 0x0800
    DACL_PROTECTED = 0x1000
    SACL_PROTECTED = 0x2000
    RM_CONTROL_VALID = 0x4000
    SELF_RELATIVE = 0x8000


_NO_BITS = Control(0)


@dataclass(frozen=True, slots=True)
class SecurityDescriptor(Structure):
    """Owner, group and the two lists, any of which may be missing.

    A list can be missing in two ways, and only ``control`` tells them apart: with DACL_PRESENT
    and no ``dacl`` the list is NULL (there is a policy: everything is allowed), without
    DACL_PRESENT it is absent. Bits that follow from the parts are set for the caller.
    """

    NAME: ClassVar[str] = "the descriptor"

    owner: Sid | None = None
    group: Sid | None = None
    dacl: Acl | None = None
    sacl: Acl | None = None
    control: Control = _NO_BITS
    #: Sbz1, which means something to resource managers under RM_CONTROL_VALID only.
    rm_control: int = 0

    EMPTY: ClassVar[SecurityDescriptor]

    def __post_init__(self) -> None:
        if not 0 <= self.control <= 0xFFFF:
            raise ValueError(f"Control has 16 bits, {int(self.control)} does not fit")
        if not 0 <= self.rm_control <= 0xFF:
            raise ValueError(f"Sbz1 has 8 bits, {self.rm_control} does not fit")
        if self.rm_control and not self.control & Control.RM_CONTROL_VALID:
            raise ValueError("resource manager control bits need RM_CONTROL_VALID")
        implied = Control.SELF_RELATIVE
        if self.dacl is not None:
            implied |= Control.DACL_PRESENT
        if self.sacl is not None:
            implied |= Control.SACL_PRESENT
        object.__setattr__(self, "control", Control(self.control) | implied)

    @property
    def has_null_dacl(self) -> bool:
        return self.dacl is None and bool(self.control & Control.DACL_PRESENT)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """The descriptor that all the remaining bytes of ``reader`` hold."""
        start = reader.offset
        if reader.remaining > MAX_SIZE:
            raise reader.error(f"a descriptor has at most {MAX_SIZE} bytes, not {reader.remaining}")
        body = reader.sub(reader.remaining)
        revision, sbz1, control = body.u8(), body.u8(), Control(body.u16())
        if revision != REVISION:
            raise reader.error(f"descriptor revision is {REVISION}, not {revision}", start)
        if not control & Control.SELF_RELATIVE:
            raise reader.error("descriptor is not self-relative", start + 2)
        offsets = [body.u32() for _ in range(4)]
        _check_presence(body, start, control, *offsets[2:])
        parts = _Parts(body, start)
        owner = parts.decode(Sid, offsets[0], "owner")
        group = parts.decode(Sid, offsets[1], "group")
        sacl = parts.decode(Acl, offsets[2], "SACL")
        dacl = parts.decode(Acl, offsets[3], "DACL")
        rm_control = sbz1 if control & Control.RM_CONTROL_VALID else 0
        return cls(owner, group, dacl, sacl, control, rm_control)

    def encode(self, writer: Writer) -> None:
        start = len(writer)
        writer.u8(REVISION)
        writer.u8(self.rm_control)
        writer.u16(self.control)
        writer.bytes(bytes(16))
        for part, field in ((self.sacl, 12), (self.dacl, 16), (self.owner, 4), (self.group, 8)):
            if part is not None:
                writer.patch_u32(start + field, len(writer) - start)
                part.encode(writer)


SecurityDescriptor.EMPTY = SecurityDescriptor()


def _check_presence(body: Reader, start: int, control: Control, sacl: int, dacl: int) -> None:
    """2.4.6: without its present bit, the offset of a list MUST be zero."""
    if sacl and not control & Control.SACL_PRESENT:
        raise body.error(f"OffsetSacl is {sacl} though no SACL is present", start + 12)
    if dacl and not control & Control.DACL_PRESENT:
        raise body.error(f"OffsetDacl is {dacl} though no DACL is present", start + 16)


class _Parts:
    """Decodes what the offsets point at, and sees that no byte serves two parts."""

    __slots__ = ("_body", "_end", "_start", "_taken")

    def __init__(self, body: Reader, start: int) -> None:
        self._body = body
        self._start = start
        self._end = body.offset + body.remaining
        self._taken: list[tuple[int, int, str]] = [(start, start + HEADER_SIZE, "header")]

    def decode(self, kind: type[_Part], offset: int, name: str) -> _Part | None:
        if offset == 0:
            return None
        at = self._start + offset
        if at >= self._end:
            reason = f"{name} at {offset} lies outside {self._end - self._start} bytes"
            raise self._body.error(reason, min(at, self._end))
        self._body.offset = at
        part: _Part = kind.decode(self._body)
        for first, end, other in self._taken:
            if at < end and first < self._body.offset:
                raise self._body.error(f"{name} overlaps {other}", at)
        self._taken.append((at, self._body.offset, name))
        return part


def owner_in(descriptor: bytes) -> bytes | None:
    """The bytes of the owner in a self-relative descriptor; None without one.

    Every object that is stored passes here, so nothing else of the descriptor is looked at.
    """
    if len(descriptor) < HEADER_SIZE:
        return None
    start = int.from_bytes(descriptor[_OWNER_AT : _OWNER_AT + 4], "little")
    head = descriptor[start : start + 2]
    if not start or len(head) < 2:
        return None
    size = 8 + 4 * head[1]
    sid = descriptor[start : start + size]
    return sid if len(sid) == size else None
