"""Every PDU as bytes written by hand from the layouts, read and written; what is refused."""

from __future__ import annotations

import pytest

from mqis.testing.rpc import feature_syntax
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.rpc import pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId, feature_bits
from mqis.wire.rpc.pdu import Body, decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_header import DREP, Header, PacketType, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer

EPM = SyntaxId(Guid.parse("e1af8308-5d1f-11c9-91a4-08002b14a0fa"), 3)
EPM_BYTES = "0883afe1 1f5d c911 91a4 08002b14a0fa 0300 0000"
NDR20_BYTES = "045d888a eb1c c911 9fe8 08002b104860 02000000"
NDR64_BYTES = "33057171 babe 3749 8319 b5dbef9ccc36 01000000"

# What stands in each: version, type and flags, drep, frag_length, auth_length, call_id.
CASES: list[tuple[str, str, Body, int, int, AuthTrailer | None]] = [
    (
        "bind",
        (
            "05000b03 10000000 7400 0000 01000000"
            "d016 d016 00000000 02 000000"
            f"0000 01 00 {EPM_BYTES} {NDR20_BYTES}"
            f"0100 01 00 {EPM_BYTES} {NDR64_BYTES}"
        ),
        pdu_bodies.Bind(
            5840,
            5840,
            0,
            (
                pdu_bodies.ContextElement(0, EPM, (NDR20,)),
                pdu_bodies.ContextElement(1, EPM, (NDR64,)),
            ),
        ),
        3,
        1,
        None,
    ),
    (
        "bind with a token",
        (
            "05000b07 10000000 5400 0400 01000000"
            "d016 d016 00000000 01 000000"
            f"0000 01 00 {EPM_BYTES} {NDR20_BYTES}"
            "0a 05 00 00 78563412 61626364"
        ),
        pdu_bodies.Bind(5840, 5840, 0, (pdu_bodies.ContextElement(0, EPM, (NDR20,)),)),
        3 | PfcFlags.SUPPORT_HEADER_SIGN,
        1,
        AuthTrailer(0x0A, 5, 0x12345678, b"abcd"),
    ),
    (
        "bind_ack of port 135",
        (
            "05000c03 10000000 3c00 0000 01000000"
            "d016 d016 44332211 0400 31333500 0000"
            f"01 000000 0000 0000 {NDR20_BYTES}"
        ),
        pdu_bodies.BindAck(5840, 5840, 0x11223344, "135", (pdu_bodies.ContextResult(0, 0, NDR20),)),
        3,
        1,
        None,
    ),
    (
        "bind_ack with a rejection and features",
        "05000c13 10000000 5400 0000 07000000"
        "f80f f80f 05000000 0500 3130323400 00"
        "02 000000" + "0200 0100" + "00" * 20 + "0300 0300" + "00" * 20,
        pdu_bodies.BindAck(
            4088,
            4088,
            5,
            "1024",
            (pdu_bodies.ContextResult(2, 1), pdu_bodies.ContextResult(3, 3)),
        ),
        3 | PfcFlags.CONC_MPX,
        7,
        None,
    ),
    (
        "bind_nak",
        "05000d03 10000000 1800 0000 01000000 0400 01 0500 000000",
        pdu_bodies.BindNak(4),
        3,
        1,
        None,
    ),
    (
        "alter_context",
        (
            "05000e03 10000000 4800 0000 02000000"
            "d016 d016 44332211 01 000000"
            f"0200 01 00 {EPM_BYTES} {NDR20_BYTES}"
        ),
        pdu_bodies.AlterContext(
            5840, 5840, 0x11223344, (pdu_bodies.ContextElement(2, EPM, (NDR20,)),)
        ),
        3,
        2,
        None,
    ),
    (
        "alter_context_resp",
        (
            "05000f03 10000000 3800 0000 02000000"
            "d016 d016 44332211 0000 0000"
            f"01 000000 0000 0000 {NDR20_BYTES}"
        ),
        pdu_bodies.AlterContextResp(
            5840, 5840, 0x11223344, "", (pdu_bodies.ContextResult(0, 0, NDR20),)
        ),
        3,
        2,
        None,
    ),
    (
        "auth3",
        "05001003 10000000 1e00 0200 01000000 00000000 0a 06 00 00 01000000 ffee",
        pdu_bodies.Auth3(),
        3,
        1,
        AuthTrailer(0x0A, 6, 1, b"\xff\xee"),
    ),
    (
        "request",
        "05000003 10000000 1c00 0000 03000000 04000000 0100 0200 deadbeef",
        pdu_bodies.Request(1, 2, bytes.fromhex("deadbeef"), alloc_hint=4),
        3,
        3,
        None,
    ),
    (
        "request on an object",
        (
            "05000083 10000000 2900 0000 03000000 01000000 0100 0200"
            "d4c3b2a1 0100 0200 030405060708090a ff"
        ),
        pdu_bodies.Request(
            1, 2, b"\xff", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), alloc_hint=1
        ),
        3 | PfcFlags.OBJECT_UUID,
        3,
        None,
    ),
    (
        "request with a signature",
        (
            "05000003 10000000 2c00 0400 03000000 02000000 0000 0700"
            "0102 000000000000 0a 05 06 00 01000000 a1a2a3a4"
        ),
        pdu_bodies.Request(0, 7, b"\x01\x02" + bytes(6), alloc_hint=2),
        3,
        3,
        AuthTrailer(0x0A, 5, 1, bytes.fromhex("a1a2a3a4"), pad_length=6),
    ),
    (
        "response",
        "05000203 10000000 1a00 0000 03000000 02000000 0100 05 00 0a0b",
        pdu_bodies.Response(1, b"\x0a\x0b", alloc_hint=2, cancel_count=5),
        3,
        3,
        None,
    ),
    (
        "fault",
        "05000323 10000000 2000 0000 03000000 20000000 0000 00 00 0200011c 00000000",
        pdu_bodies.Fault(0, 0x1C010002),
        3 | PfcFlags.DID_NOT_EXECUTE,
        3,
        None,
    ),
    ("shutdown", "05001103 10000000 1000 0000 00000000", pdu_bodies.Shutdown(), 3, 0, None),
    ("co_cancel", "05001203 10000000 1000 0000 09000000", pdu_bodies.CoCancel(), 3, 9, None),
    ("orphaned", "05001303 10000000 1000 0000 09000000", pdu_bodies.Orphaned(), 3, 9, None),
]
by_name = pytest.mark.parametrize(
    ("hexadecimal", "body", "flags", "call_id", "auth"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)


@by_name
def test_bytes_to_pdu(
    hexadecimal: str, body: Body, flags: int, call_id: int, auth: AuthTrailer | None
) -> None:
    data = bytes.fromhex(hexadecimal)
    pdu = decode_pdu(data)
    token = 0 if auth is None else len(auth.token)
    assert pdu.header == Header(body.TYPE, flags, call_id, len(data), token)
    assert (pdu.body, pdu.auth) == (body, auth)
    assert type(pdu.body) is type(body)
    assert b"".join(pdu.signed_parts) == data[: len(data) - token]


@by_name
def test_pdu_to_bytes(
    hexadecimal: str, body: Body, flags: int, call_id: int, auth: AuthTrailer | None
) -> None:
    data = bytes.fromhex(hexadecimal)
    if auth is not None and auth.pad_length:  # the padding of a stub is added, not part of it
        assert isinstance(body, pdu_bodies.Request)
        body = pdu_bodies.Request(
            body.context_id, body.opnum, body.stub[: -auth.pad_length], None, body.alloc_hint
        )
    assert encode_pdu(body, call_id=call_id, flags=flags, auth=auth) == data


@by_name
def test_every_prefix_is_refused(
    hexadecimal: str, body: Body, flags: int, call_id: int, auth: AuthTrailer | None
) -> None:
    data = bytes.fromhex(hexadecimal)
    for size in range(len(data)):
        with pytest.raises(WireError):
            decode_pdu(data[:size])


@pytest.mark.parametrize(
    ("port", "size"), [("135", 60), ("", 56), ("1", 56), ("49664", 60), ("1234567890", 68)]
)
def test_the_size_of_a_bind_ack_follows_its_secondary_address(port: str, size: int) -> None:
    ack = pdu_bodies.BindAck(5840, 5840, 1, port, (pdu_bodies.ContextResult(0, 0, NDR20),))
    assert len(encode_pdu(ack, call_id=1, flags=3)) == size


BIG_ENDIAN: list[tuple[str, str, Body]] = [
    (
        "bind",
        (
            "05000b03 00000000 0048 0000 01020304"
            "16d0 16d0 11223344 01 000000"
            "0002 01 00"
            "e1af8308 5d1f 11c9 91a4 08002b14a0fa 00000003"
            "8a885d04 1ceb 11c9 9fe8 08002b104860 00000002"
        ),
        pdu_bodies.Bind(5840, 5840, 0x11223344, (pdu_bodies.ContextElement(2, EPM, (NDR20,)),)),
    ),
    (
        "a syntax with a minor version",
        (
            "05000b03 00000000 0048 0000 01020304"
            "16d0 16d0 00000000 01 000000"
            "0000 01 00"
            "e1af8308 5d1f 11c9 91a4 08002b14a0fa 00070003"
            "8a885d04 1ceb 11c9 9fe8 08002b104860 00000002"
        ),
        pdu_bodies.Bind(
            5840,
            5840,
            0,
            (pdu_bodies.ContextElement(0, SyntaxId(EPM.uuid, 3, 7), (NDR20,)),),
        ),
    ),
    (
        "request",
        (
            "05000083 00000000 002a 0000 01020304 00000002 0001 0102"
            "a1b2c3d4 0001 0002 0304 05060708090a 4142"
        ),
        pdu_bodies.Request(
            1, 0x102, b"AB", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), alloc_hint=2
        ),
    ),
    (
        "response",
        "05000203 00000000 0019 0000 01020304 00000001 0001 02 00 41",
        pdu_bodies.Response(1, b"A", 1, 2),
    ),
    (
        "fault",
        "05000303 00000000 0020 0000 01020304 00000020 0001 00 01 1c010002 00000000",
        pdu_bodies.Fault(1, 0x1C010002, flags=1),
    ),
    (
        "bind_nak",
        "05000d03 00000000 0018 0000 01020304 0004 01 0500 000000",
        pdu_bodies.BindNak(4),
    ),
]


