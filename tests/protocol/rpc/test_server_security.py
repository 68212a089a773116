"""Security contexts on a server connection: how they are made, used, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.server_calls import fragments
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.testing.rpc import encode_verification, header_command
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.pdu import decode_pdu
from mqis.wire.rpc.pdu_bodies import Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.rpc.verification import Verification
from tests.protocol.rpc.talk import (
    ECHO,
    FIRST,
    LAST,
    MPX,
    OTHER,
    SIGN,
    UNKNOWN,
    Counting,
    Talk,
    alter_pdu,
    auth3_pdu,
    authenticated,
    bind_pdu,
    element,
    make_endpoint,
    request_pdu,
    signed,
)

NTLM, SPNEGO, KERBEROS = AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS
CONNECT, PACKET, INTEGRITY, PRIVACY = (
    AuthLevel.CONNECT,
    AuthLevel.PACKET,
    AuthLevel.INTEGRITY,
    AuthLevel.PRIVACY,
)
DENIED = ["fault access_denied context 0 call 7", "closed"]
FORGED = ["fault sec_pkg_error context 0 call 7", "closed"]
BROKEN = ["fault proto_error context 0 call 7", "closed"]
HELLO = b"hello somebody"


def secure_talk() -> Talk:
    return Talk(make_endpoint(SharedSecret()))


def answers(talk: Talk, channel: Channel, *data: bytes, sign_header: bool = False) -> bytes:
    """The stub that comes back, unprotected by the client's end."""
    stub = b""
    for pdu in talk.pdus(*data):
        assert isinstance(pdu.body, Response)
        assert (pdu.auth is not None) is channel.protects
        if pdu.auth is None:
            stub += pdu.body.stub
        else:
            stub += channel.unprotect(pdu, sign_header=sign_header)
    return stub


# --- legs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("auth_type", [NTLM, SPNEGO, KERBEROS])
@pytest.mark.parametrize("level", [CONNECT, PACKET, INTEGRITY, PRIVACY])
@pytest.mark.parametrize("flags", [FIRST_LAST, FIRST_LAST | SIGN], ids=["body", "header"])
def test_calls_run_as_the_identity_of_their_context(
    auth_type: AuthType, level: AuthLevel, flags: int
) -> None:
    talk = secure_talk()
    channel = authenticated(talk, level, auth_type, flags=flags)
    sign = bool(flags & SIGN)
    for stub in (b"", b"a", b"exactly sixteen!", b"x" * 20_000):
        sent = signed(channel, Request(0, 1, stub), sign_header=sign)
        assert answers(talk, channel, *sent, sign_header=sign) == stub.upper()
        identity = talk.server.identity(talk.calls[-1])
        assert identity is not None
        assert identity.name == "somebody"


@pytest.mark.req("SEC-5-01")
@pytest.mark.parametrize("level", [CONNECT, PACKET, INTEGRITY, PRIVACY])
@pytest.mark.parametrize("minimum", [PACKET, INTEGRITY, PRIVACY])
def test_below_the_minimum_level_nobody_calls(level: AuthLevel, minimum: AuthLevel) -> None:
    talk = Talk(make_endpoint(SharedSecret(), min_level=minimum))
    channel = authenticated(talk, level)
    assert answers(talk, channel, *signed(channel, Request(0, 1, b"a"))) == b"A"
    assert (talk.server.identity(talk.calls[-1]) is None) is (level < minimum)


@pytest.mark.req("SEC-5-01")
def test_an_endpoint_asks_for_integrity_unless_told() -> None:
    assert ServerEndpoint((), AssociationGroups(Counting())).min_level == INTEGRITY


# --- logons that fail -----------------------------------------------------------------------------


def fails(talk: Talk, context_id: int) -> list[str]:
    """A new context whose last leg is wrong."""
    leg = alter_pdu(auth=AuthTrailer(NTLM, INTEGRITY, context_id, HELLO))
    assert talk.say(leg)[0].startswith("resp")
    return talk.say(auth3_pdu(AuthTrailer(NTLM, INTEGRITY, context_id, b"wrong")))


