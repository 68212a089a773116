"""Changes that an authority made, coming in: in order, ahead of their turn, or again.

3.1.7.2.2 Handle Directory Change, 3.1.7.2.3 Handle In-Sync Change, 3.1.7.2.4 Check Pending
Changes, 3.2.7.1 Receive Change Propagation.
"""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject, Partition, PurgeState, name_key
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication import topology_changes
from mqis.protocol.replication.acknowledging import acknowledge, purge_if_due
from mqis.protocol.replication.admission import refusal_of_change
from mqis.protocol.replication.applying import apply
from mqis.protocol.replication.effects import ChangeApplied, Objection, RefusalReason
from mqis.protocol.replication.memory import Progress
from mqis.protocol.replication.propagation import hold, offer
from mqis.protocol.replication.quarantine import take_back
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.sync_requests import ask, probe
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Heartbeat, PartitionSeqNumbers

#: Flush: the receiver is not to pass the changes on to its BSCs at once.
_DO_NOT_FLUSH = 1
_UNKNOWN = Objection(RefusalReason.UNKNOWN_PARTITION, "the partition is unknown here")


def receive_change_propagation(work: Work, sender: Sender, message: ChangePropagation) -> None:
    """Receive Change Propagation (3.2.7.1)."""
    if message.flush == _DO_NOT_FLUSH and not work.me.is_bsc:
        hold(work)
    refused: set[Objection] = set()
    for change in message.changes:
        state = work.partition(change.partition)
        objection = _UNKNOWN if state is None else refusal_of_change(work, sender, state)
        if state is not None and objection is None:
            handle_change(work, state, change)
        elif objection is not None and objection not in refused:
            refused.add(objection)  # the same objection is told once for all changes of a message
            work.refuse(*objection, change)
    receive_numbers(work, sender, message.heartbeat)


# --- one change -----------------------------------------------------------------------------------


def handle_change(work: Work, state: Partition, change: DirectoryChange) -> None:
    """Handle Directory Change: apply it, keep it for later, or drop what is known already."""
    if change.seq <= state.last_seq:
        return None
    if change.purged_seq < state.purged_seq:
        return ask(work, state.id)  # it is old, or our purged number is not the authority's
    if change.seq.value > state.last_seq.value + work.settings.max_jump:
        return work.refuse(
            RefusalReason.INCONSISTENT, f"number {change.seq} is out of all proportion", change
        )
    progress = work.memory.progress(state.id)
    progress.heard = max(progress.heard, change.seq.value)
    if state.purge_state is not PurgeState.NORMAL or progress.incomplete:
        return _keep(work, progress, change)
    if is_ahead(state, change):
        _keep(work, progress, change)
        return ask(work, state.id)
    if apply_in_turn(work, state, change):
        drain(work, state.id)
    return None


def is_ahead(state: Partition, change: DirectoryChange) -> bool:
    """Returns whether changes before this one are missing."""
    return change.previous_seq > state.last_seq


def _keep(work: Work, progress: Progress, change: DirectoryChange) -> None:
    """PendingChangeCollection, which has an end: what does not fit is asked for."""
    if len(progress.pending) < work.settings.max_pending:
        progress.pending.setdefault(change.seq, change)


def apply_in_turn(work: Work, state: Partition, change: DirectoryChange) -> bool:
    """Handle In-Sync Change; what fails is asked for as a whole object (E56)."""
    if not apply_one(work, change):
        ask(work, state.id)
        return False
    current = work.partition(state.id) or state
    current = work.put(replace(current, last_seq=change.seq))
    if not work.memory.progress(state.id).quarantine:  # else it would leave a gap at our BSCs
        offer(work, change, to_pscs=False)
    purge_if_due(work, state.id)
    acknowledge(work, work.partition(state.id) or current)
    return True


def apply_one(work: Work, change: DirectoryChange) -> bool:
    """Put one change into the replica; a failure leaves no trace but the record of it."""
    try:
        applied = apply(work.tx, change, keep_tombstones=work.me.is_psc)
    except DirectoryError as error:
        work.refuse(RefusalReason.NOT_APPLIED, error.detail, change)
        return False
    work.counters.applied += 1
    obj = applied.after or applied.before
    # Any later change settles what was set aside: an older copy may still be on its way.
    take_back(work, change.partition, change.guid or (Guid.NULL if obj is None else obj.id))
    topology_changes.after_change(work, applied.displaced, None)
    topology_changes.after_change(work, applied.before, applied.after)
    if obj is not None:
        work.changed(obj.type)
    if work.watched:
        label = "" if work.sender is None else work.sender.label
        work.effects.append(ChangeApplied(label, change.partition, change.seq))
    if work.journaled:
        work.record(_applied_record(work, change, obj))
    return True


