"""An RPC server on TCP: several services on one port."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Sequence
from math import inf

from mqis.protocol.authentication import Authenticator, AuthLevel, Identity
from mqis.protocol.budget import Caller, Charge, Shortage
from mqis.protocol.discovery.limiter import RateLimit, RateLimiter
from mqis.protocol.ports import Entropy
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.server_endpoint import RpcLimits, ServerEndpoint
from mqis.runtime.budgets import Budgets, memory_budget
from mqis.runtime.crowd import Crowd
from mqis.runtime.histogram import Served
from mqis.runtime.peers import source_of
from mqis.runtime.rpc.incoming import Service
from mqis.runtime.rpc.server_connection import RpcSession, ServerProtocol
from mqis.runtime.turns import TURN_S, Turns

log = logging.getLogger(__name__)

#: Seconds between two log lines about refusals of one kind.
TOLD_EVERY_S = 10.0
#: One in so many connections is kept for callers with a name.
KEPT_FOR_NAMED = 4


def _address_of(peer: Hashable) -> Hashable:
    """The address that the handles of a peer, (transport, address), are charged to."""
    return source_of(str(peer[1])) if isinstance(peer, tuple) else peer


class RpcServer:
    """Listens, admits connections up to its limits, and closes with a grace period.

    ``async with RpcServer(services, entropy) as server: await server.listen("127.0.0.1", 0)``
    """

    def __init__(
        self,
        services: Sequence[Service],
        entropy: Entropy,
        *,
        authenticator: Authenticator | None = None,
        limits: RpcLimits | None = None,
        min_level: int = AuthLevel.INTEGRITY,
        max_connections: int = 1024,
        max_connections_per_peer: int = 1024,
        rate: RateLimit | None = None,
        exempt: Callable[[str], bool] = lambda _peer: False,
        budgets: Budgets | None = None,
        turn_s: float = TURN_S,
    ) -> None:
        """``rate`` limits the new connections of each address; ``exempt`` addresses are free of
        that limit and of ``max_connections_per_peer``, but not of ``budgets``. Without these the
        handles are limited by the default of ``AssociationGroups``. Callers that are protected
        below ``min_level`` are anonymous. ``turn_s`` seconds of each turn of the event loop are for
        strangers."""
        self._memory = memory_budget() if budgets is None else budgets.memory
        handles = None if budgets is None else budgets.handles
        #: The time of the last log line of each kind.
        self._logged_at: dict[str, float] = {}
        self._served = {service.interface.syntax: Served(service) for service in services}
        #: Connections since the start.
        self.accepted = 0
        self._limiter = None if rate is None else RateLimiter(rate)
        self._exempt = exempt
        #: The connections by the number that administrators name them by.
        self._connections: dict[ServerProtocol, int] = {}
        self._crowd: Crowd[ServerProtocol] = Crowd(
            max_connections,
            max_connections_per_peer,
            self._evict,
            kept_for_named=max_connections // KEPT_FOR_NAMED,
            spares_busy=False,
            exempt=exempt,
        )
        self._turns = Turns(turn_s)
        self._listener: asyncio.Server | None = None
        self.endpoint = ServerEndpoint(
            tuple(service.interface for service in services),
            AssociationGroups(entropy, handles, _address_of),
            authenticator,
            limits=limits or RpcLimits(),
            min_level=min_level,
        )

    async def __aenter__(self) -> RpcServer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def listen(self, host: str, port: int = 0) -> int:
        """Listens and returns the port, a free one for 0."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: ServerProtocol(self), host, port)
        bound: int = self._listener.sockets[0].getsockname()[1]
        self.endpoint.secondary_address = str(bound)
        return bound

    @property
    def connections(self) -> int:
        return len(self._connections)

    def sessions(self) -> list[RpcSession]:
        """The connections, the longest first."""
        return [connection.session(id_) for connection, id_ in self._connections.items()]

    def end_session(self, id: int) -> bool:  # noqa: A002
        """Closes a connection at once; returns False if there is no such connection."""
        for connection, id_ in self._connections.items():
            if id_ == id:
                connection.abort()
                return True
        return False

    def judge_logons(self) -> None:
        """Judges all logons again, after a change of the accounts."""
        for connection in self._connections:
            connection.judge()

    def served(self, interface: Interface) -> Served:
        return self._served[interface.syntax]

    def statistics(self) -> list[Served]:
        """The services with their counters."""
        return list(self._served.values())

    def admit(self, connection: ServerProtocol) -> bool:
        """Adds a connection; returns False if it exceeds a limit."""
        peer = connection.peer
        if not self._keeps_rate(peer):
            self._refused(peer, "too many at once (rpc.connection_rate)")
            return False
        if not self._crowd.enter(connection, peer):
            self._refused(peer, "all are taken by users who have logged on (rpc.max_connections)")
            return False
        self.accepted += 1
        self._connections[connection] = self.accepted
        return True

    def _keeps_rate(self, peer: str) -> bool:
        """Returns whether an address has not exceeded its rate of connections."""
        if self._limiter is None or self._exempt(peer):
            return True
        return self._limiter.allows(source_of(peer), time.monotonic())

    def _refused(self, peer: str, reason: str) -> None:
        self.endpoint.statistics.refused += 1
        if self._may_tell("refused"):
            log.warning("refused a connection of %s: %s", peer, reason)

    def _evict(self, connection: ServerProtocol) -> None:
        """Closes the connection of a stranger for a new one."""
        self.endpoint.statistics.evicted += 1
        if self._may_tell("evicted"):
            log.warning(
                "closed a connection of %s, which has not logged on, to make room for others: all "
                "%d are taken (rpc.max_connections, rpc.max_connections_per_address)",
                connection.peer,
                len(self._crowd) + 1,
            )
        connection.abort()

    def named(self, connection: ServerProtocol) -> None:
        self._crowd.name(connection)

    def busy(self, connection: ServerProtocol) -> None:
        self._crowd.busy(connection)

    def waits(self, connection: ServerProtocol) -> None:
        self._crowd.waits(connection)

    def must_wait(self, connection: ServerProtocol) -> bool:
        return self._turns.must_wait(connection)

    def charge(self, connection: ServerProtocol, name: Identity | None = None) -> Charge:
        """A charge for a connection's memory."""
        return Charge(self._memory, Caller(connection, source_of(connection.peer), name))

    def short_of_memory(self, peer: str, shortage: Shortage) -> None:
        """Logs a refusal for lack of memory."""
        if self._may_tell("memory"):
            log.warning(
                "refused a call of %s for lack of memory (rpc.memory_mb): %s bytes", peer, shortage
            )

    def _may_tell(self, what: str) -> bool:
        """Returns whether to log a line of this kind now: at most one in ``TOLD_EVERY_S``."""
        now = time.monotonic()
        if now - self._logged_at.get(what, -inf) < TOLD_EVERY_S:
            return False
        self._logged_at[what] = now
        return True

    def forget(self, connection: ServerProtocol) -> None:
        self._connections.pop(connection, None)
        self._crowd.leave(connection)

    async def close(self, grace_s: float = 5.0) -> None:
        """Accepts no more connections, lets calls end, then closes the rest."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.shut_down()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while any(c.busy for c in self._connections) and loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.abort()
        while self._connections and loop.time() < deadline + 1:
            await asyncio.sleep(0.01)
        if self._listener is not None:
            await self._listener.wait_closed()
