"""SID (MS-DTYP 2.4.2): who a right belongs to.

Revision             1      always 1
SubAuthorityCount    1      at most 15
IdentifierAuthority  6      most significant byte first
SubAuthority         4 x n  little-endian
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

REVISION = 1
MAX_SUB_AUTHORITIES = 15

# 2.4.2.1. Hexadecimal has twelve digits when written here; fewer are read, since others write them.
_TEXT = re.compile(r"S-1-(0x[0-9a-f]{1,12}|0|[1-9][0-9]{0,9})((?:-(?:0|[1-9][0-9]{0,9}))*)", re.I)


@dataclass(frozen=True, slots=True, order=True)
class Sid(Structure):
    """A 48-bit authority and the path of sub-authorities below it."""

    NAME: ClassVar[str] = "SID"

    authority: int
    sub_authorities: tuple[int, ...] = ()

    MAX_SIZE: ClassVar[int] = 8 + 4 * MAX_SUB_AUTHORITIES

    def __post_init__(self) -> None:
        if not 0 <= self.authority < 1 << 48:
            raise ValueError(f"a SID authority has 48 bits, {self.authority} does not fit")
        if len(self.sub_authorities) > MAX_SUB_AUTHORITIES:
            count = len(self.sub_authorities)
            raise ValueError(
                f"a SID has at most {MAX_SUB_AUTHORITIES} sub-authorities, not {count}"
            )
        for sub in self.sub_authorities:
            if not 0 <= sub < 1 << 32:
                raise ValueError(f"a SID sub-authority has 32 bits, {sub} does not fit")

    @property
    def size(self) -> int:
        return 8 + 4 * len(self.sub_authorities)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        at = reader.offset
        revision, count = reader.u8(), reader.u8()
        if revision != REVISION:
            raise reader.error(f"SID revision is {REVISION}, not {revision}", at)
        if count > MAX_SUB_AUTHORITIES:
            reason = f"SID has {count} sub-authorities, at most {MAX_SUB_AUTHORITIES} are allowed"
            raise reader.error(reason, at + 1)
        authority = int.from_bytes(reader.bytes(6, "SID authority"), "big")
        return cls(authority, tuple(reader.u32() for _ in range(count)))

    def encode(self, writer: Writer) -> None:
        writer.u8(REVISION)
        writer.u8(len(self.sub_authorities))
        writer.bytes(self.authority.to_bytes(6, "big"))
        for sub in self.sub_authorities:
            writer.u32(sub)

    @classmethod
    def parse(cls, text: str) -> Sid:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a SID (S-1-authority-number-number-...)")
        authority, subs = match.groups()
        if authority[:2] in ("0x", "0X"):
            number = int(authority, 16)
        else:
            number = int(authority)
            if number >= 1 << 32:
                raise ValueError(f"{text!r}: an authority from 2^32 on is hexadecimal")
        try:
            return cls(number, tuple(int(sub) for sub in subs.split("-")[1:]))
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None

    def __str__(self) -> str:
        wide = self.authority >= 1 << 32
        authority = f"0x{self.authority:012x}" if wide else str(self.authority)
        return "-".join(("S", "1", authority, *map(str, self.sub_authorities)))

    def __repr__(self) -> str:
        return f"Sid.parse('{self}')"


# Well-known SIDs (2.4.2.4), by the names of that table.
EVERYONE = Sid(1, (0,))
CREATOR_OWNER = Sid(3, (0,))
OWNER_RIGHTS = Sid(3, (4,))
NETWORK = Sid(5, (2,))
ANONYMOUS = Sid(5, (7,))
PRINCIPAL_SELF = Sid(5, (10,))
AUTHENTICATED_USERS = Sid(5, (11,))
LOCAL_SYSTEM = Sid(5, (18,))
LOCAL_SERVICE = Sid(5, (19,))
NETWORK_SERVICE = Sid(5, (20,))
ADMINISTRATORS = Sid(5, (32, 544))
USERS = Sid(5, (32, 545))
GUESTS = Sid(5, (32, 546))
