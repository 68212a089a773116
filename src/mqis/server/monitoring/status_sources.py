"""The parts of a server from which monitoring reads, as far as they run already."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from mqis.config.sections import Config
from mqis.findings import Finding
from mqis.protocol.journal import ChainState
from mqis.protocol.ports import Store
from mqis.protocol.queueing.destination import Depth
from mqis.protocol.queueing.replication_queue import canonical
from mqis.server.monitoring.content_watch import ContentWatch
from mqis.storage.journal.checking import StoreEnd, check_journal
from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.protocol.discovery.discovery_server import DiscoveryServer
    from mqis.runtime.directory.context import DirectoryContext
    from mqis.runtime.http import HttpServer
    from mqis.runtime.node.notifier import ChangeNotifier
    from mqis.runtime.rpc.rpc_server import RpcServer
    from mqis.runtime.writer import GroupCommitWriter
    from mqis.server.logon import AuditedAuthenticator
    from mqis.server.replication import ReplicationService

# --- Watches the chain of a running server's journal: reads all of its files now and then ---------
# A journal is only appended to, so damage of what was written earlier shows when somebody reads it
# again, which may be too late. ``ChainWatch.check`` does what 'mqis journal check' does, slowly.

log = logging.getLogger(__name__)

#: The pause behind each step as a multiple of its time: others have the processor for the rest.
_PAUSE = 4.0


class _Stopped(Exception):
    """The server is ending."""


@dataclass(slots=True)
class ChainWatch:
    """The faults of the journal's files. The thread that checks sets whole values only."""

    #: None until the first check is finished, and for a server without a journal.
    faults: tuple[Finding, ...] | None = None

    def check(self, service: ReplicationService, store: Store, stopped: Event) -> None:
        """Checks all files; raises ``StorageError`` if the store or a file cannot be read."""
        with suppress(_Stopped):
            found = _faults(service, store, stopped)
            if found:  # retention may have deleted files meanwhile
                found = _faults(service, store, stopped)
            known = {str(fault) for fault in self.faults or ()}
            for fault in found:
                if str(fault) not in known:
                    log.error("the journal is damaged: %s", fault)
            self.faults = found


def _faults(service: ReplicationService, store: Store, stopped: Event) -> tuple[Finding, ...]:
    if service.journal is None:
        return ()
    with store.read() as view:
        end = StoreEnd.of(view)
    # A new key signs before it is in the directory.
    own = () if service.key is None else (service.key.public,)
    keys = (*service.driver.members.keys_of(service.me.id), *own)
    found = check_journal(service.journal.files.directory, keys, end, _Pauses(stopped))
    # The end of a growing segment is torn while it is being written.
    return tuple(fault for fault in found.faults if fault.check != ChainState.TORN)


class _Pauses:
    """Waits four times as long as the work since the last pause took."""

    def __init__(self, stopped: Event) -> None:
        self._stopped = stopped
        self._began = time.monotonic()

    def __call__(self) -> None:
        if self._stopped.wait(_PAUSE * (time.monotonic() - self._began)):
            raise _Stopped
        self._began = time.monotonic()


# --- The lag of neighbours, in changes and in seconds ---------------------------------------------
# A PSC acknowledges every 256 changes, a backup controller none, so acknowledgements alone would
# show a lag where there is none. The transport knows sooner: if there is a session with a
# neighbour, no message waits for it and none is in flight, then its queue manager has all changes
# that were committed at the observation before. (Not those of the same observation: a committed
# change is not in the queue at once.) A message that expired while a neighbour was away counts as
# sent: the neighbour requests those changes itself, and its own ``mqis_partition_missing_changes``
# shows them.

#: Observations of a partition that are kept; of more, every second one is dropped.
MAX_LOOKS = 1024


class LagWatch:
    """Observes the numbers of the own partitions, and the neighbours that are idle."""

    def __init__(self) -> None:
        #: (number, time at which it was first observed), ascending.
        self._seen: dict[Guid, deque[tuple[int, float]]] = {}
        #: The last number that each neighbour has, as far as the transport knows.
        self._delivered: dict[str, dict[Guid, int]] = {}
        self._last: dict[Guid, int] = {}

    def observe(self, now: float, numbers: Mapping[Guid, int], idle: Mapping[str, bool]) -> None:
        """``numbers``: the last of each own partition; ``idle``: nothing waits for a neighbour."""
        self._delivered = {
            name: self._last if nothing_waits else self._delivered.get(name, {})
            for name, nothing_waits in idle.items()
        }
        self._last = dict(numbers)
        self._seen = {
            partition: _seen(self._seen.get(partition, deque()), number, now)
            for partition, number in numbers.items()
        }

    def of(
        self, neighbour: str, partition: Guid, last: int, acknowledged: int, now: float
    ) -> tuple[int, float]:
        """The number of changes that ``neighbour`` may lack, and the age of the oldest."""
        has = max(acknowledged, self._delivered.get(neighbour, {}).get(partition, 0))
        if has >= last:
            return 0, 0.0
        times = (at for number, at in list(self._seen.get(partition, ())) if number > has)
        return last - has, max(0.0, now - next(times, now))


def _seen(seen: deque[tuple[int, float]], number: int, now: float) -> deque[tuple[int, float]]:
    if not seen or seen[-1][0] < number:
        seen.append((number, now))
    return seen if len(seen) <= MAX_LOOKS else deque(list(seen)[::-2][::-1])


# --- The parts of a server from which monitoring reads, as far as they run already ----------------


@dataclass(frozen=True, slots=True)
class QueueTraffic:
    """A sample of the queue manager's sessions and queues."""

    #: The time of the sample, by a monotonic clock.
    at: float = 0.0
    sessions: list[tuple[Guid, str | None]] = field(default_factory=list)
    depths: list[Depth] = field(default_factory=list)

    def queued(self, name: str) -> int:
        """The number of replication messages that a machine has not acknowledged."""
        key = canonical(name)
        mine = (d for d in self.depths if not d.routed and canonical(d.machine) == key)
        return sum(depth.messages for depth in mine)


@dataclass(slots=True)
class Sources:
    """The parts of one server; the code that starts a part sets it here.

    They are read from a separate thread. Collections that the event loop or the writer changes
    meanwhile are copied before they are iterated, which in Python is atomic. For the queue manager
    that is not enough: ``sample_traffic`` reads it in the event loop.
    """

    config: Config
    name: str
    store: Store
    writer: GroupCommitWriter
    started: float = field(default_factory=time.time)
    rpc: RpcServer | None = None
    mapper: RpcServer | None = None
    monitoring: HttpServer | None = None
    replication: ReplicationService | None = None
    discovery: DiscoveryServer | None = None
    authenticator: AuditedAuthenticator | None = None
    directory: DirectoryContext | None = None
    #: None: no change notifications are sent.
    notifier: ChangeNotifier | None = None
    #: The file of the configuration; None if it came from elsewhere.
    config_file: Path | None = None
    #: True once clients are served.
    serving: bool = False
    traffic: QueueTraffic = field(default_factory=QueueTraffic)
    lag: LagWatch = field(default_factory=LagWatch)
    contents: ContentWatch = field(default_factory=ContentWatch)
    chain: ChainWatch = field(default_factory=ChainWatch)

    def sample_traffic(self) -> None:
        """Samples the queue manager; called in the event loop before monitoring reads."""
        if self.replication is not None:
            queue = self.replication.driver.node.queue
            now = asyncio.get_running_loop().time()
            self.traffic = QueueTraffic(now, queue.sessions(), queue.depths())
