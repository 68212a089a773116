"""Errors of clients and the server's answers, row by row as other servers answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.negotiation import MAX_FRAG
from mqis.testing.rpc import feature_syntax
from mqis.testing.security import SharedSecret
from mqis.wire.mqds.dscomm import DSCOMM
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.rpc.interfaces import NDR20, NDR64, InterfaceDescription, SyntaxId
from mqis.wire.rpc.pdu_bodies import BindAck, ContextElement, Fault, Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, PacketType, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.rpc.talk import (
    ECHO,
    FIRST,
    LAST,
    MPX,
    OTHER,
    SIGN,
    STRANGE,
    STRICT,
    UNKNOWN,
    Talk,
    alter_pdu,
    auth3_pdu,
    authenticated,
    bare_pdu,
    bind_pdu,
    element,
    make_endpoint,
    overpadded,
    request_pdu,
    signed,
)

PROTO = ["fault+ proto_error context 0 call 7", "closed"]
BROKEN = ["fault proto_error context 0 call 7", "closed"]
DENIED = ["fault access_denied context 0 call 7", "closed"]
NAK8 = ["nak 8", "closed"]
NAK9 = ["nak 9", "closed"]
NAK4 = ["nak 4", "closed"]
NAK0 = ["nak 0", "closed"]


@dataclass(frozen=True)
class Row:
    name: str
    sent: tuple[bytes, ...]
    answer: list[str]


def rows(table: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", table, ids=[row.name for row in table])


# --- before and in a bind -------------------------------------------------------------------------

HELLO = b"hello somebody"
V = {"5.1": (5, 1), "5.2": (5, 2), "4.0": (4, 0)}
BIND_BODY = bind_pdu()[16:]

UNBOUND = [
    *(
        Row(f"bind {name}", (bare_pdu(11, BIND_BODY, version=v[0], version_minor=v[1]),), NAK4)
        for name, v in V.items()
    ),
    Row("bind in EBCDIC", (bare_pdu(11, BIND_BODY, drep=b"\x11\0\0\0"),), NAK4),
    Row("bind in VAX numbers", (bare_pdu(11, BIND_BODY, drep=b"\x10\1\0\0"),), NAK4),
    Row("request first", (request_pdu(),), NAK4),
    Row("alter first", (alter_pdu(),), NAK4),
    Row("auth3 first", (auth3_pdu(AuthTrailer(10, 2, 1, b"t")),), NAK4),
    Row("co_cancel first", (bare_pdu(18),), NAK4),
    Row("type 99 first", (bare_pdu(99),), ["closed"]),
    Row("length 15", (bare_pdu(11, BIND_BODY, frag_length=15),), ["closed"]),
    Row("length 0", (bare_pdu(11, BIND_BODY, frag_length=0),), ["closed"]),
    Row("bind without its fields", (bare_pdu(11, BIND_BODY[:8]),), ["closed"]),
    Row("bind ends in an element", (bare_pdu(11, BIND_BODY[:-1]),), ["closed"]),
    Row("token beyond the bind", (bare_pdu(11, BIND_BODY, auth_length=600),), NAK4),
    Row("token reaches the header", (bare_pdu(11, BIND_BODY, auth_length=49),), NAK4),
    Row("too long", (bare_pdu(11, bytes(MAX_FRAG - 15)),), ["closed"]),
    Row("no context", (bind_pdu(()),), NAK0),
    Row("no context, not even padding", (bare_pdu(11, BIND_BODY[:8] + b"\0"),), NAK0),
    Row("no transfer syntax", (bare_pdu(11, BIND_BODY[:14] + b"\0\0" + BIND_BODY[16:36]),), NAK0),
    Row(
        "features twice",
        (
            bind_pdu(
                [
                    element(0),
                    element(1, ECHO.syntax, feature_syntax(1)),
                    element(2, ECHO.syntax, feature_syntax(2)),
                ]
            ),
        ),
        NAK0,
    ),
    Row("one id for two interfaces", (bind_pdu([element(0), element(0, OTHER.syntax)]),), NAK0),
    Row("unknown group", (bind_pdu(group=12345),), NAK0),
    Row(
        "padding before the body",
        (overpadded(bind_pdu(auth=AuthTrailer(10, 2, 1, HELLO)), 49),),
        NAK4,
    ),
    *(
        Row(f"type 0 level {level}", (bind_pdu(auth=AuthTrailer(0, level, 1, b"t")),), NAK8)
        for level in (2, 3, 4, 5, 6)
    ),
    *(
        Row(
            f"type {kind} level {level}", (bind_pdu(auth=AuthTrailer(kind, level, 1, HELLO)),), NAK0
        )
        for kind in (0, AuthType.SPNEGO)
        for level in (0, 1, 7, 255)
    ),
    Row("level 3", (bind_pdu(auth=AuthTrailer(AuthType.SPNEGO, 3, 1, HELLO)),), NAK9),
    Row("unknown type", (bind_pdu(auth=AuthTrailer(0x44, 5, 1, HELLO)),), NAK8),
    Row(
        "refused token", (bind_pdu(auth=AuthTrailer(AuthType.KERBEROS, 5, 1, b"hello x y")),), NAK9
    ),
]


@rows(UNBOUND)
def test_refused_at_bind(row: Row) -> None:
    talk = Talk(make_endpoint(SharedSecret()))
    assert talk.say(*row.sent) == row.answer
    assert talk.endpoint.statistics.refused == 1
    assert len(talk.endpoint.groups) == 0


def test_without_an_authenticator_no_type_is_known() -> None:
    assert Talk().say(bind_pdu(auth=AuthTrailer(10, 5, 1, HELLO))) == NAK8


FLAGS = [0, FIRST, LAST, 0x08, 0x20, 0x40, 0x80]


@pytest.mark.parametrize("flags", [*FLAGS, SIGN, MPX, SIGN | MPX, 0xFF])
def test_flags_of_a_bind_are_granted_by_echo(flags: int) -> None:
    granted = 0x03 | flags & (SIGN | MPX)
    assert Talk().say(bind_pdu(flags=flags)) == [f"ack {granted:02x} 0/0"]


@pytest.mark.parametrize("flags", [*FLAGS, SIGN, MPX])
def test_flags_of_an_alter_are_not_but_for_header_signing(flags: int) -> None:
    granted = 0x03 | flags & SIGN
    assert Talk().bound().say(alter_pdu(flags=flags)) == [f"resp {granted:02x} 0/0"]


# --- presentation contexts ------------------------------------------------------------------------

E20, E64 = element(0, ECHO.syntax, NDR20), element(1, ECHO.syntax, NDR64)
HIGHER = SyntaxId(ECHO.syntax.uuid, 1, 3)
LOWER = SyntaxId(ECHO.syntax.uuid, 1, 0)
NEXT = SyntaxId(ECHO.syntax.uuid, 2, 0)
NEGOTIATIONS = [
    ("accepted", [E20], "0/0"),
    ("the server's preference", [E20, E64], "2/2 0/0"),
    ("the server's preference in one element", [element(0, ECHO.syntax, NDR20, NDR64)], "0/0"),
    ("two interfaces", [element(0), element(1, OTHER.syntax)], "0/0 0/0"),
    ("unknown interface", [element(0, UNKNOWN)], "2/1"),
    ("unknown transfer syntax", [element(0, ECHO.syntax, STRANGE)], "2/2"),
    ("not the interface's syntax", [element(0, STRICT.syntax, NDR64)], "2/2"),
    ("twice the same", [element(0), element(1)], "0/0 2/2"),
    ("twice the same with one id", [element(0), element(0)], "0/0 2/2"),
    ("higher minor version", [element(0, HIGHER)], "2/1"),
    ("lower minor version", [element(0, LOWER)], "0/0"),
    ("other major version", [element(0, NEXT)], "2/1"),
    ("features", [element(0), element(1, ECHO.syntax, feature_syntax(3))], "0/0 3/3"),
    ("one feature", [element(1, ECHO.syntax, feature_syntax(2))], "3/2"),
    ("unknown features", [element(0), element(1, UNKNOWN, feature_syntax(0xFF))], "0/0 3/3"),
    ("features not first", [element(0, ECHO.syntax, NDR20, feature_syntax(3))], "0/0"),
    ("features behind a stranger", [element(0, ECHO.syntax, STRANGE, feature_syntax(3))], "2/2"),
]


@pytest.mark.parametrize(
    ("contexts", "results"), [n[1:] for n in NEGOTIATIONS], ids=[n[0] for n in NEGOTIATIONS]
)
def test_results_come_in_the_order_of_the_proposals(
    contexts: list[ContextElement], results: str
) -> None:
    talk = Talk()
    assert talk.say(bind_pdu(contexts)) == [f"ack 03 {results}"]
    assert not talk.server.closing
    again = Talk().bound(contexts=(element(9, STRICT.syntax),))
    assert again.say(alter_pdu(contexts)) == [f"resp 03 {results}"]


def dscomm(description: InterfaceDescription) -> Interface:
    return Interface(
        description.name,
        description.syntax,
        description.opnums,
        description.transfer_syntaxes,
        description.strict_context_handles,
    )


@pytest.mark.req("MQDS-2.1-05")
@pytest.mark.parametrize("description", [DSCOMM, DSCOMM2], ids=lambda d: d.name)
@pytest.mark.parametrize("version", [(0, 9), (1, 1), (2, 0), (1, 0xFFFF)])
def test_directory_interfaces_in_other_versions(
    description: InterfaceDescription, version: tuple[int, int]
) -> None:
    endpoint = make_endpoint()
    endpoint.interfaces = (dscomm(DSCOMM), dscomm(DSCOMM2))
    right = element(0, SyntaxId(description.syntax.uuid, 1, 0))
    wrong = element(1, SyntaxId(description.syntax.uuid, *version))
    assert Talk(endpoint).say(bind_pdu([wrong])) == ["ack 03 2/1"]
    assert Talk(endpoint).say(bind_pdu([right])) == ["ack 03 0/0"]


@pytest.mark.parametrize(
    ("xmit_and_recv", "agreed"),
    [
        (5840, 5840),
        (4280, 4280),
        (65535, 5840),
        (2048, 2048),
        (0, 2048),
        (2055, 2048),
        (4287, 4280),
    ],
)
def test_fragment_sizes(xmit_and_recv: int, agreed: int) -> None:
    ack = Talk().pdus(bind_pdu(frag=xmit_and_recv))[0].body
    assert isinstance(ack, BindAck)
    assert (ack.max_xmit_frag, ack.max_recv_frag) == (agreed, agreed)


def test_the_secondary_address_is_the_port() -> None:
    (pdu,) = Talk().pdus(bind_pdu())
    assert len(pdu.data) == 60
    assert isinstance(pdu.body, BindAck)
    assert pdu.body.secondary_address == "135"


# --- after a bind ---------------------------------------------------------------------------------

BIG = request_pdu(bytes(MAX_FRAG - 24 + 1))
BOUND = [
    Row("version 5.1", (bare_pdu(0, bytes(8), version_minor=1),), PROTO),
    Row("version 4.0", (bare_pdu(0, bytes(8), version=4),), PROTO),
    Row("EBCDIC", (bare_pdu(0, bytes(8), drep=b"\x11\0\0\0"),), PROTO),
    *(
        Row(f"type {kind}", (bare_pdu(kind, bytes(24)),), PROTO)
        for kind in (1, 2, 3, 4, 10, 12, 13, 15, 17, 20)
    ),
    *(Row(f"type {kind}", (bare_pdu(kind, bytes(24)),), ["closed"]) for kind in (21, 99, 255)),
    Row("length 15", (bare_pdu(0, bytes(8), frag_length=15),), ["closed"]),
    Row("request without its fields", (bare_pdu(0, bytes(7)),), ["closed"]),
    Row("token beyond the request", (bare_pdu(0, bytes(8), auth_length=1),), PROTO),
    Row("token beyond the alter", (bare_pdu(14, bytes(20), auth_length=99),), PROTO),
    Row("second bind", (bind_pdu(),), NAK0),
    Row("alter with no context", (alter_pdu((), call_id=7),), PROTO),
    Row(
        "alter with no transfer syntax",
        (bare_pdu(14, BIND_BODY[:14] + b"\0\0" + BIND_BODY[16:36]),),
        PROTO,
    ),
    Row("alter: other interface", (alter_pdu([element(0, OTHER.syntax)], call_id=7),), PROTO),
    Row("alter: unknown interface", (alter_pdu([element(0, UNKNOWN)], call_id=7),), PROTO),
    Row(
        "alter: other known syntax",
        (alter_pdu([element(0, ECHO.syntax, NDR64)], call_id=7),),
        PROTO,
    ),
    Row("alter: the same again", (alter_pdu(call_id=7),), ["resp 03 0/0"]),
    Row("alter: unknown syntax", (alter_pdu([element(0, ECHO.syntax, STRANGE)]),), ["resp 03 2/2"]),
    Row(
        "auth3 without a token",
        (auth3_pdu(None),),
        ["fault+ proto_error context 0 call 1", "closed"],
    ),
    Row(
        "auth3 of no context",
        (auth3_pdu(AuthTrailer(10, 2, 9, b"t")),),
        ["fault+ proto_error context 0 call 1", "closed"],
    ),
    Row(
        "auth3 with padding",
        (auth3_pdu(AuthTrailer(10, 2, 1, b"t", 4)),),
        ["fault+ remote_no_memory context 0 call 1", "closed"],
    ),
    Row(
        "alter of type 0",
        (alter_pdu(auth=AuthTrailer(0, 2, 1, b"t")),),
        ["fault+ access_denied context 0 call 2", "closed"],
    ),
    Row(
        "alter with padding before the body",
        (overpadded(alter_pdu(auth=AuthTrailer(10, 2, 1, HELLO)), 49),),
        ["fault+ proto_error context 0 call 2", "closed"],
    ),
    Row(
        "alter with a refused token",
        (alter_pdu(auth=AuthTrailer(10, 2, 1, b"no hello")),),
        ["fault+ sec_pkg_error context 0 call 2", "closed"],
    ),
    Row(
        "alter of an unknown type",
        (alter_pdu(auth=AuthTrailer(0x44, 2, 1, HELLO)),),
        ["fault+ access_denied context 0 call 2", "closed"],
    ),
    Row(
        "request on an unknown context",
        (request_pdu(context_id=4),),
        ["fault+ unk_if context 0 call 7"],
    ),
    Row(
        "request on a rejected context",
        (alter_pdu([element(3, UNKNOWN)]), request_pdu(context_id=3)),
        ["resp 03 2/1", "fault+ unk_if context 0 call 7"],
    ),
    Row("opnum too high", (request_pdu(opnum=4),), ["fault+ op_rng_error context 0 call 7"]),
    Row(
        "opnum too high, in two fragments",
        (request_pdu(opnum=4, flags=FIRST), request_pdu(opnum=4, flags=LAST)),
        ["fault+ op_rng_error context 0 call 7"],
    ),
    Row(
        "cancelled in its first fragment",
        (request_pdu(flags=FIRST_LAST | PfcFlags.PENDING_CANCEL),),
        ["fault+ no_call_active context 0 call 7", "closed"],
    ),
    Row(
        "named security context that is not there",
        (request_pdu(auth=AuthTrailer(10, 5, 1, b"t" * 16)),),
        DENIED,
    ),
    Row("fragment too big", (BIG,), BROKEN),
    Row("fragment too big by its header alone", (BIG[:16],), BROKEN),
    Row(
        "largest fragment",
        (request_pdu(b"x" * (MAX_FRAG - 24)),),
        [f"response {'X' * (MAX_FRAG - 24)} call 7"],
    ),
    Row("hint too big", (request_pdu(flags=FIRST, hint=4 * 1024 * 1024 + 1),), DENIED),
    Row(
        "hint too big where nothing follows",
        (request_pdu(hint=0xFFFFFFFF),),
        ["response STUB call 7"],
    ),
    Row("first twice", (request_pdu(flags=FIRST), request_pdu(flags=FIRST)), BROKEN),
    Row("last without first", (request_pdu(flags=LAST),), BROKEN),
    Row("middle without first", (request_pdu(flags=0),), BROKEN),
    Row(
        "other call inside", (request_pdu(flags=FIRST), request_pdu(flags=LAST, call_id=8)), BROKEN
    ),
    Row("other call begins inside", (request_pdu(flags=FIRST), request_pdu(call_id=8)), BROKEN),
    Row(
        "orphaned is no end",
        (request_pdu(flags=FIRST), bare_pdu(19), request_pdu(call_id=8)),
        BROKEN,
    ),
    Row(
        "second fragment signed",
        (request_pdu(flags=FIRST), request_pdu(flags=LAST, auth=AuthTrailer(10, 5, 1, b"t"))),
        BROKEN,
    ),
    Row(
        "co_cancel inside",
        (request_pdu(flags=FIRST), bare_pdu(18), request_pdu(flags=LAST)),
        ["response STUBSTUB call 7"],
    ),
    Row(
        "orphaned inside",
        (request_pdu(flags=FIRST), bare_pdu(19), request_pdu(flags=LAST)),
        ["response STUBSTUB call 7"],
    ),
    Row(
        "pending cancel later",
        (request_pdu(flags=FIRST), request_pdu(flags=LAST | PfcFlags.PENDING_CANCEL)),
        ["response STUBSTUB call 7"],
    ),
    Row("co_cancel of no call", (bare_pdu(18, call_id=99),), []),
    Row(
        "later fragments say something else",
        (request_pdu(flags=FIRST), request_pdu(flags=LAST, opnum=77, context_id=99)),
        ["response STUBSTUB call 7"],
    ),
    Row(
        "call ids repeated and lower",
        (request_pdu(), request_pdu(), request_pdu(call_id=3)),
        ["response STUB call 7", "response STUB call 7", "response STUB call 3"],
    ),
    Row("maybe", (request_pdu(flags=FIRST_LAST | PfcFlags.MAYBE),), ["response STUB call 7"]),
]


@rows(BOUND)
def test_answered_after_a_bind(row: Row) -> None:
    talk = Talk(make_endpoint(SharedSecret())).bound()
    assert talk.say(*row.sent) == row.answer


MULTIPLEXED = [
    Row(
        "other call inside",
        (request_pdu(flags=FIRST), request_pdu(flags=LAST, call_id=8)),
        ["fault proto_error context 0 call 8", "closed"],
    ),
    Row(
        "other call begins inside",
        (request_pdu(flags=FIRST), request_pdu(call_id=8)),
        ["fault proto_error context 0 call 8", "closed"],
    ),
    Row("first twice", (request_pdu(flags=FIRST), request_pdu(flags=FIRST)), BROKEN),
    Row("lone middle fragment", (request_pdu(flags=0),), BROKEN),
    Row(
        "lone middle fragment, unknown context",
        (request_pdu(flags=0, context_id=9),),
        ["fault+ unk_if context 0 call 7"],
    ),
    Row(
        "lone middle fragment, bad trailer",
        (request_pdu(flags=0, auth=AuthTrailer(10, 5, 1, b"t")),),
        DENIED,
    ),
]


@rows(MULTIPLEXED)
def test_answered_after_a_bind_with_multiplexing(row: Row) -> None:
    talk = Talk(make_endpoint(SharedSecret())).bound(FIRST_LAST | MPX)
    assert talk.say(*row.sent) == row.answer


def test_stubs_above_the_limit() -> None:
    talk = Talk(make_endpoint(max_stub=100)).bound()
    assert talk.say(request_pdu(b"x" * 60, flags=FIRST), request_pdu(b"x" * 40, flags=0)) == []
    assert talk.say(request_pdu(b"x", flags=LAST)) == [
        "fault access_denied context 0 call 7",
        "closed",
    ]
    fits = Talk(make_endpoint(max_stub=100)).bound()
    sent = request_pdu(b"x" * 60, flags=FIRST), request_pdu(b"x" * 40, flags=LAST)
    assert fits.say(*sent) == [f"response {'X' * 100} call 7"]


def test_big_endian_clients_are_answered_in_little_endian() -> None:
    bind = bytes.fromhex(
        "05000b03 00000000 0048 0000 00000001 16d016d0 00000000 01000000 0000 01 00"
        "11111111 0000 0000 0000 000000000001 00020001"
        "8a885d04 1ceb 11c9 9fe8 08002b104860 00000002"
    )
    request = bytes.fromhex("05000003 00000000 001a 0000 00000007 00000002 0000 0001 6162")
    for talk in (Talk(), Talk().bound()):
        if not talk.events and talk.server.group is None:
            assert talk.say(bind) == ["ack 03 0/0"]
        (answer,) = talk.pdus(request)
        assert not answer.header.big_endian
        assert answer.header.call_id == 7
        assert talk.calls[-1].big_endian
        assert talk.calls[-1].stub == b"ab"


def test_ndr64_has_no_big_endian_form() -> None:
    talk = Talk().bound(contexts=(element(0, ECHO.syntax, NDR64),))
    request = bytes.fromhex("05000003 00000000 001a 0000 00000007 00000002 0000 0001 6162")
    assert talk.say(request) == PROTO


def test_a_response_echoes_the_low_byte_of_its_context_and_a_fault_all_of_it() -> None:
    contexts = (element(0x1234),)
    (answer,) = Talk().bound(contexts=contexts).pdus(request_pdu(context_id=0x1234))
    assert isinstance(answer.body, Response)
    assert answer.body.context_id == 0x34
    talk = Talk().bound(contexts=contexts)
    (fault,) = talk.pdus(request_pdu(context_id=0x1234, opnum=99))
    assert isinstance(fault.body, Fault)
    assert fault.body.context_id == 0x1234


def test_faults_are_32_bytes_with_a_hint() -> None:
    (fault,) = Talk().bound().pdus(request_pdu(opnum=99))
    assert len(fault.data) == 32
    assert isinstance(fault.body, Fault)
    assert fault.body.alloc_hint


# --- groups ---------------------------------------------------------------------------------------


def group_of(talk: Talk) -> int:
    assert talk.server.group is not None
    return talk.server.group.id


def test_a_group_is_joined_by_its_peer_alone() -> None:
    endpoint = make_endpoint()
    first = Talk(endpoint, peer="a").bound()
    joined = Talk(endpoint, peer="a").bound(group=group_of(first))
    assert joined.server.group is first.server.group
    assert Talk(endpoint, peer="b").say(bind_pdu(group=group_of(first))) == NAK0
    assert group_of(Talk(endpoint, peer="a").bound()) != group_of(first)


def test_a_group_dies_with_its_last_connection() -> None:
    endpoint = make_endpoint()
    first = Talk(endpoint).bound()
    id_ = group_of(first)
    second = Talk(endpoint).bound(group=id_)
    first.server.connection_lost()
    assert Talk(endpoint).say(bind_pdu(group=id_)) == ["ack 03 0/0"]
    second.server.connection_lost()
    assert len(endpoint.groups) == 1


def test_a_dead_group_is_not_joined() -> None:
    endpoint = make_endpoint()
    talk = Talk(endpoint).bound()
    id_ = group_of(talk)
    talk.server.connection_lost()
    assert Talk(endpoint).say(bind_pdu(group=id_)) == NAK0


# --- limits ---------------------------------------------------------------------------------------


def test_no_more_contexts_than_allowed() -> None:
    talk = Talk(make_endpoint(max_contexts=3)).bound()
    assert talk.say(alter_pdu([element(1)])) == ["resp 03 0/0"]
    assert talk.say(alter_pdu([element(2)])) == ["resp 03 0/0"]
    assert talk.say(alter_pdu([element(2)])) == ["resp 03 0/0"]  # it was there before
    assert talk.say(alter_pdu([element(3)])) == ["fault+ proto_error context 0 call 2", "closed"]


def test_no_more_security_contexts_than_allowed() -> None:
    talk = Talk(make_endpoint(SharedSecret(), max_security_contexts=2))
    authenticated(talk, AuthLevel.INTEGRITY, context_id=1)
    authenticated(talk, AuthLevel.INTEGRITY, context_id=2, first=False)
    assert talk.say(alter_pdu(auth=AuthTrailer(10, 5, 3, HELLO))) == [
        "fault+ proto_error context 0 call 2",
        "closed",
    ]


def test_no_more_unfinished_security_contexts_than_allowed() -> None:
    talk = Talk(make_endpoint(SharedSecret(), max_unfinished_security_contexts=2)).bound()
    for id_ in (1, 2):
        assert talk.say(alter_pdu(auth=AuthTrailer(10, 5, id_, HELLO))) == ["resp 03 0/0"]
    assert talk.say(alter_pdu(auth=AuthTrailer(10, 5, 3, HELLO))) == [
        "fault+ proto_error context 0 call 2",
        "closed",
    ]


def test_nothing_is_read_after_the_end() -> None:
    talk = Talk().bound()
    assert talk.say(bare_pdu(99) + request_pdu()) == ["closed"]
    assert talk.say(request_pdu(), bind_pdu(), bytes(10_000)) == ["closed"]
    assert talk.calls == []
    assert talk.server.next_timer() is None


def test_a_call_on_a_strict_interface_needs_no_more_than_ndr20() -> None:
    talk = Talk().bound(contexts=(element(0, STRICT.syntax, NDR20),))
    assert talk.say(request_pdu()) == ["response STUB call 7"]


def signed_request() -> bytes:
    channel = authenticated(Talk(make_endpoint(SharedSecret())), AuthLevel.PRIVACY)
    return signed(channel, Request(0, 1, b"stub"))[0]


BUILDERS: dict[str, Callable[[], bytes]] = {
    "bind": bind_pdu,
    "alter": alter_pdu,
    "request": request_pdu,
    "signed": signed_request,
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("value", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_any_byte_may_be_wrong_and_nothing_breaks(name: str, value: int) -> None:
    """Every byte of a PDU set to something else: an answer or an end, never an exception."""
    data = BUILDERS[name]()
    for at in range(len(data)):
        talk = Talk(make_endpoint(SharedSecret()))
        if name == "signed":
            authenticated(talk, AuthLevel.PRIVACY)
        elif name != "bind":
            talk.bound()
        talk.say(data[:at] + bytes([value]) + data[at + 1 :])
        talk.say(data)


def test_packet_types_have_the_numbers_of_the_specification() -> None:
    assert {kind.name.lower(): kind.value for kind in PacketType} == {
        "request": 0,
        "response": 2,
        "fault": 3,
        "bind": 11,
        "bind_ack": 12,
        "bind_nak": 13,
        "alter_context": 14,
        "alter_context_resp": 15,
        "auth3": 16,
        "shutdown": 17,
        "co_cancel": 18,
        "orphaned": 19,
    }
