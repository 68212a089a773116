"""Routing of a directory server: its routes by its own directory, and the peers that may use them.

The directory is read in a thread, since it may be large: at the start, every hour, and when sites,
links or machines have changed; changes within a second share one read. A server whose machine
object lacks the routing bit reads only that object, forwards nothing and admits no further peers.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.errors import StorageError
from mqis.protocol.node.node import Outcome
from mqis.protocol.ports import Store
from mqis.protocol.queueing.events import Relayed, Stranded
from mqis.protocol.queueing.manager import QueueStatistics
from mqis.protocol.replication.effects import Changed
from mqis.protocol.routing.directorydata import READ_ERRORS
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.protocol.routing.snapshot import ROUTED, Snapshot
from mqis.runtime.node.members import Members
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqqb.queuename import QueueName

log = logging.getLogger(__name__)

#: Seconds between two reads of the directory.
PAUSE_S = 1.0


class ServerRouter(DirectoryRouter):
    """A router that only forwards: no application reads queues of a directory server."""

    def has_queue(self, name: QueueName) -> bool:
        return False


class ServerRouting:
    """The router of a server, and ``queueing.Peers`` for the machines that send through it."""

    def __init__(self, store: Store, machine: Guid, members: Members) -> None:
        self._store = store
        self._machine = machine
        self._members = members
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reading: asyncio.Future[Snapshot] | None = None
        self._statistics = QueueStatistics()
        self.keeper = RoutingTableKeeper(machine, self._read, self._loop.time())
        self.router = ServerRouter(machine, self.keeper, self._owner_of)

    def start(self, statistics: QueueStatistics) -> None:
        """Keeps the table until ``close``; ``statistics`` are those of the queue manager."""
        self._statistics = statistics
        self._task = self._loop.create_task(self._keep())

    async def close(self) -> None:
        """Stops; returns when the last read of the store has ended."""
        if self._task is not None:
            self._task.cancel()
            ending = [self._task] if self._reading is None else [self._task, self._reading]
            await asyncio.gather(*ending, return_exceptions=True)
        self._log_counts()

    # --- sessions ---------------------------------------------------------------------------------

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool:
        """Admits servers of the directory; a routing server also admits its other machines."""
        if self._members.admits(guid, machine, address):
            return True
        return machine is None and self.router.forwards and self._members.member(guid) is not None

    def counts(self, guid: Guid) -> bool:
        """True if replication accepts messages of the peer: of those ``Members`` admits."""
        return self._members.admits(guid, None, "")

    # --- the directory ----------------------------------------------------------------------------

    def handle(self, outcome: Outcome) -> None:
        match outcome:
            case Changed(object_types) if object_types & {*ROUTED}:
                self._news.set()
            case Relayed(identifier, target, peer, _, machine, hops):
                way = identifier, peer, target, machine, hops
                log.debug("relayed %s of %s for %s to %s, hop %d", *way)
            case Stranded(identifier, target, reason):
                log.debug("%s for %s waits: %s", identifier, target, reason)
            case _:
                pass

    async def _keep(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self.keeper.next_timer()):
                    await self._news.wait()
            self._news.clear()  # changes from here on are read the next time
            await self._refresh()
            self._log_counts()
            await asyncio.sleep(PAUSE_S)

    async def _refresh(self) -> None:
        self._reading = self._loop.run_in_executor(None, self._read)
        try:
            snapshot = await asyncio.shield(self._reading)
        except READ_ERRORS as error:
            self._failed(error)
        except Exception as error:  # the table stays, and the read is retried
            log.debug("reading the directory for routes failed", exc_info=error)
            self._failed(StorageError(f"{type(error).__name__}: {error}"))
        else:
            if self.keeper.refreshed(snapshot, self._loop.time()):
                log.debug("routes to %d sites", len(self.keeper.table))

    def _log_counts(self) -> None:
        counted = self._statistics
        refused = counted.refused - counted.duplicates
        log.debug("messages relayed: %d, refused: %d", counted.relayed, refused)

    def _failed(self, error: MqisError) -> None:
        self.keeper.failed(error, self._loop.time())
        log.warning("the directory cannot be read, so the routes stay as they are: %s", error)

    def _read(self) -> Snapshot:
        with self._store.read() as view:
            machine = view.get(ObjectType.MACHINE, self._machine)
            if machine is None or not ServiceAttributes.of(machine).routing:
                return Snapshot({}, {}, {})
            return Snapshot.read(view)

    def _owner_of(self, queue: Guid) -> Guid | None:
        try:
            with self._store.read() as view:
                obj = view.get(ObjectType.QUEUE, queue)
        except StorageError as error:
            log.debug("the owner of queue %s cannot be read: %s", queue, error)
            return None
        owner = None if obj is None else obj.value(PropId.Q_QMID)
        return owner if isinstance(owner, Guid) else None
