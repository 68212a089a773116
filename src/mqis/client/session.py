"""An authenticated association with a directory server, and the calls on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mqis.client.authentication import (
    Callbacks,
    MachineSigner,
    ServerProof,
    SignatureError,
    begin_context,
)
from mqis.client.known import KnownServers
from mqis.client.servers import (
    LogonRefusedError,
    NoServerError,
    ServerAddress,
    find_port,
    is_logon_refused,
    located,
)
from mqis.protocol.authentication import Initiator
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient, RpcTimeoutError
from mqis.runtime.rpc.typed import invoke
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import is_failure
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation

Q = TypeVar("Q")
R = TypeVar("R")

#: The size of a signature buffer: a wrapped digest is far smaller with all known providers.
SIGNATURE_SIZE = 1024
#: The size of a buffer for handshake tokens.
TOKEN_SIZE = 65_536
_NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The options for connecting to a server."""

    #: Protect the connection and identify the caller; None: neither. A function makes them for a
    #: host, if the server's name is part of them (Kerberos).
    credentials: Credentials | Callable[[str], Credentials] | None = None
    #: Authenticates the server in S_DSValidateServer; None: its answers are not verified.
    gss: Initiator | None = None
    signer: MachineSigner | None = None
    answer_challenges: bool = True
    #: Ask S_DSGetServerPort for the port to use, as the first clients did (3.2.3).
    ask_port: bool = False
    #: Longer than a change that the server forwards to another one may take (MC-MQDSRP note 11).
    timeout_s: float = 15.0


def _unopened(errors: list[tuple[str, Exception]]) -> RpcConnectionError:
    """Returns the error of a server that answers at none of its addresses."""
    first = errors[0][1]
    if len(errors) == 1 and isinstance(first, RpcConnectionError):
        return first
    refused = any(is_logon_refused(error) for _, error in errors)
    kind = LogonRefusedError if refused else RpcConnectionError
    if len(errors) == 1:
        return kind(str(first))
    failed = kind("; ".join(located(host, error) for host, error in errors))
    failed.names_peer = True
    return failed


