"""Rare cases: a missing authentication leg, an answer too many, ids that are used again."""

from __future__ import annotations

import pickle

import pytest

from mqis.protocol.authentication import NOWHERE, Addresses, AuthLevel, AuthType, Identity
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.faults import BindFaultError, FaultStatus, RpcFault
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.testing.security import SharedSecret, SharedSecretContext
from mqis.wire.guid import Guid
from mqis.wire.rpc.pdu_bodies import Request, Response
from tests.protocol.rpc.talk import (
    Talk,
    auth3_pdu,
    bind_pdu,
    make_endpoint,
    request_pdu,
    signed,
)

MORE = b"there is more to come"


class Patient(SharedSecret):
    """Takes more legs than NTLM has, as long as the client says that it is not done."""

    def acceptor(
        self, auth_type: int, level: int, addresses: Addresses = NOWHERE
    ) -> SharedSecretContext:
        return PatientContext(b"secret", AuthType.NTLM, "", 1, accepting=True)


class PatientContext(SharedSecretContext):
    def _accept(self, token: bytes) -> bytes | None:
        return None if token == MORE else super()._accept(token)


def one_leg_short() -> tuple[Talk, Channel, bytes]:
    """A connection whose auth3 did not end the authentication, and the token that would."""
    talk = Talk(make_endpoint(Patient()))
    context = SharedSecret().initiator(AuthType.NTLM, AuthLevel.INTEGRITY, "host/server")
    channel = Channel(5, AuthType.NTLM, AuthLevel.INTEGRITY, context)
    (ack,) = talk.pdus(bind_pdu(auth=channel.trailer(0, context.step(None) or b"")))
    assert ack.auth is not None
    proof = context.step(ack.auth.token)
    assert proof is not None
    assert talk.say(auth3_pdu(channel.trailer(0, MORE))) == []
    return talk, channel, proof


@pytest.mark.parametrize("with_signature", [False, True])
def test_an_auth3_that_is_not_the_last_leg_lets_no_call_in(with_signature: bool) -> None:
    talk, channel, _proof = one_leg_short()
    assert talk.server.next_timer() == RpcLimits().bind_timeout_s  # it is not done with that
    request = signed(channel, Request(0, 1, b"stub")) if with_signature else [request_pdu()]
    assert talk.say(*request) == ["fault+ proto_error context 0 call 7", "closed"]
    assert talk.calls == []


def test_an_auth3_that_is_not_the_last_leg_leaves_the_rest_to_another() -> None:
    talk, channel, proof = one_leg_short()
    assert talk.say(auth3_pdu(channel.trailer(0, proof))) == []
    assert talk.server.next_timer() == RpcLimits().idle_timeout_s
    (answer,) = talk.pdus(*signed(channel, Request(0, 1, b"stub")))
    assert isinstance(answer.body, Response)
    assert channel.unprotect(answer, sign_header=False) == b"STUB"
    identity = talk.server.identity(talk.calls[0])
    assert identity is not None
    assert identity.name == "somebody"


def test_a_call_that_is_answered_twice_lets_nobody_in_out_of_turn() -> None:
    """Without multiplexing one call runs at a time, whatever its service does."""
    talk = Talk(respond=lambda _call: None).bound()
    talk.say(*(request_pdu(b"%d" % n, call_id=n) for n in (1, 2, 3)))
    talk.respond(talk.calls[0], b"once")
    assert [call.id for call in talk.calls] == [1, 2]
    talk.respond(talk.calls[0], b"twice")
    assert [call.id for call in talk.calls] == [1, 2]
    assert talk.server.next_timer() is None  # the second one still runs
    assert talk.respond(talk.calls[1], b"two") == ["response two call 2"]
    assert [call.id for call in talk.calls] == [1, 2, 3]


class Repeating:
    """``Entropy`` that says the same number for ever."""

    def __init__(self, number: int) -> None:
        self.number = number

    def guid(self) -> Guid:
        return Guid(self.number.to_bytes(16, "little"))


def test_the_id_of_a_group_is_given_to_nobody_else_while_it_lives() -> None:
    """Ids are random; 0 is no id, it asks for a new group."""
    entropy = Repeating(0xFFFF_FFFE)
    groups = AssociationGroups(entropy)
    last, end, first = (groups.create("old") for _ in range(3))
    assert [last.id, end.id, first.id] == [0xFFFF_FFFE, 0xFFFF_FFFF, 1]
    groups.leave(end)
    assert [groups.create("new").id for _ in range(2)] == [0xFFFF_FFFF, 2]
    entropy.number = 0
    assert groups.create("new").id == 3
    assert groups.find(last.id, "old") is last
    assert groups.find(first.id, "old") is first
    assert groups.find(first.id, "new") is None


def test_a_fault_survives_pickling() -> None:
    """With status and detail apart, not as the sentence that is made of both."""
    for status in (FaultStatus.CONTEXT_MISMATCH, 0xC00E_0006):
        fault = pickle.loads(pickle.dumps(RpcFault(status, "no such handle")))
        assert isinstance(fault, RpcFault)
        assert (fault.status, fault.detail) == (status, "no such handle")
        assert str(fault) == str(RpcFault(status, "no such handle"))


def test_a_refused_bind_survives_pickling() -> None:
    refused = BindFaultError(FaultStatus.SEC_PKG_ERROR)
    copied = pickle.loads(pickle.dumps(refused))
    assert isinstance(copied, BindFaultError)
    assert (copied.status, str(copied)) == (FaultStatus.SEC_PKG_ERROR, str(refused))


def test_who_is_anonymous_is_not_shown_by_the_name_it_gave() -> None:
    assert str(Identity("LAB", "alice", anonymous=True)) == "anonymous"
    assert str(Identity("LAB", "alice")) == "LAB\\alice"
