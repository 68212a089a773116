"""The full synchronisation of a partition (sync0).

Everything that a replica holds is marked, the authority sends what it has, and what still bears the
mark then is gone there.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.protocol.directory.ownership import mark, objects_of
from mqis.protocol.replication import rounds, topology_changes
from mqis.protocol.replication.sync_requests import answered, ask
from mqis.protocol.replication.work import Work
from mqis.wire.seqnum import SequenceNumber


def start_sync0(work: Work, state: Partition) -> None:
    """Start Sync0 State (3.3.7.10): mark everything, then ask for everything.

    Marking is part of this transaction, so the state between the two is never seen; a store that
    has it all the same goes on from there (E40). The purged number that somebody announced is not
    stored: the replies tell it, and it counts when they are complete (E80).
    """
    state = work.put(
        replace(state, purge_state=PurgeState.STARTING_SYNC0, last_seq=SequenceNumber.MIN)
    )
    work.counters.sync0_started += 1
    progress = work.memory.progress(state.id)
    progress.pending.clear()
    progress.in_round = False
    rounds.end(work, state.id)  # the state of the partition tells it from here on
    progress.told_purged = SequenceNumber.MIN
    mark(work.tx, state.id)
    work.tx.purge(state.id, SequenceNumber.MAX)
    work.put(replace(state, purge_state=PurgeState.IN_SYNC0))
    answered(progress)
    ask(work, state.id, again=True)


def complete_sync0(work: Work, state: Partition) -> None:
    """Complete Sync0 State (3.3.7.11): what still bears the mark is not at the authority."""
    work.counters.sync0_completed += 1
    work.put(replace(state, purge_state=PurgeState.COMPLETING_SYNC0))
    marked = [obj for obj in objects_of(work.tx, state.id) if obj.seq == SequenceNumber.MIN]
    for obj in marked:
        topology_changes.forget_object(work, obj)
    current = work.partition(state.id)
    if current is not None:
        work.put(_proved(work, replace(current, purge_state=PurgeState.NORMAL)))
        tell_backups(work)


def _proved(work: Work, state: Partition) -> Partition:
    """The purged number that a complete synchronisation told; what was doubted before is gone."""
    progress = work.memory.progress(state.id)
    purged_seq = min(progress.told_purged, state.last_seq)
    if progress.doubted:
        progress.doubted = False
        return replace(state, purged_seq=purged_seq, allowed_purge_seq=purged_seq)
    return replace(state, purged_seq=max(state.purged_seq, purged_seq))


def tell_backups(work: Work) -> None:
    """Our BSCs hear of a synchronisation by the numbers and ask for it themselves.

    Its changes skip what others have replaced, so they count only as a whole (E04): a BSC that got
    them one by one could put a part of an older change, which it has kept, between them.

    The numbers are those of all partitions, so synchronisations that end together share a message,
    as changes do: a PSC that starts synchronises with every other site.
    """
    for neighbor in work.memory.neighbors.values():
        if not neighbor.intersite:
            shared_at = max(work.now, neighbor.last_sent + work.settings.gather_s)
            neighbor.heartbeat_at = min(neighbor.heartbeat_at, shared_at)


def resume_sync0(work: Work, state: Partition) -> None:
    """After a start, in whatever state a crash has left the partition (E40)."""
    if state.purge_state is PurgeState.STARTING_SYNC0:
        start_sync0(work, state)
    elif state.purge_state is PurgeState.COMPLETING_SYNC0:
        complete_sync0(work, state)
