"""The client machine against answers of a scripted server, without sockets."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mqis.protocol.ldap.errors import (
    LdapConnectionLost,
    LdapError,
    LdapRefused,
    LdapViolation,
)
from mqis.protocol.ldap.ldap_client import LdapClient
from mqis.wire.errors import WireError
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, RenameEntry
from mqis.wire.ldap.messages import MAXIMUM_ID, LdapMessage, LdapOperation
from mqis.wire.ldap.requests import (
    START_TLS,
    Abandon,
    ExtendedRequest,
    LdapRequest,
    SaslBind,
    SearchRequest,
    SimpleBind,
    TokenStream,
    Unbind,
    frame,
)
from mqis.wire.ldap.responses import (
    AddResponse,
    BindResponse,
    DeleteResponse,
    ExtendedResponse,
    LdapResult,
    ModifyResponse,
    RenameResponse,
    SearchDone,
    SearchEntry,
    SearchReference,
)

ENTRY = SearchEntry("CN=a", (("cn", (b"x" * 80,)),))
BIND = SimpleBind("a", b"b")
OK = LdapResult()

PAIRS: list[tuple[LdapRequest, LdapOperation]] = [
    (BIND, BindResponse(OK)),
    (SaslBind("GSS-SPNEGO", b""), BindResponse(OK)),
    (SearchRequest(""), SearchDone()),
    (ModifyEntry("a", ()), ModifyResponse()),
    (AddEntry("a", ()), AddResponse()),
    (DeleteEntry("a"), DeleteResponse()),
    (RenameEntry("a", "b"), RenameResponse()),
    (ExtendedRequest("1.2"), ExtendedResponse(OK)),
]


def answer(number: int, operation: LdapOperation) -> bytes:
    return LdapMessage(number, operation).encode()


def sent(client: LdapClient) -> list[LdapOperation]:
    data, found = client.data_to_send(), []
    while data:
        size = 2 + data[1]
        found.append(LdapMessage.decode(data[:size]).operation)
        data = data[size:]
    return found


@pytest.mark.parametrize(("request_", "operation"), PAIRS)
def test_each_request_ends_with_its_answer(request_: LdapRequest, operation: LdapOperation) -> None:
    client = LdapClient()
    number = client.send(request_)
    assert sent(client) == [request_]
    assert client.outstanding == 1
    assert client.take(number) is None
    client.receive(answer(number, operation))
    assert client.outstanding == 0
    assert client.take(number) == LdapMessage(number, operation)
    assert client.buffered == 0


@pytest.mark.parametrize(("one", "other"), list(pairwise([*PAIRS[1:], PAIRS[0]])))
def test_an_answer_of_another_kind_ends_the_connection(
    one: tuple[LdapRequest, LdapOperation], other: tuple[LdapRequest, LdapOperation]
) -> None:
    client = LdapClient()
    number = client.send(one[0])
    with pytest.raises(LdapViolation, match=f"answers {type(one[0]).__name__} by"):
        client.receive(answer(number, other[1]))


def test_answers_come_in_any_order() -> None:
    client = LdapClient()
    first, second = client.send(SearchRequest("a")), client.send(DeleteEntry("b"))
    data = answer(second, DeleteResponse()) + answer(first, ENTRY)
    data += answer(first, SearchReference(("ldap://x",))) + answer(first, SearchDone())
    for at in range(len(data)):
        client.receive(data[at : at + 1])
    kinds = [type(m.operation) for _ in range(3) if (m := client.take(first))]
    assert kinds == [SearchEntry, SearchReference, SearchDone]
    assert client.take(second) is not None


def test_the_last_answer_is_seen_before_the_others_are_taken() -> None:
    client = LdapClient()
    number = client.send(SearchRequest(""))
    assert (client.arrived(number), client.last(number)) == ((0, False), None)
    client.receive(answer(number, ENTRY))
    assert (client.arrived(number), client.last(number)) == ((1, False), None)
    client.receive(answer(number, SearchDone()))
    done = LdapMessage(number, SearchDone())
    assert (client.arrived(number), client.last(number)) == ((2, True), done)
    assert [client.take(number), client.take(number)] == [LdapMessage(number, ENTRY), done]


def test_an_answer_to_no_request_ends_the_connection() -> None:
    client = LdapClient()
    client.send(SearchRequest(""))
    with pytest.raises(LdapViolation, match="answers request 2, which was not sent"):
        client.receive(answer(2, SearchDone()))


def test_answers_to_what_was_given_up_are_dropped() -> None:
    client = LdapClient()
    number = client.send(SearchRequest(""))
    client.receive(answer(number, ENTRY))
    client.data_to_send()
    client.give_up(number)
    client.give_up(number)
    assert sent(client) == [Abandon(number)]
    assert client.buffered == 0
    client.receive(answer(number, ENTRY) + answer(number, SearchDone()))
    assert client.buffered == 0


def test_a_finished_operation_is_given_up_without_a_word() -> None:
    client = LdapClient()
    number = client.send(SearchRequest(""))
    client.receive(answer(number, SearchDone()) + answer(number, SearchDone()))
    client.data_to_send()
    client.give_up(number)
    assert sent(client) == []


def test_a_bind_is_given_up_without_a_word() -> None:
    """The server would answer the next request in an unknown state; the connection is over."""
    client = LdapClient()
    number = client.send(BIND)
    client.data_to_send()
    client.give_up(number)
    assert sent(client) == []


def test_unbind_forgets_everything() -> None:
    client = LdapClient()
    client.receive(answer(client.send(SearchRequest("")), ENTRY))
    client.data_to_send()
    client.unbind()
    assert sent(client) == [Unbind()]
    assert client.outstanding == client.buffered == 0


def test_a_bind_is_alone() -> None:
    client = LdapClient()
    client.send(SearchRequest(""))
    for request in (BIND, ExtendedRequest(START_TLS)):
        with pytest.raises(ValueError, match="only while no other operation runs"):
            client.send(request)
    client.send(ExtendedRequest("1.2"))
    binding = LdapClient()
    binding.send(BIND)
    with pytest.raises(ValueError, match="only while no other operation runs"):
        binding.send(SearchRequest(""))


@pytest.mark.parametrize("request_", [BIND, ExtendedRequest(START_TLS)])
def test_nothing_may_follow_the_answer_in_the_clear(request_: LdapRequest) -> None:
    client = LdapClient()
    number = client.send(request_)
    kind = BindResponse if request_ is BIND else ExtendedResponse
    with pytest.raises(LdapViolation, match="bytes follow the answer"):
        client.receive(answer(number, kind(OK)) + b"\x30")


def test_bytes_that_come_a_little_later_are_refused_too() -> None:
    client = LdapClient()
    number = client.send(ExtendedRequest(START_TLS))
    client.receive(answer(number, ExtendedResponse(OK)))
    client.expect_silence()
    client.receive(b"\x30")
    with pytest.raises(LdapViolation, match="bytes in the clear follow"):
        client.expect_silence()
    with pytest.raises(LdapViolation, match="bytes in the clear follow"):
        client.protect(Reversing())


def test_a_notice_of_disconnection() -> None:
    name = "1.3.6.1.4.1.1466.20036"
    notice = ExtendedResponse(LdapResult(52, "", "shutting down"), name)
    with pytest.raises(LdapConnectionLost, match=r"ends the connection: unavailable \(52\): shut"):
        LdapClient().receive(answer(0, notice))
    with pytest.raises(LdapViolation, match="an answer with number 0"):
        LdapClient().receive(answer(0, SearchDone()))


def test_garbage_is_a_wire_error() -> None:
    with pytest.raises(WireError, match="not LDAP"):
        LdapClient().receive(b"HTTP/1.1 400 Bad Request")


def test_message_numbers_end() -> None:
    client = LdapClient()
    client._last = MAXIMUM_ID
    with pytest.raises(LdapConnectionLost, match="used up its message numbers"):
        client.send(SearchRequest(""))


# --- memory ---------------------------------------------------------------------------------------


def test_reading_stops_at_the_limit_and_goes_on_when_answers_are_taken() -> None:
    client = LdapClient(buffer_limit=300)
    number = client.send(SearchRequest(""))
    while client.wants_data:
        client.receive(answer(number, ENTRY))
    assert 300 < client.buffered < 420
    assert client.take(number) is not None
    assert client.wants_data


def test_reading_goes_on_for_an_operation_without_an_answer() -> None:
    """Somebody who reads a search may need another answer before the next entry."""
    client = LdapClient(buffer_limit=300)
    number, other = client.send(SearchRequest("")), client.send(DeleteEntry("b"))
    for _ in range(5):
        client.receive(answer(number, ENTRY))
    assert client.buffered > 300
    assert client.wants_data
    client.receive(answer(other, DeleteResponse()))
    assert not client.wants_data


@pytest.mark.parametrize("finished", [False, True])
def test_an_operation_that_nobody_reads_fails_at_last(finished: bool) -> None:
    client = LdapClient(buffer_limit=300)
    number, other = client.send(SearchRequest("")), client.send(DeleteEntry("b"))
    while client.buffered < 1150:
        client.receive(answer(number, ENTRY))
    third = client.send(SearchRequest("c"))
    client.data_to_send()
    if finished:
        client.receive(answer(number, SearchDone()))
    client.receive(answer(third if finished else number, ENTRY))
    assert sent(client) == ([] if finished else [Abandon(number)])
    with pytest.raises(LdapError, match="were not read in time"):
        client.take(number)
    client.receive(answer(other, DeleteResponse()))
    assert client.take(other) is not None


# --- a security layer -----------------------------------------------------------------------------


class Reversing:
    """A layer that turns everything around."""

    def wrap(self, data: bytes) -> bytes:
        return data[::-1]

    def unwrap(self, token: bytes) -> bytes:
        return token[::-1]


def test_everything_after_a_protected_bind_is_wrapped() -> None:
    client = LdapClient()
    number = client.send(SaslBind("GSS-SPNEGO", b"t"))
    client.receive(answer(number, BindResponse(OK)))
    client.take(number)
    client.data_to_send()
    client.protect(Reversing())
    number = client.send(SearchRequest("a"))
    (token,) = TokenStream().feed(client.data_to_send())
    assert LdapMessage.decode(token[::-1]).operation == SearchRequest("a")
    whole = answer(number, ENTRY) + answer(number, SearchDone())
    data = b"".join(frame(whole[at : at + 30][::-1]) for at in range(0, len(whole), 30))
    for at in range(len(data)):
        client.receive(data[at : at + 1])
    assert client.take(number) == LdapMessage(number, ENTRY)
    assert client.take(number) == LdapMessage(number, SearchDone())


def test_a_refusal_has_its_result() -> None:
    import pickle

    error = LdapRefused("add CN=a", LdapResult(68, "", "exists"))
    assert str(error) == "add CN=a: the directory refuses: entryAlreadyExists (68): exists"
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.code, str(copied)) == (68, str(error))
