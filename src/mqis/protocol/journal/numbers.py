"""The sequence numbers in a journal: each change of a server has the next number of its partition.

A number that is in no record is a change that was made around the journal: by a program that wrote
into the store, or in a part of the journal that is not there. An authority that was restored, or
took office, skips numbers on purpose: a record says so. In journals of earlier versions only the
size of the jump tells it, which is very large (``restore_jump`` of the settings).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqis.protocol.directory.objects import Partition
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

#: A restored authority skips twice as many sequence numbers. A smaller jump means missing changes.
SKIPPED = 1 << 19


def are_missing(known: int, following: int) -> bool:
    """Returns whether changes are missing between two numbers of a partition."""
    return 1 < following - known < SKIPPED


@dataclass(frozen=True, slots=True)
class NumberGap:
    """The numbers ``first`` to ``last`` of a partition, which no record has."""

    partition: Guid
    first: int
    last: int

    def __str__(self) -> str:
        one = self.first == self.last
        which = (
            f"change {self.first:x} of" if one else f"changes {self.first:x} to {self.last:x} of"
        )
        verb = "is" if one else "are"
        return (
            f"{which} partition {self.partition} {verb} in no record: the directory was changed "
            "without its journal"
        )


class ChangeNumbers:
    """The newest number of each partition, record after record.

    A number counts wherever it was seen: a server that takes office goes on behind the changes that
    it applied before.
    """

    def __init__(self) -> None:
        self._last: dict[Guid, int] = {}
        #: The number before the first one of a new partition; None: nobody knows it.
        self._start: int | None = None

    def begin(self, partitions: Iterable[Partition]) -> None:
        """Takes over the numbers in a snapshot of the whole directory."""
        self._start = 0
        for state in partitions:
            self._last[state.id] = max(state.last_seq.value, self._last.get(state.id, 0))

    def add(self, record: JournalRecord) -> NumberGap | None:
        """Takes a record; returns the numbers that are missing before a change of this server."""
        if record.kind is not RecordKind.CHANGE:
            return None
        seq, known = record.seq.value, self._last.get(record.partition, self._start)
        if record.state not in (RecordState.LOCAL, RecordState.APPLIED, RecordState.SKIPPED):
            return None
        self._last[record.partition] = max(seq, known or 0)
        if record.state is not RecordState.LOCAL or known is None:
            return None
        return NumberGap(record.partition, known + 1, seq - 1) if are_missing(known, seq) else None

    def behind(self, owned: Iterable[Partition]) -> Iterator[NumberGap]:
        """Yields the numbers that partitions of this server have, and no record so far."""
        for state in owned:
            known = self._last.get(state.id, self._start)
            if known is not None and are_missing(known, state.last_seq.value + 1):
                yield NumberGap(state.id, known + 1, state.last_seq.value)
