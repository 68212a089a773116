"""Asking for what is missing (3.3.7.3). A request is repeated until it is answered (E05)."""

from __future__ import annotations

from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.protocol.replication.admission import authority_of, owns
from mqis.protocol.replication.memory import Asked, Progress
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import SyncRequest
from mqis.wire.seqnum import SequenceNumber

#: States in which a partition may be asked for.
_ASKABLE = (PurgeState.NORMAL, PurgeState.IN_SYNC0)


def ask(work: Work, partition: Guid, *, again: bool = False) -> None:
    """Send Sync Request, unless one is on its way; ``again`` sends another all the same."""
    state = work.partition(partition)
    if state is None or state.purge_state not in _ASKABLE:
        return
    if owns(work.tx, work.me, partition):
        return
    machine = source_of(work, state)
    progress = work.memory.progress(partition)
    if not machine or work.me.is_called(machine) or (progress.asked is not None and not again):
        return
    settings = work.settings
    progress.delay_s = min(max(2 * progress.delay_s, settings.retry_s), settings.max_retry_s)
    begin = from_seq(state, progress)
    progress.asked = Asked(machine, begin, work.now + progress.delay_s, progress.delay_s)
    request = SyncRequest(
        work.me.site,
        partition,
        begin,
        to_seq(work, state),
        # Who asks again for what was set aside has seen the tombstones between.
        state.allowed_purge_seq if progress.quarantine else state.purged_seq,
        state.purge_state is PurgeState.IN_SYNC0,
        0 if work.me.is_bsc else 1,
        work.me.name,
    )
    work.counters.sync_requests += 1
    work.send(machine, request, acknowledge=True)


def source_of(work: Work, state: Partition) -> str:
    """Who sends us a partition: a BSC's PSC, else the authority."""
    return work.memory.psc if work.me.is_bsc else authority_of(work.tx, state)


def from_seq(state: Partition, progress: Progress) -> SequenceNumber:
    """The last number that is here (E08); objects that were set aside are asked for again.

    Once in each round: what follows goes on behind the part before.
    """
    if progress.in_round:
        return progress.reached
    aside = (seq.saturating_sub(1) for seq in progress.quarantine.values())
    return min([state.last_seq, *aside])


def to_seq(_work: Work, _state: Partition) -> SequenceNumber:
    """Everything there is: a bounded reply can lack an object that has changed since (E03)."""
    return SequenceNumber.MAX


def answered(progress: Progress) -> None:
    """A request has its reply: the next one is new and does not wait long."""
    progress.asked = None
    progress.delay_s = 0.0


def repeat_due(work: Work) -> None:
    """Repeat the requests whose answers have not come in time."""
    for partition, progress in list(work.memory.partitions.items()):
        if progress.asked is not None and progress.asked.retry_at <= work.now:
            progress.in_round = False
            ask(work, partition, again=True)
