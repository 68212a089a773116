"""Objects that could not be taken, set aside so that they do not hold up their partition (E56).

They stay on a list in the store and are asked for with every further request; the usual reason is
a name that another partition holds still, which passes.
"""

from __future__ import annotations

from mqis.protocol.directory.objects import Partition
from mqis.protocol.ports import View
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber

_FAMILY = "quarantine"


def set_aside(work: Work, partition: Guid, guid: Guid, seq: SequenceNumber) -> None:
    work.memory.progress(partition).quarantine[guid] = seq
    work.tx.put_state(_FAMILY, partition.raw + guid.raw, seq.to_bytes())


def take_back(work: Work, partition: Guid, guid: Guid) -> None:
    if work.memory.progress(partition).quarantine.pop(guid, None) is not None:
        work.tx.drop_state(_FAMILY, partition.raw + guid.raw)


def forget(work: Work, partition: Guid) -> None:
    """Takes back all objects of a partition that is no more."""
    for guid in list(work.memory.progress(partition).quarantine):
        take_back(work, partition, guid)


def complete_through(work: Work, state: Partition) -> SequenceNumber:
    """Up to where this copy has everything; a copy of it ends there until it has the rest."""
    aside = work.memory.progress(state.id).quarantine.values()
    return min([state.last_seq, *(seq.saturating_sub(1) for seq in aside)])


def load(work: Work) -> None:
    for key, value in work.tx.states(_FAMILY):
        partition, guid = Guid(key[:16]), Guid(key[16:])
        seq = SequenceNumber.from_bytes(value)
        work.memory.progress(partition).quarantine[guid] = seq


def count(view: View, partition: Guid) -> int:
    """The number of objects of a partition that are set aside, by the store alone."""
    return sum(key[:16] == partition.raw for key, _ in view.states(_FAMILY))
