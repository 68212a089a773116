"""Checks that copies with equal numbers have equal digests, as ``mqis status`` takes for granted.

An authority's digest is noted under each number that it commits; a replica that reaches the number
has to have the same. The digests are those that the stores keep; at the end of a run they are also
computed anew from the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, PartitionDigest
from mqis.protocol.ports import View
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.convergence import Contents, comparable_digest, compare_digests
from mqis.protocol.replication.digest import computed_digests
from mqis.sim.run_trace import Violation
from mqis.sim.simulated_server import SimServer
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_RULE = "equal numbers, equal digests"


class DigestCheck:
    """Compares the digest of every copy, after every commit that moved it."""

    def __init__(self, count: Callable[[str], None] = lambda kind: None) -> None:
        self._count = count
        self._known: dict[tuple[Guid, SequenceNumber], PartitionDigest] = {}
        self._seen: dict[tuple[str, Guid], Partition] = {}

    def committed(self, server: SimServer) -> None:
        with server.disk.store.read() as view:
            for state in view.partitions():
                key = server.name, state.id
                if self._seen.get(key) != state:
                    self._seen[key] = state
                    self._look(view, server, state)

    def _look(self, view: View, server: SimServer, state: Partition) -> None:
        digest = comparable_digest(view, state)
        if digest is None:
            return
        if state.id == ENTERPRISE_PARTITION and state.last_seq < server.follows_from:
            return
        key = state.id, state.last_seq
        known = self._known.get(key)
        if known is None:
            if owns(view, server.me, state.id):
                self._known[key] = digest
            return
        within = state.id in (ENTERPRISE_PARTITION, server.me.site)
        found = compare_digests(digest, known, within_site=within, authority=known)
        self._count(f"contents {found}")
        if found is Contents.DIFFERENT:
            where = f"{server.name} at {state.last_seq.value} of {state.id}"
            raise Violation(_RULE, f"{where} has another digest than the authority had")


def check_digests(servers: Iterable[SimServer]) -> None:
    """Checks that the digests that the stores keep are those of their objects."""
    for server in servers:
        with server.disk.store.read() as view:
            for partition, digest in computed_digests(view).items():
                kept = view.digest(partition)
                if kept is not None and kept != digest:
                    raise Violation(
                        "digests are kept", f"{server.name}: {partition} has another digest"
                    )
