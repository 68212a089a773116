"""The contexts of a connection are charged, and a stranger has few of them."""

from __future__ import annotations

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.server_endpoint import (
    LOGON_BYTES,
    PRESENTATION_CONTEXT_BYTES,
    SECURITY_CONTEXT_BYTES,
)
from mqis.testing.security import SharedSecret
from mqis.wire.rpc.trailer import AuthTrailer
from tests.protocol.rpc.talk import (
    ECHO,
    OTHER,
    Talk,
    alter_pdu,
    authenticated,
    bind_pdu,
    element,
    make_endpoint,
)

INTEGRITY = AuthLevel.INTEGRITY


def secure() -> Talk:
    return Talk(make_endpoint(SharedSecret(), min_level=INTEGRITY))


@pytest.mark.req("SEC-17-03")
@pytest.mark.parametrize(("name", "level"), [("", INTEGRITY), ("alice", AuthLevel.CONNECT)])
def test_a_stranger_has_few_security_contexts(name: str, level: int) -> None:
    talk = secure()
    for number in range(8):
        authenticated(talk, level, context_id=number, first=not number, name=name)
    leg = AuthTrailer(AuthType.NTLM, level, 99, b"hello  1")
    assert talk.say(alter_pdu(auth=leg)) == ["fault+ proto_error context 0 call 2", "closed"]


@pytest.mark.req("SEC-17-03")
def test_a_user_has_many() -> None:
    talk = secure()
    for number in range(40):
        authenticated(talk, INTEGRITY, context_id=number, first=not number, name="alice")
    assert (
        talk.server.held == 40 * SECURITY_CONTEXT_BYTES + PRESENTATION_CONTEXT_BYTES - LOGON_BYTES
    )


@pytest.mark.req("SEC-17-03")
def test_tokens_between_two_legs_are_held_until_the_last() -> None:
    talk = secure()
    authenticated(talk, INTEGRITY, context_id=0, name="alice")
    authenticated(talk, INTEGRITY, context_id=1, first=False, name="alice")
    before = talk.server.held
    assert before == 2 * SECURITY_CONTEXT_BYTES + PRESENTATION_CONTEXT_BYTES - LOGON_BYTES
    token = b"hello alice 7 " + bytes(3000)
    talk.say(alter_pdu(auth=AuthTrailer(AuthType.SPNEGO, INTEGRITY, 5, token)))
    assert talk.server.held == before + SECURITY_CONTEXT_BYTES + len(token)


@pytest.mark.req("SEC-17-03")
def test_presentation_contexts_are_held() -> None:
    talk = Talk().bound()
    for number in range(2, 202, 2):
        both = (element(number, ECHO.syntax), element(number + 1, OTHER.syntax))
        assert talk.say(alter_pdu(both))[0].startswith("resp")
    assert talk.server.held == 201 * PRESENTATION_CONTEXT_BYTES - LOGON_BYTES


@pytest.mark.req("SEC-17-03")
def test_a_logon_and_the_pdu_that_arrives_are_not_charged() -> None:
    """So that a user can log on when strangers have taken all of their share."""
    talk = secure()
    authenticated(talk, INTEGRITY, name="alice")
    assert talk.server.held == 0
    arriving = Talk()
    arriving.server.receive(bind_pdu()[:-1], 0.0)
    assert arriving.server.held == 0
