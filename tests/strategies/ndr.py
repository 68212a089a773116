"""Random NDR types with values, and a plain reference encoder to judge them by.

A shape is a type in its own words. From it come the description under test, values that fit it, and
bytes in NDR20 of either byte order and in NDR64, written the slow way, straight from the rules:
align every item by itself, then its representation; referents after the outermost construction.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, make_dataclass
from typing import Any

from hypothesis import strategies as st

from mqis.wire import ndr
from mqis.wire.guid import Guid
from mqis.wire.ndr import Choice, ContextHandle, To


class Reference:
    """A stub in the making."""

    def __init__(self, ndr64: bool = False, order: str = "<") -> None:
        self.ndr64 = ndr64
        self.order = order
        self.data = b""
        self.referents = 0

    def align(self, alignment: int) -> None:
        while len(self.data) % alignment:
            self.data += b"\0"

    def put(self, code: str, value: Any) -> None:
        self.align(struct.calcsize("<" + code))
        self.data += struct.pack(self.order + code, value)

    def count(self, value: int) -> None:
        self.put("Q" if self.ndr64 else "I", value)

    @property
    def count_size(self) -> int:
        return 8 if self.ndr64 else 4

    def refer(self) -> None:
        self.count(0x20000 + 4 * self.referents)
        self.referents += 1


class Shape:
    """A type. ``conformant`` ones stand only at the top, behind pointers and last in structures."""

    conformant = False

    def description(self) -> ndr.Description[Any]:
        raise NotImplementedError

    def values(self) -> st.SearchStrategy[Any]:
        raise NotImplementedError

    def alignment(self, ref: Reference) -> int:
        raise NotImplementedError

    def maximum(self, ref: Reference, value: Any) -> None:
        """The maximum count of a conformant type, ahead of it."""

    def body(self, ref: Reference, value: Any) -> None:
        raise NotImplementedError

    def deferred(self, ref: Reference, value: Any) -> None:
        """Referents, if there are pointers inside."""

    def whole(self, ref: Reference, value: Any) -> None:
        self.maximum(ref, value)
        self.body(ref, value)
        self.deferred(ref, value)


def reference_bytes(shape: Shape, value: Any, *, ndr64: bool = False, order: str = "<") -> bytes:
    ref = Reference(ndr64, order)
    while isinstance(shape, PointerShape) and shape.kind == "Ref":
        shape = shape.target  # at the top it sends nothing
    shape.whole(ref, value)
    return ref.data


@dataclass(frozen=True)
class Simple(Shape):
    name: str

    def description(self) -> ndr.Description[Any]:
        description: ndr.Description[Any] = getattr(ndr, self.name)
        return description

    def values(self) -> st.SearchStrategy[Any]:
        return SIMPLE[self.name][2]

    def code(self, ref: Reference) -> str:
        in_ndr20, in_ndr64, _ = SIMPLE[self.name]
        return in_ndr64 if ref.ndr64 else in_ndr20

    def alignment(self, ref: Reference) -> int:
        return struct.calcsize("<" + self.code(ref))

    def body(self, ref: Reference, value: Any) -> None:
        ref.put(self.code(ref), value)


def integers(bits: int, signed: bool = False) -> st.SearchStrategy[int]:
    if signed:
        return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return st.integers(0, (1 << bits) - 1)


SIMPLE: dict[str, tuple[str, str, st.SearchStrategy[Any]]] = {
    "U8": ("B", "B", integers(8)),
    "U16": ("H", "H", integers(16)),
    "U32": ("I", "I", integers(32)),
    "U64": ("Q", "Q", integers(64)),
    "I8": ("b", "b", integers(8, signed=True)),
    "I16": ("h", "h", integers(16, signed=True)),
    "I32": ("i", "i", integers(32, signed=True)),
    "I64": ("q", "q", integers(64, signed=True)),
    "FLOAT": ("f", "f", st.floats(width=32, allow_nan=False)),
    "DOUBLE": ("d", "d", st.floats(allow_nan=False)),
    "BOOLEAN": ("B", "B", st.booleans()),
    "WCHAR": ("H", "H", integers(16)),
    "ENUM16": ("H", "i", st.integers(0, 0x7FFF)),
    "ENUM32": ("i", "i", integers(32, signed=True)),
    "INT3264": ("i", "q", integers(32, signed=True)),
    "UINT3264": ("I", "Q", integers(32)),
}

guids = st.binary(min_size=16, max_size=16).map(Guid)


def put_guid(ref: Reference, value: Guid) -> None:
    first, second, third = struct.unpack("<IHH", value.raw[:8])
    ref.put("I", first)
    ref.put("H", second)
    ref.put("H", third)
    ref.data += value.raw[8:]


@dataclass(frozen=True)
class GuidShape(Shape):
    def description(self) -> ndr.Description[Any]:
        return ndr.GUID

    def values(self) -> st.SearchStrategy[Any]:
        return guids

    def alignment(self, ref: Reference) -> int:
        return 4

    def body(self, ref: Reference, value: Any) -> None:
        put_guid(ref, value)


@dataclass(frozen=True)
class HandleShape(Shape):
    def description(self) -> ndr.Description[Any]:
        return ndr.CONTEXT_HANDLE

    def values(self) -> st.SearchStrategy[Any]:
        return st.builds(ContextHandle, guids, integers(32))

    def alignment(self, ref: Reference) -> int:
        return 4

    def body(self, ref: Reference, value: Any) -> None:
        ref.put("I", value.attributes)
        put_guid(ref, value.uuid)


def units_of(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return [low | high << 8 for low, high in zip(raw[::2], raw[1::2], strict=True)]


def wide_text(minimum: int = 0, maximum: int = 6) -> st.SearchStrategy[str]:
    """Text of so many 16-bit units, lone surrogates included."""
    unit_lists = st.lists(st.integers(1, 0xFFFF), min_size=minimum, max_size=maximum)
    return unit_lists.map(
        lambda units: struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")
    )


@dataclass(frozen=True)
class StringShape(Shape):
    wide: bool
    #: Of the array that a varying string stands in; None: it has its own maximum count.
    size: int | None

    @property
    def conformant(self) -> bool:  # type: ignore[override]
        return self.size is None

    def description(self) -> ndr.Description[Any]:
        if self.size is None:
            return ndr.WSTRING if self.wide else ndr.ASTRING
        return ndr.VaryingString(self.size, wide=self.wide)

    def values(self) -> st.SearchStrategy[Any]:
        longest = 6 if self.size is None else self.size - 1
        if self.wide:
            return wide_text(maximum=longest)
        return st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=longest)

    def characters(self, value: str) -> list[int]:
        return [*(units_of(value) if self.wide else map(ord, value)), 0]

    def alignment(self, ref: Reference) -> int:
        return ref.count_size

    def maximum(self, ref: Reference, value: Any) -> None:
        if self.size is None:
            ref.count(len(self.characters(value)))

    def body(self, ref: Reference, value: Any) -> None:
        ref.count(0)
        ref.count(len(self.characters(value)))
        for character in self.characters(value):
            ref.put("H" if self.wide else "B", character)


@dataclass(frozen=True)
class ArrayShape(Shape):
    element: Shape
    kind: str
    size: int = 0

    @property
    def conformant(self) -> bool:  # type: ignore[override]
        return self.kind.startswith("Conformant")

    def description(self) -> ndr.Description[Any]:
        element = self.element.description()
        if self.conformant:
            made: ndr.Description[Any] = getattr(ndr, self.kind)(element)
        else:
            made = getattr(ndr, self.kind)(element, self.size)
        return made

    def values(self) -> st.SearchStrategy[Any]:
        low = self.size if self.kind == "Fixed" else 0
        high = 4 if self.conformant else self.size
        if self.element == Simple("U8"):
            return st.binary(min_size=low, max_size=high)
        if self.element == Simple("WCHAR"):
            return wide_text(low, high)
        return st.lists(self.element.values(), min_size=low, max_size=high).map(tuple)

    def items(self, value: Any) -> list[Any]:
        return units_of(value) if isinstance(value, str) else list(value)

    @property
    def bare(self) -> bool:
        """Reference pointers, whose identifiers NDR20 leaves out in arrays."""
        return isinstance(self.element, PointerShape) and self.element.kind == "Ref"

    def alignment(self, ref: Reference) -> int:
        own = 1 if self.bare and not ref.ndr64 else self.element.alignment(ref)
        return max(own, ref.count_size) if "Varying" in self.kind else own

    def maximum(self, ref: Reference, value: Any) -> None:
        if self.conformant:
            ref.count(len(self.items(value)))

    def body(self, ref: Reference, value: Any) -> None:
        if "Varying" in self.kind:
            ref.count(0)
            ref.count(len(self.items(value)))
        if self.bare and not ref.ndr64:
            return
        for item in self.items(value):
            self.element.body(ref, item)

    def deferred(self, ref: Reference, value: Any) -> None:
        for item in self.items(value):
            self.element.deferred(ref, item)


@dataclass(frozen=True)
class PointerShape(Shape):
    target: Shape
    kind: str

    def description(self) -> ndr.Description[Any]:
        made: ndr.Description[Any] = getattr(ndr, self.kind)(self.target.description())
        return made

    @property
    def nullable(self) -> bool:
        if self.kind != "Ref":
            return True
        return isinstance(self.target, PointerShape) and self.target.nullable

    @property
    def wraps(self) -> bool:
        """Returns whether a null referent has to be distinguished from a missing one."""
        return self.kind != "Ref" and getattr(self.target, "nullable", False)

    def values(self) -> st.SearchStrategy[Any]:
        if self.kind == "Ref":
            return self.target.values()
        referents = self.target.values()
        return st.none() | (referents.map(To) if self.wraps else referents)

    def alignment(self, ref: Reference) -> int:
        return ref.count_size

    def body(self, ref: Reference, value: Any) -> None:
        if value is None and self.kind != "Ref":
            ref.count(0)
        else:
            ref.refer()

    def deferred(self, ref: Reference, value: Any) -> None:
        if self.wraps and value is not None:
            self.target.whole(ref, value.value)
        elif value is not None or self.kind == "Ref":
            self.target.whole(ref, value)


@dataclass(frozen=True)
class StructShape(Shape):
    members: tuple[Shape, ...]
    cls: type[Any] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        names = [f"m{i}" for i in range(len(self.members))]
        made = make_dataclass("Random", names, frozen=True, slots=True)
        object.__setattr__(self, "cls", made)

    @property
    def conformant(self) -> bool:  # type: ignore[override]
        return self.members[-1].conformant

    def description(self) -> ndr.Description[Any]:
        members = {f"m{i}": member.description() for i, member in enumerate(self.members)}
        return ndr.Struct(self.cls, **members)

    def values(self) -> st.SearchStrategy[Any]:
        members = st.tuples(*(member.values() for member in self.members))
        return members.map(lambda values: self.cls(*values))

    def split(self, value: Any) -> list[tuple[Shape, Any]]:
        return [(member, getattr(value, f"m{i}")) for i, member in enumerate(self.members)]

    def alignment(self, ref: Reference) -> int:
        return max(member.alignment(ref) for member in self.members)

    def maximum(self, ref: Reference, value: Any) -> None:
        member, last = self.split(value)[-1]
        member.maximum(ref, last)

    def body(self, ref: Reference, value: Any) -> None:
        ref.align(self.alignment(ref))
        for member, part in self.split(value):
            member.body(ref, part)
        if ref.ndr64:
            ref.align(self.alignment(ref))

    def deferred(self, ref: Reference, value: Any) -> None:
        for member, part in self.split(value):
            member.deferred(ref, part)


@dataclass(frozen=True)
class Counted:
    items: Any


@dataclass(frozen=True)
class CountedShape(Shape):
    """{n; [size_is(n)] array, or a pointer to one}: the count is not in the Python value."""

    array: ArrayShape
    pointer: str | None

    @property
    def conformant(self) -> bool:  # type: ignore[override]
        return self.pointer is None

    def description(self) -> ndr.Description[Any]:
        element = self.array.element.description()
        items: ndr.Description[Any] = ndr.Conformant(element, size_is="n")
        if self.array.kind == "ConformantVarying":
            items = ndr.ConformantVarying(element, size_is="n", length_is="n")
        if self.pointer is not None:
            items = getattr(ndr, self.pointer)(items)
        return ndr.Struct(Counted, n=ndr.U32, items=items)

    def values(self) -> st.SearchStrategy[Any]:
        items = self.array.values()
        if self.pointer in ("Unique", "Full"):
            items = st.none() | items
        return items.map(Counted)

    @property
    def plain(self) -> StructShape:
        """The same with the count as a member."""
        items = self.array if self.pointer is None else PointerShape(self.array, self.pointer)
        return StructShape((Simple("U32"), items))

    def spelled_out(self, value: Counted) -> Any:
        count = 0 if value.items is None else len(self.array.items(value.items))
        return self.plain.cls(count, value.items)

    def alignment(self, ref: Reference) -> int:
        return self.plain.alignment(ref)

    def maximum(self, ref: Reference, value: Any) -> None:
        if self.pointer is None:
            self.array.maximum(ref, value.items)

    def body(self, ref: Reference, value: Any) -> None:
        self.plain.body(ref, self.spelled_out(value))

    def deferred(self, ref: Reference, value: Any) -> None:
        self.plain.deferred(ref, self.spelled_out(value))


@dataclass(frozen=True)
class UnionShape(Shape):
    switch: Simple
    arms: tuple[Shape | None, ...]

    def description(self) -> ndr.Description[Any]:
        arms = {i: None if arm is None else arm.description() for i, arm in enumerate(self.arms)}
        return ndr.Union(self.switch.description(), arms)

    def values(self) -> st.SearchStrategy[Any]:
        return st.one_of(
            *(
                st.builds(Choice, st.just(i), st.none() if arm is None else arm.values())
                for i, arm in enumerate(self.arms)
            )
        )

    def widest(self, ref: Reference) -> int:
        return max([1, *(arm.alignment(ref) for arm in self.arms if arm is not None)])

    def alignment(self, ref: Reference) -> int:
        return max(self.widest(ref), self.switch.alignment(ref))

    def body(self, ref: Reference, value: Any) -> None:
        if ref.ndr64:
            ref.align(self.widest(ref))
        self.switch.body(ref, value.tag)
        if ref.ndr64:
            ref.align(self.widest(ref))
        arm = self.arms[value.tag]
        if arm is not None:
            arm.body(ref, value.value)

    def deferred(self, ref: Reference, value: Any) -> None:
        arm = self.arms[value.tag]
        if arm is not None:
            arm.deferred(ref, value.value)


# --- random shapes --------------------------------------------------------------------------------

simple_shapes = st.sampled_from(sorted(SIMPLE)).map(Simple)
varying_strings = st.builds(StringShape, st.booleans(), st.integers(1, 6))
leaves = st.one_of(simple_shapes, st.just(GuidShape()), st.just(HandleShape()), varying_strings)
pointer_kinds = st.sampled_from(("Ref", "Unique", "Full"))
switches = st.sampled_from(("U8", "U16", "U32", "ENUM16", "ENUM32", "I32")).map(Simple)


def array_elements(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    """Octets and wide characters often: their arrays are held in another way."""
    return st.one_of(st.sampled_from((Simple("U8"), Simple("WCHAR"))), inner)


def conformant_arrays(elements: st.SearchStrategy[Shape]) -> st.SearchStrategy[ArrayShape]:
    kinds = st.sampled_from(("Conformant", "ConformantVarying"))
    return st.builds(ArrayShape, array_elements(elements), kinds)


def with_conformant(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    """The types that are allowed behind a pointer, at the top level or last in a structure."""
    arrays = conformant_arrays(inner)
    return st.one_of(
        inner,
        arrays,
        st.builds(StringShape, st.booleans(), st.none()),
        st.builds(CountedShape, arrays, st.none()),
        st.builds(
            lambda members, last: StructShape((*members, last)),
            st.lists(inner, max_size=3),
            arrays,
        ),
    )


def extend(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=5).map(lambda m: StructShape(tuple(m))),
        st.builds(
            ArrayShape,
            array_elements(inner),
            st.sampled_from(("Fixed", "Varying")),
            st.integers(1, 3),
        ),
        st.builds(PointerShape, with_conformant(inner), pointer_kinds),
        st.builds(CountedShape, conformant_arrays(inner), pointer_kinds),
        st.builds(
            UnionShape, switches, st.lists(st.none() | inner, min_size=1, max_size=3).map(tuple)
        ),
    )


embedded_shapes: st.SearchStrategy[Shape] = st.recursive(leaves, extend, max_leaves=8)
shapes: st.SearchStrategy[Shape] = with_conformant(embedded_shapes)


@st.composite
def shapes_and_values(draw: st.DrawFn) -> tuple[Shape, Any]:
    shape = draw(shapes)
    return shape, draw(shape.values())
