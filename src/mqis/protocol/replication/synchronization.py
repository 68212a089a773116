"""Answers to sync requests (3.3.7.5, 3.3.7.7).

A reply is one unit: all of its changes and the new last number, or nothing (E04). Changes that
came meanwhile wait and are looked at afterwards.

A part that others follow waits for the next operation, so that the request for the next part goes
out first. Nothing else sees the partition in between: every message and every timer first applies
what is held. If that fails, all is as if the next part had not been asked for.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.objects import Partition, PurgeState, name_key
from mqis.protocol.replication import remains, rounds, topology_changes
from mqis.protocol.replication.acknowledging import acknowledge, purge_if_due
from mqis.protocol.replication.admission import refusal_of_change
from mqis.protocol.replication.effects import Objection, RefusalReason
from mqis.protocol.replication.incoming_changes import apply_one, drain, is_ahead
from mqis.protocol.replication.memory import OpenSyncRequest, Progress
from mqis.protocol.replication.quarantine import set_aside
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.survivors import receive_copy
from mqis.protocol.replication.sync0 import complete_sync0, start_sync0, tell_backups
from mqis.protocol.replication.sync_requests import answered, ask, ask_ahead, source_of
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import AlreadyPurged, Sync0, SyncReply
from mqis.wire.seqnum import SequenceNumber


class _Incomplete(Exception):
    """A reply could not be applied whole."""


def receive_sync_reply(work: Work, sender: Sender, reply: SyncReply) -> None:
    """Receive Sync Reply (3.3.7.5)."""
    running = work.memory.recoveries.get(reply.partition)
    if running is not None:
        return receive_copy(work, sender, running, reply)
    state = work.partition(reply.partition)
    if state is None:
        return work.refuse(
            RefusalReason.UNKNOWN_PARTITION, "a reply for a partition that is unknown here"
        )
    objection = refusal_of_change(work, sender, state) or _unusable(work, state, reply)
    if objection is not None:
        return work.refuse(*objection)
    progress = work.memory.progress(state.id)
    if _contradicts(state, progress, reply):
        work.refuse(
            RefusalReason.INCONSISTENT, "the authority is behind this replica, which starts over"
        )
        progress.doubted = True
        return start_sync0(work, state)
    if _is_followed(progress, reply):
        return ask_ahead(work, sender, state, reply, _end(reply))
    return _take(work, sender, state, reply)


def _take(work: Work, sender: Sender, state: Partition, reply: SyncReply) -> None:
    progress = work.memory.progress(state.id)
    if not apply_reply(work, state, progress, reply):
        return  # the request is open still: it is repeated when its time comes
    work.counters.sync_replies += 1
    progress.told_purged = reply.purged_seq
    if not _is_no_help(state, progress, reply):
        answered(progress)
    _go_on(work, progress, reply)
    _ask_authority(work, sender, state.id)


def _is_followed(progress: Progress, reply: SyncReply) -> bool:
    """Returns whether to ask for the next part now; a part that was held is applied."""
    more = reply.complete_sync0 is Sync0.MORE and _end(reply) > reply.from_seq
    return more and progress.held is None


def apply_held(work: Work) -> None:
    """Applies the parts of replies that were held by the operation before this one."""
    for progress in list(work.memory.partitions.values()):
        held = progress.held
        if held is not None:
            work.sender = held.sender
            receive_sync_reply(work, held.sender, held.reply)
            progress.held, work.sender = None, None


def _contradicts(state: Partition, progress: Progress, reply: SyncReply) -> bool:
    """Returns whether the authority's reply is behind this replica in given out or purged numbers.

    Then somebody who is not the authority has pushed the numbers here up, and nothing that comes
    would be taken. At worst the reply is an old one, and the partition is copied for nothing.
    """
    in_sync0 = state.purge_state is PurgeState.IN_SYNC0
    if in_sync0 and reply.purged_seq < progress.told_purged:
        return True
    if reply.purged_seq < state.purged_seq and not progress.doubted:
        return True
    probed = progress.asked is not None and progress.asked.probe
    return probed and reply.complete_sync0 is not Sync0.MORE and _end(reply) < state.last_seq


def _is_no_help(state: Partition, progress: Progress, reply: SyncReply) -> bool:
    """Returns whether the replying server lacks the very changes that are missing here.

    The request stays open then: asking at once would get the same answer, without end.
    """
    if state.purge_state is not PurgeState.NORMAL or reply.complete_sync0 is Sync0.MORE:
        return False
    first = progress.pending.get(min(progress.pending, default=SequenceNumber.MIN))
    return first is not None and _end(reply) <= state.last_seq and is_ahead(state, first)


def _ask_authority(work: Work, sender: Sender, partition: Guid) -> None:
    """Asks the authority next, once the PEC's reply has told which server that is (4.1)."""
    state = work.partition(partition)
    if state is not None and name_key(source_of(work, state)) != name_key(sender.name or ""):
        ask(work, partition)


