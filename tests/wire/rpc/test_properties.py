"""Round trips of everything, and what arbitrary bytes may lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.rpc.server_calls import fragments
from mqis.testing.rpc import encode_verification
from mqis.wire.errors import WireError
from mqis.wire.ndr import Syntax
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import Operation
from mqis.wire.rpc.pdu import (
    Body,
    decode_pdu,
    encode_pdu,
    signed_request,
    whole_request,
    whole_response,
)
from mqis.wire.rpc.pdu_bodies import Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, Header, PfcFlags
from mqis.wire.rpc.tower import Tower
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.rpc.verification import Verification, find_verification
from tests.strategies.rpc import U8, U16, U32, some_bodies, towers, trailers, verifications

T = TypeVar("T")


@given(some_bodies, U32, U8, st.none() | trailers)
def test_pdus_come_back(body: Body, call_id: int, flags: int, auth: AuthTrailer | None) -> None:
    if not (isinstance(body, Request) and body.object is not None):
        flags &= ~PfcFlags.OBJECT_UUID if isinstance(body, Request) else 0xFF
    else:
        flags |= PfcFlags.OBJECT_UUID
    data = encode_pdu(body, call_id=call_id, flags=flags, auth=auth)
    pdu = decode_pdu(data)
    assert (pdu.body, pdu.auth) == (body, auth)
    assert (pdu.header.call_id, pdu.header.flags) == (call_id, flags)
    assert encode_pdu(pdu.body, call_id=call_id, flags=flags, auth=pdu.auth) == data


@given(some_bodies, U32, U8, st.none() | trailers, st.booleans())
def test_whole_requests_are_those_that_decode_so(
    body: Body, call_id: int, flags: int, auth: AuthTrailer | None, usual: bool
) -> None:
    """The short way gives what the long one does, or nothing."""
    flags = FIRST_LAST if usual else flags
    if isinstance(body, Request):
        has_object = body.object is not None
        flags = flags | PfcFlags.OBJECT_UUID if has_object else flags & ~PfcFlags.OBJECT_UUID
    data = encode_pdu(body, call_id=call_id, flags=flags, auth=auth)
    pdu, whole = decode_pdu(data), whole_request(data)
    plain = isinstance(body, Request) and flags == FIRST_LAST
    assert (whole is not None) == (plain and not pdu.header.auth_length)
    if whole is not None:
        assert isinstance(pdu.body, Request)
        assert whole == (call_id, pdu.body.context_id, pdu.body.opnum, pdu.body.stub)
    signed = signed_request(data)
    assert (signed is not None) == (plain and bool(pdu.header.auth_length))
    if signed is not None:
        assert isinstance(pdu.body, Request)
        assert pdu.auth is not None
        fields = (call_id, pdu.body.context_id, pdu.body.opnum, pdu.trailer_at)
        trailer = (pdu.auth.type, pdu.auth.level, pdu.auth.context_id, pdu.auth.pad_length)
        assert signed == fields + trailer


@given(st.binary(max_size=60), st.integers(0, 84), st.binary(max_size=8))
def test_bytes_around_a_request_are_not_it(stub: bytes, cut: int, more: bytes) -> None:
    data = encode_pdu(Request(1, 2, stub), call_id=3, flags=FIRST_LAST)
    assert whole_request(data) == (3, 1, 2, stub)
    assert more == b"" or whole_request(data + more) is None
    assert cut >= len(data) or whole_request(data[:cut]) is None
    assert whole_request(stub) is None


@given(st.binary(max_size=60), st.integers(0, 120), st.binary(max_size=8), U16)
def test_bytes_around_a_signed_request_are_not_it(
    stub: bytes, cut: int, more: bytes, auth_length: int
) -> None:
    auth = AuthTrailer(10, 5, 1, bytes(16), 3)
    data = encode_pdu(Request(1, 2, stub), call_id=3, flags=FIRST_LAST, auth=auth)
    assert signed_request(data) == (3, 1, 2, 24 + len(stub) + 3, 10, 5, 1, 3)
    assert more == b"" or signed_request(data + more) is None
    assert cut >= len(data) or signed_request(data[:cut]) is None
    assert signed_request(stub) is None
    lying = data[:10] + auth_length.to_bytes(2, "little") + data[12:]
    fits = 0 < auth_length <= len(data) - 24 - 8
    assert (signed_request(lying) is not None) is fits


@given(U32, U8, st.binary(max_size=100))
def test_a_whole_response_is_its_only_fragment(call_id: int, context_id: int, stub: bytes) -> None:
    (only,) = fragments(Response(context_id, stub), call_id=call_id, max_frag=5840)
    assert whole_response(call_id, context_id, stub) == only


@given(some_bodies, st.data())
def test_prefixes_of_pdus_are_refused(body: Body, data: st.DataObject) -> None:
    whole = encode_pdu(body, call_id=1, flags=3)
    with pytest.raises(WireError):
        decode_pdu(whole[: data.draw(st.integers(0, len(whole) - 1))])


def value_or_error(decode: Callable[[bytes], T], data: bytes) -> T | None:
    """The decoded value of ``data``; None if decoding raises a proper WireError."""
    try:
        return decode(data)
    except WireError as error:
        if not 0 <= error.offset <= len(data):
            raise AssertionError(f"an error outside of the bytes: {error}") from error
        return None


def _accepts_or_refuses(data: bytes) -> None:
    pdu = value_or_error(decode_pdu, data)
    if pdu is not None:
        assert pdu.data == data
        assert 16 <= pdu.stub_at <= pdu.trailer_at <= len(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_pdu_or_a_wire_error(data: bytes) -> None:
    _accepts_or_refuses(data)


@given(st.sampled_from(range(21)), U8, st.sampled_from([0, 0, 4, 16, 70]), st.binary(max_size=150))
def test_any_body_is_one_or_a_wire_error(ptype: int, flags: int, auth: int, data: bytes) -> None:
    """As above, but with a header that says the truth, so that bodies are reached."""
    for drep in (b"\x10\0\0\0", bytes(4)):
        header = Header(ptype, flags, 1, 16 + len(data), auth, drep)
        _accepts_or_refuses(header.encode() + data)


@given(st.builds(Header, U8, U8, U32, U16, U16, st.binary(min_size=4, max_size=4), U8, U8))
def test_headers_come_back(header: Header) -> None:
    assert Header.decode(header.encode()) == header


@given(towers)
def test_towers_come_back(tower: Tower) -> None:
    assert Tower.from_bytes(tower.to_bytes()) == tower


@given(towers, st.data())
def test_prefixes_of_towers_are_refused(tower: Tower, data: st.DataObject) -> None:
    whole = tower.to_bytes()
    with pytest.raises(WireError):
        Tower.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=120))
def test_any_bytes_are_a_tower_or_a_wire_error(data: bytes) -> None:
    tower = value_or_error(Tower.from_bytes, data)
    if tower is None:
        return
    # Whatever the floors are, they can be asked.
    assert tower.to_bytes() == data
    assert tower.interface is None or tower.interface.uuid
    assert tower.port is None or 0 <= tower.port <= 0xFFFF
    assert tower.address is None or tower.address.count(".") == 3
    assert len(tower.protocols) == max(0, len(tower.floors) - 2)


@given(st.binary(max_size=60), verifications)
def test_verification_trailers_are_found(stub: bytes, said: Verification) -> None:
    padded = stub + bytes(-len(stub) % 4)
    assert find_verification(padded + encode_verification(said)) == (len(padded), said)


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_any_bytes_behind_a_signature(before: bytes, after: bytes) -> None:
    stub = before + bytes(-len(before) % 4) + bytes.fromhex("8ae3137102f43671") + after
    value_or_error(find_verification, stub)
    assert find_verification(before[:8]) is None


OPERATIONS: tuple[Operation[Any, Any], ...] = (
    *epmapper.EPMAPPER.operations,
    *mgmt.MGMT.operations,
)


@given(
    st.sampled_from(OPERATIONS),
    st.sampled_from(Syntax),
    st.booleans(),
    st.binary(max_size=200),
)
def test_any_stub_is_a_request_or_a_wire_error(
    operation: Operation[Any, Any],
    syntax: Syntax,
    big_endian: bool,
    stub: bytes,
) -> None:
    given = {"max_entries": 500, "max_towers": 500, "size": 4096}
    swapped = big_endian and syntax is Syntax.NDR20
    for parameters in (operation.request, operation.response):
        read = partial(
            parameters.decode, syntax=syntax, big_endian=swapped, given=given, allow_surplus=True
        )
        value_or_error(read, stub)


@given(st.binary(max_size=100), st.integers(0, 60))
def test_signed_parts_hold_the_stub_and_its_padding(stub: bytes, pad: int) -> None:
    trailer = AuthTrailer(10, 5, 1, b"token", pad)
    for body in (Request(0, 1, stub), Response(0, stub)):
        pdu = decode_pdu(encode_pdu(body, call_id=1, flags=3, auth=trailer))
        head, middle, fixed = pdu.signed_parts
        assert (len(head), middle, fixed) == (24, stub + bytes(pad), trailer.encode_fixed())
        assert pdu.body == replace(body, stub=stub + bytes(pad))
