"""The octet stream of one call, which the compiled codecs read or append to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from struct import Struct
from typing import Any

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid

# --- The error for a malformed stub, with the RPC status that a server faults with ----------------

#: RPC_X_NULL_REF_POINTER: a reference pointer is null.
NULL_REF_POINTER = 0x000006F4
#: RPC_X_ENUM_VALUE_OUT_OF_RANGE
ENUM_OUT_OF_RANGE = 0x000006F5
#: RPC_X_BAD_STUB_DATA: a violated [range] or correlation, or a short stub (MS-RPCE 3.1.1.5.3).
BAD_STUB_DATA = 0x000006F7
#: nca_s_fault_invalid_tag: a union discriminant without an arm.
INVALID_TAG = 0x1C000006


class NdrError(WireError):
    """A malformed stub; ``status`` is the fault status for the peer."""

    def __init__(self, reason: str, offset: int, status: int = BAD_STUB_DATA) -> None:
        super().__init__(reason, offset)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.reason, self.offset, self.status)


# --- The octet stream of one call, which the compiled codecs read or append to --------------------

#: The most elements in an array or string (MS-RPCE 3.1.1.5.3.2.2.1).
MAX_COUNT = (1 << 31) - 1
#: The deepest nesting of referents; it limits the recursion that a stub can cause.
MAX_DEPTH = 64
#: Padding is zeros: ``ZEROS[n]`` has n bytes.
ZEROS = tuple(bytes(n) for n in range(8))
NOTHING_GIVEN: Mapping[str, int] = {}

FIRST_REFERENT = 0x20000


class Encoder:
    """The bytes so far and the next referent identifier, so equal values encode equally."""

    __slots__ = ("buffer", "depth", "given", "next_referent")

    def __init__(self, given: Mapping[str, int] = NOTHING_GIVEN) -> None:
        self.buffer = bytearray()
        self.next_referent = FIRST_REFERENT
        self.given = given
        self.depth = 0

    def refer(self) -> int:
        referent = self.next_referent
        self.next_referent = referent + 4
        return referent


class Decoder:
    """A cursor over the stub.

    For fixed-size items ``struct`` detects the end of the data, and ``Description.decode`` converts
    its error into an ``NdrError``. Code that slices checks a count first.
    """

    __slots__ = ("data", "depth", "full", "given", "offset", "size", "variants")

    def __init__(self, data: bytes, given: Mapping[str, int] = NOTHING_GIVEN) -> None:
        self.data = data
        self.size = len(data)
        self.offset = 0
        self.given = given
        self.depth = 0
        #: The nesting of PROPVARIANT inside PROPVARIANT.
        self.variants = 0
        #: The full pointers of the call: identifier to (description of the referent, referent).
        self.full: dict[int, tuple[object, Any]] = {}

    def error(
        self, reason: str, offset: int | None = None, status: int = BAD_STUB_DATA
    ) -> NdrError:
        return NdrError(reason, self.offset if offset is None else offset, status)

    def bad_count(self, what: str, count: int, low: int, high: int, at: int) -> NdrError:
        """The error for a count that is out of bounds or too large for the rest of the stub."""
        if not low <= count <= high:
            return NdrError(f"{what}: {count} elements, {low} to {high} are allowed", at)
        return NdrError(f"{what}: {count} elements do not fit in {self.size - at} bytes", at)


# --- The two transfer syntaxes and their differences ----------------------------------------------
#     NDR20   counts, pointers and __int3264 are 32 bits, enumerations 16; C706 chapter 14
#     NDR64   all of those are 64 bits, enumerations 32, structures padded; MS-RPCE 2.2.5
#
# A big-endian peer (data representation label 0x00) exists only for NDR20: MS-RPCE 2.2.5 requires
# 0x10 with NDR64. mqis reads both orders and always writes little-endian.


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
