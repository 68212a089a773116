"""The octets of a stub, written and read.

The judge shares no code with ``mqis.wire.ndr`` and works the other way round: where mqis compiles
descriptions to layouts, the judge walks a value and writes one item after the other. Pointers leave
their referents in a list, which is written when the outermost item is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

#: The values of a structure or of a call's parameters, by the names of the IDL.
Values = dict[str, Any]


class Kind(Protocol):
    """A type of the IDL."""

    def alignment(self, wide: bool) -> int: ...
    def write(self, out: Out, value: Any, around: Values) -> None: ...
    def read(self, source: In, around: Values) -> Any: ...


class Misread(Exception):
    """The octets contradict the IDL."""


@dataclass
class Out:
    """A stub in the making; ``wide`` is NDR64.

    With ``noise`` the gaps, the pointers' identifiers and the maximum counts of strings are any
    that a peer may send.
    """

    wide: bool
    noise: Random | None = None
    data: bytearray = field(default_factory=bytearray)
    waiting: list[tuple[Kind, Any, Values]] = field(default_factory=list)
    pointers: int = 0

    def pad(self, alignment: int) -> None:
        gap = -len(self.data) % alignment
        self.data += self.noise.randbytes(gap) if self.noise else bytes(gap)

    def number(self, size: int, value: int, signed: bool = False) -> None:
        self.pad(size)
        self.data += value.to_bytes(size, "little", signed=signed)

    def count(self, value: int) -> None:
        self.number(8 if self.wide else 4, value)

    def pointer(self) -> None:
        """A new identifier: 20000h and 4 more for each, as Windows has them."""
        self.pointers += 1
        step = self.noise.randrange(1, 1 << 20) << 8 if self.noise else 0x20000 - 4
        self.count(step + 4 * self.pointers)

    def settle(self) -> None:
        """Writes the referents in order, each of them followed by its own."""
        waiting, self.waiting = self.waiting, []
        for kind, value, around in waiting:
            kind.write(self, value, around)
            self.settle()


@dataclass
class Later:
    """The place of a referent that has not been read yet."""

    value: Any = None


@dataclass
class In:
    """A stub that is read from its beginning to its end."""

    data: bytes
    wide: bool
    at: int = 0
    waiting: list[tuple[Kind, Later, Values]] = field(default_factory=list)
    #: Counts on the wire, and where the IDL says what they have to be.
    claims: list[tuple[str, int, Values]] = field(default_factory=list)

    def pad(self, alignment: int) -> None:
        gap = self.octets(-self.at % alignment)
        if gap.strip(b"\0"):
            raise Misread(f"a gap before {self.at} is not zero")

    def octets(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise Misread(f"the stub ends at {len(self.data)}, not at {self.at}")
        return self.data[self.at - size : self.at]

    def number(self, size: int, signed: bool = False) -> int:
        self.pad(size)
        return int.from_bytes(self.octets(size), "little", signed=signed)

    def count(self) -> int:
        return self.number(8 if self.wide else 4)

    def settle(self) -> None:
        waiting, self.waiting = self.waiting, []
        for kind, later, around in waiting:
            later.value = kind.read(self, around)
            self.settle()

    def check_claims(self, known: Values) -> None:
        for name, found, around in self.claims:
            stated = finished(around[name] if name in around else known[name])
            if stated != found:
                raise Misread(f"an array of {found}, and {name} is {stated}")


def finished(value: Any) -> Any:
    """The value with every referent in its place."""
    if isinstance(value, Later):
        return finished(value.value)
    if isinstance(value, dict):
        return {name: finished(member) for name, member in value.items()}
    if isinstance(value, list):
        return [finished(item) for item in value]
    return value
