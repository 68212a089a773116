"""The walk over SPNEGO tokens: real ones pass, anything else raises ``WireError``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spnego import client
from spnego._spnego import NegState, NegTokenInit, NegTokenResp

from mqis.wire.errors import WireError
from mqis.wire.security.tokens import MAX_MECHANISMS, MAX_OID, MAX_TOKEN, check_size, check_spnego
from tests.hostile.spnego_tokens import OID_NTLM, OID_SPNEGO, der, init, offering

NTLM = "1.3.6.1.4.1.311.2.2.10"
MIC = der(0x04, bytes(16))


@pytest.mark.parametrize(
    "token",
    [
        NegTokenInit([NTLM], mech_token=b"NTLMSSP\0").pack(),
        NegTokenInit([NTLM], mech_token=b"x", mech_list_mic=bytes(16)).pack(),
        NegTokenInit([NTLM], hint_name=b"ignore", mech_list_mic=bytes(16)).pack(),
        NegTokenInit([NTLM], hint_name=b"ignore", hint_address=b"me").pack(),
        NegTokenResp(NegState.accept_incomplete, NTLM, b"token", bytes(16)).pack(),
        NegTokenResp(NegState.reject).pack(),
        b"NTLMSSP\0" + bytes(100),
        der(0x60, bytes.fromhex("06092a864886f712010202"), b"\1\0", bytes(60_000)),
        init(OID_NTLM, der(0xA1, der(0x03, b"\1\0"))),
        offering(MAX_MECHANISMS),
    ],
)
def test_what_peers_send_passes(token: bytes) -> None:
    check_spnego(token)


def test_the_first_token_of_another_implementation_passes() -> None:
    token = client("user", "password", protocol="negotiate", hostname="host").step()
    assert token
    check_spnego(token)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\x60",
        offering(MAX_MECHANISMS + 1),
        b"NTLMSSP\0" + bytes(MAX_TOKEN),
        init(der(0x06, bytes(MAX_OID + 1))),
        init(b"\x1f\xff\xff\x7f\x00" + OID_NTLM),
        init(OID_NTLM, der(0xA2, MIC), der(0xA2, MIC)),
        init(OID_NTLM, der(0xA4, MIC), der(0xA3, MIC)),
        init(OID_NTLM, der(0xA5, MIC)),
        init(OID_NTLM, der(0xA1, der(0x03, bytes(9)))),
        init(OID_NTLM, der(0xA3, der(0x30, der(0xA0, der(0x1B, b"x")), bytes(4)))),
        der(0x60, OID_SPNEGO, init(OID_NTLM)),
        der(0x60, der(0x06, bytes(MAX_OID + 1))),
        der(0xA1, der(0x30, der(0xA0, der(0x0A, bytes(5))))),
        der(0xA1, der(0x30, der(0xA1, der(0x06, bytes(MAX_OID + 1))))),
        der(0xA1, der(0x30, der(0xA4, MIC))),
        der(0x30, OID_NTLM),
        der(0x6F, b"\x30\0"),
        b"\x60\x80" + OID_SPNEGO,
    ],
)
def test_what_nobody_sends_is_refused(token: bytes) -> None:
    with pytest.raises(WireError):
        check_spnego(token)


def test_a_token_of_any_mechanism_has_a_size() -> None:
    check_size(bytes(MAX_TOKEN))
    with pytest.raises(WireError, match="at most 65536"):
        check_size(bytes(MAX_TOKEN + 1))


@given(st.binary(max_size=200), st.integers(0, 60))
def test_garbage_raises_one_error(data: bytes, keep: int) -> None:
    for token in (data, offering(3)[:keep] + data):
        try:
            check_spnego(token)
        except WireError:
            continue
