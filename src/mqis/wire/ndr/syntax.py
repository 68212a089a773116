"""The two transfer syntaxes and their differences.

    NDR20   counts, pointers and __int3264 are 32 bits, enumerations 16; C706 chapter 14
    NDR64   all of those are 64 bits, enumerations 32, structures padded; MS-RPCE 2.2.5

A big-endian peer (data representation label 0x00) exists only for NDR20: MS-RPCE 2.2.5 requires
0x10 with NDR64. mqis reads both orders and always writes little-endian.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct

from mqis.wire.guid import Guid


class Syntax(Enum):
    """A transfer syntax by its UUID and version (MS-RPCE 2.2.4.12, 2.2.5.1)."""

    NDR20 = ("8a885d04-1ceb-11c9-9fe8-08002b104860", 2)
    NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", 1)

    def __init__(self, uuid: str, version: int) -> None:
        self.uuid = Guid.parse(uuid)
        self.version = version


class Dialect:
    """A syntax in one byte order, for which codecs are compiled."""

    __slots__ = ("big_endian", "count_code", "count_size", "is_ndr64", "order", "syntax")

    def __init__(self, syntax: Syntax, big_endian: bool) -> None:
        self.syntax = syntax
        self.big_endian = big_endian
        self.is_ndr64 = syntax is Syntax.NDR64
        self.order = ">" if big_endian else "<"
        #: The ``struct`` code of counts, offsets and referent identifiers, and its size.
        self.count_code = "Q" if self.is_ndr64 else "I"
        self.count_size = 8 if self.is_ndr64 else 4

    def form(self, code: str) -> Struct:
        return Struct(self.order + code)


NDR20 = Dialect(Syntax.NDR20, big_endian=False)
NDR20_BIG_ENDIAN = Dialect(Syntax.NDR20, big_endian=True)
NDR64 = Dialect(Syntax.NDR64, big_endian=False)


def dialect_of(syntax: Syntax, big_endian: bool = False) -> Dialect:
    if syntax is Syntax.NDR64:
        if big_endian:
            raise ValueError("NDR64 is little-endian only (MS-RPCE 2.2.5)")
        return NDR64
    return NDR20_BIG_ENDIAN if big_endian else NDR20