def _applied_record(
    work: Work, change: DirectoryChange, obj: DirectoryObject | None
) -> JournalRecord:
    sender = work.sender
    return JournalRecord(
        work.at.unix_us,
        RecordKind.CHANGE,
        RecordState.APPLIED,
        peer="" if sender is None else sender.label,
        message=None if sender is None else sender.identifier,
        session=0 if sender is None else sender.session,
        operation=change.command,
        partition=change.partition,
        seq=change.seq,
        previous_seq=change.previous_seq,
        object_type=0 if obj is None else obj.type,
        object_id=change.guid or (Guid.NULL if obj is None else obj.id),
    )


def drain(work: Work, partition: Guid) -> None:
    """Check Pending Changes: apply what has its turn now, ask if there is a gap still (E02)."""
    progress = work.memory.progress(partition)
    for seq in sorted(progress.pending):
        state = work.partition(partition)
        if state is None or state.purge_state is not PurgeState.NORMAL or progress.incomplete:
            return
        change = progress.pending[seq]
        if seq <= state.last_seq or change.purged_seq < state.purged_seq:
            del progress.pending[seq]
        elif is_ahead(state, change):
            ask(work, partition)
            return
        else:
            del progress.pending[seq]
            if not apply_in_turn(work, state, change):
                return


# --- the numbers ----------------------------------------------------------------------------------


def receive_numbers(work: Work, sender: Sender, heartbeat: Heartbeat) -> None:
    """The SeqNumberHeader part of 3.2.7.1."""
    refused: set[Objection] = set()
    for numbers in heartbeat.partitions:
        state = work.partition(numbers.partition)
        if state is None:
            continue
        if numbers.last_seq > state.last_seq:  # a replaced authority has nothing new
            _follow(work, sender, heartbeat.machine, state)
        state = work.partition(numbers.partition) or state
        objection = refusal_of_change(work, sender, state)
        if objection is None:
            _compare(work, state, numbers)
        elif objection not in refused:
            refused.add(objection)
            work.refuse(objection.reason, f"a heartbeat: {objection.text}")


def _compare(work: Work, state: Partition, numbers: PartitionSeqNumbers) -> None:
    if numbers.last_seq.value > state.last_seq.value + work.settings.max_jump:
        return work.refuse(
            RefusalReason.INCONSISTENT,
            f"a heartbeat: number {numbers.last_seq} is out of all proportion",
        )
    if numbers.purged_seq > numbers.last_seq:
        return work.refuse(RefusalReason.INCONSISTENT, "a heartbeat: more is purged than there is")
    if numbers.purged_seq < state.purged_seq or numbers.last_seq < state.last_seq:
        return probe(work, state, min(numbers.last_seq, state.last_seq))
    if numbers.purged_seq > state.allowed_purge_seq:
        state = work.put(replace(state, allowed_purge_seq=numbers.purged_seq))
    progress = work.memory.progress(state.id)
    progress.heard = max(progress.heard, numbers.last_seq.value)
    if numbers.last_seq > state.last_seq or progress.quarantine:
        # With a request on its way its own retry sees to it (E05, E06).
        ask(work, state.id)
    return None


def _follow(work: Work, sender: Sender, machine: str, state: Partition) -> None:
    """A new authority makes itself known; only a signature of that site's PSC proves it (E57).

    It proves neither when: the message may be an old one of a PSC that was replaced. So to a PSC
    the site object tells who decides; a backup, which gets that object from its PSC, cannot wait.
    """
    if not sender.authenticated or sender.name is None:
        return
    if name_key(machine) != name_key(sender.name) or state.id == Guid.NULL:
        return
    if name_key(sender.name) == name_key(state.owner):  # as known; nobody new to be introduced
        return
    obj = work.tx.get(ObjectType.MACHINE, sender.id)
    if obj is None or obj.partition != state.id:
        return
    if ServiceAttributes.of(obj).role not in (ServiceBits.PSC, ServiceBits.PEC):
        return
    if work.me.is_bsc and state.id == work.me.site:
        work.memory.psc = sender.name
    elif (
        work.me.is_psc
        and not work.me.is_called(state.owner)
        and not topology_changes.names_another(work, state.id, sender.name)
    ):
        topology_changes.set_owner(work, state, sender.name)
