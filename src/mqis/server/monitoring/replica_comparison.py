"""Compares the partitions of several servers: numbers, and at equal numbers contents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PartitionDigest
from mqis.protocol.replication.convergence import Contents, compare_digests
from mqis.server.monitoring.replicas import Distance, ReplicaStatus, Since
from mqis.server.monitoring.status import PartitionStatus, ServerStatus


@dataclass(frozen=True, slots=True)
class _Held:
    """One server's copy of a partition."""

    server: str
    status: PartitionStatus


@dataclass(slots=True)
class _Copies:
    """The copies of one partition, and their measure, which is computed once for all of them."""

    held: list[_Held] = field(default_factory=list)
    authorities: list[_Held] = field(default_factory=list)
    #: The last number of the authority, else the highest of all copies; None: not computed yet.
    reference: int | None = None
    jumps: set[tuple[int, int]] = field(default_factory=set)

    def add(self, copy: _Held) -> None:
        self.held.append(copy)
        if copy.status.authority:
            self.authorities.append(copy)
        self.reference = None

    def measure(self) -> tuple[int, set[tuple[int, int]]]:
        if self.reference is None:
            best = [each.status for each in self.authorities or self.held]
            self.reference = max(_number(copy.last_seq) for copy in best)
            self.jumps = _jumps(best)
        return self.reference, self.jumps


@dataclass(slots=True)
class Comparison:
    """The copies of all partitions, each to be compared with the others.

    Updates ``since`` with the replicas that are behind from now on.
    """

    since: Since
    now: float
    _copies: dict[str, _Copies] = field(default_factory=dict)

    def add(self, server: str, status: ServerStatus) -> None:
        for partition in status.partitions:
            self._copies.setdefault(partition.id, _Copies()).add(_Held(server, partition))

    def replicas(self, server: str, status: ServerStatus) -> tuple[ReplicaStatus, ...]:
        """The partitions of a server beside those of the others, which were added before."""
        return tuple(self._replica(server, partition) for partition in status.partitions)

    def _replica(self, server: str, own: PartitionStatus) -> ReplicaStatus:
        copies = self._copies[own.id]
        owned = copies.authorities
        reference, jumps = copies.measure()
        apart = reference - _number(own.last_seq)
        behind = max(0, apart) if owned or apart else None
        skipped = Distance.between(reference - max(0, apart), reference, jumps)
        contents, others = self._contents(server, own)
        return ReplicaStatus(
            own.id,
            own.name,
            own.owner,
            own.authority,
            own.state,
            own.last_seq,
            own.purged_seq,
            own.missing,
            behind,
            self._seconds((server, own.id), behind),
            max(0, -apart),
            at_least=bool(behind) and not owned,
            skipped=skipped.skipped,
            jumps=skipped.jumps,
            contents=contents,
            differs_from=others,
        )

    def _seconds(self, key: tuple[str, str], behind: int | None) -> float | None:
        if behind:
            return self.now - self.since.setdefault(key, self.now)
        if behind == 0:  # if it is not known, the replica may still be behind
            self.since.pop(key, None)
        return None

    def _contents(self, server: str, own: PartitionStatus) -> tuple[Contents, tuple[str, ...]]:
        """The contents beside those of the authority, else beside all other copies."""
        copies = self._copies[own.id]
        # An authority is the measure; of two, each is compared with the other.
        chosen = [c for c in copies.authorities if c.server != server]
        if not chosen and not own.authority:
            chosen = [c for c in copies.held if c.server != server]
        results = {c.server: compare_contents(own, c.status) for c in chosen}
        for worst in (Contents.DIFFERENT, Contents.UNPROVED, Contents.EQUAL):
            if worst in results.values():
                differing = [name for name, found in results.items() if found is worst]
                return worst, () if worst is Contents.EQUAL else tuple(differing)
        return Contents.UNKNOWN, ()


def compare_contents(one: PartitionStatus, other: PartitionStatus) -> Contents:
    """Compares two copies of a partition by digest, which counts at equal numbers alone."""
    if not one.digest or not other.digest or one.last_seq != other.last_seq:
        return Contents.UNKNOWN
    enterprise = one.id == str(ENTERPRISE_PARTITION)
    authority = next((copy for copy in (one, other) if copy.authority), None)
    return compare_digests(
        _digest(one),
        _digest(other),
        within_site=enterprise or (one.own_site and other.own_site),
        authority=None if authority is None else _digest(authority),
    )


def _digest(copy: PartitionStatus) -> PartitionDigest:
    return PartitionDigest(_number(copy.digest), _number(copy.site_digest or "0"), copy.site_only)


def _number(digits: str) -> int:
    return int(digits, 16)


def _jumps(copies: Iterable[PartitionStatus]) -> set[tuple[int, int]]:
    listed = chain.from_iterable(copy.jumps for copy in copies)
    return {(_number(before), _number(after)) for before, after in listed}
