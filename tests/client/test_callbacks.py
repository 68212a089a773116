"""The callbacks that a client serves (MS-MQDS 3.2.4): stubs, contexts, signatures, refusals."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

from mqis.client import machine_signer
from mqis.client.authentication import Callbacks, MachineSigner
from mqis.protocol.authentication import NOWHERE, Addresses, AuthenticationError
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import RpcFault
from mqis.protocol.security.rsa import verify_md5
from mqis.testing.security import SharedSecret
from mqis.wire.errors import WireError
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation
from tests.client.peers import (
    OK,
    connected,
    demo_store,
    run,
    served,
)
from tests.client.providers import PRIVACY, SPNEGO, Stubborn
from tests.client.tap import Tap

SIGN, CHALLENGE = dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC, dscomm.GET_OBJECT_SECURITY_CHALLENGE
CONTEXT = AgreedContext(0, dscomm.SYNTAX, NDR20)
NOT_SUPPORTED, TOO_SMALL, CONTINUE = 0xC00E03EB, 0xC00E0028, 0x00090312
BOTH = pytest.mark.parametrize("operation", [SIGN, CHALLENGE], ids=["sign", "challenge"])


def u32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def keys_of(bits: int) -> tuple[int, int, int]:
    """An RSA key: modulus, public and private exponent. Libraries make none of 512 bits."""
    if bits >= 1024:
        numbers = rsa.generate_private_key(65_537, bits).private_numbers()
        return numbers.public_numbers.n, numbers.public_numbers.e, numbers.d
    choose = random.Random(bits)
    first, second = (_prime(choose, bits // 2) for _ in range(2))
    return first * second, 65_537, pow(65_537, -1, (first - 1) * (second - 1))


def _prime(choose: random.Random, bits: int) -> int:
    while True:
        number = choose.getrandbits(bits) | 3 << bits - 2 | 1
        if (number - 1) % 65_537 and all(pow(base, number - 1, number) == 1 for base in (2, 3, 5)):
            return number


def challenge_stub(challenge: bytes, context: int, most: int, there: bytes = b"") -> bytes:
    """The request of callbacks 0 and 1, byte by byte."""
    padding = bytes(-len(challenge) % 4)
    more = bytes(-len(there) % 4)
    return (
        u32(len(challenge))
        + challenge
        + padding
        + u32(len(challenge), context)
        + u32(most, 0, len(there))
        + there
        + more
        + u32(len(there), most)
    )


def answer_of(stub: bytes) -> tuple[int, bytes, int]:
    """Of its response: what was offered, the bytes, the HRESULT."""
    most, offset, count = (int.from_bytes(stub[at : at + 4], "little") for at in (0, 4, 8))
    assert offset == 0
    data, rest = stub[12 : 12 + count], stub[12 + count + -count % 4 :]
    assert len(rest) == 8
    assert int.from_bytes(rest[:4], "little") == count
    return most, data, int.from_bytes(rest[4:], "little")


def served_by(
    callbacks: Callbacks,
    operation: Operation[Any, Any],
    challenge: bytes = b"c" * 32,
    context: int = 7,
    most: int = 128,
) -> tuple[bytes, int]:
    stub = callbacks(CONTEXT, operation.opnum, challenge_stub(challenge, context, most), False)
    offered, data, result = answer_of(stub)
    assert offered == most
    return data, result


class TestStubs:
    @BOTH
    @pytest.mark.req("MQDS-3.2.4.1-11", "MQDS-3.2.4.2-11", "MQDS-3.2.4-04")
    def test_the_request_of_a_challenge(self, operation: Operation[Any, Any]) -> None:
        assert operation.opnum == (0 if operation is SIGN else 1)
        for size in (0, 3, 32):
            asked = dscomm.Challenge(bytes(range(size)), 7, b"", 128)
            stub = challenge_stub(bytes(range(size)), 7, 128)
            assert operation.request.encode(asked, Syntax.NDR20) == stub
            assert operation.request.decode(stub, Syntax.NDR20) == asked
        there = challenge_stub(b"abcd", 7, 128, b"xyz")
        assert operation.request.decode(there, Syntax.NDR20).answer == b"xyz"

    @BOTH
    @pytest.mark.req("MQDS-3.2.4.1-12", "MQDS-3.2.4.2-11")
    def test_its_response(self, operation: Operation[Any, Any]) -> None:
        answer = dscomm.ChallengeAnswer(b"signature", OK)
        stub = u32(128, 0, 9) + b"signature" + bytes(3) + u32(9, OK)
        given = {"answer_max": 128}
        assert operation.response.encode(answer, Syntax.NDR20, given=given) == stub
        assert operation.response.decode(stub, Syntax.NDR20, given=given) == answer

    @BOTH
    @pytest.mark.parametrize(("size", "most"), [(33, 128), (32, 129)])
    @pytest.mark.req("MQDS-3.2.4.1-13", "MQDS-3.2.4-03")
    def test_more_than_is_allowed_is_rejected(
        self, operation: Operation[Any, Any], size: int, most: int
    ) -> None:
        stub = challenge_stub(bytes(size), 7, most)
        with pytest.raises(WireError):
            Callbacks(lambda digest: digest)(CONTEXT, operation.opnum, stub, False)

    @pytest.mark.req("MQDS-3.2.4.3-11", "MQDS-3.2.4-04")
    def test_the_request_of_a_leg(self) -> None:
        assert dscomm.INIT_SEC_CTX.opnum == 2
        asked = dscomm.InitSecCtx(7, b"token", 4096)
        stub = u32(7, 5) + b"token" + bytes(3) + u32(5, 4096)
        assert dscomm.INIT_SEC_CTX.request.encode(asked, Syntax.NDR20) == stub
        assert dscomm.INIT_SEC_CTX.request.decode(stub, Syntax.NDR20) == asked

    @pytest.mark.req("MQDS-3.2.4.3-12")
    def test_its_response_too(self) -> None:
        answer = dscomm.InitSecCtxAnswer(b"token", CONTINUE)
        stub = u32(4096, 0, 5) + b"token" + bytes(3) + u32(5, CONTINUE)
        given = {"buffer_size": 4096}
        assert dscomm.INIT_SEC_CTX.response.encode(answer, Syntax.NDR20, given=given) == stub
        assert dscomm.INIT_SEC_CTX.response.decode(stub, Syntax.NDR20, given=given) == answer

    @pytest.mark.parametrize(("size", "most"), [(524_289, 0), (0, 524_289)])
    @pytest.mark.req("MQDS-3.2.4.3-13", "MQDS-3.2.4-03")
    def test_tokens_have_a_limit(self, size: int, most: int) -> None:
        stub = u32(7, size) + bytes(size + -size % 4) + u32(size, most)
        with pytest.raises(WireError):
            Callbacks()(CONTEXT, 2, stub, False)
        largest = u32(7, 524_288) + bytes(524_288) + u32(524_288, 524_288)
        assert dscomm.INIT_SEC_CTX.request.decode(largest, Syntax.NDR20).buffer_size == 524_288

    @pytest.mark.parametrize("opnum", [3, 22, 27])
    def test_there_are_three(self, opnum: int) -> None:
        with pytest.raises(RpcFault):
            Callbacks()(CONTEXT, opnum, b"", False)

    @pytest.mark.req("MQDS-3.2.4-03")
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @pytest.mark.parametrize("opnum", [0, 1, 2])
    def test_stubs_that_end_early(self, opnum: int, transfer: Any) -> None:
        context = AgreedContext(0, dscomm.SYNTAX, transfer)
        for size in range(0, 20, 3):
            with pytest.raises(WireError):
                Callbacks()(context, opnum, b"\1" * size, False)


@pytest.fixture(scope="module")
def key() -> tuple[int, int, int]:
    return keys_of(1024)


class TestChallenges:
    @pytest.mark.req("MQDS-3.2.4.1-15", "MQDS-3.2.4.2-13")
    def test_the_context_names_the_call(self) -> None:
        """A context that no call has, or that a call of the other kind has, is not signed for."""
        callbacks = Callbacks(lambda digest: digest)
        with (
            callbacks.expecting(SIGN, 7, lambda challenge: b"s" + challenge),
            callbacks.expecting(CHALLENGE, 8, lambda challenge: b"c" + challenge),
        ):
            assert served_by(callbacks, SIGN, b"x", 7) == (b"sx", OK)
            assert served_by(callbacks, CHALLENGE, b"x", 8) == (b"cx", OK)
            for operation, context in ((SIGN, 8), (CHALLENGE, 7), (SIGN, 9)):
                data, result = served_by(callbacks, operation, b"x", context)
                assert data == b""
                assert result & 0x8000_0000
        data, result = served_by(callbacks, SIGN, b"x", 7)  # the call is over
        assert data == b""
        assert result & 0x8000_0000

    @BOTH
    @pytest.mark.parametrize("signer", [None, lambda digest: digest])
    @pytest.mark.req("MQDS-3.2.4.1-22", "MQDS-3.2.4.2-17")
    def test_switched_off_they_are_not_supported(
        self, operation: Operation[Any, Any], signer: MachineSigner | None
    ) -> None:
        callbacks = Callbacks(signer, answer_challenges=False)
        with callbacks.expecting(operation, 7, lambda challenge: challenge):
            assert served_by(callbacks, operation) == (b"", NOT_SUPPORTED)
        callbacks = Callbacks(None)
        with callbacks.expecting(operation, 7, lambda challenge: challenge):
            assert served_by(callbacks, operation) == (b"", NOT_SUPPORTED)

    @pytest.mark.parametrize(
        "operation",
        [
            pytest.param(SIGN, marks=pytest.mark.req("MQDS-3.2.4.1-20", "MQDS-3.2.4.1-21")),
            pytest.param(CHALLENGE, marks=pytest.mark.req("MQDS-3.2.4.2-16")),
        ],
    )
    def test_the_signature_has_its_exact_length_or_does_not_go(
        self, operation: Operation[Any, Any]
    ) -> None:
        for size in (0, 1, 63, 64, 65, 128):
            callbacks = Callbacks(lambda _digest, size=size: b"s" * size)  # type: ignore[misc]
            with callbacks.expecting(operation, 7, lambda challenge: challenge):
                fits = (b"s" * size, OK) if size <= 64 else (b"", TOO_SMALL)
                assert served_by(callbacks, operation, most=64) == fits

    @BOTH
    @pytest.mark.req("MQDS-3.2.4-05")
    def test_a_signer_that_fails_is_an_answer(self, operation: Operation[Any, Any]) -> None:
        def broken(_digest: bytes) -> bytes:
            raise OSError("the token is not plugged in")

        callbacks = Callbacks(broken)
        with callbacks.expecting(operation, 7, lambda challenge: challenge):
            data, result = served_by(callbacks, operation)
        assert data == b""
        assert result & 0x8000_0000

    @pytest.mark.req("MQDS-3.2.4.1-19")
    def test_the_form_of_a_signature(self, key: tuple[int, int, int]) -> None:
        """PKCS #1 v1.5 with MD5, least significant byte first: judged by another library."""
        modulus, exponent, private = key
        public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
        digest = hashlib.md5(b"challenge").digest()
        made = machine_signer(modulus, private)(digest)
        assert len(made) == 128
        public.verify(made[::-1], digest, PKCS1v15(), Prehashed(hashes.MD5()))
        with pytest.raises(InvalidSignature):
            public.verify(made, digest, PKCS1v15(), Prehashed(hashes.MD5()))

    @pytest.mark.req("MQDS-3.2.4.1-19")
    def test_a_key_of_the_base_provider_has_64_bytes(self) -> None:
        modulus, exponent, private = keys_of(512)
        digest = hashlib.md5(b"challenge").digest()
        made = machine_signer(modulus, private)(digest)
        assert len(made) == 64
        assert verify_md5(RsaPublicKey.of(modulus, exponent), digest, made)