@pytest.mark.req("SEC-5-04")
def test_an_association_ends_after_a_few_failed_logons() -> None:
    talk = Talk(make_endpoint(SharedSecret(), max_failed_logons=3)).bound()
    assert fails(talk, 1) == []
    assert fails(talk, 2) == []
    assert fails(talk, 3) == ["closed"]


@pytest.mark.req("SEC-5-04")
def test_failed_logons_count_for_the_group() -> None:
    endpoint = make_endpoint(SharedSecret(), max_failed_logons=2)
    first = Talk(endpoint).bound()
    assert first.server.group is not None
    number = first.server.group.id
    assert fails(first, 1) == []
    second = Talk(endpoint).bound(group=number)
    leg = alter_pdu(auth=AuthTrailer(NTLM, 99, 1, HELLO))
    assert second.say(leg) == ["fault+ access_denied context 0 call 2", "closed"]
    assert Talk(endpoint).say(bind_pdu(group=number)) == ["nak 0", "closed"]
    assert first.say(request_pdu()) == ["fault access_denied context 0 call 7", "closed"]


@pytest.mark.req("SEC-5-04")
def test_the_call_whose_logon_failed_is_answered_before_the_end() -> None:
    """S_DSValidateServer counts in the group while its call runs; calls that wait do not run."""
    endpoint = make_endpoint(max_failed_logons=1)
    talk = Talk(endpoint, respond=lambda _call: None).bound()
    assert talk.say(request_pdu(call_id=7), request_pdu(call_id=8)) == []
    assert talk.server.group is not None
    talk.server.group.failed_logons += 1
    assert talk.respond(talk.calls[0], b"no") == ["response no call 7", "closed"]
    assert len(talk.calls) == 1


def test_without_authentication_nobody_calls() -> None:
    talk = secure_talk().bound()
    talk.say(request_pdu())
    assert talk.server.identity(talk.calls[0]) is None


def test_the_answer_of_a_leg_carries_the_trailer_that_was_asked() -> None:
    talk = secure_talk()
    (ack,) = talk.pdus(bind_pdu(auth=AuthTrailer(NTLM, PRIVACY, 0xCAFE, HELLO)))
    assert ack.auth == AuthTrailer(NTLM, PRIVACY, 0xCAFE, b"challenge 1")


SECOND_LEGS = [
    ("other level", AuthTrailer(SPNEGO, PRIVACY, 5, b"t"), "access_denied"),
    ("type 0", AuthTrailer(0, INTEGRITY, 5, b"t"), "access_denied"),
    ("other type", AuthTrailer(NTLM, INTEGRITY, 5, b"t"), "sec_pkg_error"),
    ("wrong proof", AuthTrailer(SPNEGO, INTEGRITY, 5, b"t"), "sec_pkg_error"),
]


@pytest.mark.parametrize(
    ("auth", "status"), [leg[1:] for leg in SECOND_LEGS], ids=[leg[0] for leg in SECOND_LEGS]
)
def test_a_second_leg_that_does_not_fit(auth: AuthTrailer, status: str) -> None:
    talk = secure_talk()
    talk.say(bind_pdu(auth=AuthTrailer(SPNEGO, INTEGRITY, 5, HELLO)))
    assert talk.say(alter_pdu(auth=auth)) == [f"fault+ {status} context 0 call 2", "closed"]


def test_a_second_leg_for_another_interface() -> None:
    talk = secure_talk()
    talk.say(bind_pdu(auth=AuthTrailer(SPNEGO, INTEGRITY, 5, HELLO)))
    leg = alter_pdu([element(0, OTHER.syntax)], auth=AuthTrailer(SPNEGO, INTEGRITY, 5, b"t"))
    assert talk.say(leg) == ["fault+ proto_error context 0 call 2", "closed"]