@pytest.mark.parametrize(
    ("hexadecimal", "body"), [c[1:] for c in BIG_ENDIAN], ids=[c[0] for c in BIG_ENDIAN]
)
def test_big_endian_peers_are_read(hexadecimal: str, body: Body) -> None:
    pdu = decode_pdu(bytes.fromhex(hexadecimal))
    assert pdu.body == body
    assert pdu.header.big_endian
    assert pdu.header.call_id == 0x01020304


def test_the_trailer_of_a_big_endian_peer_is_read() -> None:
    data = bytes.fromhex("05001003 00000000 001e 0002 00000001 00000000 0a 06 00 00 12345678 ffee")
    assert decode_pdu(data).auth == AuthTrailer(0x0A, 6, 0x12345678, b"\xff\xee")


def test_header_integers_are_written_in_the_order_that_drep_names() -> None:
    header = Header(0, 3, 0x01020304, 0x1C, 0x0506, drep=bytes(4))
    assert header.encode().hex() == "0500000300000000001c050601020304"
    assert Header.decode(header.encode()) == header


@pytest.mark.parametrize(
    ("drep", "plain"),
    [
        (DREP, True),
        (bytes(4), True),
        (b"\x10\0\xff\xff", True),  # the rest of drep is reserved
        (b"\x11\0\0\0", False),  # EBCDIC
        (b"\x10\1\0\0", False),  # VAX
        (b"\x10\2\0\0", False),  # Cray
        (b"\x10\3\0\0", False),  # IBM
    ],
)
def test_only_ascii_and_ieee_are_understood(drep: bytes, plain: bool) -> None:
    assert Header(0, 3, 1, 16, drep=drep).plain_format is plain


