"""The octet stream of one call, which the compiled codecs read or append to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqis.wire.ndr.errors import BAD_STUB_DATA, NdrError

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
