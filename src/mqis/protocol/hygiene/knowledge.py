"""The limits of a copy of the directory: what it cannot show, whoever looks at it.

Every server holds the whole directory, but not all of it is replicated. Links' lists of gates, and
all sites of a machine but the first, stay with the authority. Queues that only their site may know
(E58) need not be elsewhere. A server keeps one object of a name and of an identifier, so duplicates
of different authorities never meet in one store. And a copy may lack a partition, or a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mqis.findings import Limit
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
    PurgeState,
)
from mqis.protocol.directory.ownership import SITE_TYPES
from mqis.protocol.hygiene.checks import Check
from mqis.protocol.hygiene.claims import REFERENCES
from mqis.protocol.replication.replicated import is_own
from mqis.texts import agreeing, counted, some
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber


@dataclass(frozen=True, slots=True)
class PartitionCopy:
    """A copy of one partition. ``own``: it is the authority's; ``whole``: nothing is missing."""

    id: Guid
    owner: str
    own: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The knowledge that a copy of the directory gives."""

    partitions: tuple[PartitionCopy, ...]
    #: Names of sites with a server of which this copy has nothing.
    absent: tuple[str, ...] = ()
    #: The queues' permissions are known.
    permissions: bool = True
    #: Every reference to a missing object has been checked with the server.
    checked: bool = False

    @property
    def is_authoritative(self) -> bool:
        """True if every partition is its authority's copy, so that duplicates can be seen."""
        return bool(self.partitions) and all(part.own for part in self.partitions)

    @property
    def knows_link_gates(self) -> bool:
        return any(part.own for part in self.partitions if part.id == ENTERPRISE_PARTITION)

    def knows_sites_of(self, machine_site: Guid) -> bool:
        """True if all sites of the machines in this site's partition are known."""
        return any(part.own for part in self.partitions if part.id == machine_site)

    def has_all(self, kind: ObjectType) -> bool:
        """True if no object of the type can be missing, so that a missing one does not exist."""
        if self.checked:
            return True
        of_sites = kind in SITE_TYPES
        parts = [p for p in self.partitions if (p.id != ENTERPRISE_PARTITION) == of_sites]
        return all(part.whole for part in parts) and not (of_sites and self.absent)

    def uncertain(self) -> frozenset[str]:
        """The checks of references whose target may be missing from this copy only."""
        return frozenset(
            check.label
            for references in REFERENCES.values()
            for _, target, check in references
            if not self.has_all(target)
        )

    def limits(self, left_out: Mapping[str, int], untold_gates: Sequence[str]) -> Iterator[Limit]:
        """Yields everything that the copy cannot show.

        ``left_out`` counts possible findings by check, ``untold_gates`` names sites.
        """
        yield from self._incomplete(left_out)
        if not self.is_authoritative:
            yield Limit(
                Check.DUPLICATE_ID.label,
                "one server keeps one object of a name or an identifier, so this copy cannot show "
                "that two authorities have used the same one",
                "check the copies of all authorities together: mqis check FILE FILE ..., or mqis "
                "check --run DIRECTORY for an enterprise of 'mqis up'",
            )
        if not self.permissions:
            yield Limit(
                Check.WRITABLE.label,
                "a server does not list the permissions of queues",
                "check an export or the store: mqis check FILE",
            )
        if untold_gates:
            yield Limit(
                Check.NO_GATE.label,
                "the gates that links name, and all sites of a machine but the first, are not "
                f"replicated; so this copy cannot show whether {some(untold_gates, 5)} "
                f"{agreeing(len(untold_gates), 'has', 'have')} a gate",
                "check the copy of the enterprise's authority (PEC)",
                len(untold_gates),
            )
        yield from self._replicas()

    def _incomplete(self, left_out: Mapping[str, int]) -> Iterator[Limit]:
        if self.checked:
            yield Limit(
                "",
                "a server shows what this user may read; objects that others refer to and the user "
                "may not read are no findings",
                "log on as an administrator with --user, or check an export or the store",
                sum(left_out.values()),
            )
            return
        lacking = [part.owner or str(part.id) for part in self.partitions if not part.whole]
        lacking += [f"site {name}" for name in self.absent]
        if lacking:
            yield Limit(
                "",
                f"this copy is not complete: it lacks objects of {some(sorted(lacking), 5)}. A "
                "reference to a missing object is no finding, because the object may exist there",
                "check the copy of a server that is up to date",
                sum(left_out.values()),
            )

    def _replicas(self) -> Iterator[Limit]:
        others = [p for p in self.partitions if not p.own and p.id != ENTERPRISE_PARTITION]
        if others:
            copied = agreeing(len(others), "is a copy", "are copies")
            yield Limit(
                "",
                f"{len(others)} of {counted(len(self.partitions), 'partition')} {copied} of a "
                "replica: changes that have not arrived, queues that only their own site knows, "
                "and all sites of a machine but the first are not in them",
                "check the copies of all authorities together: mqis check FILE FILE ...",
            )


def knowledge_of(partitions: Iterable[Partition], objects: Iterable[DirectoryObject]) -> Knowledge:
    """The knowledge of one server's copy; ``objects`` are all but queues."""
    states = tuple(partitions)
    own: set[Guid] = set()
    sites: list[DirectoryObject] = []
    for obj in objects:
        if obj.partition not in own and is_own(obj):
            own.add(obj.partition)
        if obj.type is ObjectType.SITE:
            sites.append(obj)
    filled = {part.id for part in states if part.last_seq > SequenceNumber.MIN}
    copies = (
        PartitionCopy(part.id, part.owner, part.id in own, part.purge_state is PurgeState.NORMAL)
        for part in states
    )
    return Knowledge(tuple(copies), absent_sites(sites, filled))


def absent_sites(sites: Iterable[DirectoryObject], filled: Collection[Guid]) -> tuple[str, ...]:
    """The names of sites with a controller whose partition has never arrived in the copy."""
    lacking = (s for s in sites if s.value(PropId.S_PSC) and s.id not in filled)
    return tuple(sorted(site.path or str(site.id) for site in lacking))
