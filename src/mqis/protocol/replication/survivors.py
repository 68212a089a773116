"""A restored or promoted authority collects what the other servers hold of its partition.

The history of a partition has one author, so copies differ only in how far they got: the version
with the highest number is the last one. An object that a copy lacks although it is further than
the object's number was deleted. Nobody else may be asked about a partition one owns (E57); this is
the one exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DeletedObject,
    DirectoryObject,
    Partition,
    PurgeState,
    Scope,
    name_key,
)
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication import number_recovery, remains, rounds, standing_in
from mqis.protocol.replication.applying import type_of
from mqis.protocol.replication.effects import Objection, Recovered, RefusalReason
from mqis.protocol.replication.incoming_changes import apply_one
from mqis.protocol.replication.jumps import jumped
from mqis.protocol.replication.memory import Recovery, Survivor
from mqis.protocol.replication.outgoing_changes import synchronized
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import Sync0, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber

_MIN, _MAX = SequenceNumber.MIN, SequenceNumber.MAX
#: The scale of numbers by the clock: from 2020 on, and below ``max_jump`` whatever the clock says.
#: No authority makes so many changes in a second, so the clock stays ahead of its numbers.
_FIRST_SECOND, _LAST_S, _NUMBERS_PER_SECOND = 1_577_836_800.0, float(1 << 31), 1 << 20
#: The random bytes that are added: two lives by one wrong clock part too. To a number by the clock
#: less than a second is added, so that a life that begins a second later has higher numbers.
_CHANCE_BYTES = 3
#: Such numbers come from a server that has taken office by its clock (earlier versions counted four
#: numbers a second). Lower ones may have been counted from zero, by a PEC that set up the site
#: before it had a server.
_LEAST_BY_CLOCK = SequenceNumber(1 << 28)


def advance(work: Work) -> None:
    """Ask who has not answered; go into service when all have, or have had their time."""
    recoveries, looked_at = work.memory.recoveries, set[Guid]()
    while fresh := [p for p in recoveries if p not in looked_at]:
        # One at a time: its end may begin others, or take one away.
        looked_at.add(fresh[0])
        _advance(work, fresh[0], recoveries[fresh[0]])


def _advance(work: Work, partition: Guid, running: Recovery) -> None:
    for neighbor in work.memory.neighbors.values():
        key = name_key(neighbor.name)
        if key not in running.survivors:
            running.survivors[key] = Survivor(
                neighbor.name, not neighbor.intersite, _unused_number(work)
            )
    if standing_in.ended(work, partition, running):
        return
    open_ = [s for s in running.survivors.values() if not s.has_answered]
    if _may_finish(work, partition, running):
        if _all_sent_copies(running) or work.now >= running.deadline:
            finish(work, partition, running)
            return
    elif work.now >= running.deadline:
        running.deadline = work.now + work.settings.recovery_retry_s
    for survivor in open_:
        if work.now >= survivor.asked_at + work.settings.recovery_retry_s:
            _ask(work, partition, survivor)


def _all_sent_copies(running: Recovery) -> bool:
    return all(survivor.complete for survivor in running.survivors.values())


def _may_finish(work: Work, partition: Guid, running: Recovery) -> bool:
    """An empty authority would make all others forget the partition: it needs a copy.

    That is the PEC's, which has at least this server's machine; and who knows the PEC's site knows
    whom else to ask. The PEC may itself wait for us, in a full synchronisation. So at the deadline
    any other copy serves, or the remains of one (E72).
    """
    state = work.partition(partition)
    if state is None or not _needs_pec(work, state, running):
        return True
    held = any(s.has_answered and s.holds for s in running.survivors.values())
    return held and work.now >= running.deadline


def _needs_pec(work: Work, state: Partition, running: Recovery) -> bool:
    """Returns whether this copy is empty and the PEC's, which is not, is still to come."""
    enterprise = work.partition(ENTERPRISE_PARTITION)
    if work.me.is_pec or state.last_seq > _MIN or enterprise is None:
        return False
    pec = running.survivors.get(name_key(enterprise.owner))
    return pec is None or not pec.complete


def next_step(running: Recovery, retry_s: float) -> float:
    times = [s.asked_at + retry_s for s in running.survivors.values() if not s.has_answered]
    return min([running.deadline, *times])


def _unused_number(work: Work) -> SequenceNumber:
    """A number above all that are given out, which no earlier life of this server has asked from.

    Transport sends again what a killed server did not acknowledge, in order. So an old copy comes
    before the answer to this one, and does not count: it may lack what was decided since.
    """
    return SequenceNumber(1 << 63 | int.from_bytes(work.entropy.guid().raw[:7], "big"))


