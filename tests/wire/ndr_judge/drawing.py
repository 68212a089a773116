"""Random values of the IDL's types, by its own rules: counts agree, numbers are in their range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any
from uuid import UUID

from tests.wire.ndr_judge.idl import Method
from tests.wire.ndr_judge.kinds import Enumeration, Handle, Identifier, Number, Text
from tests.wire.ndr_judge.shapes import Array, Pointer, Structure
from tests.wire.ndr_judge.streams import Kind, Values
from tests.wire.ndr_judge.variant import ARMS, VT_BOOL, VT_VARIANT, VT_VECTOR, blank

#: The most levels of variants in variants; mqis reads four.
DEPTH = 3


class Drawing:
    """A source of values.

    Most values have one form on the wire. With ``loose`` there are also those that a peer may send
    and mqis does not: null strings and GUIDs in variants, empty arrays that are not null, and
    reserved fields with something in them.
    """

    def __init__(self, random: Random, *, loose: bool = False) -> None:
        self.random = random
        self.loose = loose
        self.depth = 0

    def call(self, method: Method) -> tuple[Values, Values]:
        """The values of a request, and of a response to it."""
        later = [array.size for kind in method.response.values() for array in arrays(kind)]
        counts = {n: self._count(method.request[n]) for n in later if n in method.request}
        request = self.members(method.request, {}, counts)
        return request, self.members(method.response, request)

    def members(
        self, members: Mapping[str, Kind], known: Values, counts: Values | None = None
    ) -> Values:
        """Values of all members; a count that is not among them is already known."""
        drawn: Values = dict(counts or {})
        for array in [array for kind in members.values() for array in arrays(kind)]:
            if array.size in members and array.size not in drawn:
                drawn[array.size] = self._count(members[array.size])
            if array.length and array.length in members and array.length not in drawn:
                most = {**known, **drawn}[array.size]
                drawn[array.length] = self.random.randint(0, most)
        for name, kind in members.items():
            if name not in drawn:
                drawn[name] = self.value(kind, {**known, **drawn})
        for name, kind in members.items():
            if drawn[name] is None:
                drawn.update((array.size, 0) for array in arrays(kind))
        return {name: drawn[name] for name in members}

    def _count(self, kind: Kind) -> int:
        assert isinstance(kind, Number)
        low, high = kind.bounds()
        return min(low + self.random.choice((0, 1, 1, 2, 3, 5)), high)

    def value(self, kind: Kind, around: Values) -> Any:
        draws: dict[type, Callable[[Any, Values], Any]] = {
            Number: self._number,
            Enumeration: self._code,
            Identifier: self._identifier,
            Handle: self._identifier,
            Text: self._text,
            Pointer: self._pointer,
            Array: self._array,
            Structure: self._structure,
        }
        return draws[type(kind)](kind, around)

    def _code(self, kind: Enumeration, _around: Values) -> int:
        return self.random.choice(kind.codes)

    def _identifier(self, _kind: Identifier | Handle, _around: Values) -> str:
        return str(UUID(bytes=self.random.randbytes(16)))

    def _structure(self, kind: Structure, _around: Values) -> Values:
        variant = kind.name == "PROPVARIANT"
        return self._variant(kind) if variant else self.members(kind.members, {})

    def _number(self, kind: Number, _around: Values) -> int:
        low, high = kind.bounds()
        edge = self.random.choice((low, high, low + 1))
        return self.random.choice((edge, self.random.randint(low, high)))

    def _text(self, kind: Text, _around: Values) -> str:
        """Any characters but zero, halves of surrogate pairs among them."""
        size = self.random.randint(kind.low, min(kind.high, kind.low + 7)) - 1
        if kind.size == 1:
            return "".join(chr(self.random.randint(1, 255)) for _ in range(size))
        units = (
            self.random.choice((0x41, 0xE9, 0xD83D, 0xDE00, self.random.randint(1, 0xFFFF)))
            for _ in range(size)
        )
        octets = b"".join(unit.to_bytes(2, "little") for unit in units)
        return octets.decode("utf-16-le", "surrogatepass")

    def _pointer(self, kind: Pointer, around: Values) -> Any:
        if self.random.random() < 0.2:
            return None
        value = self.value(kind.target, around)
        return [value] if isinstance(kind.target, Pointer) else value

    def _array(self, kind: Array, around: Values) -> Any:
        count = around[kind.length or kind.size]
        if kind.octets:
            return self.random.randbytes(count)
        return [self.value(kind.element, {}) for _ in range(count)]

    # --- variants ---------------------------------------------------------------------------------

    def _variant(self, kind: Structure) -> Values:
        nests = VT_VECTOR | VT_VARIANT
        vt = self.random.choice([vt for vt in ARMS if vt != nests or self.depth < DEPTH])
        self.depth += vt == nests
        arm = self.arm(vt)
        self.depth -= vt == nests
        value = {**blank(vt), "_varUnion": arm}
        for name in ("wReserved1", "wReserved2", "wReserved3"):
            value[name] = self.value(kind.members[name], {}) if self.loose else 0
        return value

    def arm(self, vt: int) -> Any:
        """The value of a variant of that type."""
        arm = ARMS[vt]
        if arm is None:
            return None
        if vt == VT_BOOL:
            return self.random.choice((0, -1))
        if isinstance(arm, Structure):
            return self._counted(arm)
        if isinstance(arm, Pointer) and not self.loose:
            return self.value(arm.target, {})
        return self.value(arm, {})

    def _counted(self, arm: Structure) -> Values:
        """A count and a pointer, which is null if the count is 0."""
        (count, counter), (name, pointer) = arm.members.items()
        assert isinstance(pointer, Pointer)
        assert isinstance(pointer.target, Array)
        size, element = self._count(counter), pointer.target.element
        if size == 0 and not (self.loose and self.random.random() < 0.5):
            return {count: 0, name: None}
        if isinstance(element, Pointer) and not self.loose:
            element = element.target
        return {count: size, name: self._array(Array(element, count), {count: size})}


def arrays(kind: Kind) -> Iterator[Array]:
    """The array that a parameter or member is, behind its pointers."""
    while isinstance(kind, Pointer):
        kind = kind.target
    if isinstance(kind, Array):
        yield kind
