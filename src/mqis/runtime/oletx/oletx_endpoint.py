"""OleTx connections for applications.

    async with OleTxEndpoint(NameObject("ALPHA", cid), mapper_port=135) as endpoint:
        async with await endpoint.connect(partner, connection_type=0x101) as connection:
            await connection.send(0x2001, body)
            async for message in connection: ...

A partner that accepts connections registers a handler by connection type:

    endpoint.accept(0x101, handler)     # async def handler(connection): ...
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mqis.protocol.authentication import Identity
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import CmpoSession, SessionState, VersionLimits
from mqis.protocol.cmpo.session_setup import SessionError
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.protocol.multiplexer.held_bytes import ByteBudget
from mqis.protocol.multiplexer.limits import SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.protocol.multiplexer.multiplexer import Multiplexer
from mqis.protocol.rpc.endpoint_map import EndpointRegistry
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.oletx.application_connection import ConnectionClosed, OleTxConnection
from mqis.runtime.oletx.partner_binding import Security
from mqis.runtime.oletx.partner_driver import Transport
from mqis.runtime.oletx.resolver import MapperResolver, Resolver
from mqis.runtime.oletx.session_link import SessionLink
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.cmpo.codes import CmResult, TeardownType
from mqis.wire.cmpo.ixnremote import BoundVersionSet

log = logging.getLogger(__name__)

MAPPER_CONNECTIONS_PER_PEER = 256

#: The reason to deny a connection of a type without a handler (MS-DTCO 3.1.5.1).
NOT_A_TYPE = CmResult.INVALID_ARGUMENT


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """A partner's request for a connection."""

    partner: NameObject
    connection_type: int
    version: BoundVersionSet
    identity: Identity | None


Handler = Callable[[OleTxConnection], Awaitable[None]]
#: Returns 0 to accept a connection, else the reason to deny it.
Admission = Callable[[ConnectionRequest], int]