def _ask(work: Work, partition: Guid, survivor: Survivor) -> None:
    """Requests everything, including purged ranges and queues that one site alone knows."""
    survivor.asked_at = work.now
    request = SyncRequest(
        work.me.site, partition, survivor.from_seq, _MAX, _MAX, True, 0, work.me.name
    )
    work.send(survivor.name, request, acknowledge=True)


def receive_copy(work: Work, sender: Sender, running: Recovery, reply: SyncReply) -> None:
    """A part of what one server holds."""
    survivor = running.survivors.get(name_key(sender.name or ""))
    if survivor is None or survivor.has_answered or reply.from_seq != survivor.from_seq:
        return work.refuse(RefusalReason.UNSOLICITED, f"{sender.label} was not asked for this")
    if survivor.probing:
        survivor.probing, survivor.from_seq = False, _MIN
        return _ask(work, reply.partition, survivor)
    objection = _impossible(work, reply)
    if objection is not None:
        return work.refuse(*objection)
    if survivor.holds and remains.are_in(reply) != (survivor.purged_seq == _MAX):
        # It began a full synchronisation between two parts, or ended one: its numbers are others.
        survivor.holds, survivor.from_seq = {}, _MIN
        return _ask(work, reply.partition, survivor)
    return _keep(work, survivor, reply)


def _keep(work: Work, survivor: Survivor, reply: SyncReply) -> None:
    for change in reply.changes:
        assert change.guid is not None  # ``_impossible`` has seen to it
        if _tells_type(change):
            survivor.holds[change.guid] = change
        else:  # no directory could hold it; the rest of the copy is none the worse
            work.refuse(RefusalReason.MALFORMED, "a copy has changes without a type", change)
    survivor.last_seq = survivor.from_seq = max(survivor.from_seq, reply.to_seq)
    survivor.purged_seq = reply.purged_seq
    if reply.purged_seq == remains.INCOMPLETE:
        survivor.incomplete, survivor.purged_seq = True, _MIN
    if reply.complete_sync0 is Sync0.MORE:
        _ask(work, reply.partition, survivor)
    else:
        survivor.remains_only = remains.are_in(reply)
        survivor.complete = not survivor.remains_only


def _impossible(work: Work, reply: SyncReply) -> Objection | None:
    """The reason why a copy's numbers cannot be this authority's own; None if they can.

    The numbers to come begin behind them: one that is too high could never be taken back.
    """
    state = work.partition(reply.partition)
    own = 0 if state is None else state.last_seq.value
    highest = max((change.seq for change in reply.changes), default=reply.to_seq)
    if max(highest, reply.to_seq).value > own + work.settings.max_jump:
        return Objection(
            RefusalReason.INCONSISTENT,
            f"number {max(highest, reply.to_seq)} is out of all proportion",
        )
    complete = reply.complete_sync0 is not Sync0.MORE and reply.purged_seq not in remains.MARKS
    if complete and reply.purged_seq > reply.to_seq:
        return Objection(RefusalReason.INCONSISTENT, "a copy in which more is purged than there is")
    if highest > reply.to_seq:
        return Objection(RefusalReason.INCONSISTENT, "a copy that ends before its changes do")
    if any(c.guid is None or c.partition != reply.partition for c in reply.changes):
        return Objection(RefusalReason.MALFORMED, "a copy has changes without identity")
    return None


def _tells_type(change: DirectoryChange) -> bool:
    try:
        type_of(change)
    except DirectoryError:
        return False
    return True


# --- putting it together --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Copy:
    """The objects and tombstones that one server, or this one, holds of the partition."""

    last_seq: SequenceNumber
    holds: dict[Guid, DirectoryChange]
    #: PSCs of other sites do not hold queues that are known in one site only (E58).
    has_all: bool
    #: Whether it lacks parts of a reply, and therefore tells nothing of deletions (E73).
    incomplete: bool = False


