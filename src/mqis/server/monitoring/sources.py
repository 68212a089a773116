"""The parts of a server from which monitoring reads, as far as they run already."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqis.config.sections import Config
from mqis.protocol.ports import Store
from mqis.protocol.queueing.destination import Depth
from mqis.protocol.queueing.names import canonical
from mqis.server.monitoring.chain import ChainWatch
from mqis.server.monitoring.contents import ContentWatch
from mqis.server.monitoring.lag import LagWatch
from mqis.wire.guid import Guid

if TYPE_CHECKING:  # commands read the status of servers, and load none of their parts
    from mqis.protocol.discovery.server import DiscoveryServer
    from mqis.runtime.directory.context import DirectoryContext
    from mqis.runtime.http import HttpServer
    from mqis.runtime.node.notifier import ChangeNotifier
    from mqis.runtime.rpc.server import RpcServer
    from mqis.runtime.writer import GroupCommitWriter
    from mqis.server.logon import AuditedAuthenticator
    from mqis.server.replication import ReplicationService


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