class OleTxEndpoint:
    """One partner: opens and accepts connections; a context manager that listens inside."""

    def __init__(
        self,
        name: NameObject,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        mapper_port: int | None = None,
        registry: EndpointRegistry | None = None,
        resolver: Resolver | None = None,
        level_three: tuple[int, int] = (1, 5),
        security: Security | None = None,
        settings: CmpoSettings | None = None,
        limits: SessionLimits | None = None,
        budget: ByteBudget | None = None,
    ) -> None:
        """``mapper_port`` starts an endpoint mapper; ``registry`` is that of a running one."""
        self.name = name
        self.address = address
        self.port = port
        self.mapper_port = mapper_port
        self._registry = registry
        self._resolver = resolver or MapperResolver()
        # MS-CMP 3.1.3.2: level two is 1 and nothing else.
        self._versions = VersionLimits(level_two=(1, 1), level_three=level_three)
        self._security = security or Security()
        self._settings = settings
        self._limits = limits or SessionLimits()
        self._budget = budget or ByteBudget()
        self._mapper: RpcServer | None = None
        self._transport: Transport | None = None
        self._links: dict[CmpoSession, SessionLink] = {}
        self._by_mux: dict[object, SessionLink] = {}
        self._acceptors: dict[int | None, tuple[Handler, Admission | None]] = {}
        self._handlers: set[asyncio.Task[None]] = set()
        self._open = False

    # --- life -------------------------------------------------------------------------------------

    @property
    def transport(self) -> Transport:
        if self._transport is None:
            raise RuntimeError("enter the endpoint first: async with OleTxEndpoint(...)")
        return self._transport

    async def __aenter__(self) -> OleTxEndpoint:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Initialises (MS-CMP 3.1.3); closes everything again if that fails."""
        self._transport = Transport(
            self.name,
            self,
            self._resolver,
            versions=self._versions,
            settings=self._settings,
            security=self._security,
        )
        try:
            registry = await self._start_mapper()
            self.port = await self._transport.start(self.address, self.port, registry)
        except BaseException:
            await self.close(grace_s=0)
            raise
        self._open = True

    async def _start_mapper(self) -> EndpointRegistry | None:
        if self.mapper_port is None:
            return self._registry
        registry = self._registry or EndpointRegistry()
        mapper = RpcServer(
            [EndpointMapperService(registry), ManagementService(lambda: mapper.endpoint)],
            SystemEntropy(),
            max_connections_per_peer=MAPPER_CONNECTIONS_PER_PEER,
        )
        self._mapper = mapper
        self.mapper_port = await mapper.listen(self.address, self.mapper_port)
        return registry

    async def close(self, grace_s: float = 2.0) -> None:
        """Disconnects the connections opened here, tears down sessions, and closes."""
        self._open = False
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        await self._until(lambda: not self._disconnect_all(), deadline)
        self._tear_down_all()
        await self._until(lambda: not self._links, deadline)
        for task in list(self._handlers):
            task.cancel()
        if self._handlers:
            await asyncio.gather(*self._handlers, return_exceptions=True)
        if self._transport is not None:
            await self._transport.close(0.2)
        if self._mapper is not None:
            await self._mapper.close(0.2)
            self._mapper = None

    async def _until(self, done: Callable[[], bool], deadline: float) -> None:
        loop = asyncio.get_running_loop()
        while not done() and loop.time() < deadline:
            await asyncio.sleep(0.005)

    def _disconnect_all(self) -> bool:
        """Disconnects the connections opened here; returns whether any are left."""
        left = False
        for link in list(self._links.values()):
            for raw in list(link.mux.outgoing.values()):
                left = True
                if raw.state in (ConnectionState.OPEN, ConnectionState.DENIED):
                    link.mux.disconnect(raw)
                    link.touch()
        return left

    def _tear_down_all(self) -> None:
        for link in list(self._links.values()):
            if link.session.state is SessionState.ACTIVE:
                now = asyncio.get_running_loop().time()
                self.transport.machine.tear_down(link.session, TeardownType.FORCE, now)
        if self._transport is not None:
            self._transport.act()

    # --- connections ------------------------------------------------------------------------------

    async def connect(self, partner: NameObject, connection_type: int) -> OleTxConnection:
        """Opens a connection; raises ``SessionError`` or ``ConnectionClosed`` if it cannot.

        Connections are not acknowledged: a denial by the partner comes later.
        """
        while True:
            link = await self.session(partner)
            try:
                return await link.open(connection_type).opened()
            except ConnectionClosed:
                # The partner has just torn down the session as idle (E-CMP-20). Nothing was
                # sent yet, so nothing can be sent twice.
                if not link.torn_down:
                    raise

    def open(self, partner: NameObject, connection_type: int) -> OleTxConnection:
        """Opens a connection without waiting. Messages sent at once share the first boxcar."""
        link = self._link(partner)
        if not link.usable:
            raise SessionError(CmResult.TEARING_DOWN, f"the session with {partner}")
        connection = link.open(connection_type)
        self.transport.act()
        return connection

    async def session(self, partner: NameObject) -> SessionLink:
        """Waits for a session that is up, whichever side asked for it."""
        while True:
            link = self._link(partner)
            self.transport.act()
            if link.usable:
                await asyncio.shield(link.up)
            if link.usable:
                return link
            await self.transport.released(link.session)

    async def ping(self, partner: NameObject) -> float:
        """The round-trip time of a PING in seconds; sets up the session first."""
        link = await self.session(partner)
        start = asyncio.get_running_loop().time()
        await link.ping()
        return asyncio.get_running_loop().time() - start

    def _link(self, partner: NameObject) -> SessionLink:
        if not self._open:
            raise RuntimeError("the endpoint is not open")
        now = asyncio.get_running_loop().time()
        return self._link_of(self.transport.machine.request_session(partner, now))

    def _link_of(self, session: CmpoSession) -> SessionLink:
        """The link of a session; each has a multiplexer, whichever side asked for it (E-CMP-17)."""
        link = self._links.get(session)
        if link is None:
            link = SessionLink(self, session, Multiplexer(self._limits, self._budget))
            self._links[session] = self._by_mux[link.mux] = link
        return link

    def accept(
        self, connection_type: int | None, handler: Handler, admit: Admission | None = None
    ) -> None:
        """Runs ``handler`` for every connection of a type that ``admit`` accepts.

        ``admit`` must not wait: messages of the connection may follow in the same boxcar. The
        type None stands for all types without a handler of their own.
        """
        self._acceptors[connection_type] = (handler, admit)

    def requested(self, link: SessionLink, raw: MultiplexedConnection) -> None:
        """Accepts or denies a connection that a partner requests."""
        for_any = self._acceptors.get(None, (None, None))
        handler, admit = self._acceptors.get(raw.type, for_any)
        reason: int = NOT_A_TYPE
        if handler is not None and self._open:
            request = ConnectionRequest(
                link.session.name, raw.type, link.session.version, link.identity
            )
            reason = 0 if admit is None else admit(request)
        connection = link.decide(raw, reason)
        if connection is not None and handler is not None:
            task = asyncio.get_running_loop().create_task(_handle(handler, connection))
            self._handlers.add(task)
            task.add_done_callback(self._handlers.discard)

    def wake_others(self) -> None:
        """Resumes the sessions for which the budget has room again."""
        for mux in self._budget.woken():
            link = self._by_mux.get(mux)
            if link is not None:
                link.touch()

    # --- events of the sessions (LevelTwo) --------------------------------------------------------

    def session_up(self, session: CmpoSession, now: float) -> None:
        self._link_of(session).session_up(now)

    def session_failed(self, session: CmpoSession, result: int, now: float) -> None:
        error = SessionError(result, f"no session with {session.name}")
        self._drop(session, str(error), now, error)

    def session_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        forced = teardown is TeardownType.FORCE
        how = "torn down" if forced else "lost"
        self._drop(session, f"the session with {session.name} was {how}", now, None, forced=forced)

    def _drop(
        self,
        session: CmpoSession,
        reason: str,
        now: float,
        error: Exception | None,
        *,
        forced: bool = False,
    ) -> None:
        link = self._links.pop(session, None)
        if link is not None:
            link.torn_down = forced
            link.session_down(reason, now, error)
            self._by_mux.pop(link.mux, None)

    def grant(self, session: CmpoSession, requested: int, now: float) -> int:
        return self._links[session].mux.resources_requested(requested)

    def granted(self, session: CmpoSession, accepted: int, result: int, now: float) -> None:
        self._links[session].granted(accepted, result, now)

    def receive(self, session: CmpoSession, messages: int, boxcar: bytes, now: float) -> int | None:
        return self._links[session].receive(messages, boxcar, now)

    def sent(self, session: CmpoSession, now: float) -> None:
        self._links[session].sent(now)


async def _handle(handler: Handler, connection: OleTxConnection) -> None:
    try:
        await handler(connection)
    except ConnectionClosed as error:  # ended with its session: no fault of the handler
        log.info("%r ended: %s", connection, error)
    except Exception:
        log.exception("the handler of %r failed", connection)
