"""The ranges of numbers that an authority skipped, so that nobody takes them for changes.

A restored or promoted authority goes on far behind all numbers that anybody may have seen
(``survivors``). The last few ranges are kept in its store, for status and messages alone; its
journal has a record of each.
"""

from __future__ import annotations

from mqis.protocol.ports import View
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber

_FAMILY = "jumps"
#: The number of ranges that are kept; older ones are forgotten.
MAX_JUMPS = 8

Jump = tuple[SequenceNumber, SequenceNumber]


def jumped(work: Work, partition: Guid, before: SequenceNumber, after: SequenceNumber) -> None:
    """Notes that no change has a number above ``before``, up to ``after``."""
    kept = [*jumps_of(work.tx, partition), (before, after)][-MAX_JUMPS:]
    value = b"".join(low.to_bytes() + high.to_bytes() for low, high in kept)
    work.tx.put_state(_FAMILY, partition.raw, value)
    work.record(
        JournalRecord(
            work.at.unix_us,
            RecordKind.CHANGE,
            RecordState.SKIPPED,
            partition=partition,
            seq=after,
            previous_seq=before,
        )
    )


def jumps_of(view: View, partition: Guid) -> list[Jump]:
    """The ranges as (last number before, last number skipped), ascending."""
    reader, found = Reader(view.state(_FAMILY, partition.raw) or b""), list[Jump]()
    while reader.remaining >= 2 * SequenceNumber.SIZE:
        found.append((SequenceNumber.decode(reader), SequenceNumber.decode(reader)))
    return found
