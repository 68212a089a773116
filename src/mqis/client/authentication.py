"""Proving the server: the client's half of S_DSValidateServer, and its callbacks (3.2.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthLevel,
    AuthType,
    Initiator,
    SecurityContext,
)
from mqis.protocol.directory.serverauth import unwrap
from mqis.protocol.errors import ProtocolError
from mqis.protocol.rpc.client import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.syntax import NDR64

#: Answers a challenge with a signature; given the digest that is to be signed.
MachineSigner = Callable[[bytes], bytes]


class SignatureError(ProtocolError):
    """What the server sent is not what it signed: nothing of it may be used."""


@dataclass(slots=True)
class ServerProof:
    """The context that signatures are checked with; empty until one is negotiated."""

    context: SecurityContext | None = None

    def check(self, digest: bytes, signature: bytes) -> None:
        """Raise ``SignatureError`` unless the server signed ``digest``."""
        if self.context is None:  # the empty context signs with zeros
            if any(signature):
                raise SignatureError("a signature without a context to make it with")
            return
        try:
            signed = unwrap(self.context, signature)
        except AuthenticationError as error:
            raise SignatureError(f"the server's signature is wrong: {error}") from error
        if signed != digest:
            raise SignatureError("the server signed something else")


@dataclass(slots=True)
class Callbacks:
    """Serves the three callbacks of dscomm; whatever happens, an HRESULT goes back."""

    pending: dict[int, SecurityContext] = field(default_factory=dict)
    #: Digests that a challenge may ask to sign, by the context of the call under way.
    challenged: dict[int, Callable[[bytes], bytes]] = field(default_factory=dict)
    signer: MachineSigner | None = None

    def __call__(self, context: AgreedContext, opnum: int, stub: bytes, big_endian: bool) -> bytes:
        syntax = Syntax.NDR64 if context.transfer == NDR64 else Syntax.NDR20
        if context.interface != dscomm.SYNTAX:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)
        if opnum == dscomm.INIT_SEC_CTX.opnum:
            asked = dscomm.INIT_SEC_CTX.request.decode(stub, syntax, big_endian=big_endian)
            answer = self._init_sec_ctx(asked)
            given = {"buffer_size": asked.buffer_size}
            return dscomm.INIT_SEC_CTX.response.encode(answer, syntax, given=given)
        for operation in (
            dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC,
            dscomm.GET_OBJECT_SECURITY_CHALLENGE,
        ):
            if opnum == operation.opnum:
                challenge = operation.request.decode(stub, syntax, big_endian=big_endian)
                reply = self._challenge(challenge)
                given = {"answer_max": challenge.answer_max}
                return operation.response.encode(reply, syntax, given=given)
        raise RpcFault(FaultStatus.OP_RNG_ERROR)

    def _init_sec_ctx(self, asked: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
        context = self.pending.get(asked.context)
        if context is None:
            return dscomm.InitSecCtxAnswer(b"", HResult.MQ_ERROR_INVALID_PARAMETER)
        try:
            token = context.step(asked.token) or b""
        except AuthenticationError:
            return dscomm.InitSecCtxAnswer(b"", HResult.MQ_ERROR_BAD_SECURITY_CONTEXT)
        if len(token) > asked.buffer_size:
            return dscomm.InitSecCtxAnswer(b"", HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL)
        done = HResult.MQ_OK if context.complete else HResult.SEC_I_CONTINUE_NEEDED
        return dscomm.InitSecCtxAnswer(token, int(done))

    def _challenge(self, challenge: dscomm.Challenge) -> dscomm.ChallengeAnswer:
        if self.signer is None:
            return dscomm.ChallengeAnswer(b"", HResult.MQ_ERROR_NOT_SUPPORTED)
        digest_of = self.challenged.get(challenge.context)
        if digest_of is None:
            return dscomm.ChallengeAnswer(b"", HResult.MQ_ERROR_INVALID_PARAMETER)
        signature = self.signer(digest_of(challenge.challenge))
        if len(signature) > challenge.answer_max:
            return dscomm.ChallengeAnswer(b"", HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL)
        return dscomm.ChallengeAnswer(signature, int(HResult.MQ_OK))


def new_context(gss: Initiator, target: str) -> SecurityContext:
    return gss.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, target)
