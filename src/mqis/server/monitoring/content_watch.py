"""Watches the contents of a running server's store.

Two things go unnoticed while a server only counts numbers. A file that something else than mqis
changed no longer fits its digests: ``ContentWatch.verify`` computes them anew, now and then. A copy
whose contents differ from another server's at the same number: ``ContentWatch.compare`` keeps what
comparisons with the peers of the configuration find. Both are red in ``/health``.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import Event

from mqis.findings import Finding
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PartitionDigest
from mqis.protocol.ports import Store, View
from mqis.protocol.replication.convergence import Contents
from mqis.protocol.replication.digest import with_object
from mqis.server.monitoring.replica_comparison import Comparison, compare_contents
from mqis.server.monitoring.replicas import ReplicaStatus
from mqis.server.monitoring.status import PartitionStatus, ServerStatus
from mqis.server.monitoring.verdict import Absence, FindingKind, judge
from mqis.storage.database import DatabaseStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

log = logging.getLogger(__name__)

#: The objects that are read at once, and the pause behind them as a multiple of their time: others
#: have the processor for the rest.
_PAGE, _PAUSE = 256, 4.0
_CHANGED = (
    "the contents of {} were changed by something else than mqis; 'mqis store check' and "
    "'mqis diff' say more"
)


@dataclass(slots=True)
class ContentWatch:
    """The findings about the contents of this server's store. Threads set whole values only."""

    #: The partitions whose digests do not fit their objects.
    changed: tuple[str, ...] = ()
    #: The number of finished verifications.
    verified: int = 0
    #: Set to end a verification early.
    stopped: Event = field(default_factory=Event)
    _peers: dict[tuple[str, str], Finding] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [_CHANGED.format(name) for name in self.changed]

    @property
    def different(self) -> frozenset[str]:
        """The identifiers of the partitions whose contents differ from a peer's."""
        return frozenset(partition for _, partition in list(self._peers))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What comparisons with peers found."""
        return tuple(self._peers.values())

    def verify(self, store: Store) -> None:
        """Computes all digests anew and compares them with those that the store keeps."""
        with _read_afresh(store) as view:
            found = self._digests(view)
            if found is None:
                return
            states = view.partitions()
            wrong = [
                partition_name(view, state.id)
                for state in states
                if view.digest(state.id) != found.get(state.id, PartitionDigest())
            ]
        for name in wrong:
            if name not in self.changed:
                log.error(_CHANGED.format(name))
        self.changed = tuple(wrong)
        self.verified += 1

    def _digests(self, view: View) -> dict[Guid, PartitionDigest] | None:
        """The digests of all partitions; None if the server is ending."""
        found: dict[Guid, PartitionDigest] = {}
        started, read = time.monotonic(), 0
        for kind in ObjectType:
            for obj in view.objects(kind):
                known = found.get(obj.partition, PartitionDigest())
                found[obj.partition] = with_object(known, obj)
                read += 1
                if read % _PAGE == 0:
                    if self.stopped.wait(_PAUSE * (time.monotonic() - started)):
                        return None
                    started = time.monotonic()
        return found

    def compare(self, mine: ServerStatus, peer: ServerStatus) -> None:
        """Compares this server's copies with a peer's; keeps what differs until it is equal."""
        theirs = {partition.id: partition for partition in peer.partitions}
        for partition in mine.partitions:
            if partition.id not in theirs:
                continue
            contents = compare_contents(partition, theirs[partition.id])
            key = peer.server, partition.id
            if contents in (Contents.EQUAL, Contents.UNPROVED):
                self._peers.pop(key, None)
            elif contents is Contents.DIFFERENT:
                pair = replace(mine, partitions=(partition,)), theirs[partition.id]
                self._keep(key, *pair, peer)

    def _keep(
        self, key: tuple[str, str], mine: ServerStatus, other: PartitionStatus, peer: ServerStatus
    ) -> None:
        found = _difference(mine, replace(peer, partitions=(other,)))
        if found is not None and key not in self._peers:
            log.error(found.what)
        if found is not None:
            self._peers[key] = found


def _read_afresh(store: Store) -> AbstractContextManager[View]:
    """A view that answers from the disk: a used connection could answer from its cache."""
    return store.read_afresh() if isinstance(store, DatabaseStore) else store.read()


@dataclass(frozen=True, slots=True)
class ComparedServer:
    """A server for the verdict, of which only its replicas are known."""

    name: str
    partitions: tuple[ReplicaStatus, ...] | None
    absence: Absence | None = None
    problems: tuple[str, ...] = ()
    at_rest: bool = False
    neighbours: int = 0
    lost_files: tuple[str, ...] = ()


def _difference(mine: ServerStatus, peer: ServerStatus) -> Finding | None:
    """The finding about the contents of this server beside a peer's; None if the peer is wrong."""
    comparison = Comparison({}, 0.0)
    both = (mine, peer)
    for status in both:
        comparison.add(status.server, status)
    verdict = judge(
        [ComparedServer(s.server, comparison.replicas(s.server, s)) for s in both]
    ).about(mine.server)
    return next((f for f in verdict.findings if f.check == FindingKind.CONTENTS), None)


# --- The names of partitions in status, metrics and messages --------------------------------------


def partition_name(view: View, partition: Guid) -> str:
    if partition == ENTERPRISE_PARTITION:
        return "enterprise"
    site = view.get(ObjectType.SITE, partition)
    return (None if site is None else site.path) or str(partition)
