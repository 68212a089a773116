"""Costs of a hostile stub: memory for an unchecked count, and recursion."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest

from mqis.wire import ndr
from mqis.wire.ndr import MAX_COUNT, MAX_DEPTH, NdrError, Syntax


@dataclass(frozen=True, slots=True)
class Node:
    value: int
    next: Node | None


NODE: ndr.Description[Any] = ndr.Struct(
    Node, value=ndr.U32, next=ndr.Unique(ndr.Lazy(lambda: NODE))
)


@dataclass(frozen=True, slots=True)
class Holder:
    head: int
    items: Any


ARRAYS: dict[str, ndr.Description[Any]] = {
    "octets": ndr.Conformant(ndr.BYTE),
    "wide characters": ndr.Conformant(ndr.WCHAR),
    "integers": ndr.Conformant(ndr.U32),
    "structures": ndr.Conformant(ndr.Struct(Holder, head=ndr.U32, items=ndr.U32)),
    "references": ndr.Conformant(ndr.Ref(ndr.U32)),
    "pointers": ndr.Conformant(ndr.Unique(ndr.U32)),
    "variants": ndr.Conformant(ndr.PROPVARIANT),
    "conformant structure": ndr.Struct(Holder, head=ndr.U32, items=ndr.Conformant(ndr.U16)),
}


def peak_of(description: ndr.Description[Any], data: bytes, syntax: Syntax) -> int:
    description.codec(syntax)  # compiling is not the stub's doing
    tracemalloc.start()
    try:
        with pytest.raises(NdrError):
            description.decode(data, syntax)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.untraced  # what tracing itself remembers would count
@pytest.mark.parametrize("claim", [100_000, MAX_COUNT, MAX_COUNT + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("syntax", Syntax)
def test_a_claim_of_many_elements_takes_no_memory(name: str, claim: int, syntax: Syntax) -> None:
    form = "<Q" if syntax is Syntax.NDR64 else "<I"
    data = struct.pack(form, claim) + bytes(64)
    assert peak_of(ARRAYS[name], data, syntax) < 20_000


@pytest.mark.untraced
@pytest.mark.parametrize("claim", [100_000, MAX_COUNT, 0xFFFFFFFF])
def test_a_claim_of_many_varying_elements_takes_no_memory(claim: int) -> None:
    data = struct.pack("<III", claim, 0, claim) + bytes(64)
    for element in (ndr.BYTE, ndr.U32, ndr.PROPVARIANT):
        assert peak_of(ndr.ConformantVarying(element), data, Syntax.NDR20) < 20_000
    assert peak_of(ndr.WSTRING, data, Syntax.NDR20) < 20_000


@pytest.mark.untraced
def test_elements_without_inline_bytes_are_counted_by_their_referents() -> None:
    """NDR20 sends nothing inline for reference pointers, so only the check stops the loop."""
    for claim in (100_000, MAX_COUNT):
        data = struct.pack("<III", claim, 0, claim) + bytes(64)
        description = ndr.ConformantVarying(ndr.Ref(ndr.U32))
        assert peak_of(description, data, Syntax.NDR20) < 20_000


@pytest.mark.parametrize(
    ("element", "count"), [(ndr.BYTE, 5), (ndr.WCHAR, 3), (ndr.U16, 3)], ids=["u8", "wchar", "u16"]
)
def test_a_hoisted_count_is_checked_again_where_the_elements_start(
    element: ndr.Description[Any], count: int
) -> None:
    """The members in between have used up bytes that were there when the count was read."""
    description = ndr.Struct(Holder, head=ndr.U32, items=ndr.Conformant(element))
    data = struct.pack("<II", count, 7) + bytes(4)
    with pytest.raises(NdrError, match="do not fit in 4 bytes") as caught:
        description.decode(data, Syntax.NDR20)
    assert caught.value.offset == 8


def test_a_large_maximum_count_is_only_a_number() -> None:
    """Nothing says that the elements up to it are there; but 2^31-1 is the most."""
    description = ndr.ConformantVarying(ndr.U32)
    at_limit = struct.pack("<IIII", MAX_COUNT, 0, 1, 7)
    assert description.decode(at_limit, Syntax.NDR20) == (7,)
    with pytest.raises(NdrError, match="2147483648 elements"):
        description.decode(struct.pack("<IIII", MAX_COUNT + 1, 0, 1, 7), Syntax.NDR20)


def test_a_64_bit_count_is_not_cut_to_32() -> None:
    with pytest.raises(NdrError):
        ndr.Conformant(ndr.U32).decode(struct.pack("<QI", 1 << 32 | 1, 7), Syntax.NDR64)


def chain(length: int) -> Node:
    node: Node | None = None
    for value in range(length):
        node = Node(value, node)
    assert node is not None
    return node


@pytest.mark.parametrize("syntax", Syntax)
def test_a_chain_as_deep_as_allowed(syntax: Syntax) -> None:
    value = chain(MAX_DEPTH + 1)  # one node, and so many behind pointers
    assert NODE.decode(NODE.encode(value, syntax), syntax) == value


def test_a_chain_too_deep() -> None:
    with pytest.raises(ValueError, match="deeper"):
        NODE.encode(chain(MAX_DEPTH + 2), Syntax.NDR20)
    endless = struct.pack("<II", 7, 0x20000) * 10_000
    with pytest.raises(NdrError, match="deeper"):
        NODE.decode(endless, Syntax.NDR20)


def test_referents_next_to_each_other_are_not_depth() -> None:
    description = ndr.Conformant(ndr.Unique(NODE))
    value = tuple(chain(3) for _ in range(MAX_DEPTH))
    assert description.decode(description.encode(value, Syntax.NDR20), Syntax.NDR20) == value
