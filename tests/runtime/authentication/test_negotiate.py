"""SPNEGO tokens that a client of ours does not send."""

from __future__ import annotations

from contextlib import suppress

import pytest
from spnego._context import GSSMech
from spnego._spnego import NegState, NegTokenInit, NegTokenResp, unpack_token

from mqis.protocol.authentication import AuthenticationError, AuthType
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor
from mqis.runtime.authentication.spnego_context import ProviderContext
from tests.runtime.authentication.handmade import EOL, FLAGS, Client, av, negotiate
from tests.runtime.authentication.pairs import (
    ACCOUNTS,
    ALICE,
    CLIENT,
    PASSWORD,
    SERVER,
    TARGET,
    exchange,
)

NTLM = "1.3.6.1.4.1.311.2.2.10"
KERBEROS = "1.2.840.113554.1.2.2"
MS_KERBEROS = "1.2.840.48018.1.2.2"
MIC = av(6, b"\2\0\0\0")


def response(token: bytes | None) -> NegTokenResp:
    assert token is not None
    parsed = unpack_token(token)
    assert isinstance(parsed, NegTokenResp)
    return parsed


def test_a_client_without_any_mic() -> None:
    """As impacket does it: neither a MIC nor a mechListMIC."""
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    answer = response(acceptor.step(NegTokenInit([NTLM], mech_token=negotiate()).pack()))
    assert answer.supported_mech == NTLM
    assert answer.response_token is not None
    client = Client("alice", "LAB", PASSWORD)
    token = client.authenticate(answer.response_token, EOL)
    last = response(acceptor.step(NegTokenResp(response_token=token).pack()))
    assert last.neg_state == NegState.accept_complete
    assert acceptor.identity == ALICE.identity


def test_the_token_of_a_mechanism_that_we_do_not_have_is_not_ours() -> None:
    """Kerberos first, as Windows does: the acceptor asks for NTLM, and for a mechListMIC."""
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    opening = NegTokenInit([MS_KERBEROS, KERBEROS, NTLM], mech_token=b"\x60\x03 AP-REQ")
    answer = response(acceptor.step(opening.pack()))
    assert (answer.supported_mech, answer.response_token) == (NTLM, None)
    assert answer.neg_state == NegState.request_mic

    answer = response(acceptor.step(NegTokenResp(response_token=negotiate()).pack()))
    assert answer.response_token is not None
    client = Client("alice", "LAB", PASSWORD)
    token = client.authenticate(answer.response_token, EOL)
    acceptor.step(NegTokenResp(response_token=token).pack())
    assert not acceptor.complete  # the list of mechanisms is not proven yet


def test_no_mechanism_in_common() -> None:
    for mechanisms in ([KERBEROS], ["1.2.3.4"]):
        with pytest.raises(AuthenticationError, match="in common"):
            SERVER.acceptor(AuthType.SPNEGO, 5).step(NegTokenInit(mechanisms).pack())


@pytest.mark.parametrize("state", list(NegState))
def test_that_the_client_calls_it_complete_proves_nothing(state: NegState) -> None:
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    acceptor.step(NegTokenInit([NTLM], mech_token=negotiate()).pack())
    with suppress(AuthenticationError):
        acceptor.step(NegTokenResp(neg_state=state).pack())
    assert not acceptor.complete
    assert acceptor.identity is None


def test_the_claim_to_be_complete_does_not_replace_the_mic() -> None:
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    first = negotiate()
    answer = response(acceptor.step(NegTokenInit([NTLM], mech_token=first).pack()))
    assert answer.response_token is not None
    token = Client("alice", "LAB", PASSWORD).with_mic(first, answer.response_token, MIC + EOL)
    state = NegState.accept_complete
    acceptor.step(NegTokenResp(neg_state=state, response_token=token).pack())
    assert not acceptor.complete


def test_a_changed_list_of_mechanisms() -> None:
    """Somebody between takes a mechanism off the client's list: its mechListMIC shows it."""
    initiator = CLIENT.initiator(AuthType.SPNEGO, 5, TARGET)
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    first = initiator.step(None)
    assert first is not None
    opening = unpack_token(first)
    assert isinstance(opening, NegTokenInit)
    longer = NegTokenInit([*opening.mech_types, "1.2.3.4"], mech_token=opening.mech_token)
    last = initiator.step(acceptor.step(longer.pack()))
    with pytest.raises(AuthenticationError):
        acceptor.step(last)


def test_a_second_opening() -> None:
    """It would put another list of mechanisms in the place of the first, right proof or not."""
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    answer = response(acceptor.step(NegTokenInit([NTLM], mech_token=negotiate()).pack()))
    assert answer.response_token is not None
    token = Client("alice", "LAB", PASSWORD).authenticate(answer.response_token, EOL)
    with pytest.raises(AuthenticationError, match="second opening"):
        acceptor.step(NegTokenInit([NTLM], mech_token=token).pack())
    assert not acceptor.complete


class Hasty(Negotiate):
    """Complete before anything was proven."""

    @property
    def complete(self) -> bool:
        return True


def test_the_wrapping_cannot_be_complete_without_its_mechanism() -> None:
    ntlm = NtlmAcceptor(ACCOUNTS, "SRV1", "LAB", allow_anonymous=True)
    hasty = Hasty("accept", {GSSMech.ntlm: ntlm})
    context = ProviderContext(AuthType.SPNEGO, 5, hasty, lambda: hasty.mechanism)
    with pytest.raises(AuthenticationError, match="before the peer was authenticated"):
        context.step(NegTokenInit([NTLM], mech_token=negotiate()).pack())
    assert not context.complete


def test_no_mic_is_due_for_the_first_choice_of_the_client() -> None:
    """Although this server would rather have Kerberos, which the client does not offer."""
    ntlm, unused = (NtlmAcceptor(ACCOUNTS, "SRV1", "LAB", allow_anonymous=True) for _ in range(2))
    both = Negotiate("accept", {GSSMech.kerberos: unused, GSSMech.ntlm: ntlm})
    context = ProviderContext(AuthType.SPNEGO, 5, both, lambda: both.mechanism)
    answer = response(context.step(NegTokenInit([NTLM], mech_token=negotiate()).pack()))
    assert answer.neg_state == NegState.accept_incomplete
    assert answer.response_token is not None
    token = Client("alice", "LAB", PASSWORD).authenticate(answer.response_token, EOL)
    context.step(NegTokenResp(response_token=token).pack())
    assert context.identity == ALICE.identity


def test_ntlm_without_the_wrapping() -> None:
    """Some send the bare message under Negotiate, and get one back."""
    acceptor = SERVER.acceptor(AuthType.SPNEGO, 5)
    initiator = CLIENT.initiator(AuthType.NTLM, 5, TARGET)
    tokens = exchange(initiator, acceptor)
    assert all(token.startswith(b"NTLMSSP\0") for token in tokens)
    assert acceptor.identity == ALICE.identity
    body, signature = initiator.protect(5, b"h", b"b", b"t", False)
    assert acceptor.unprotect(5, b"h", body, b"t", signature, False) == b"b"


@pytest.mark.parametrize("token", [None, b"", negotiate(FLAGS)])
def test_a_server_that_calls_it_complete_too_early(token: bytes | None) -> None:
    initiator = CLIENT.initiator(AuthType.SPNEGO, 5, TARGET)
    initiator.step(None)
    answer = NegTokenResp(
        neg_state=NegState.accept_complete, supported_mech=NTLM, response_token=token
    )
    with pytest.raises(AuthenticationError):
        initiator.step(answer.pack())
    assert not initiator.complete