def _unusable(work: Work, state: Partition, reply: SyncReply) -> Objection | None:
    """The first reason that holds to refuse a reply; None to apply it."""
    request, end = work.memory.progress(state.id).asked, _end(reply)
    if request is None:
        return Objection(RefusalReason.UNSOLICITED, "a reply that nobody asked for")
    if reply.from_seq != request.from_seq:
        return Objection(RefusalReason.UNSOLICITED, "a reply to an earlier request")
    if reply.purged_seq in remains.MARKS:
        # The PEC asks a PSC that has not heard of its promotion yet, and takes the PEC for one that
        # is being restored (E72). It is asked again.
        return Objection(RefusalReason.INCONSISTENT, "a reply for an authority that is restored")
    reasons = (
        (reply.from_seq > state.last_seq, f"a reply from {reply.from_seq} on leaves a gap"),
        (reply.to_seq < reply.from_seq, "a reply that ends before it starts"),
        (
            end.value > state.last_seq.value + work.settings.max_jump,
            f"number {end} is out of all proportion",
        ),
        (
            any(change.partition != state.id for change in reply.changes),
            "a reply with changes of another partition",
        ),
    )
    found = (Objection(RefusalReason.INCONSISTENT, text) for holds, text in reasons if holds)
    return next(found, None)


def _end(reply: SyncReply) -> SequenceNumber:
    """The replica's last number after the reply: the one that the server calls its own (E06)."""
    last = max((change.seq for change in reply.changes), default=reply.from_seq)
    return last if reply.to_seq == SequenceNumber.MAX else max(last, reply.to_seq)


def apply_reply(work: Work, state: Partition, progress: Progress, reply: SyncReply) -> bool:
    """All changes of a reply in ascending order (E01), and the number that it reaches (E07)."""
    mark, aside = work.mark(), dict(progress.quarantine)
    failed: list[DirectoryChange] = []
    try:
        with work.tx.savepoint():
            news = (c for c in arranged(reply) if _is_news(state, progress, c))
            failed += [change for change in news if not _apply(work, progress, change)]
            if failed:
                raise _Incomplete
            current = work.partition(state.id) or state
            end = max(current.last_seq, _end(reply))
            work.put(replace(current, last_seq=end))
    except _Incomplete:
        work.back_to(mark)
        progress.quarantine = aside
        topology_changes.reread(work)
        for change in failed:
            work.refuse(RefusalReason.NOT_APPLIED, "this change stops a whole reply", change)
        return False
    progress.pending = {seq: c for seq, c in progress.pending.items() if seq > end}
    return True


def arranged(reply: SyncReply) -> list[DirectoryChange]:
    """The order on the wire is not relied on: a literal peer sends it backwards (E01)."""
    return sorted(reply.changes, key=lambda change: change.seq)


def _is_news(state: Partition, progress: Progress, change: DirectoryChange) -> bool:
    return change.seq > state.last_seq or change.guid in progress.quarantine


def _apply(work: Work, progress: Progress, change: DirectoryChange) -> bool:
    """Applies one change; an object that keeps failing is quarantined so that the rest goes on."""
    guid = change.guid or Guid.NULL
    if apply_one(work, change):
        progress.failures.pop(guid, None)
        return True
    progress.failures[guid] = progress.failures.get(guid, 0) + 1
    if guid not in progress.quarantine and progress.failures[guid] < work.settings.max_failures:
        return False
    set_aside(work, change.partition, guid, change.seq)
    return True


def _go_on(work: Work, progress: Progress, reply: SyncReply) -> None:
    """The next part, the end of a full synchronisation, or what has waited."""
    state = work.partition(reply.partition)
    if state is None:
        return
    progress.in_round = reply.complete_sync0 is Sync0.MORE
    progress.reached = _end(reply)
    if progress.in_round:
        rounds.begin(work, state.id)
        ask(work, state.id)
        return
    rounds.end(work, state.id)
    if state.purge_state is PurgeState.IN_SYNC0:
        if reply.complete_sync0 is not Sync0.COMPLETE:
            ask(work, state.id)
            return
        complete_sync0(work, state)
    purge_if_due(work, reply.partition)
    state = work.partition(reply.partition)
    if state is not None:
        acknowledge(work, state, always=True)
        tell_backups(work)
        drain(work, state.id)


# --- sync0 ----------------------------------------------------------------------------------------


def receive_already_purged(work: Work, sender: Sender, message: AlreadyPurged) -> None:
    """Receive Already Purged (3.3.7.7); only an answer to a request of ours counts (E42)."""
    state = work.partition(message.partition)
    if state is None:
        return work.refuse(
            RefusalReason.UNKNOWN_PARTITION, "a purge of a partition that is unknown here"
        )
    objection = refusal_of_change(work, sender, state)
    if objection is not None:
        return work.refuse(*objection)
    request = work.memory.progress(state.id).asked
    if request is None:
        return work.refuse(RefusalReason.UNSOLICITED, "a purge that nobody asked about")
    if message.purged_seq <= _passed(state, request):
        return work.refuse(RefusalReason.OUTDATED, "a purge that this replica is past")
    if message.purged_seq.value > state.last_seq.value + work.settings.max_jump:
        return work.refuse(
            RefusalReason.INCONSISTENT, f"number {message.purged_seq} is out of all proportion"
        )
    return start_sync0(work, state)


def _passed(state: Partition, request: OpenSyncRequest) -> SequenceNumber:
    """The number up to which a purge takes nothing from this replica.

    A full synchronisation begins with nothing: what was purged here before does not count, and may
    never have been the authority's (E82).
    """
    if state.purge_state is PurgeState.IN_SYNC0:
        return max(request.from_seq, request.known_purged)
    return max(state.last_seq, state.purged_seq, request.known_purged)
