"""A Negotiate client that supports less than the server is served; a case from Samba's tests."""

from __future__ import annotations

from spnego._context import GSSMech
from spnego._spnego import NegState, NegTokenInit, NegTokenResp, unpack_token

from mqis.runtime.authentication.account import MemoryAccounts
from mqis.runtime.authentication.negotiate import Negotiate
from mqis.runtime.authentication.ntlm_fix import NtlmAcceptor

NTLM = GSSMech.ntlm.value
NTLM_NEGOTIATE = bytes.fromhex("4e544c4d53535000 01000000 05820862") + bytes(16)


def first_answer(*offered: str) -> NegTokenResp:
    """Of a server that prefers Kerberos and can do NTLM."""
    mechanisms = {
        mech: NtlmAcceptor(MemoryAccounts(), "LAB", "DOM", allow_anonymous=True)
        for mech in (GSSMech.kerberos, GSSMech.ntlm)
    }
    opening = NegTokenInit(mech_types=list(offered), mech_token=NTLM_NEGOTIATE)
    answer = Negotiate("accept", mechanisms).step(opening.pack())
    token = unpack_token(answer or b"")
    assert isinstance(token, NegTokenResp)
    return token


def test_a_client_that_offers_only_ntlm_owes_no_mic() -> None:
    """RFC 4178 5: a MIC is due if the chosen mechanism is not the first that the client named.

    A client without a key, an anonymous one, could not send it.
    """
    answer = first_answer(NTLM)

    assert answer.supported_mech == NTLM
    assert answer.neg_state == NegState.accept_incomplete
    assert (answer.response_token or b"").startswith(b"NTLMSSP\0\2")


def test_a_client_whose_first_mechanism_is_not_taken_owes_a_mic() -> None:
    answer = first_answer("1.2.3.4", NTLM)

    assert answer.supported_mech == NTLM
    assert answer.neg_state == NegState.request_mic
    assert answer.response_token is None  # its token was for the other mechanism