@pytest.mark.parametrize("signature", [None, b"t" * 16])
def test_no_call_before_the_last_leg(signature: bytes | None) -> None:
    talk = secure_talk()
    talk.say(bind_pdu(auth=AuthTrailer(NTLM, INTEGRITY, 5, HELLO)))
    auth = None if signature is None else AuthTrailer(NTLM, INTEGRITY, 5, signature)
    assert talk.say(request_pdu(auth=auth)) == ["fault+ proto_error context 0 call 7", "closed"]


def test_no_leg_after_the_last_one() -> None:
    talk = secure_talk()
    authenticated(talk, INTEGRITY)
    leg = AuthTrailer(NTLM, INTEGRITY, 5, HELLO)
    assert talk.say(alter_pdu(auth=leg)) == ["fault+ access_denied context 0 call 2", "closed"]
    talk = secure_talk()
    authenticated(talk, INTEGRITY)
    assert talk.say(auth3_pdu(leg)) == ["fault+ proto_error context 0 call 1", "closed"]


def test_spnego_does_not_end_with_auth3() -> None:
    talk = secure_talk()
    talk.say(bind_pdu(auth=AuthTrailer(SPNEGO, INTEGRITY, 5, HELLO)))
    assert talk.say(auth3_pdu(AuthTrailer(SPNEGO, INTEGRITY, 5, b"proof"))) == []
    assert talk.say(request_pdu()) == DENIED


@pytest.mark.parametrize("auth", [None, AuthTrailer(NTLM, INTEGRITY, 5, b"t" * 16)])
def test_a_wrong_proof_in_auth3_shows_at_the_first_request(auth: AuthTrailer | None) -> None:
    talk = secure_talk()
    talk.say(bind_pdu(auth=AuthTrailer(NTLM, INTEGRITY, 5, HELLO)))
    assert talk.say(auth3_pdu(AuthTrailer(NTLM, INTEGRITY, 5, b"no proof"))) == []
    assert talk.say(request_pdu(auth=auth)) == DENIED
    assert talk.calls == []


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [PACKET, INTEGRITY, PRIVACY])
@pytest.mark.parametrize("sign_header", [False, True])
def test_tampering_with_any_byte_of_a_protected_request(
    level: AuthLevel, sign_header: bool
) -> None:
    """NTLM's signature covers everything, whether or not headers are signed."""
    flags = FIRST_LAST | (SIGN if sign_header else 0)
    size = len(signed(authenticated(secure_talk(), level), Request(0, 1, b"stub"))[0])
    for at in range(size):
        talk = secure_talk()
        channel = authenticated(talk, level, flags=flags)
        data = bytearray(signed(channel, Request(0, 1, b"stub"), sign_header=sign_header)[0])
        data[at] ^= 0x01
        said = talk.say(bytes(data))
        assert talk.calls == [], f"byte {at}"
        # frag_length may now ask for more bytes, or p_cont_id name no context; the rest is over.
        waiting = at in (8, 9) or (at in (20, 21) and said == ["fault+ unk_if context 0 call 7"])
        assert talk.server.closing or waiting, f"byte {at}: {said}"
        if 24 <= at < size - 24 or at >= size - 16:  # the stub, its padding and the signature
            assert said == FORGED


def test_without_header_signing_kerberos_protects_the_body_alone() -> None:
    for at, refused in [(16, False), (22, False), (24, True), (39, True), (48, True)]:
        talk = secure_talk()
        channel = authenticated(talk, INTEGRITY, KERBEROS)
        data = bytearray(signed(channel, Request(0, 1, b"stub"))[0])
        data[at] ^= 0x02
        said = talk.say(bytes(data))
        assert (said == FORGED) is refused, f"byte {at}: {said}"


