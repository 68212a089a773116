"""Examines one copy of the directory: all rules, in one pass over its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mqis.findings import CheckReport, Finding
from mqis.protocol.directory.objects import DirectoryObject, Partition
from mqis.protocol.hygiene.claims import Claim, claims_of
from mqis.protocol.hygiene.judging import judge, split_by_certainty
from mqis.protocol.hygiene.knowledge import Knowledge, knowledge_of
from mqis.protocol.hygiene.topology import topology_findings, untold_gates
from mqis.protocol.routing.snapshot import Snapshot
from mqis.wire.mqds.objecttype import ObjectType

#: Returns the findings that hold, and the number of those that cannot be told, by check.
Confirm = Callable[[list[Finding]], tuple[list[Finding], dict[str, int]]]


def examine(
    objects: Iterable[DirectoryObject],
    partitions: Iterable[Partition] = (),
    knowledge: Knowledge | None = None,
    confirm: Confirm | None = None,
) -> CheckReport:
    """Examines a copy. Without ``knowledge``, that of a server's own store is derived from it.

    ``confirm`` checks dangling references, where the copy shows only a part of the directory.
    """
    held = _Held()
    claims = list(held.claims(objects))
    known = knowledge or knowledge_of(partitions, held.others)
    snapshot = Snapshot.of(held.others)
    found = [*judge(claims), *topology_findings(snapshot, known)]
    kept, left_out = split_by_certainty(found, known.uncertain())
    if confirm is not None:
        kept, left_out = confirm(kept)
    limits = known.limits(left_out, untold_gates(snapshot, known))
    counts = {kind.label: number for kind, number in sorted(held.counts.items())}
    return CheckReport(tuple(kept), tuple(limits), counts)


class _Held:
    """The objects that were seen; queues, which are most, are only counted."""

    def __init__(self) -> None:
        self.others: list[DirectoryObject] = []
        self.counts: Counter[ObjectType] = Counter()

    def claims(self, objects: Iterable[DirectoryObject]) -> Iterator[Claim]:
        for obj in objects:
            self.counts[obj.type] += 1
            if obj.type is not ObjectType.QUEUE:
                self.others.append(obj)
            yield from claims_of(obj)
