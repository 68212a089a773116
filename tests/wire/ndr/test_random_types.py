"""Random types and values: our bytes are the reference encoder's, and decode to the value."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ndr import NdrError, Syntax
from tests.strategies.ndr import Shape, reference_bytes, shapes, shapes_and_values

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@relaxed
@given(shapes_and_values())
def test_ndr20_bytes(pair: tuple[Shape, Any]) -> None:
    shape, value = pair
    assert shape.description().encode(value, Syntax.NDR20) == reference_bytes(shape, value)


@relaxed
@given(shapes_and_values())
def test_ndr64_bytes(pair: tuple[Shape, Any]) -> None:
    shape, value = pair
    data = shape.description().encode(value, Syntax.NDR64)
    assert data == reference_bytes(shape, value, ndr64=True)


@relaxed
@given(shapes_and_values())
def test_what_was_written_is_read(pair: tuple[Shape, Any]) -> None:
    shape, value = pair
    description = shape.description()
    for syntax, ndr64 in ((Syntax.NDR20, False), (Syntax.NDR64, True)):
        data = reference_bytes(shape, value, ndr64=ndr64)
        assert description.decode(data, syntax) == value


@relaxed
@given(shapes_and_values())
def test_big_endian_is_read(pair: tuple[Shape, Any]) -> None:
    shape, value = pair
    data = reference_bytes(shape, value, order=">")
    assert shape.description().decode(data, Syntax.NDR20, big_endian=True) == value


@relaxed
@given(shapes_and_values(), st.sampled_from(Syntax))
def test_every_proper_prefix_is_refused(pair: tuple[Shape, Any], syntax: Syntax) -> None:
    shape, value = pair
    description = shape.description()
    data = description.encode(value, syntax)
    for size in range(len(data)):
        try:
            description.decode(data[:size], syntax, allow_surplus=True)
        except NdrError:
            continue
        raise AssertionError(f"{size} of {len(data)} bytes were enough")


@relaxed
@given(shapes_and_values(), st.sampled_from(Syntax), st.binary(min_size=1, max_size=9))
def test_surplus_is_refused_or_ignored(
    pair: tuple[Shape, Any], syntax: Syntax, surplus: bytes
) -> None:
    shape, value = pair
    description = shape.description()
    data = description.encode(value, syntax) + surplus
    assert description.decode(data, syntax, allow_surplus=True) == value
    try:
        description.decode(data, syntax)
    except NdrError:
        return
    raise AssertionError("surplus bytes were accepted")


@relaxed
@given(shapes, st.binary(max_size=200), st.sampled_from(Syntax), st.booleans())
def test_arbitrary_bytes_raise_only_wire_errors(
    shape: Shape, data: bytes, syntax: Syntax, big_endian: bool
) -> None:
    with contextlib.suppress(WireError):
        shape.description().decode(
            data, syntax, big_endian=big_endian and syntax is Syntax.NDR20, allow_surplus=True
        )


@relaxed
@given(shapes_and_values(), st.sampled_from(Syntax), st.data())
def test_damaged_bytes_raise_only_wire_errors(
    pair: tuple[Shape, Any], syntax: Syntax, data: st.DataObject
) -> None:
    """A damaged stub that is accepted has a value that can be encoded and decoded again."""
    shape, value = pair
    description = shape.description()
    stub = bytearray(description.encode(value, syntax))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(stub) - 1))
        stub[at] = data.draw(st.sampled_from((0, 1, 2, 4, 0x7F, 0x80, 0xFF)))
    try:
        read = description.decode(bytes(stub), syntax, allow_surplus=True)
    except WireError:
        return
    assert repr(description.decode(description.encode(read, syntax), syntax)) == repr(read)