def test_with_header_signing_kerberos_protects_it_all() -> None:
    for at in (16, 22, 24, 39, 46, 48):
        talk = secure_talk()
        channel = authenticated(talk, INTEGRITY, KERBEROS, flags=FIRST_LAST | SIGN)
        data = bytearray(signed(channel, Request(0, 1, b"stub"), sign_header=True)[0])
        data[at] ^= 0x02
        assert talk.say(bytes(data))[-1] == "closed"
        assert talk.calls == []


def test_header_signing_may_be_asked_for_later() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY, KERBEROS)
    assert talk.say(alter_pdu(flags=FIRST_LAST | SIGN)) == ["resp 07 0/0"]
    sent = signed(channel, Request(0, 1, b"stub"), sign_header=True)
    assert answers(talk, channel, *sent, sign_header=True) == b"STUB"


def test_replayed_and_reordered_requests() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    first, second = (signed(channel, Request(0, 1, stub))[0] for stub in (b"one", b"two"))
    assert talk.say(second) == FORGED
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    first = signed(channel, Request(0, 1, b"one"))[0]
    talk.pdus(first)
    assert talk.say(first) == FORGED


@pytest.mark.parametrize(
    "auth",
    [
        AuthTrailer(NTLM, PRIVACY, 5, bytes(16)),
        AuthTrailer(NTLM, CONNECT, 5, bytes(16)),
        AuthTrailer(SPNEGO, INTEGRITY, 5, bytes(16)),
        AuthTrailer(NTLM, INTEGRITY, 6, bytes(16)),
    ],
    ids=["level", "lower level", "type", "context"],
)
def test_a_request_that_names_its_context_wrongly(auth: AuthTrailer) -> None:
    talk = secure_talk()
    authenticated(talk, INTEGRITY)
    assert talk.say(request_pdu(auth=auth)) == DENIED


@pytest.mark.parametrize("pad", [5, 16, 255])
def test_more_padding_than_stub(pad: int) -> None:
    talk = secure_talk()
    authenticated(talk, CONNECT)
    auth = AuthTrailer(NTLM, CONNECT, 5, bytes(16), pad)
    data = bytearray(request_pdu(b"stub", auth=AuthTrailer(NTLM, CONNECT, 5, bytes(16))))
    data[24 + 4 + 2] = pad
    assert auth.pad_length == pad
    assert talk.say(bytes(data)) == FORGED


def test_a_trailer_that_is_aligned_to_nothing() -> None:
    talk = secure_talk()
    authenticated(talk, CONNECT)
    for stub in (b"abcd", b"abcdefgh"):
        pdu = request_pdu(stub, auth=AuthTrailer(NTLM, CONNECT, 5, bytes(16)))
        assert talk.say(pdu) == [f"response {stub.upper().decode()} call 7"]
    pdu = request_pdu(b"abc", auth=AuthTrailer(NTLM, CONNECT, 5, bytes(16)))
    assert talk.say(pdu) == DENIED


def test_an_unsigned_request_runs_as_nobody_beside_a_signed_one() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    talk.pdus(request_pdu())
    talk.pdus(*signed(channel, Request(0, 1, b"stub")))
    nobody, somebody = (talk.server.identity(call) for call in talk.calls)
    assert nobody is None
    assert somebody is not None


@pytest.mark.parametrize("auth_type", [NTLM, SPNEGO, KERBEROS])
def test_an_unsigned_request_runs_as_the_connect_level_context(auth_type: AuthType) -> None:
    talk = secure_talk()
    authenticated(talk, CONNECT, auth_type)
    assert talk.say(request_pdu()) == ["response STUB call 7"]
    identity = talk.server.identity(talk.calls[0])
    assert identity is not None
    assert identity.name == "somebody"


def test_until_a_context_was_named() -> None:
    talk = secure_talk()
    authenticated(talk, CONNECT)
    named = request_pdu(auth=AuthTrailer(NTLM, CONNECT, 5, b"\1" + bytes(15)))
    assert talk.say(named, request_pdu()) == ["response STUB call 7"] * 2
    somebody, nobody = (talk.server.identity(call) for call in talk.calls)
    assert somebody is not None
    assert nobody is None