@pytest.mark.parametrize("ptype", [1, *range(4, 11), 20, 21, 99, 255])
def test_types_that_no_connection_has(ptype: int) -> None:
    data = Header(ptype, 3, 1, 32).encode() + bytes(16)
    with pytest.raises(WireError, match=f"packet type {ptype}") as caught:
        decode_pdu(data)
    assert caught.value.offset == 2


@pytest.mark.parametrize("length", [0, 15, 31, 33, 0xFFFF])
def test_frag_length_is_the_length(length: int) -> None:
    data = Header(PacketType.FAULT, 3, 1, length).encode() + bytes(16)
    with pytest.raises(WireError, match="frag_length") as caught:
        decode_pdu(data)
    assert caught.value.offset == 8


@pytest.mark.parametrize(("token", "fits"), [(1, True), (8, True), (9, False), (0xFFFF, False)])
def test_a_token_does_not_reach_into_the_header(token: int, fits: bool) -> None:
    data = Header(PacketType.SHUTDOWN, 3, 1, 32, token).encode() + bytes(16)
    if fits:
        assert decode_pdu(data).auth is not None
    else:
        with pytest.raises(WireError, match="auth_length"):
            decode_pdu(data)


def test_the_fixed_fields_of_a_request_are_not_the_trailer_s() -> None:
    data = Header(PacketType.REQUEST, 3, 1, 40, 9).encode() + bytes(24)
    with pytest.raises(WireError, match="at least 24"):
        decode_pdu(data)


