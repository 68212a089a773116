"""RPC connections: binds, calls, callbacks, fragments, protection, and what is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import DecodedRow
from mqis.protocol.capture.rpc_calls import INTERFACES
from mqis.testing.rpc import feature_syntax
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import Packet
from mqis.wire.cmpo import ixnremote as oletx
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.ndr import Syntax
from mqis.wire.rpc import epmapper, mgmt, pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, NDR64, InterfaceDescription, SyntaxId
from mqis.wire.rpc.pdu import encode_pdu
from mqis.wire.rpc.pdu_header import FIRST_LAST, Header
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.capture import samples
from tests.protocol.capture.made import (
    RPC,
    STRANGE,
    bind,
    bind_ack,
    fault,
    frames_of,
    request,
    response,
    rows_of,
    told,
)

UNKNOWN = SyntaxId(Guid(b"a foreign thing!"), 3)
BOUND = [(True, bind(dscomm.SYNTAX)), (False, bind_ack())]
GET = next(each for each in samples.DSCOMM if each[0] is dscomm.GET_PROPS)
ASKED = GET[0].request.encode(GET[1], Syntax.NDR20)
ANSWERED = GET[0].response.encode(GET[2], Syntax.NDR20, given=GET[3])

Parts = list[tuple[bool, bytes]]


def rows(parts: Parts, limits: CaptureLimits | None = None) -> list[DecodedRow]:
    return rows_of(frames_of(RPC, parts), limits)


def calls(parts: Parts, limits: CaptureLimits | None = None) -> list[DecodedRow]:
    """Without bind and bind_ack."""
    return rows([*BOUND, *parts], limits)[2:]


def by_interface() -> list[Any]:
    listed = {
        "dscomm": samples.DSCOMM,
        "dscomm2": samples.DSCOMM2,
        "ixnremote": samples.IXN_REMOTE,
        "epmapper": samples.EPMAPPER,
        "mgmt": samples.MGMT,
    }
    return [
        pytest.param(
            interface.description, syntax, listed[interface.name], id=f"{interface.name}-{n}"
        )
        for interface in INTERFACES
        for syntax, n in ((NDR20, 20), (NDR64, 64))
    ]


@pytest.mark.parametrize(("interface", "transfer", "sampled"), by_interface())
def test_every_operation_both_ways(
    interface: InterfaceDescription, transfer: SyntaxId, sampled: list[samples.Sample]
) -> None:
    assert [each[0] for each in sampled] == list(interface.operations)
    syntax = {NDR20: Syntax.NDR20, NDR64: Syntax.NDR64}[transfer]
    parts: Parts = [
        (True, bind(interface.syntax, transfer=transfer)),
        (False, bind_ack(transfer=transfer)),
    ]
    for number, (operation, asked, answered, given) in enumerate(sampled, 2):
        stub = operation.request.encode(asked, syntax)
        parts.append((True, request(number, operation.opnum, stub)))
        back = operation.response.encode(answered, syntax, given=given)
        parts.append((False, response(number, back)))

    bound, acknowledged, *found = rows(parts)

    assert bound.summary == acknowledged.summary == f"{interface.name} in {syntax.name}"
    outer = [row for row in found if row.protocol != "cmp"]
    assert {row.protocol for row in outer} == {interface.name.lower()}
    assert [row.kind for row in outer] == [
        f"{operation.name} {which}"
        for operation, *_ in sampled
        for which in ("request", "response")
    ]
    assert [row.error for row in found] == [None] * len(found)
    assert [row.call_id for row in outer] == [n for n in range(2, len(sampled) + 2) for _ in "ab"]
    assert [row.to_server for row in outer] == [True, False] * len(sampled)
    for row in outer:
        assert json.loads(row.detail) is not None


def test_words_for_the_directory() -> None:
    found = calls([(True, request(2, 2, ASKED)), (False, response(2, ANSWERED))])
    asked, answered = found
    assert asked.summary == "queue pec1\\orders, PROPID_Q_LABEL, PROPID_Q_QUOTA"
    assert answered.summary == "2 values, MQ_OK"
    assert asked.machines == ("pec1",)
    detail = json.loads(answered.detail)
    assert detail["values"][0] == {"vt": "VT_LPWSTR", "value": "Orders of today"}
    assert json.loads(asked.detail)["ids"] == ["PROPID_Q_LABEL", "PROPID_Q_QUOTA"]
    assert asked.length == 24 + len(ASKED)


def explained(operation: Any, value: Any, opnum: int | None = None) -> DecodedRow:
    interface = next(i.description for i in INTERFACES if operation in i.description.operations)
    stub = operation.request.encode(value, Syntax.NDR20)
    parts: Parts = [(True, bind(interface.syntax)), (False, bind_ack())]
    parts.append((True, request(2, operation.opnum, stub)))
    return rows(parts)[2]


def test_more_words_for_the_directory() -> None:
    many = tuple(range(101, 105))
    empty = (samples.EMPTY,) * 4
    row = explained(dscomm.SET_PROPS, dscomm.SetProps(9, "x", many, empty))
    assert row.summary.startswith("type 9 x, PROPID_Q_INSTANCE, ")
    assert row.summary.endswith(" and 1 more")
    assert row.machines == ()
    odd = dscomm.SetPropsGuid(3, samples.THING, (7,), (samples.EMPTY,))
    assert explained(dscomm.SET_PROPS_GUID, odd).summary == f"site {samples.THING}, 7"


def answered_with(sample: samples.Sample, interface: InterfaceDescription) -> DecodedRow:
    operation, asked, answer, given = sample
    parts: Parts = [(True, bind(interface.syntax)), (False, bind_ack())]
    parts.append((True, request(2, operation.opnum, operation.request.encode(asked, Syntax.NDR20))))
    stub = operation.response.encode(answer, Syntax.NDR20, given=given)
    return rows([*parts, (False, response(2, stub))])[-1]


def test_words_for_the_endpoint_mapper() -> None:
    lookup, mapped, _ = samples.EPMAPPER
    assert answered_with(mapped, epmapper.EPMAPPER).summary == "dscomm at 10.0.0.1:2103"
    assert explained(*mapped[:2]).summary == "dscomm at 10.0.0.1:2103"
    none = (*mapped[:2], epmapper.MapFound(samples.NONE, (), 0x16C9A0D6), mapped[3])
    assert answered_with(none, epmapper.EPMAPPER).summary == "not_registered"
    strange = (*mapped[:2], epmapper.MapFound(samples.NONE, (), 99), mapped[3])
    assert answered_with(strange, epmapper.EPMAPPER).summary == "99"
    octets = [epmapper.TowerOctets(octets) for octets in (b"\0\0", b"\x09\0", b"\0\0", b"\0\0")]
    entries = tuple(epmapper.EndpointEntry(Guid.NULL, each, "") for each in octets)
    found = (*lookup[:2], epmapper.LookupFound(samples.NONE, entries, 0), lookup[3])
    assert answered_with(found, epmapper.EPMAPPER).summary == (
        "?, a tower that cannot be read (a tower has at most 6 floors, not 9 at offset 0), ?"
        " and 1 more"
    )


# --- OleTx ----------------------------------------------------------------------------------------


def sent(boxcar: bytes, messages: int) -> list[DecodedRow]:
    value = oletx.SendReceive(samples.HANDLE, messages, boxcar)
    stub = oletx.SEND_RECEIVE.request.encode(value, Syntax.NDR20)
    parts: Parts = [(True, bind(oletx.SYNTAX)), (False, bind_ack())]
    return rows([*parts, (True, request(2, 3, stub))])[2:]


def test_boxcars_are_messages() -> None:
    carrier, *messages = sent(samples.BOXCAR, 4)
    assert carrier.summary == f"{len(samples.BOXCAR)} bytes with 4 messages"
    assert carrier.error is None
    assert [(row.protocol, row.carrier, row.kind, row.summary) for row in messages] == [
        ("cmp", "rpc", "CONNECTION_REQ", "connection 1, type 0x101"),
        ("cmp", "rpc", "USER_MESSAGE", "connection 1, type 0x2001, 7 bytes"),
        ("cmp", "rpc", "CONNECTION_REQ_DENIED", "connection 2, reason 0x80070005"),
        ("cmp", "rpc", "PING", "connection 0"),
    ]
    assert [row.length for row in messages] == [24, 31, 28, 24]
    assert {row.call_id for row in messages} == {2}
    assert json.loads(messages[1].detail)["data"] == b"prepare".hex()


def test_a_boxcar_that_is_wrong() -> None:
    (row,) = sent(samples.BOXCAR, 3)
    assert row.error == "in the boxcar: dwcMessages is 4, but the call announced 3 at offset 12"
    short = Packet(3, 0, 2, 0, b"\x01")  # a refusal without its reason
    broken = bytearray(BoxcarBuilder([short, Packet.ping()]).to_bytes())
    broken[48:52] = b"\x07\0\0\0"
    row, message = sent(bytes(broken), 2)
    assert row.error == "in the boxcar: 0x7 is not a MsgTag at offset 48, 1 messages dropped"
    assert message.summary == "connection 2"


def test_words_for_partners() -> None:
    poke, build, negotiate, _, _, begin, *_ = samples.IXN_REMOTE
    assert explained(*poke[:2]).summary == f"PEC1 (secondary) {Guid.NULL} to {samples.THING}"
    assert explained(*poke[:2]).machines == ("PEC1",)
    assert explained(*negotiate[:2]).summary == "64 connections wanted"
    granted = answered_with(negotiate, oletx.IXN_REMOTE)
    assert granted.summary == "64 connections granted, OK (0x00000000)"
    assert explained(*begin[:2]).summary == "problem"
    assert answered_with(begin, oletx.IXN_REMOTE).summary == "TEARING_DOWN (0x80000119)"
    assert answered_with(build, oletx.IXN_REMOTE).summary == "OK (0x00000000)"


# --- callbacks ------------------------------------------------------------------------------------


def outer_call() -> tuple[samples.Sample, bytes, bytes]:
    sample = next(each for each in samples.DSCOMM if each[0] is dscomm.VALIDATE_SERVER)
    operation, asked, answered, given = sample
    return (
        sample,
        operation.request.encode(asked, Syntax.NDR20),
        operation.response.encode(answered, Syntax.NDR20, given=given),
    )


@pytest.mark.parametrize("callback", samples.CALLBACKS, ids=lambda each: each[0].name)
def test_a_request_that_comes_back_is_a_callback(callback: samples.Sample) -> None:
    """Opnums 0 to 2 of callbacks are S_DSCreateObject and others in the other direction."""
    _, stub, back = outer_call()
    operation, asked, answered, given = callback
    inner = operation.request.encode(asked, Syntax.NDR20)
    inner_back = operation.response.encode(answered, Syntax.NDR20, given=given)
    found = calls(
        [
            (True, request(7, 22, stub)),
            (False, request(7, operation.opnum, inner)),
            (True, response(7, inner_back)),
            (False, request(7, operation.opnum, inner)),
            (True, response(7, inner_back)),
            (False, response(7, back)),
            (True, request(8, 2, ASKED)),
        ]
    )
    assert [row.kind for row in found] == [
        "S_DSValidateServer request",
        *(f"{operation.name} request", f"{operation.name} response") * 2,
        "S_DSValidateServer response",
        "S_DSGetProps request",
    ]
    assert [row.error for row in found] == [None] * 7
    assert found[1].summary.startswith("callback")
    assert not found[2].summary.startswith("callback")


def test_a_call_within_a_callback_is_a_call() -> None:
    _, stub, back = outer_call()
    init = samples.CALLBACKS[2]
    inner = init[0].request.encode(init[1], Syntax.NDR20)
    inner_back = init[0].response.encode(init[2], Syntax.NDR20, given=init[3])
    found = calls(
        [
            (True, request(7, 22, stub)),
            (False, request(7, 2, inner)),
            (True, request(7, 2, ASKED)),
            (False, response(7, ANSWERED)),
            (True, response(7, inner_back)),
            (False, response(7, back)),
        ]
    )
    names = [row.kind.partition(" ")[0] for row in found]
    assert names == [
        *("S_DSValidateServer", "S_InitSecCtx", "S_DSGetProps"),
        *("S_DSGetProps", "S_InitSecCtx", "S_DSValidateServer"),
    ]


def test_a_call_whose_answer_was_not_captured_ends_with_the_next() -> None:
    found = calls([(True, request(7, 22, outer_call()[1])), (True, request(7, 2, ASKED))])
    assert [row.kind for row in found] == ["S_DSValidateServer request", "S_DSGetProps request"]
    answered = calls(
        [
            (True, request(7, 22, outer_call()[1])),
            (False, request(7, 2, b"")),
            (False, response(7, outer_call()[2])),  # the answer to the callback is not there
        ]
    )
    assert answered[-1].kind == "S_DSValidateServer response"


# --- fragments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 8, 100])
def test_fragments_are_put_together(size: int) -> None:
    found = calls(
        [(True, request(2, 2, ASKED, size=size)), (False, response(2, ANSWERED, size=size))]
    )
    assert told(found) == [("S_DSGetProps request", None), ("S_DSGetProps response", None)]
    assert found[0].length == len(request(2, 2, ASKED, size=size))


def test_fragments_of_several_calls_in_turn() -> None:
    first, second = (cut_up(request(n, 2, ASKED, size=40)) for n in (2, 3))
    parts = [(True, pdu) for pair in zip(first, second, strict=True) for pdu in pair]
    assert [row.call_id for row in calls(parts)] == [2, 3]


def cut_up(pdus: bytes) -> list[bytes]:
    found = []
    while pdus:
        size = Header.decode(pdus).frag_length
        found.append(pdus[:size])
        pdus = pdus[size:]
    return found


def test_a_fragment_that_is_not_there() -> None:
    first, *middle, last = cut_up(request(2, 2, ASKED, size=40))
    without_first = calls([(True, pdu) for pdu in (*middle, last)])
    assert told(without_first) == [("S_DSGetProps request", "fragments are missing")]
    without_last = calls([(True, pdu) for pdu in (first, *middle)])
    assert told(without_last) == [("request", "the last fragments of a request are missing")]
    answer = cut_up(response(2, ANSWERED, size=40))
    found = calls([(True, request(2, 2, ASKED)), (False, answer[0]), (True, request(2, 2, ASKED))])
    assert told(found)[1:] == [
        ("S_DSGetProps request", None),
        ("response", "the last fragments of a response are missing"),
    ]
    unasked = calls([(False, answer[-1])])
    assert told(unasked) == [("response", "fragments are missing")]


def test_stubs_and_calls_are_bounded() -> None:
    found = calls([(True, request(2, 2, ASKED, size=40))], CaptureLimits(max_stub=100))
    assert told(found) == [("S_DSGetProps request", "a stub of more than 100 bytes")]
    many: Parts = [(True, request(n, 2, ASKED)) for n in range(2, 6)]
    many += [(False, response(n, ANSWERED)) for n in range(2, 6)]
    forgotten = calls(many, CaptureLimits(max_calls=3))
    assert [row.kind for row in forgotten[4:]] == ["response"] + ["S_DSGetProps response"] * 3
    assert forgotten[4].summary == "its request was not captured"


# --- protection -----------------------------------------------------------------------------------


def test_an_encrypted_stub_is_said_to_be() -> None:
    auth = AuthTrailer(AuthType.NTLM, AuthLevel.PRIVACY, 0, bytes(16))
    leg = bind(dscomm.SYNTAX, auth=AuthTrailer(AuthType.NTLM, AuthLevel.PRIVACY, 0, b"NTLMSSP"))
    found = rows(
        [
            (True, leg),
            (False, bind_ack()),
            (True, encode_pdu(pdu_bodies.Auth3(), call_id=1, flags=FIRST_LAST, auth=auth)),
            (True, request(2, 2, bytes(64), auth=auth)),
            (False, response(2, bytes(64), auth=auth)),
        ]
    )
    assert [(row.kind, row.summary, row.error) for row in found] == [
        ("bind", "dscomm in NDR20, NTLM, privacy", None),
        ("bind_ack", "dscomm in NDR20", None),
        ("auth3", "NTLM, privacy", None),
        ("S_DSGetProps request", "the stub is encrypted", None),
        ("S_DSGetProps response", "the stub is encrypted", None),
    ]
    assert json.loads(found[3].detail) == {"encrypted": "00" * 64}


def test_a_signed_stub_is_read_without_its_padding() -> None:
    """And an authentication level that nobody knows is told by its number."""
    auth = AuthTrailer(AuthType.SPNEGO, AuthLevel.INTEGRITY, 0, bytes(16), 3)
    padded = request(2, 2, ASKED, auth=auth)
    assert told(calls([(True, padded)])) == [("S_DSGetProps request", None)]
    odd = AuthTrailer(0x77, 99, 0, b"?")
    (row,) = rows([(True, bind(dscomm.SYNTAX, auth=odd))])
    assert row.summary.endswith("authentication type 0x77, level 99")


# --- what is not known ----------------------------------------------------------------------------


def test_calls_whose_bind_was_not_captured() -> None:
    found = rows([(True, request(2, 2, ASKED)), (False, response(2, ANSWERED))])
    assert [(row.protocol, row.kind, row.summary) for row in found] == [
        ("rpc", "opnum 2 request", "its bind was not captured"),
        ("rpc", "opnum 2 response", "its bind was not captured"),
    ]
    assert json.loads(found[0].detail) == {"stub": ASKED.hex()}
    (acknowledged,) = rows([(False, bind_ack())])
    assert acknowledged.summary == "1 context, whose proposal was not captured"


def test_interfaces_and_syntaxes_that_are_not_known() -> None:
    found = rows([(True, bind(UNKNOWN)), (False, bind_ack()), (True, request(2, 5, b"x"))])
    assert [row.summary for row in found] == [
        f"{UNKNOWN} in NDR20",
        f"{UNKNOWN} in NDR20",
        f"of interface {UNKNOWN}",
    ]
    other = rows(
        [
            (True, bind(dscomm.SYNTAX, transfer=UNKNOWN)),
            (False, bind_ack(transfer=UNKNOWN)),
            (True, request(2, 2, ASKED)),
            (False, response(2, ANSWERED)),
        ]
    )
    assert other[0].summary == other[1].summary == f"dscomm in {UNKNOWN}"
    assert {row.summary for row in other[2:]} == {"in a transfer syntax that is not known"}


def test_operations_that_there_are_not() -> None:
    (row,) = calls([(True, request(2, 9, b""))])
    assert (row.protocol, row.kind) == ("dscomm", "opnum 9 request")
    assert row.error == "the interface has no such operation"


def test_stubs_that_are_wrong() -> None:
    found = calls([(True, request(2, 2, ASKED[:20])), (False, response(2, ANSWERED))])
    assert found[0].kind == "S_DSGetProps request"
    assert found[0].error is not None
    assert found[0].error.startswith("in the stub: ")
    assert (found[1].summary, found[1].error) == ("its request could not be read", None)


def test_ndr64_is_little_endian() -> None:
    parts: Parts = [
        (True, bind(dscomm.SYNTAX, transfer=NDR64)),
        (False, bind_ack(transfer=NDR64)),
    ]
    body = bytes.fromhex("00000000 0000 0002") + b"\0" * 8
    header = Header(0, FIRST_LAST, 2, 16 + len(body), drep=bytes(4)).encode()
    (*_, row) = rows([*parts, (True, header + body)])
    assert row.error == "NDR64 is little-endian only"


def test_a_big_endian_stub_is_read() -> None:
    body = bytes.fromhex("00000000 0000 001b 00000001")
    header = Header(0, FIRST_LAST, 2, 16 + len(body), drep=bytes(4)).encode()
    (row,) = calls([(True, header + body)])
    assert (row.kind, row.error) == ("S_DSGetServerPort request", None)
    assert json.loads(row.detail) == {"ip": 1}


# --- other PDUs -----------------------------------------------------------------------------------


def test_faults() -> None:
    found = calls([(True, request(2, 2, ASKED)), (False, fault(2, 5)), (False, fault(9, 0x1234))])
    assert [(row.protocol, row.kind, row.summary) for row in found[1:]] == [
        ("dscomm", "S_DSGetProps fault", "access_denied"),
        ("rpc", "fault", "0x00001234"),
    ]


def test_refused_contexts_and_features() -> None:
    elements = (
        pdu_bodies.ContextElement(0, dscomm.SYNTAX, (NDR20, NDR64)),
        pdu_bodies.ContextElement(1, dscomm2.SYNTAX, (NDR20,)),
        pdu_bodies.ContextElement(2, dscomm.SYNTAX, (feature_syntax(3),)),
    )
    proposed = encode_pdu(pdu_bodies.Bind(0, 0, 0, elements), call_id=1, flags=FIRST_LAST)
    results = (
        pdu_bodies.ContextResult(0, 0, NDR64),
        pdu_bodies.ContextResult(2, 1),
        pdu_bodies.ContextResult(3, 3),
    )
    answer = encode_pdu(pdu_bodies.BindAck(0, 0, 0, "", results), call_id=1, flags=FIRST_LAST)
    found = rows([(True, proposed), (False, answer)])
    assert [row.summary for row in found] == [
        "dscomm in NDR20 or NDR64, dscomm2 in NDR20",
        "dscomm in NDR64, dscomm2 refused",
    ]


def test_contexts_are_added_later() -> None:
    element = pdu_bodies.ContextElement(5, mgmt.SYNTAX, (NDR20,))
    alter = encode_pdu(pdu_bodies.AlterContext(0, 0, 0, (element,)), call_id=2, flags=FIRST_LAST)
    result = pdu_bodies.ContextResult(0, 0, NDR20)
    resp = encode_pdu(
        pdu_bodies.AlterContextResp(0, 0, 0, "", (result,)), call_id=2, flags=FIRST_LAST
    )
    found = calls([(True, alter), (False, resp), (True, request(3, 2, b"", context=5))])
    assert [row.kind for row in found] == [
        "alter_context",
        "alter_context_resp",
        "is_server_listening request",
    ]


def test_refusals_and_bare_pdus() -> None:
    naks = [encode_pdu(pdu_bodies.BindNak(n), call_id=1, flags=FIRST_LAST) for n in (8, 77)]
    bare = encode_pdu(pdu_bodies.Shutdown(), call_id=0, flags=FIRST_LAST)
    found = rows([(True, bind(dscomm.SYNTAX)), *((False, nak) for nak in naks), (False, bare)])
    assert [(row.kind, row.summary) for row in found[1:]] == [
        ("bind_nak", "authentication type not recognized"),
        ("bind_nak", "reason 77"),
        ("shutdown", ""),
    ]


def test_a_pdu_that_is_wrong_inside() -> None:
    """Its length is right, so the next one is found."""
    short = Header(0, FIRST_LAST, 2, 20).encode() + bytes(4)
    tiny = bytearray(bind(dscomm.SYNTAX))
    tiny[8:10] = b"\x07\0"
    found = calls([(True, short), (True, request(3, 2, ASKED)), (True, bytes(tiny)), (True, short)])
    assert told(found) == [
        ("PDU", "a request has at least 24 bytes at offset 20"),
        ("S_DSGetProps request", None),
        ("damage", "no rpc message: a PDU of 7 bytes at offset 8"),
        ("damage", f"{len(tiny)} bytes before the next rpc message"),
        ("PDU", "a request has at least 24 bytes at offset 20"),
    ]


def test_bytes_that_are_no_pdu() -> None:
    found = calls([(True, bytes(40)), (True, request(3, 2, ASKED))])
    assert told(found) == [
        ("damage", "no rpc message: this does not begin a PDU at offset 0"),
        ("damage", "40 bytes before the next rpc message"),
        ("S_DSGetProps request", None),
    ]


def test_lost_bytes_break_the_calls_that_they_are_of() -> None:
    """A whole segment within a fragment is gone: that call is told, the next one is read."""
    long = request(2, 2, ASKED + bytes(4000), size=2000)
    frames = frames_of(RPC, [*BOUND, (True, long), (True, request(3, 2, ASKED))])
    at = next(n for n, frame in enumerate(frames) if len(frame) == 54 + 1448)
    del frames[at : at + 2]
    found = rows_of(frames)[2:]
    assert [(row.kind, row.error) for row in found] == [
        ("damage", "1448 bytes are missing: they were not captured"),
        ("damage", f"{24 + 2000 - 1448} bytes before the next rpc message"),
        ("S_DSGetProps request", "fragments are missing"),
        ("S_DSGetProps request", None),
    ]


def test_a_gap_marks_fragments_of_its_side_only() -> None:
    first, *rest = cut_up(request(2, 2, ASKED + bytes(400), size=100))
    answer = cut_up(response(1, ANSWERED, size=40))
    parts: Parts = [(False, answer[0]), (True, first), *((True, pdu) for pdu in rest)]
    frames = frames_of(RPC, [*BOUND, *parts])
    del frames[11:13]  # the second fragment and its acknowledgement
    found = rows_of(frames)[2:]
    assert told(found) == [
        ("damage", "124 bytes are missing: they were not captured"),
        ("S_DSGetProps request", "fragments are missing"),
        ("response", "the last fragments of a response are missing"),
    ]


def test_rpc_is_recognised_on_any_port() -> None:
    found = rows_of(frames_of(STRANGE, [*BOUND, (True, request(2, 2, ASKED))]))
    assert [row.carrier for row in found] == ["rpc"] * 3
