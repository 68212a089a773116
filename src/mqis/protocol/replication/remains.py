"""The remains of a copy: the objects of a replica in the middle of a full synchronisation (E72).

A full synchronisation takes the numbers from all objects of a replica, which then waits for the
authority. If that one comes back from an empty backup just then, each would wait for the other for
ever, and the last objects of the partition would lie with a server that answers nobody.

So the replica sends them to the restored authority after all. The numbers in such a reply only
count the objects. A purged number of MAX says so, which no partition has: a server that does not
know of this refuses the reply. The authority takes them only if no server has a copy with numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mqis.protocol.directory.objects import Partition
from mqis.protocol.directory.ownership import objects_of
from mqis.protocol.ports import Change
from mqis.protocol.replication.incoming_changes import apply_one
from mqis.protocol.replication.memory import Recovery
from mqis.protocol.replication.outgoing_changes import synchronized
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import Sync0, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber

_MAX = SequenceNumber.MAX
#: The purged number in a copy whose numbers are right, but of which parts are missing (E73).
INCOMPLETE = _MAX.decrement()
#: The purged numbers that mark a reply as one for an authority that is being restored.
MARKS = (_MAX, INCOMPLETE)


def are_in(reply: SyncReply) -> bool:
    """Returns whether a reply has the remains of a copy, and not a copy."""
    return reply.purged_seq == _MAX


def reply_to(work: Work, state: Partition, request: SyncRequest) -> SyncReply:
    """The objects from the requested one on, in the order of their identifiers."""
    held = sorted(objects_of(work.tx, state.id), key=lambda obj: obj.id)
    counted = (replace(obj, seq=SequenceNumber(n)) for n, obj in enumerate(held, start=1))
    wanted = (obj for obj in counted if obj.seq > request.from_seq)
    chosen, complete = fitting(work.settings, wanted, request.from_seq, _MAX)
    end = SequenceNumber(len(held)) if complete else chosen[-1].seq
    more = Sync0.COMPLETE if complete else Sync0.MORE
    return SyncReply(work.me.site, state.id, request.from_seq, end, _MAX, more, tuple(chosen))


def take(work: Work, running: Recovery, last: SequenceNumber) -> SequenceNumber:
    """Gives all remains new numbers above ``last``; returns the last one.

    Without numbers nobody can tell which version of an object is newer: that of the server that
    was asked first counts.
    """
    found: dict[Guid, DirectoryChange] = {}
    for survivor in running.survivors.values():
        if survivor.remains_only:
            found = survivor.holds | found
    for change in found.values():
        if apply_one(work, replace(change, seq=last.increment(), purged_seq=last)):
            last = last.increment()
    return last


# --- Sync replies in parts ------------------------------------------------------------------------
# A message holds so many changes and bytes, the rest follows (E54).


def fitting(
    settings: ReplicationSettings,
    changes: Iterable[Change],
    previous: SequenceNumber,
    purged_seq: SequenceNumber,
) -> tuple[list[DirectoryChange], bool]:
    """Returns the first changes, as many as one message holds, and whether these are all.

    Each of them names the number before it; the first one names ``previous``.
    """
    chosen: list[DirectoryChange] = []
    size = 0
    for found in changes:
        change = synchronized(found, previous, purged_seq)
        size += len(change.encoded)
        if chosen and (len(chosen) >= settings.max_changes or size > settings.max_bytes):
            return chosen, False
        chosen.append(change)
        previous = change.seq
    return chosen, True
