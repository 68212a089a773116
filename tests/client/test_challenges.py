"""Challenges during calls, by a scripted server and by one that is set to (MS-MQDS 3.2.4, 4.2)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from mqis.client import DirectoryClient, machine_signer
from mqis.client.authentication import MachineSigner
from mqis.protocol.directory import signature
from mqis.protocol.errors import DirectoryError
from mqis.runtime.directory.context import DirectorySettings
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import call_back
from mqis.storage.memory_store import MemoryStore
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import PublicKey, PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType as T
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import Operation
from mqis.wire.security.sid import EVERYONE
from tests.client.peers import (
    OK,
    Line,
    Scripted,
    connected,
    demo_store,
    run,
    served,
)
from tests.client.samples import ONE
from tests.client.tap import Tap

SIGN, CHALLENGE = dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC, dscomm.GET_OBJECT_SECURITY_CHALLENGE
SIGN, CHALLENGE = dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC, dscomm.GET_OBJECT_SECURITY_CHALLENGE
NOT_SUPPORTED = 0xC00E03EB

QUOTA = {
    int(PropId.QM_QUOTA): PropVariant(VarType.UI4, 5000),
    int(PropId.QM_MACHINE_TYPE): PropVariant(VarType.LPWSTR, "4.2"),
}


def u32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


@pytest.fixture(scope="module")
def key() -> tuple[int, int, int]:
    """An RSA key: modulus, public and private exponent."""
    numbers = rsa.generate_private_key(65_537, 1024).private_numbers()
    return numbers.public_numbers.n, numbers.public_numbers.e, numbers.d


@dataclass
class Challenged:
    """The answer and context that a scripted server got from its callback."""

    answer: dscomm.ChallengeAnswer | None = None
    context: int = 0


def challenging(
    operation: Operation[Any, Any], challenge: bytes, learned: Challenged, offset: int = 0
) -> Line:
    """Calls back with the context of the call, or one that is off by ``offset``."""

    async def line(call: IncomingCall, request: Any) -> Any:
        learned.context = request.context
        asked = dscomm.Challenge(challenge, request.context + offset, b"", 128)
        answer = await call_back(call, operation, asked, given={"answer_max": 128})
        learned.answer, result = answer, answer.result
        if operation is SIGN:
            return dscomm.DirectoryResult(result)
        zeros = bytes(request.signature_size)
        return dscomm.SecurityGot(bytes(request.length), 0, zeros, result)

    return line


class TestDuringCalls:
    def learn(
        self,
        operation: Operation[Any, Any],
        use: Callable[[DirectoryClient], Any],
        signer: MachineSigner | None,
        **how: Any,
    ) -> Challenged:
        learned = Challenged()
        outer = (
            dscomm.QM_SET_MACHINE_PROPERTIES if operation is SIGN else dscomm.QM_GET_OBJECT_SECURITY
        )
        offset = how.pop("offset", 0)
        lines: dict[Any, Line] = {outer: challenging(operation, b"challenge", learned, offset)}

        async def main() -> None:
            async with (
                Scripted(lines) as peer,
                connected(peer.address, signer=signer, **how) as client,
            ):
                await use(client)

        run(main())
        return learned

    @pytest.mark.req("MQDS-3.2.4.1-17", "MQDS-3.1.4.16-52")
    def test_what_is_signed_of_machine_properties(self) -> None:
        seen: list[bytes] = []

        def signer(digest: bytes) -> bytes:
            seen.append(digest)
            return b"signed"

        learned = self.learn(SIGN, lambda c: c.set_machine_properties("c14", QUOTA), signer)
        hashed = b"challenge" + u32(2) + u32(214, 5000) + u32(216) + "4.2".encode("utf-16-le")
        assert seen == [hashlib.md5(hashed).digest()]
        assert learned.answer == dscomm.ChallengeAnswer(b"signed", OK)

    @pytest.mark.req("MQDS-3.2.4.2-14", "MQDS-3.1.4.15-51")
    def test_what_is_signed_of_a_security_read(self) -> None:
        seen: list[bytes] = []

        def signer(digest: bytes) -> bytes:
            seen.append(digest)
            return b"signed"

        learned = self.learn(CHALLENGE, lambda c: c.get_machine_security(T.MACHINE, 4, ONE), signer)
        assert seen == [hashlib.md5(b"challenge").digest()]
        assert learned.answer == dscomm.ChallengeAnswer(b"signed", OK)

    @pytest.mark.parametrize("operation", [SIGN, CHALLENGE])
    @pytest.mark.req("MQDS-4.2-52")
    def test_a_failing_callback_is_the_result_of_the_call(
        self, operation: Operation[Any, Any]
    ) -> None:
        use: Callable[[DirectoryClient], Any] = (
            (lambda c: c.set_machine_properties("c14", QUOTA))
            if operation is SIGN
            else (lambda c: c.get_machine_security(T.MACHINE, 4, ONE))
        )
        with pytest.raises(DirectoryError) as failure:
            self.learn(operation, use, lambda d: d, answer_challenges=False)
        assert failure.value.hresult == NOT_SUPPORTED
        with pytest.raises(DirectoryError):
            self.learn(operation, use, lambda d: d, offset=1)

    @pytest.mark.req("MQDS-3.1.4.15-51", "MQDS-3.1.4.16-52")
    def test_calls_at_the_same_time_have_contexts_of_their_own(self) -> None:
        async def main() -> None:
            seen: list[dscomm.ChallengeAnswer] = []

            async def line(call: IncomingCall, request: Any) -> dscomm.DirectoryResult:
                await asyncio.sleep(0.01)  # until all of them are under way
                asked = dscomm.Challenge(b"c", request.context, b"", 128)
                got = await call_back(call, SIGN, asked, given={"answer_max": 128})
                wanted = signature.machine_properties_digest(b"c", request.ids, request.values)
                assert got.answer == wanted
                seen.append(got)
                return dscomm.DirectoryResult(got.result)

            async with Scripted({dscomm.QM_SET_MACHINE_PROPERTIES: line}) as peer:
                async with connected(peer.address, signer=lambda digest: digest) as client:
                    await asyncio.gather(
                        *(
                            client.set_machine_properties("c14", props({PropId.QM_QUOTA: number}))
                            for number in range(5)
                        )
                    )
                contexts = [a.request.context for a in peer.asked if "Machine" in a.name]
                assert len(set(contexts)) == len(seen) == 5

        run(main())


class TestDirectoryServer:
    """A server that is set to challenge, as note <74> and note <77> describe it."""

    def store(self, key: tuple[int, int, int], machine: str = "ams-app1") -> MemoryStore:
        store = demo_store()
        blob = PublicKeys((PublicKey.of(RsaPublicKey.of(key[0], key[1])),)).to_bytes()
        with store.write() as transaction:
            found = transaction.find(T.MACHINE, machine)
            assert found is not None
            keys: dict[int, PropVariant] = props({PropId.QM_SIGN_PKS: blob})
            transaction.update(found, found.with_properties(keys, found.seq))
        return store

    @pytest.fixture
    def settings(self) -> DirectorySettings:
        return DirectorySettings(administrators=frozenset({EVERYONE}), challenge_machines=True)

    @pytest.mark.req("MQDS-3.2.4.1-18", "MQDS-3.2.4.1-14")
    def test_properties_signed_with_the_machines_key(
        self, key: tuple[int, int, int], settings: DirectorySettings
    ) -> None:
        store, signer = self.store(key), machine_signer(key[0], key[2])

        async def main() -> None:
            async with (
                served(store, settings) as server,
                connected(server.address, signer=signer) as client,
            ):
                await client.set_machine_properties("ams-app1", QUOTA)
                got = await client.get(T.MACHINE, [PropId.QM_QUOTA], path="ams-app1")
                assert got[PropId.QM_QUOTA].value == 5000
                with pytest.raises(DirectoryError, match="ACCESS_DENIED"):
                    await client.set_machine_properties("ams-dir1", QUOTA)  # another's key

        run(main())

    @pytest.mark.req("MQDS-3.2.4.2-15", "MQDS-4.2-51", "MQDS-3.2.4.2-12")
    def test_security_of_the_machine_and_of_its_queues(
        self, key: tuple[int, int, int], settings: DirectorySettings
    ) -> None:
        store, signer = self.store(key), machine_signer(key[0], key[2])
        with store.read() as view:
            machine = view.find(T.MACHINE, "ams-app1")
            queue = view.find(T.QUEUE, "ams-app1\\orders")
            foreign = view.find(T.QUEUE, "ber-app1\\orders")
        assert machine is not None
        assert queue is not None
        assert foreign is not None

        async def main() -> None:
            async with (
                served(store, settings) as server,
                connected(server.address, signer=signer) as client,
            ):
                assert await client.get_machine_security(T.MACHINE, 4, machine.id)
                assert await client.get_machine_security(T.QUEUE, 4, queue.id)
                with pytest.raises(DirectoryError, match="ACCESS_DENIED"):
                    await client.get_machine_security(T.QUEUE, 4, foreign.id)

        run(main())

    @pytest.mark.req("MQDS-3.2.4.2-18", "MQDS-4.2-52", "MQDS-3.2.4.2-15")
    def test_a_wrong_signature_or_none_is_denied(
        self, key: tuple[int, int, int], settings: DirectorySettings
    ) -> None:
        store = self.store(key)
        with store.read() as view:
            machine = view.find(T.MACHINE, "ams-app1")
        assert machine is not None

        async def main() -> None:
            async with served(store, settings) as server:
                for signer in (None, lambda _digest: bytes(128), lambda digest: digest):
                    async with connected(server.address, signer=signer) as client:
                        with pytest.raises(DirectoryError) as failure:
                            await client.get_machine_security(T.MACHINE, 4, machine.id)
                        assert failure.value.hresult == 0xC00E0025

        run(main())

    @pytest.mark.req("MQDS-3.2.4.1-14", "MQDS-3.2.4.1-16", "MQDS-3.2.4.2-12")
    def test_challenges_are_random_and_carry_the_context_of_their_call(
        self, key: tuple[int, int, int], settings: DirectorySettings
    ) -> None:
        store, signer = self.store(key), machine_signer(key[0], key[2])
        with store.read() as view:
            machine = view.find(T.MACHINE, "ams-app1")
        assert machine is not None

        async def main() -> Tap:
            async with (
                served(store, settings) as server,
                Tap(server.port) as tap,
                connected(tap.address, signer=signer) as client,
            ):
                for _ in range(3):
                    await client.set_machine_properties("ams-app1", QUOTA)
                await client.get_machine_security(T.MACHINE, 4, machine.id)
            return tap

        tap = run(main())
        for outer, inner in (
            (dscomm.QM_SET_MACHINE_PROPERTIES, SIGN),
            (dscomm.QM_GET_OBJECT_SECURITY, CHALLENGE),
        ):
            asked = [outer.request.decode(s, Syntax.NDR64) for s in tap.stubs(outer.opnum)]
            heard = [
                inner.request.decode(s, Syntax.NDR64)
                for s in tap.stubs(inner.opnum, from_client=False)
            ]
            assert [c.context for c in heard] == [r.context for r in asked]
            assert {len(c.challenge) for c in heard} == {32}
            assert {c.answer_max for c in heard} == {128}
            assert len({c.challenge for c in heard}) == len(heard)

    @pytest.mark.req("MQDS-3.2.4.1-23")
    def test_unless_it_is_told_to_it_does_not_challenge(self, key: tuple[int, int, int]) -> None:
        store = self.store(key)

        def never(_digest: bytes) -> bytes:
            raise AssertionError("nobody should ask")

        async def main() -> None:
            async with (
                served(store) as server,
                connected(server.address, signer=never) as client,
            ):
                await client.set_machine_properties("ams-app1", QUOTA)

        run(main())