def test_several_contexts_on_one_connection() -> None:
    talk = secure_talk()
    one = authenticated(talk, INTEGRITY, NTLM, context_id=1)
    two = authenticated(talk, PRIVACY, SPNEGO, context_id=2, first=False)
    three = authenticated(talk, PACKET, KERBEROS, context_id=0xFFFFFFFF, first=False)
    for _ in range(3):
        for channel in (one, three, two):
            sent = signed(channel, Request(0, 1, b"x" * 6000))
            assert answers(talk, channel, *sent) == b"X" * 6000
            assert talk.calls[-1].channel is not None
            assert talk.calls[-1].channel.id == channel.id


def parts(channel: Channel) -> Iterator[bytes]:
    """A request of two fragments, each signed when it is asked for."""
    return fragments(Request(0, 1, b"x" * 6000), call_id=7, max_frag=5840, channel=channel)


def test_fragments_are_signed_by_one_context() -> None:
    talk = secure_talk()
    one = authenticated(talk, INTEGRITY, context_id=1)
    two = authenticated(talk, INTEGRITY, context_id=2, first=False)
    assert talk.say(next(parts(one)), list(parts(two))[1]) == FORGED


def test_a_fragment_is_not_signed() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    first = signed(channel, Request(0, 1, b"x" * 6000))[0]
    assert talk.say(first, request_pdu(b"rest", flags=LAST)) == BROKEN


def test_at_connect_any_fragment_may_carry_a_token() -> None:
    token = AuthTrailer(NTLM, CONNECT, 5, b"\1" + bytes(15))
    for auth in (None, token):
        for later in (None, token):
            talk = secure_talk()
            authenticated(talk, CONNECT)
            sent = (
                request_pdu(b"abcd", flags=FIRST, auth=auth),
                request_pdu(b"efgh", flags=LAST, auth=later),
            )
            assert talk.say(*sent) == ["response ABCDEFGH call 7"]


def test_a_call_that_begins_again_has_to_be_signed_like_before() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    assert talk.say(next(parts(channel)), next(parts(channel))) == BROKEN
    talk = secure_talk()
    first = next(parts(authenticated(talk, INTEGRITY)))
    assert talk.say(first, first) == FORGED


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 5780, 5784, 5785, 5792, 5800, 11_600])
@pytest.mark.parametrize("level", [INTEGRITY, PRIVACY])
def test_protected_fragments_keep_to_the_agreed_size(size: int, level: AuthLevel) -> None:
    talk = secure_talk()
    channel = authenticated(talk, level)
    stub = bytes(range(256)) * 50
    sent = signed(channel, Request(0, 1, stub[:size]))
    assert all(len(pdu) <= 5840 for pdu in sent)
    pads = [decode_pdu(pdu).auth.pad_length for pdu in sent]  # type: ignore[union-attr]
    assert pads[:-1] == [0] * (len(sent) - 1)
    assert pads[-1] == -size % 16
    received = talk.pdus(*sent)
    assert all(len(pdu.data) <= 5840 for pdu in received)
    stub_back = b"".join(channel.unprotect(pdu, sign_header=False) for pdu in received)
    assert stub_back == stub[:size].upper()


@pytest.mark.parametrize("flags", [FIRST_LAST, FIRST_LAST | MPX])
def test_a_refused_request_uses_its_signature_up(flags: int) -> None:
    """Signatures are numbered: where the connection goes on, the next one has to be right."""
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY, flags=flags)
    for body in (Request(9, 1, b"stub"), Request(0, 99, b"stub")):
        assert "closed" not in talk.say(*signed(channel, body))
        assert answers(talk, channel, *signed(channel, Request(0, 1, b"stub"))) == b"STUB"
    lone = list(fragments(Request(9, 1, bytes(6000)), call_id=7, max_frag=5840, channel=channel))
    if flags & MPX:
        assert talk.say(*lone) == ["fault+ unk_if context 0 call 7"] * 2
        assert answers(talk, channel, *signed(channel, Request(0, 1, b"stub"))) == b"STUB"


