"""Types of the IDL with parts: pointers, arrays, structures and unions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.wire.ndr_judge.kinds import Number
from tests.wire.ndr_judge.streams import In, Kind, Later, Misread, Out, Values


@dataclass(frozen=True)
class Pointer:
    """A unique or full pointer: an identifier, and the referent later; None is null.

    A pointer to a pointer has a list of one value, so that both of them can be null.
    """

    target: Kind

    def alignment(self, wide: bool) -> int:
        return 8 if wide else 4

    def write(self, out: Out, value: Any, around: Values) -> None:
        if value is None:
            out.count(0)
            return
        out.pointer()
        referent = value[0] if isinstance(self.target, Pointer) else value
        out.waiting.append((self.target, referent, around))

    def read(self, source: In, around: Values) -> Any:
        if not source.count():
            return None
        later = Later()
        source.waiting.append((self.target, later, around))
        return [later] if isinstance(self.target, Pointer) else later


@dataclass(frozen=True)
class Array:
    """A conformant array: maximum count, elements; with ``length`` offset and actual count too.

    ``size`` and ``length`` name the other members that hold the counts. Octets are ``bytes``.
    """

    element: Kind
    size: str
    length: str | None = None

    @property
    def octets(self) -> bool:
        return self.element == Number(1)

    def alignment(self, wide: bool) -> int:
        return max(8 if wide else 4, self.element.alignment(wide))

    def write(self, out: Out, value: Any, around: Values) -> None:
        out.count(around[self.size] if self.length else len(value))
        if self.length:
            out.count(0)
            out.count(len(value))
        if self.octets:
            out.data += value
            return
        for item in value:
            self.element.write(out, item, {})

    def read(self, source: In, around: Values) -> Any:
        maximum = actual = source.count()
        source.claims.append((self.size, maximum, around))
        if self.length:
            offset, actual = source.count(), source.count()
            source.claims.append((self.length, actual, around))
            if offset or actual > maximum:
                raise Misread(f"{actual} elements at {offset} in an array of {maximum}")
        if self.octets:
            return source.octets(actual)
        return [self.element.read(source, {}) for _ in range(actual)]


@dataclass(frozen=True)
class Structure:
    """Members in order, aligned to the widest; NDR64 pads the end to that alignment too."""

    name: str
    members: dict[str, Kind]

    def alignment(self, wide: bool) -> int:
        return max(member.alignment(wide) for member in self.members.values())

    def write(self, out: Out, value: Values, around: Values) -> None:
        out.pad(self.alignment(out.wide))
        for name, member in self.members.items():
            member.write(out, value[name], value)
        if out.wide:
            out.pad(self.alignment(True))

    def read(self, source: In, around: Values) -> Values:
        source.pad(self.alignment(source.wide))
        value: Values = {}
        for name, member in self.members.items():
            value[name] = member.read(source, value)
        if source.wide:
            source.pad(self.alignment(True))
        return value


@dataclass(frozen=True)
class Union:
    """A union whose discriminant is the member ``switch_is`` too; None is an empty arm.

    NDR20 aligns the discriminant and the arm each to its own size. NDR64 aligns both to the widest
    arm, whichever arm it is.
    """

    switch: Number
    switch_is: str
    arms: dict[int, Kind | None]
    _widest: dict[bool, int] = field(default_factory=dict)

    def alignment(self, wide: bool) -> int:
        if wide not in self._widest:
            arms = (arm.alignment(wide) for arm in self.arms.values() if arm is not None)
            self._widest[wide] = max(self.switch.size, *arms)
        return self._widest[wide]

    def write(self, out: Out, value: Any, around: Values) -> None:
        tag = around[self.switch_is]
        self.gap(out)
        self.switch.write(out, tag, around)
        self.gap(out)
        arm = self.arms[tag]
        if arm is not None:
            arm.write(out, value, around)

    def read(self, source: In, around: Values) -> Any:
        self.gap(source)
        tag = self.switch.read(source, around)
        self.gap(source)
        if tag != around[self.switch_is] or tag not in self.arms:
            raise Misread(f"{self.switch_is} is {around[self.switch_is]}, its union has {tag}")
        arm = self.arms[tag]
        return None if arm is None else arm.read(source, around)

    def gap(self, stub: Out | In) -> None:
        if stub.wide:
            stub.pad(self.alignment(True))