def finish(work: Work, partition: Guid, running: Recovery) -> None:
    """Take the last version of everything, skip numbers that may have been used, and serve."""
    state = work.partition(partition)
    if state is None:
        work.memory.recoveries.pop(partition, None)
        return
    if standing_in.is_another_site(work, partition) and state.last_seq == _MIN:
        number_recovery.serve(work, partition)  # a site that nobody knows a PSC of
        return
    answers = [s for s in running.survivors.values() if s.complete]
    incomplete = work.memory.progress(partition).incomplete
    own = _Copy(state.last_seq, dict(_own_holdings(work, state)), True, incomplete)
    others = [_Copy(s.last_seq, s.holds, s.is_bsc, s.incomplete) for s in answers]
    last = _behind_used_numbers(work, own, others)
    jumped(work, partition, _highest(own, others), last)
    purged = max([state.purged_seq, *(s.purged_seq for s in answers)])
    unique = []
    for guid in dict.fromkeys(guid for copy in (own, *others) for guid in copy.holds):
        last, alone = _settle(work, guid, own, others, last)
        if alone is not None:
            unique.append(alone)
    if not any(copy.holds for copy in (own, *others)):
        last = remains.take(work, running, last)
    silent = tuple(s.name for s in running.survivors.values() if not s.complete)
    if silent or own.last_seq > _MIN or _highest(own, others) >= _LEAST_BY_CLOCK:
        # Somebody may hold changes that are lost here, or be about to: messages of a former
        # authority may still be on their way. No tombstone tells him, so all start anew.
        purged = last
    current = work.partition(partition) or state
    work.put(replace(current, last_seq=last, purged_seq=purged, purge_state=PurgeState.NORMAL))
    number_recovery.serve(work, partition)
    rounds.end(work, partition)
    for neighbor in work.memory.neighbors.values():
        neighbor.heartbeat_at = work.now
    asked = tuple(s.name for s in running.survivors.values())
    work.effects.append(Recovered(str(partition), tuple(unique), asked, silent))


def _behind_used_numbers(work: Work, own: _Copy, others: list[_Copy]) -> SequenceNumber:
    """The number to go on from: one that no life of this authority has given out.

    Those who answer may not know all numbers: one backup may be restored twice, or two servers
    promoted one after the other, and what the first life gave out is known to nobody whom the
    second can ask. So the clock tells a lower limit, and chance parts lives of one moment (E74).
    """
    seconds = min(max(0.0, work.at.unix - _FIRST_SECOND), _LAST_S)
    by_clock = SequenceNumber(int(seconds * _NUMBERS_PER_SECOND))
    chance = int.from_bytes(work.entropy.guid().raw[:_CHANCE_BYTES], "big")
    jumped = _highest(own, others) + work.settings.restore_jump
    if jumped > by_clock:
        return jumped + chance
    return by_clock + chance % _NUMBERS_PER_SECOND


def _highest(own: _Copy, others: list[_Copy]) -> SequenceNumber:
    return max([own.last_seq, *(copy.last_seq for copy in others)])


def _own_holdings(work: Work, state: Partition) -> Iterator[tuple[Guid, DirectoryChange]]:
    for change in work.tx.changes(state.id, _MIN):
        yield change.id, synchronized(change, _MIN, state.purged_seq)


def _settle(
    work: Work, guid: Guid, own: _Copy, others: list[_Copy], last: SequenceNumber
) -> tuple[SequenceNumber, str | None]:
    """Bring one object to its last version; the label of one that nobody else has."""
    holders = [copy for copy in (own, *others) if guid in copy.holds]
    best = max((copy.holds[guid] for copy in holders), key=lambda change: change.seq)
    mine = own.holds.get(guid)
    if best.command is not Command.DELETE and _is_gone(guid, best, (own, *others)):
        last = last.increment()
        best = _deletion(best, last)
    if mine is None or mine.seq < best.seq:
        apply_one(work, best)
    alone = mine is not None and all(
        guid not in copy.holds and copy.last_seq < mine.seq for copy in others
    )
    label = _label(work, best) if alone and others and best.command is not Command.DELETE else None
    return last, label


def _is_gone(guid: Guid, best: DirectoryChange, copies: tuple[_Copy, ...]) -> bool:
    """Returns whether a copy that is past the object's number no longer has the object."""
    in_site_only = _known_in_site(best)
    return any(
        guid not in copy.holds
        for copy in copies
        if copy.last_seq >= best.seq and not copy.incomplete and (copy.has_all or not in_site_only)
    )


def _known_in_site(change: DirectoryChange) -> bool:
    scope = dict(change.properties).get(PropId.Q_SCOPE)
    return scope is not None and scope.value == Scope.SITE


def _deletion(change: DirectoryChange, seq: SequenceNumber) -> DirectoryChange:
    """A deletion whose own number is lost, under a new one."""
    scope = Scope.SITE if _known_in_site(change) else Scope.ENTERPRISE
    assert change.guid is not None
    gone = DeletedObject(change.guid, change.partition, seq, type_of(change), scope)
    return synchronized(gone, seq.decrement(), change.purged_seq)


def _label(work: Work, change: DirectoryChange) -> str:
    object_type = type_of(change)
    obj = None if change.guid is None else work.tx.get(object_type, change.guid)
    return f"{object_type.label} {change.guid}" if obj is None else _name(obj)


def _name(obj: DirectoryObject) -> str:
    return f"{obj.type.label} {obj.path or obj.id}"
