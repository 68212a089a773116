"""The binding handle of a session: one association with the partner, made on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mqis.protocol.authentication import (
    AuthenticationError,
    Authenticator,
    AuthLevel,
    AuthType,
    Initiator,
)
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_security import SecurityLevel, attempts, principal
from mqis.protocol.rpc.client_side import CallReturned
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.rpc.server_endpoint import RpcLimits
from mqis.runtime.oletx.resolver import Resolver
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient, RpcTimeoutError
from mqis.runtime.rpc.typed import invoke
from mqis.texts import duration
from mqis.wire.cmpo.codes import CmResult
from mqis.wire.cmpo.ixnremote import IXN_REMOTE, SYNTAX
from mqis.wire.errors import WireError
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20, Operation

Q = TypeVar("Q")
R = TypeVar("R")

#: A boxcar has up to 80 KiB and its call waits for all of it, so fewer PDUs are faster. A
#: partner that needs shorter ones negotiates them in the bind.
LIMITS = RpcLimits(max_frag=65_528)

_RESULTS: dict[int, CmResult] = {
    FaultStatus.OP_RNG_ERROR: CmResult.PROCNUM_OUT_OF_RANGE,
    FaultStatus.SERVER_TOO_BUSY: CmResult.SERVER_TOO_BUSY,
    FaultStatus.ACCESS_DENIED: CmResult.ACCESS_DENIED,
    FaultStatus.SEC_PKG_ERROR: CmResult.ACCESS_DENIED,
}
_DENIED = frozenset({FaultStatus.ACCESS_DENIED, FaultStatus.SEC_PKG_ERROR})


@dataclass(frozen=True, slots=True)
class Security:
    """The credentials of this side, the accounts of its callers, and the required level (2.1.3)."""

    level: SecurityLevel = SecurityLevel.NONE
    #: Own credentials; without them calls go out unauthenticated.
    initiator: Initiator | None = None
    #: The accounts of callers; without them authenticated calls are refused.
    authenticator: Authenticator | None = None
    auth_type: int = AuthType.SPNEGO

    def __post_init__(self) -> None:
        if self.level is SecurityLevel.MUTUAL and self.initiator is None:
            raise ValueError("mutual authentication needs an initiator with credentials")
        if self.level is not SecurityLevel.NONE and self.authenticator is None:
            raise ValueError(f"{self.level.value} authentication needs an authenticator")


def result_of(error: Exception) -> int:
    """The result of a failed call for the state machine."""
    if isinstance(error, RpcFault):
        return int(_RESULTS.get(error.status, error.status))
    if isinstance(error, RpcTimeoutError | TimeoutError):
        return CmResult.CALL_CANCELLED
    if isinstance(error, AuthenticationError):
        return CmResult.ACCESS_DENIED
    return CmResult.FAIL if isinstance(error, WireError) else CmResult.SERVER_UNAVAILABLE


class PartnerBinding:
    """Calls to the partner of one session, all over one association, which keeps its handle."""

    def __init__(self, name: NameObject, resolve: Resolver, security: Security) -> None:
        self._name = name
        self._resolve = resolve
        self._security = security
        #: The principal expected at the other end.
        self.principal = principal(name.host_name, None)
        #: True to authenticate, best attempt first. The first that succeeds stays.
        self._attempts = list(attempts(security.level, credentials=security.initiator is not None))
        self._client: RpcClient | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    @property
    def authenticated(self) -> bool:
        return self._attempts[0]

    def start(
        self,
        operation: Operation[Q, R],
        request: Q,
        limit_s: float,
        ended: Callable[[R | Exception], None],
    ) -> PendingCall[R]:
        """Starts a call of an existing session; raises if its association is gone."""
        client = self._client
        if client is None or not client.usable:
            raise RpcConnectionError(f"the association with {self._name} is gone")
        stub = operation.request.encode(request, Syntax.NDR20)
        call = PendingCall(client, operation, ended)
        call_id = client.start(SYNTAX, operation.opnum, stub, call, target=self._name.cid)
        call.started(call_id, limit_s)
        return call

    async def call_connecting(self, operation: Operation[Q, R], request: Q, limit_s: float) -> R:
        """Makes a call of the set-up: connects first; falls back as the security level allows."""
        async with asyncio.timeout(limit_s):
            while True:
                try:
                    client = await self._connected(limit_s)
                    return await invoke(
                        client,
                        IXN_REMOTE,
                        operation,
                        request,
                        target=self._name.cid,
                        timeout_s=limit_s,
                    )
                except (AuthenticationError, RpcConnectionError, RpcFault) as error:
                    if not self._falls_back(error):
                        raise

    def _falls_back(self, error: Exception) -> bool:
        """Returns whether to retry without authentication (2.1.3)."""
        denied = isinstance(error, AuthenticationError) or (
            isinstance(error, RpcFault) and error.status in _DENIED
        )
        refused = isinstance(error, _BindRefused)
        if len(self._attempts) == 1 or not (denied or refused):
            return False
        del self._attempts[0]
        self._drop()
        return True

    async def _connected(self, limit_s: float) -> RpcClient:
        async with self._connecting:
            if self._client is not None and self._client.usable:
                return self._client
            address, port = await self._resolve(self._name)
            client = await _connect(address, port, self._credentials(), limit_s)
            if self._closed:
                client.abort()
                raise RpcConnectionError("the session is gone")
            self._client = client
            return client

    def _credentials(self) -> Credentials | None:
        security = self._security
        if not self._attempts[0] or security.initiator is None:
            return None
        return Credentials(
            security.initiator, security.auth_type, AuthLevel.PRIVACY, self.principal
        )

    def _drop(self) -> None:
        if self._client is not None:
            self._client.abort()
            self._client = None

    async def close(self) -> None:
        """Closes after written data is sent. The partner runs its handle down."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class PendingCall(Generic[R]):
    """A call that reports its end at once, inside the read that brings the answer.

    A session has one SendReceive under way, so every turn of the loop between an answer and the
    next call delays all its connections. A task with a future and a timeout takes three turns.
    """

    def __init__(
        self,
        client: RpcClient,
        operation: Operation[Any, R],
        ended: Callable[[R | Exception], None],
    ) -> None:
        self._client = client
        self._operation = operation
        self._ended: Callable[[R | Exception], None] | None = ended
        self._timer: asyncio.TimerHandle | None = None
        self._call_id = 0

    def started(self, call_id: int, limit_s: float) -> None:
        self._call_id = call_id
        self._timer = asyncio.get_running_loop().call_later(limit_s, self._timed_out, limit_s)

    def cancel(self) -> None:
        """Abandons the call; ``ended`` is not called."""
        if self._ended is not None:
            self._client.give_up(self._call_id)
            self._end(None)

    def _timed_out(self, limit_s: float) -> None:
        self._client.give_up(self._call_id)
        self._end(RpcTimeoutError(f"no answer to {self._operation.name} in {duration(limit_s)}"))

    def done(self) -> bool:
        return self._ended is None

    def set_result(self, answered: CallReturned) -> None:
        try:
            answer = self._operation.response.decode(
                answered.stub, Syntax.NDR20, big_endian=answered.big_endian, allow_surplus=True
            )
        except WireError as error:
            self._end(error)
        else:
            self._end(answer)

    def set_exception(self, exception: Exception) -> None:
        self._end(exception)

    def _end(self, outcome: R | Exception | None) -> None:
        ended, self._ended = self._ended, None
        if self._timer is not None:
            self._timer.cancel()
        self._client.forget(self._call_id)
        if ended is not None and outcome is not None:
            ended(outcome)


class _BindRefused(RpcConnectionError):
    """The host was reached, but it refused the bind."""


async def _connect(
    address: str, port: int, credentials: Credentials | None, limit_s: float
) -> RpcClient:
    try:
        return await RpcClient.connect(
            address,
            port,
            [SYNTAX],
            transfers=[NDR20],
            credentials=credentials,
            max_frag=LIMITS.max_frag,
            timeout_s=limit_s,
        )
    except RpcTimeoutError:
        raise
    except RpcConnectionError as error:
        if isinstance(error.__cause__, OSError):
            raise
        raise _BindRefused(str(error)) from error