@pytest.mark.parametrize("size", [17, 18, 19])
def test_a_nak_may_end_after_its_reason(size: int) -> None:
    data = Header(PacketType.BIND_NAK, 3, 1, size).encode() + b"\x08\0\0"[: size - 16]
    if size == 17:
        with pytest.raises(WireError):
            decode_pdu(data)
    else:
        assert decode_pdu(data).body == pdu_bodies.BindNak(8, ())


def test_what_follows_a_nak_is_not_looked_at() -> None:
    data = Header(PacketType.BIND_NAK, 3, 1, 40).encode() + b"\x08\0\1\5\0" + bytes(19)
    assert decode_pdu(data).body == pdu_bodies.BindNak(8)


def test_features_are_the_last_half_of_a_syntax() -> None:
    asked = SyntaxId(Guid.parse("6cb71c2c-9812-4540-0300-000000000000"), 1)
    assert feature_bits(asked) == 3
    assert feature_syntax(3) == asked
    assert feature_bits(SyntaxId(asked.uuid, 2)) is None
    assert feature_bits(NDR20) is None


@pytest.mark.parametrize(
    "body",
    [
        pdu_bodies.Request(0x10000, 0, b""),
        pdu_bodies.Request(0, 0x10000, b""),
        pdu_bodies.Request(0, 0, b"", alloc_hint=1 << 32),
        pdu_bodies.Request(0, 0, bytes(0x10000)),
        pdu_bodies.Response(0x10000, b""),
        pdu_bodies.Fault(0, 1 << 32),
        pdu_bodies.Bind(0x10000, 0, 0, ()),
        pdu_bodies.BindNak(0x10000),
        pdu_bodies.BindAck(0, 0, 0, "\u20ac", ()),
    ],
    ids=repr,
)
def test_values_that_do_not_fit_are_the_caller_s_mistake(body: Body) -> None:
    with pytest.raises(ValueError, match=r"fit|at most|latin"):
        encode_pdu(body, call_id=1, flags=3)


def test_a_call_id_that_does_not_fit_is_too() -> None:
    with pytest.raises(ValueError, match="fit"):
        encode_pdu(pdu_bodies.Shutdown(), call_id=1 << 32, flags=3)
