"""The two obsolete callbacks by which a machine proves its key: off unless switched on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from mqis.client.authentication import Callbacks
from mqis.protocol.directory import signature
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.security.rsa import sign_md5
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from tests import distinct
from tests.protocol.directory.world import (
    BILLS,
    C13,
    C14,
    C15,
    LINK,
    LINK_AB,
    MACHINE,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    STOCK,
    World,
    blob,
    text,
    ui4,
)
from tests.runtime.directory.serving import (
    ADMIN,
    BOB,
    OK,
    SIGNATURE_SIZE,
    Caller,
    fault_of,
    scenario,
    serving,
)
from tests.wire.mqds import vectors

DENIED = HResult.MQ_ERROR_ACCESS_DENIED
CONTEXT = 0xBEEF


def sign(digest: bytes) -> bytes:
    return sign_md5(vectors.MODULUS, vectors.PRIVATE_EXPONENT, digest)


@dataclass
class Machine:
    """Answers challenges as ``answer`` says and remembers them."""

    answer: Callable[[dscomm.Challenge], dscomm.ChallengeAnswer]
    asked: list[tuple[int, dscomm.Challenge]] = field(default_factory=list)

    def __call__(self, context: AgreedContext, opnum: int, stub: bytes, big_endian: bool) -> bytes:
        syntax = Syntax.NDR64 if context.transfer == NDR64 else Syntax.NDR20
        operation = dscomm.DSCOMM.callbacks[opnum]
        challenge = operation.request.decode(stub, syntax, big_endian=big_endian)
        self.asked.append((opnum, challenge))
        given = {"answer_max": challenge.answer_max}
        return operation.response.encode(self.answer(challenge), syntax, given=given)


def _honest(digest_of: Callable[[bytes], bytes]) -> Machine:
    return Machine(lambda asked: dscomm.ChallengeAnswer(sign(digest_of(asked.challenge)), 0))


def keyed(keys: bytes = vectors.PUBLIC_KEYS) -> World:
    """C14 has the signing key of the vectors; all other keys are others."""
    world = World()
    for n, machine in enumerate((C13, C14, C15)):
        given = {238: blob(distinct.encryption_keys(n)), 239: blob(distinct.signing_keys(n))}
        world.update_event(world.get(MACHINE, machine), given)
    world.update_event(world.get(MACHINE, C14), {239: blob(keys)})
    return world


async def get(caller: Caller, object_type: int, guid: Guid) -> dscomm.SecurityGot:
    request = dscomm.GetMachineSecurity(
        object_type, guid, 7, 999, CONTEXT, caller.auth, SIGNATURE_SIZE
    )
    return await caller.call(dscomm.QM_GET_OBJECT_SECURITY, request)


PROPERTIES = {214: ui4(1000), 216: text("NT")}


async def put(caller: Caller, path: str = "C14") -> int:
    ids, values = tuple(PROPERTIES), tuple(PROPERTIES.values())
    request = dscomm.SetMachineProperties(path, ids, values, CONTEXT)
    return (await caller.call(dscomm.QM_SET_MACHINE_PROPERTIES, request)).result


def _machine_digest(challenge: bytes) -> bytes:
    return signature.machine_properties_digest(
        challenge, tuple(PROPERTIES), tuple(PROPERTIES.values())
    )


@pytest.mark.req("MQDS-3.2.4.1-01", "MQDS-3.2.4.2-01")
@scenario
async def test_nobody_is_asked_by_default() -> None:
    machine = Machine(lambda _: dscomm.ChallengeAnswer(b"", HResult.MQ_ERROR_NOT_SUPPORTED))
    async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
        assert (await get(caller, QUEUE, ORDERS)).result == OK
        assert await put(caller) == OK
    assert machine.asked == []


class TestGetObjectSecurity:
    @pytest.mark.req("MQDS-3.1.4.15-02", "MQDS-3.1.4.15-03", "MQDS-3.1.4.15-04")
    @pytest.mark.parametrize(("object_type", "guid"), [(QUEUE, ORDERS), (MACHINE, C14)])
    @pytest.mark.parametrize("transfer", [NDR20, NDR64])
    @pytest.mark.parametrize("keys", [vectors.PUBLIC_KEYS, vectors.PUBLIC_KEYS_KEYX])
    @scenario
    async def test_the_machine_proves_itself(
        self, object_type: ObjectType, guid: Guid, transfer: SyntaxId, keys: bytes
    ) -> None:
        machine = _honest(signature.challenge_digest)
        async with (
            serving(keyed(keys)) as served,
            served.caller(ADMIN, callbacks=machine, transfers=[transfer]) as caller,
        ):
            served.configure(challenge_machines=True)
            assert (await get(caller, object_type, guid)).result == OK
            assert (await get(caller, object_type, guid)).result == OK
        first, second = machine.asked
        assert first[0] == 1
        assert (first[1].context, first[1].answer_max, len(first[1].challenge)) == (
            CONTEXT,
            128,
            32,
        )
        assert first[1].challenge != second[1].challenge

    @pytest.mark.req("MQDS-3.1.4.15-04")
    @scenario
    async def test_the_key_is_that_of_the_machine_in_question(self) -> None:
        """Another machine's signature is as good as none."""
        machine = _honest(signature.challenge_digest)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            for machine_id, queue in ((C13, BILLS), (C15, STOCK)):
                assert (await get(caller, MACHINE, machine_id)).result == DENIED
                assert (await get(caller, QUEUE, queue)).result == DENIED
            assert (await get(caller, MACHINE, OTHER)).result == HResult.MQDS_OBJECT_NOT_FOUND
            assert (await get(caller, SITE, SITE_A)).result == HResult.MQDS_OBJECT_NOT_FOUND

    @pytest.mark.req("MQDS-3.1.4.15-05", "MQDS-3.1.4.15-03")
    @pytest.mark.parametrize(
        "answer",
        [
            lambda _: dscomm.ChallengeAnswer(b"", HResult.MQ_ERROR_NOT_SUPPORTED),
            lambda asked: dscomm.ChallengeAnswer(sign(_digest(asked)), 1),
            lambda _: dscomm.ChallengeAnswer(b"", 0),
            lambda _: dscomm.ChallengeAnswer(bytes(64), 0),
            lambda _: dscomm.ChallengeAnswer(vectors.SIGNATURE, 0),
            lambda asked: dscomm.ChallengeAnswer(sign(_digest(asked))[::-1], 0),
            lambda asked: dscomm.ChallengeAnswer(sign(asked.challenge[:16]), 0),
        ],
        ids=[
            "not supported",
            "signed, but an error",
            "nothing",
            "zeros",
            "signature of another challenge",
            "bytes reversed",
            "challenge not hashed",
        ],
    )
    @scenario
    async def test_anything_else_is_denied(
        self, answer: Callable[[dscomm.Challenge], dscomm.ChallengeAnswer]
    ) -> None:
        machine = Machine(answer)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            got = await get(caller, QUEUE, ORDERS)
        assert (got.result, got.descriptor, got.length_needed) == (DENIED, bytes(999), 0)
        assert len(machine.asked) == 1

    @pytest.mark.req("MQDS-3.1.4.15-02")
    @scenario
    async def test_a_client_without_callbacks_is_denied(self) -> None:
        def fault(_asked: dscomm.Challenge) -> dscomm.ChallengeAnswer:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)

        for callbacks in (None, Machine(fault), Callbacks()):
            async with (
                serving(keyed()) as served,
                served.caller(ADMIN, callbacks=callbacks) as caller,
            ):
                served.configure(challenge_machines=True)
                assert (await get(caller, QUEUE, ORDERS)).result == DENIED

    @scenario
    async def test_machines_without_a_key_cannot_prove_anything(self) -> None:
        machine = _honest(signature.challenge_digest)
        async with serving(World()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            assert (await get(caller, QUEUE, ORDERS)).result == DENIED
        assert machine.asked == []

    @pytest.mark.req("MQDS-3.1.4.15-07", "MQDS-3.1.4.15-06")
    @scenario
    async def test_wrong_types_and_handles_are_refused_before_anybody_is_asked(self) -> None:
        machine = _honest(signature.challenge_digest)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            assert (await get(caller, 9, C14)).result == HResult.MQ_ERROR_INVALID_PARAMETER
            assert (await get(caller, LINK, LINK_AB)).result == HResult.MQDS_WRONG_OBJ_TYPE
            auth, caller.auth = caller.auth, ContextHandle.NULL
            assert await fault_of(get(caller, MACHINE, C14)) == FaultStatus.IN_NULL_CONTEXT
            caller.auth = auth
        assert machine.asked == []

    @scenario
    async def test_a_proven_machine_still_needs_the_right(self) -> None:
        machine = _honest(_machine_digest)
        async with serving(keyed()) as served, served.caller(BOB, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            assert await put(caller) == DENIED
        assert len(machine.asked) == 1


def _digest(asked: dscomm.Challenge) -> bytes:
    return signature.challenge_digest(asked.challenge)


class TestSetMachineProperties:
    @pytest.mark.req("MQDS-3.1.4.16-01", "MQDS-3.1.4.16-02")
    @scenario
    async def test_signed_are_challenge_and_properties(self) -> None:
        machine = _honest(_machine_digest)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            assert await put(caller) == OK
            assert served.world.show(served.world.get(MACHINE, C14), 216) == "NT"
            assert await put(caller, "C13") == await put(caller, "C15") == DENIED
        (opnum, asked), *_ = machine.asked
        assert (opnum, asked.context, len(asked.challenge)) == (0, CONTEXT, 32)

    @pytest.mark.req("MQDS-3.1.4.16-02")
    @pytest.mark.parametrize(
        "digest_of",
        [
            signature.challenge_digest,
            lambda challenge: signature.machine_properties_digest(challenge, (), ()),
            lambda challenge: signature.machine_properties_digest(
                challenge, (214, 216), (ui4(1001), text("NT"))
            ),
            lambda challenge: signature.machine_properties_digest(
                challenge, (216, 214), (text("NT"), ui4(1000))
            ),
        ],
        ids=["challenge alone", "no properties", "another value", "another order"],
    )
    @scenario
    async def test_a_signature_of_something_else(self, digest_of: Callable[[bytes], bytes]) -> None:
        machine = _honest(digest_of)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            before = served.world.snapshot()
            assert await put(caller) == DENIED
            assert served.world.snapshot() == before

    @scenario
    async def test_machines_that_are_not_there(self) -> None:
        machine = _honest(_machine_digest)
        async with serving(keyed()) as served, served.caller(ADMIN, callbacks=machine) as caller:
            served.configure(challenge_machines=True)
            assert await put(caller, "C99") == HResult.MQDS_OBJECT_NOT_FOUND
            assert await put(caller, "C15") == DENIED
