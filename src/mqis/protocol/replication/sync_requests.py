"""Asking for what is missing (3.3.7.3). A request is repeated until it is answered (E05)."""

from __future__ import annotations

from mqis.protocol.clock import pause_after
from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.protocol.replication.admission import authority_of, owns
from mqis.protocol.replication.memory import HeldReply, OpenSyncRequest, Progress
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import SyncReply, SyncRequest
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
    if not machine or work.me.is_called(machine):
        return
    if progress.asked is not None and not progress.asked.probe and not again:
        return
    settings = work.settings
    progress.requests += 1
    delay_s = pause_after(progress.requests, settings.retry_s, settings.max_retry_s)
    begin = from_seq(state, progress)
    known = known_purged(state, progress, begin, progress.told_purged)
    retry_at = work.now + delay_s
    progress.asked = OpenSyncRequest(machine, begin, retry_at, delay_s, known)
    if not _is_sent(work, state, progress):
        _send(work, state, progress.asked)


def ask_ahead(
    work: Work, sender: Sender, state: Partition, reply: SyncReply, end: SequenceNumber
) -> None:
    """Holds a part of a reply, which reaches ``end``, and asks for the next part first.

    So the other server makes that part while this one applies the held one. This is the request
    that ``ask`` makes afterwards. If that one turns out different, nobody waits for the answer to
    this one, and it is refused.
    """
    progress = work.memory.progress(state.id)
    machine, wait_s = source_of(work, state), work.settings.retry_s
    known = known_purged(state, progress, end, reply.purged_seq)
    following = OpenSyncRequest(machine, end, work.now + wait_s, wait_s, known)
    request = _send(work, state, following)
    progress.held = HeldReply(sender, reply, machine, request)


def _is_sent(work: Work, state: Partition, progress: Progress) -> bool:
    """Returns whether the request that is to be sent went out ahead."""
    held, asked = progress.held, progress.asked
    if held is None or asked is None or asked.machine != held.machine:
        return False
    return request_for(work, state, asked) == held.request


def probe(work: Work, state: Partition, last_seq: SequenceNumber) -> None:
    """Ask whether ``last_seq``, which is below ours, is all that the authority has (E82).

    Such a number is old, or ours was pushed up by somebody who is not the authority. Nothing else
    waits for the answer, and who sends old numbers all the time makes us ask only now and then.
    """
    progress = work.memory.progress(state.id)
    machine = source_of(work, state)
    if state.purge_state is not PurgeState.NORMAL or progress.asked is not None:
        return
    if not machine or work.me.is_called(machine) or work.now < progress.probe_at:
        return
    wait_s = work.settings.retry_s
    progress.probe_at = work.now + wait_s
    known = state.purged_seq
    progress.asked = OpenSyncRequest(
        machine, last_seq, work.now + wait_s, wait_s, known, probe=True
    )
    _send(work, state, progress.asked)


def _send(work: Work, state: Partition, request: OpenSyncRequest) -> SyncRequest:
    work.counters.sync_requests += 1
    message = request_for(work, state, request)
    work.send(request.machine, message, acknowledge=True)
    return message


def request_for(work: Work, state: Partition, request: OpenSyncRequest) -> SyncRequest:
    """Asks for everything there is: a bounded reply can lack an object that has changed (E03)."""
    return SyncRequest(
        work.me.site,
        state.id,
        request.from_seq,
        SequenceNumber.MAX,
        request.known_purged,
        state.purge_state is PurgeState.IN_SYNC0,
        0 if work.me.is_bsc else 1,
        work.me.name,
    )


def known_purged(
    state: Partition, progress: Progress, begin: SequenceNumber, told: SequenceNumber
) -> SequenceNumber:
    """Up to where a purge is nothing new to us, who ask for what is behind ``begin``.

    ``told`` is the purged number of the last reply.

    Who asks for everything needs no tombstones at all; behind the first part of the answer they
    tell what of it was deleted meanwhile, so another purge makes it begin again. Who asks again for
    what was set aside has seen the tombstones between.
    """
    if state.purge_state is PurgeState.IN_SYNC0:
        return SequenceNumber.MAX if begin == SequenceNumber.MIN else told
    return state.allowed_purge_seq if progress.quarantine else state.purged_seq


def source_of(work: Work, state: Partition) -> str:
    """The server that sends us a partition: the PSC for a BSC, else the authority."""
    return work.memory.psc if work.me.is_bsc else authority_of(work.tx, state)


def from_seq(state: Partition, progress: Progress) -> SequenceNumber:
    """The last number that is here (E08); objects that were set aside are asked for again.

    Once in each round: what follows goes on behind the part before.
    """
    if progress.in_round:
        return progress.reached
    aside = (seq.saturating_sub(1) for seq in progress.quarantine.values())
    return min([state.last_seq, *aside])


def answered(progress: Progress) -> None:
    """A request has its reply: the next one is new and does not wait long."""
    progress.asked = None
    progress.requests = 0


def repeat_due(work: Work) -> None:
    """Repeat the requests whose answers have not come in time."""
    for partition, progress in list(work.memory.partitions.items()):
        if progress.asked is None or progress.asked.retry_at > work.now:
            continue
        if progress.asked.probe:  # the next number that is too low asks again
            progress.asked = None
            continue
        progress.in_round = False
        ask(work, partition, again=True)
