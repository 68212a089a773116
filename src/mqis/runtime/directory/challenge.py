"""The two callbacks by which a machine proves its key (MS-MQDS notes <74>, <77>).

Obsolete, and off by default as 3.2.4 advises. Where they are on, a client that does not answer,
or whose signature is wrong, is denied.
"""

from __future__ import annotations

from mqis.protocol.directory import read_methods
from mqis.protocol.directory.locate import Target, locate, object_type_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownership import machine_of
from mqis.protocol.directory.signature import challenge_digest, machine_properties_digest
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.protocol.security.rsa import verify_md5
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import call_back
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.keys import BASE_PROVIDER, PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.rpc.interfaces import Operation


class Challenger:
    """Challenges the client before a call is executed; ``challenges`` says whether it has to."""

    def __init__(self, directory: DirectoryContext) -> None:
        self._directory = directory

    @property
    def challenges(self) -> bool:
        return self._directory.settings.challenge_machines

    async def before_set(self, call: IncomingCall, request: dscomm.SetMachineProperties) -> None:
        """S_DSQMSetMachinePropertiesSignProc: the signature covers the properties too."""
        machine = Target(ObjectType.MACHINE, request.path)
        key = await self._directory.look(
            lambda view: _key(locate(view, machine).value(_SIGN)), call
        )
        challenge = self._new_challenge()
        digest = machine_properties_digest(challenge, request.ids, request.values)
        operation = dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC
        await self._ask_client(call, operation, challenge, request.context, key, digest)

    async def before_get(self, call: IncomingCall, request: dscomm.GetMachineSecurity) -> None:
        """S_DSQMGetObjectSecurityChallengeResponceProc."""
        object_type = object_type_of(request.object_type)
        read_methods.check_secured(object_type, read_methods.check_information(request.information))
        key = await self._directory.look(
            lambda view: _key(self._signer(view, request).value(_SIGN)), call
        )
        challenge = self._new_challenge()
        digest = challenge_digest(challenge)
        operation = dscomm.GET_OBJECT_SECURITY_CHALLENGE
        await self._ask_client(call, operation, challenge, request.context, key, digest)

    def _signer(self, view: View, request: dscomm.GetMachineSecurity) -> DirectoryObject:
        """The machine that has to sign: a queue's machine, else the machine of that GUID."""
        if request.object_type == ObjectType.QUEUE:
            queue = locate(view, Target(ObjectType.QUEUE, None, request.guid))
            return machine_of(queue.path or "", view)
        return locate(view, Target(ObjectType.MACHINE, None, request.guid))

    def _new_challenge(self) -> bytes:
        entropy = self._directory.entropy
        return entropy.guid().raw + entropy.guid().raw

    async def _ask_client(  # noqa: PLR0917
        self,
        call: IncomingCall,
        operation: Operation[dscomm.Challenge, dscomm.ChallengeAnswer],
        challenge: bytes,
        context: int,
        key: RsaPublicKey,
        digest: bytes,
    ) -> None:
        size = dscomm.CHALLENGE_ANSWER_BYTES
        request = dscomm.Challenge(challenge, context, b"", size)
        try:
            answer = await call_back(call, operation, request, given={"answer_max": size})
        except (RpcFault, RpcConnectionError, WireError) as error:
            raise _denied(f"the machine did not answer: {error}") from error
        if answer.result != HResult.MQ_OK:
            raise _denied(f"the machine refused to answer: 0x{answer.result:08x}")
        if not verify_md5(key, digest, answer.answer):
            raise _denied("the signature is not that of the machine")


_SIGN = PropId.QM_SIGN_PKS


def _key(value: object) -> RsaPublicKey:
    keys = PublicKeys.from_bytes(value) if isinstance(value, bytes) and value else PublicKeys(())
    found = keys.for_provider(BASE_PROVIDER)
    if found is None:
        raise _denied("the machine has no public key in the directory to prove itself with")
    return found.rsa()


def _denied(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, detail)
