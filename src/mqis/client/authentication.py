"""The client's half of server authentication: S_DSValidateServer and its callbacks (3.2.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.security.rsa import sign_md5
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR64, Operation

log = logging.getLogger(__name__)

#: Signs a digest, to answer a challenge.
MachineSigner = Callable[[bytes], bytes]
#: Makes the digest of a challenge and the arguments of the call in progress.
ChallengeDigest = Callable[[bytes], bytes]

ChallengeOperation = Operation[dscomm.Challenge, dscomm.ChallengeAnswer]


def machine_signer(modulus: int, private_exponent: int) -> MachineSigner:
    """A signer with the private key of the machine object's key for the base provider."""
    return lambda digest: sign_md5(modulus, private_exponent, digest)


class SignatureError(ProtocolError):
    """The server's data does not match its signature: nothing of it may be used."""


@dataclass(slots=True)
class ServerProof:
    """GssSecurityContext (3.2.1.2): the context that checks the server's signatures.

    Without a context the server signs with zeros, and its answers cannot be verified.
    """

    context: SecurityContext | None = None
    #: True after a wrong signature: the context accepts no further ones.
    broken: bool = False

    def check(self, digest: bytes, signature: bytes) -> None:
        """Raises ``SignatureError`` unless the server signed ``digest``."""
        if self.context is None:
            if any(signature):
                raise SignatureError("the server signed its answer without a security context")
            return
        try:
            signed = unwrap(self.context, signature)
        except AuthenticationError as error:
            self.broken = True
            raise SignatureError(f"the server's signature is wrong: {error}") from error
        if signed != digest:
            raise SignatureError("the server's signature is for other data")


@dataclass(slots=True)
class Callbacks:
    """The handler of dscomm's three callbacks; it always answers with an HRESULT."""

    #: Signs for this machine; None: challenges are not supported.
    signer: MachineSigner | None = None
    #: False: the two obsolete challenges are answered as the specification advises (3.2.4.1).
    answer_challenges: bool = True
    #: Handshakes in progress, by the dwContext of their S_DSValidateServer.
    pending: dict[int, SecurityContext] = field(default_factory=dict)
    #: Calls in progress that may be challenged, by callback and dwContext.
    challenged: dict[tuple[int, int], ChallengeDigest] = field(default_factory=dict)

    @contextmanager
    def expecting(
        self, operation: ChallengeOperation, context: int, digest_of: ChallengeDigest
    ) -> Iterator[None]:
        """Allows the server to challenge a call while it runs."""
        key = operation.opnum, context
        self.challenged[key] = digest_of
        try:
            yield
        finally:
            del self.challenged[key]

    def __call__(self, context: AgreedContext, opnum: int, stub: bytes, big_endian: bool) -> bytes:
        syntax = Syntax.NDR64 if context.transfer == NDR64 else Syntax.NDR20
        if context.interface != dscomm.SYNTAX:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)
        if opnum == dscomm.INIT_SEC_CTX.opnum:
            request = dscomm.INIT_SEC_CTX.request.decode(stub, syntax, big_endian=big_endian)
            answer = self._init_sec_ctx(request)
            given = {"buffer_size": request.buffer_size}
            return dscomm.INIT_SEC_CTX.response.encode(answer, syntax, given=given)
        for operation in (
            dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC,
            dscomm.GET_OBJECT_SECURITY_CHALLENGE,
        ):
            if opnum == operation.opnum:
                challenge = operation.request.decode(stub, syntax, big_endian=big_endian)
                reply = self._challenge(operation, challenge)
                given = {"answer_max": challenge.answer_max}
                return operation.response.encode(reply, syntax, given=given)
        raise RpcFault(FaultStatus.OP_RNG_ERROR)

    def _init_sec_ctx(self, request: dscomm.InitSecCtx) -> dscomm.InitSecCtxAnswer:
        context = self.pending.get(request.context)
        if context is None:
            return _no_token(HResult.MQ_ERROR_INVALID_PARAMETER)
        try:
            token = context.step(request.token) or b""
        except AuthenticationError as error:
            log.warning("the server did not authenticate itself: %s", error)
            return self._give_up(request.context, HResult.MQ_ERROR_BAD_SECURITY_CONTEXT)
        except Exception:  # a provider's own error: no exception may leave a callback (3.2.4)
            log.exception("the security provider failed")
            return self._give_up(request.context, HResult.MQ_ERROR)
        if len(token) > request.buffer_size:
            return self._give_up(request.context, HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL)
        done = HResult.MQ_OK if context.complete else HResult.SEC_I_CONTINUE_NEEDED
        return dscomm.InitSecCtxAnswer(token, int(done))

    def _give_up(self, context: int, code: HResult) -> dscomm.InitSecCtxAnswer:
        """Ends a handshake: no further step of it is served."""
        del self.pending[context]
        return _no_token(code)

    def _challenge(
        self, operation: ChallengeOperation, challenge: dscomm.Challenge
    ) -> dscomm.ChallengeAnswer:
        if self.signer is None or not self.answer_challenges:
            return _no_signature(HResult.MQ_ERROR_NOT_SUPPORTED)
        digest_of = self.challenged.get((operation.opnum, challenge.context))
        if digest_of is None:
            return _no_signature(HResult.MQ_ERROR_INVALID_PARAMETER)
        try:
            signature = self.signer(digest_of(challenge.challenge))
        except Exception:  # the signer is the caller's; it may use a token or a service
            log.exception("signing with the machine's key failed")
            return _no_signature(HResult.MQ_ERROR)
        if len(signature) > challenge.answer_max:
            return _no_signature(HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL)
        return dscomm.ChallengeAnswer(signature, int(HResult.MQ_OK))


def _no_token(code: HResult) -> dscomm.InitSecCtxAnswer:
    return dscomm.InitSecCtxAnswer(b"", int(code))


def _no_signature(code: HResult) -> dscomm.ChallengeAnswer:
    return dscomm.ChallengeAnswer(b"", int(code))


def begin_context(gss: Initiator, target: str) -> tuple[SecurityContext, bytes]:
    """Makes a context and its first token. It may contact a KDC: run it in a thread."""
    context = gss.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, target)
    return context, context.step(None) or b""