def test_a_request_on_an_unknown_context_with_a_wrong_signature() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    forged = bytearray(signed(channel, Request(9, 1, b"stub"))[0])
    forged[-1] ^= 1
    assert talk.say(bytes(forged)) == ["fault+ unk_if context 0 call 7"]
    assert talk.say(*signed(channel, Request(0, 1, b"stub"))) == FORGED
    assert talk.calls == []


def test_a_call_whose_context_broke_while_it_ran() -> None:
    talk = Talk(make_endpoint(SharedSecret()), respond=lambda _call: None)
    channel = authenticated(talk, INTEGRITY, flags=FIRST_LAST | MPX)
    talk.say(*signed(channel, Request(0, 1, b"stub")))
    forged = bytearray(signed(channel, Request(9, 1, b"stub"))[0])
    forged[-1] ^= 1
    talk.say(bytes(forged))
    assert talk.respond(talk.calls[0], b"answer") == ["closed"]


# --- what the client signed inside the stub -------------------------------------------------------

RIGHT = Verification(None, ECHO.syntax, NDR20, header_command(7, 0, 1))
TRAILERS = [
    ("right", RIGHT, True),
    ("interface of a lower minor version", Verification(None, element().abstract, NDR20), True),
    ("header signing, not agreed", Verification(True), False),
    ("no header signing", Verification(False), True),
    ("other interface", Verification(None, UNKNOWN, NDR20), False),
    ("other transfer syntax", Verification(None, ECHO.syntax, UNKNOWN), False),
    ("other call", Verification(None, None, None, header_command(8, 0, 1)), False),
    ("other context", Verification(None, None, None, header_command(7, 1, 1)), False),
    ("other operation", Verification(None, None, None, header_command(7, 0, 2)), False),
    ("other type", Verification(None, None, None, (2, b"\x10\0\0\0", 7, 0, 1)), False),
    ("other byte order", Verification(None, None, None, (0, bytes(4), 7, 0, 1)), False),
]


@pytest.mark.parametrize(("said", "right"), [t[1:] for t in TRAILERS], ids=[t[0] for t in TRAILERS])
def test_the_verification_trailer(said: Verification, right: bool) -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY)
    sent = signed(channel, Request(0, 1, b"stub" + encode_verification(said)))
    if right:
        assert answers(talk, channel, *sent) == b"STUB"
    else:
        assert talk.say(*sent) == DENIED


def test_the_verification_trailer_where_headers_are_signed() -> None:
    talk = secure_talk()
    channel = authenticated(talk, INTEGRITY, flags=FIRST_LAST | SIGN)
    stub = b"stub" + encode_verification(Verification(True))
    sent = signed(channel, Request(0, 1, stub), sign_header=True)
    assert answers(talk, channel, *sent, sign_header=True) == b"STUB"


SIGNATURE = "8ae3137102f43671"


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        ("0940 0400 01020304", ["response STUB call 7"]),
        ("09c0 0000", DENIED),
        ("0980 0000 0140 0400 00000000", DENIED),
        ("0140 0300 000000", DENIED),
        ("0100 0400 00000000", DENIED),
        ("", DENIED),
    ],
    ids=["unknown", "must process", "must process first", "short", "no end", "empty"],
)
def test_verification_trailers_that_are_strange(commands: str, answer: list[str]) -> None:
    talk = Talk().bound()
    stub = b"stub" + bytes.fromhex(SIGNATURE + commands)
    assert talk.say(request_pdu(stub)) == answer


def test_a_verification_trailer_over_two_fragments() -> None:
    talk = Talk().bound()
    stub = b"stub" + encode_verification(RIGHT)
    sent = request_pdu(stub[:20], flags=FIRST), request_pdu(stub[20:], flags=LAST)
    assert talk.say(*sent) == ["response STUB call 7"]