class TestHandshake:
    def leg(self, callbacks: Callbacks, token: bytes, context: int = 7, most: int = 4096) -> Any:
        asked = dscomm.InitSecCtx(context, token, most)
        stub = dscomm.INIT_SEC_CTX.request.encode(asked, Syntax.NDR20)
        answer = callbacks(CONTEXT, 2, stub, False)
        given = {"buffer_size": most}
        return dscomm.INIT_SEC_CTX.response.decode(answer, Syntax.NDR20, given=given)

    @pytest.mark.req("MQDS-3.2.4.3-15", "MQDS-3.2.4.3-16", "MQDS-3.2.4.3-17", "MQDS-3.2.4.3-18")
    def test_leg_by_leg(self) -> None:
        secret = SharedSecret()
        client = secret.initiator(SPNEGO, PRIVACY, "dir1")
        other = secret.initiator(SPNEGO, PRIVACY, "dir2")
        server = secret.acceptor(SPNEGO, PRIVACY)
        callbacks = Callbacks(pending={8: other, 7: client})
        challenge = server.step(client.step(None)) or b""
        first = self.leg(callbacks, challenge)
        assert first.result == CONTINUE
        assert not client.complete
        proof = server.step(first.token) or b""  # it takes the token, so it was the right one
        last = self.leg(callbacks, proof)
        assert (last.result, last.token) == (OK, b"")
        assert client.complete
        assert callbacks.pending[7] is client
        assert not other.complete

    @pytest.mark.req("MQDS-3.2.4.3-15")
    def test_a_handshake_that_nobody_began(self) -> None:
        answer = self.leg(Callbacks(), b"token")
        assert answer.token == b""
        assert answer.result & 0x8000_0000

    @pytest.mark.req("MQDS-3.2.4.3-19")
    def test_a_token_that_does_not_fit_does_not_go(self) -> None:
        for size, fits in ((100, True), (101, False)):
            callbacks = Callbacks(pending={7: Stubborn(b"t" * size)})  # type: ignore[dict-item]
            answer = self.leg(callbacks, b"token", most=100)
            wanted = (b"t" * size, CONTINUE) if fits else (b"", TOO_SMALL)
            assert (answer.token, answer.result) == wanted

    @pytest.mark.parametrize(
        "error", [AuthenticationError("no"), OSError("gone"), RuntimeError("bug")]
    )
    @pytest.mark.req("MQDS-3.2.4.3-20", "MQDS-3.2.4-05")
    def test_whatever_else_happens_is_a_code_and_the_end(self, error: Exception) -> None:
        callbacks = Callbacks(pending={7: Stubborn(error, b"late")})  # type: ignore[dict-item]
        answer = self.leg(callbacks, b"token")
        assert answer.token == b""
        assert answer.result & 0x8000_0000
        assert callbacks.pending == {}
        assert self.leg(callbacks, b"token").result & 0x8000_0000

    @pytest.mark.req("MQDS-3.2.4.3-14", "MQDS-3.2.4.3-21")
    def test_a_call_has_as_many_legs_as_it_takes(self) -> None:
        """Each carries the server's token and the context of the call, the last one too."""
        store = demo_store()
        made: list[bytes | None] = []

        class Listening(SharedSecret):
            def acceptor(self, auth_type: int, level: int, addresses: Addresses = NOWHERE) -> Any:
                context = super().acceptor(auth_type, level, addresses)
                plain = context.step

                def step(token: bytes | None) -> bytes | None:
                    made.append(plain(token))
                    return made[-1]

                context.step = step  # type: ignore[method-assign]
                return context

        async def main() -> Tap:
            async with (
                served(store, gss=Listening()) as server,
                Tap(server.port) as tap,
                connected(tap.address, gss=SharedSecret()),
            ):
                pass
            return tap

        tap = run(main())
        (stub,) = tap.stubs(dscomm.VALIDATE_SERVER.opnum)
        request = dscomm.VALIDATE_SERVER.request.decode(stub, Syntax.NDR64)
        legs = [
            dscomm.INIT_SEC_CTX.request.decode(leg, Syntax.NDR64)
            for leg in tap.stubs(2, from_client=False)
        ]
        assert [leg.token for leg in legs] == made
        assert len(legs) == 2
        assert {leg.context for leg in legs} == {request.context}
