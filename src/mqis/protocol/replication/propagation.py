"""Changes on their way to neighbours, and the numbers that tell when some were lost (3.3.7.2).

A change goes out at once if the neighbour has been quiet; more of them share the messages that
follow. A neighbour that does not keep up gets one message in each period of its timer (E85).
"""

from __future__ import annotations

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PurgeState
from mqis.protocol.replication.admission import owns_state
from mqis.protocol.replication.memory import Neighbor
from mqis.protocol.replication.quarantine import complete_through
from mqis.protocol.replication.work import Work
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Heartbeat, PartitionSeqNumbers

#: With so many messages unacknowledged a neighbour waits for its timer. Queue managers acknowledge
#: after half a window, which is 32 messages, or after many seconds: fewer would mean nothing.
BUSY = 48


def offer(work: Work, change: DirectoryChange, *, to_pscs: bool) -> None:
    """Append a change to what neighbours get: those in the site, and for our own all others."""
    for neighbor in work.memory.neighbors.values():
        if to_pscs or not neighbor.intersite:
            neighbor.available.append(change)
            if len(neighbor.available) > work.settings.max_available:
                # It will see from the numbers that it lacks something, and ask for that.
                neighbor.available.clear()
                neighbor.heartbeat_at = work.now


def due_at(neighbor: Neighbor, work: Work) -> float:
    """The time at which to send to a neighbour."""
    if not neighbor.available:
        return neighbor.heartbeat_at
    busy = neighbor.in_flight >= BUSY
    pause = period(work, neighbor) if busy else work.settings.gather_s
    next_changes = max(neighbor.last_sent + pause, neighbor.not_before)
    return min(neighbor.heartbeat_at, next_changes)


def hold(work: Work) -> None:
    """Let our BSCs wait for their timer: what comes now is not to be flushed (2.2.6.9)."""
    for neighbor in work.memory.neighbors.values():
        if not neighbor.intersite:
            neighbor.not_before = work.now + period(work, neighbor)


def period(work: Work, neighbor: Neighbor) -> float:
    """The propagation timer: the own Site object's intervals, else the defaults (E62)."""
    settings = work.settings
    site = work.tx.get(ObjectType.SITE, work.me.site)
    propid = PropId.S_INTERVAL2 if neighbor.intersite else PropId.S_INTERVAL1
    known = None if site is None else site.value(propid)
    if isinstance(known, int) and known > 0:
        return float(known)
    return settings.intersite_s if neighbor.intersite else settings.intrasite_s


def propagate_due(work: Work) -> None:
    """Send to every neighbour whose time has come."""
    for neighbor in work.memory.neighbors.values():
        quiet = not neighbor.available and neighbor.heartbeat_at > work.now  # as most of them are
        if not quiet and due_at(neighbor, work) <= work.now:
            send_changes(work, neighbor)


def send_changes(work: Work, neighbor: Neighbor) -> None:
    """Send Change Propagation (3.3.7.2); nothing is sent where nothing is to be said (E53)."""
    heartbeat = Heartbeat()
    if neighbor.heartbeat_at <= work.now:
        heartbeat = numbers(work, neighbor)
        neighbor.heartbeat_at = work.now + work.settings.heartbeat_s
    changes = _take(work, neighbor)
    if changes or heartbeat.partitions:
        neighbor.last_sent = work.now
        work.send(neighbor.name, ChangePropagation(work.me.site, changes, heartbeat))


def _take(work: Work, neighbor: Neighbor) -> tuple[DirectoryChange, ...]:
    """Takes the changes that fit into one message; the rest waits for the next."""
    settings = work.settings
    size, count = 0, 0
    for change in neighbor.available[: settings.max_changes]:
        size += len(change.encoded)
        if count and size > settings.max_bytes:
            break
        count += 1
    taken = tuple(neighbor.available[:count])
    del neighbor.available[:count]
    return taken


def numbers(work: Work, neighbor: Neighbor) -> Heartbeat:
    """SeqNumberHeader: another site hears of what we own, our own site of everything."""
    records = []
    for state in work.tx.partitions():
        if neighbor.intersite and not _ours(work, state.id):
            continue
        if state.purge_state is not PurgeState.NORMAL:  # its numbers begin anew (E83)
            continue
        if work.memory.progress(state.id).incomplete:  # a BSC would take it for complete (E73)
            continue
        own = owns_state(work.tx, work.me, state)
        if neighbor.intersite and not own:
            continue
        purged = state.purged_seq if own else state.allowed_purge_seq
        last = complete_through(work, state)
        if last < state.last_seq:  # nobody believes in more purged than there is
            purged = min(purged, last)
        records.append(PartitionSeqNumbers(state.id, last, purged))
    return Heartbeat(work.me.name, tuple(records)) if records else Heartbeat()


def _ours(work: Work, partition: object) -> bool:
    """Not one that the PEC merely holds until its authority is there."""
    return partition in (work.me.site, ENTERPRISE_PARTITION)