class ServerSession:
    """A session made by ``open``; it is usable between ``validate`` and ``close``."""

    def __init__(
        self, rpc: RpcClient, server: ServerAddress, callbacks: Callbacks, settings: SessionSettings
    ) -> None:
        self.server = server
        #: PCONTEXT_HANDLE_SERVER_AUTH_TYPE, null until the server is validated.
        self.auth = ContextHandle.NULL
        self.callbacks = callbacks
        self.proof = ServerProof()
        self._rpc = rpc
        self._settings = settings
        self._next_context = 1
        self._given_up = False

    @classmethod
    async def open(cls, server: ServerAddress, settings: SessionSettings) -> ServerSession:
        """Binds dscomm at the first of the server's addresses that answers (2.1, 3.2.3)."""
        errors: list[tuple[str, Exception]] = []
        for host in (server.host, *server.addresses):
            try:
                return await cls._open(server, host, settings)
            except (RpcConnectionError, RpcFault, WireError) as error:
                errors.append((host, error))
                if settings.credentials is not None and is_logon_refused(error):
                    break
        raise _unopened(errors)

    @classmethod
    async def _open(
        cls, server: ServerAddress, host: str, settings: SessionSettings
    ) -> ServerSession:
        port = await find_port(server, dscomm.SYNTAX, settings.timeout_s, host)
        session = await cls._bind(server, host, port, settings)
        if not settings.ask_port:
            return session
        try:
            port = (await session.call(dscomm.GET_SERVER_PORT, dscomm.GetServerPort(1))).port
            if not port:
                return session
            rebound = await cls._bind(server, host, port, settings)
        except BaseException:
            await session.close()
            raise
        await session.close()
        return rebound

    @classmethod
    async def _bind(
        cls, server: ServerAddress, host: str, port: int, settings: SessionSettings
    ) -> ServerSession:
        callbacks = Callbacks(settings.signer, settings.answer_challenges)
        credentials = settings.credentials
        rpc = await RpcClient.connect(
            host,
            port,
            [dscomm.SYNTAX],
            credentials=credentials(server.host) if callable(credentials) else credentials,
            callbacks=callbacks,
            timeout_s=settings.timeout_s,
        )
        return cls(rpc, server, callbacks, settings)

    async def validate(self, enterprise: Guid | None = None) -> None:
        """Calls S_DSValidateServer; without a provider the server's signatures are zeros."""
        number = self.new_context()
        token, context = b"", None
        gss = self._settings.gss
        if gss is not None:
            context, token = await asyncio.to_thread(begin_context, gss, self.server.host)
            self.callbacks.pending[number] = context
        room = max(TOKEN_SIZE, len(token))
        request = dscomm.ValidateServer(enterprise or Guid.NULL, 0, number, room, token)
        try:
            got = await self.call(dscomm.VALIDATE_SERVER, request)
        finally:
            self.callbacks.pending.pop(number, None)
        if is_failure(got.result):
            raise DirectoryError(got.result, "the server did not authenticate itself")
        if not got.handle:
            raise ProtocolError("the server gave no handle for its authentication")
        self.auth = got.handle
        if context is not None and not context.complete:
            raise SignatureError("the server did not complete its authentication")
        self.proof.context = context

    async def close(self) -> None:
        """Releases the auth handle, once, then closes the connection."""
        auth, self.auth = self.auth, ContextHandle.NULL
        if auth and self.usable:
            with suppress(ProtocolError, WireError):  # the server and its handles are gone
                await self.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(auth))
        self.proof.context = None
        await self._rpc.close()

    @property
    def usable(self) -> bool:
        return self._rpc.usable and not self._given_up

    def _give_up(self) -> None:
        self._given_up = True
        self._rpc.abort()

    def new_context(self) -> int:
        """A dwContext that no other call of this session uses."""
        number = self._next_context
        self._next_context += 1
        return number

    async def call(
        self,
        operation: Operation[Q, R],
        request: Q,
        given: Mapping[str, int] = _NOTHING,
        interface: InterfaceDescription = dscomm.DSCOMM,
    ) -> R:
        """Makes a call; returns the answer unchanged."""
        if interface is not dscomm.DSCOMM and not self._rpc.offers(interface.syntax):
            # The same association, because the auth handle belongs to it (MQDS-3.4.3-01).
            await self._rpc.add_interface(interface.syntax)
        try:
            return await invoke(
                self._rpc,
                interface,
                operation,
                request,
                given=given,
                timeout_s=self._settings.timeout_s,
            )
        except RpcFault as fault:
            if fault.status == FaultStatus.CONTEXT_EXPIRED:
                self._give_up()  # the next call logs on again
                raise RpcFault(fault.status, "the logon has expired; log on again") from None
            raise

    async def signed(
        self,
        operation: Operation[Q, R],
        request: Q,
        digest: Callable[[Any], bytes],
        given: Mapping[str, int] = _NOTHING,
        interface: InterfaceDescription = dscomm.DSCOMM,
    ) -> R:
        """Makes a call with a signed answer. A failed one has no signature to check (3.1.4.7)."""
        try:
            got: Any = await self.call(operation, request, given, interface)
        except (RpcTimeoutError, asyncio.CancelledError):
            if self.proof.context is not None:
                # The lost signature was part of a sequence: no later one would match.
                self._give_up()
            raise
        if not is_failure(got.result):
            try:
                self.proof.check(digest(got), got.signature)
            except SignatureError:
                if self.proof.broken:
                    self._give_up()
                raise
        answer: R = got
        return answer


class DirectoryConnection:
    """A session on demand, with the current server or the first that answers (3.2.3).

    A lost session is replaced at the next call. No call is repeated.
    """

    def __init__(self, known: KnownServers, settings: SessionSettings) -> None:
        self.known = known
        self.settings = settings
        self._session: ServerSession | None = None
        self._initialising = asyncio.Lock()
        self._closed = False

    @property
    def usable(self) -> bool:
        """True if there is a connection now."""
        return self._session is not None and self._session.usable

    async def session(self) -> ServerSession:
        """The current or a new session; ``NoServerError`` if no server answers.

        ``LogonRefusedError`` at once if one of them does not accept the credentials.
        """
        if self._session is not None and self._session.usable:
            return self._session
        async with self._initialising:
            if self._closed:
                raise RpcConnectionError("the client is closed")
            if self._session is None or not self._session.usable:
                lost, self._session = self._session, None
                if lost is not None:
                    await lost.close()
                self._session = await self._initialise()
            return self._session

    async def _initialise(self) -> ServerSession:
        errors: list[tuple[ServerAddress, Exception]] = []
        for server in self.known.in_order():
            try:
                session = await ServerSession.open(server, self.settings)
            except RpcConnectionError as error:
                self._tell_refused(server, error)
                errors.append((server, error))
                continue
            self.known.use(server)
            try:
                await session.validate(self.known.enterprise)
            except BaseException as error:
                await session.close()
                if isinstance(error, RpcFault):
                    self._tell_refused(server, error)
                raise
            return session
        raise NoServerError.of(errors)

    def _tell_refused(self, server: ServerAddress, error: Exception) -> None:
        """Raises ``LogonRefusedError`` if there are credentials and the server refused them.

        No other server is asked then: a domain locks an account after a few wrong passwords.
        """
        if self.settings.credentials is not None and is_logon_refused(error):
            raise LogonRefusedError.by(server, error) from error

    async def close(self) -> None:
        """Ends the connection for good."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()
