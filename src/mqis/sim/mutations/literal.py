"""Mutations that follow the specification word for word where an erratum corrects it.

Each function takes the corrected one and returns the literal one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from mqis.protocol.directory.objects import DeletedObject, Partition
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Change
from mqis.protocol.replication import (
    acknowledging,
    applying,
    incoming_changes,
    machine,
    sync_answers,
    sync_requests,
    synchronization,
)
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.memory import OpenSyncRequest, Progress
from mqis.protocol.replication.work import Work
from mqis.wire.hresult import HResult
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import SyncReply, SyncRequest

_Any = Callable[..., Any]

# --- E01: 3.2.7.3 sorts descending; the receiver drops what is not above its last number ----------


def _descending(in_order: _Any) -> _Any:
    return lambda changes: tuple(reversed(in_order(changes)))


def _as_it_comes(_arranged: _Any) -> _Any:
    def arranged(reply: SyncReply) -> list[DirectoryChange]:
        taken: list[DirectoryChange] = []
        last = reply.from_seq
        for change in reply.changes:
            if change.seq > last:
                taken.append(change)
                last = change.seq
        return taken

    return arranged


E01 = (sync_answers, "in_order", _descending), (synchronization, "arranged", _as_it_comes)

# --- E03: 3.3.7.3 asks up to the change that it has, 3.2.7.8 selects up to there ------------------


def _window(request_for: _Any) -> _Any:
    def bounded(work: Work, state: Partition, asked: OpenSyncRequest) -> SyncRequest:
        request: SyncRequest = request_for(work, state, asked)
        pending = work.memory.progress(state.id).pending
        return replace(request, to_seq=min(pending, default=request.to_seq))

    return bounded


def _up_to(wanted: _Any) -> _Any:
    def bounded(work: Work, state: Partition, request: SyncRequest) -> Iterator[Change]:
        return (c for c in wanted(work, state, request) if c.seq <= request.to_seq)

    return bounded


def _header(reply_to: _Any) -> _Any:
    def bounded(work: Work, state: Partition, request: SyncRequest) -> SyncReply:
        reply: SyncReply = reply_to(work, state, request)
        return replace(reply, to_seq=min(reply.to_seq, request.to_seq))

    return bounded


E03 = (
    (sync_requests, "request_for", _window),
    (sync_answers, "wanted", _up_to),
    (sync_answers, "reply_to", _header),
)

# --- E04: 3.1.5.2 handles the changes of a reply one by one, and drains pending ones after each ---


def _one_by_one(_apply_reply: _Any) -> _Any:
    def apply_reply(work: Work, state: Partition, progress: Progress, reply: SyncReply) -> bool:
        for change in synchronization.arranged(reply):
            current = work.partition(state.id) or state
            if change.seq > current.last_seq and incoming_changes.apply_in_turn(
                work, current, change
            ):
                incoming_changes.drain(work, state.id)
        current = work.partition(state.id) or state
        work.put(replace(current, last_seq=max(current.last_seq, reply.to_seq)))
        return True

    return apply_reply


E04 = ((synchronization, "apply_reply", _one_by_one),)

# --- E05: the text has no retry -------------------------------------------------------------------


def _never(_repeat_due: _Any) -> _Any:
    def repeat_due(work: Work) -> None:
        for progress in work.memory.partitions.values():
            if progress.asked is not None:
                progress.asked.retry_at = float("inf")

    return repeat_due


E05 = ((sync_requests, "repeat_due", _never),)

# --- E09: 3.2.7.3 selects objects of the server's own partitions only -----------------------------


def _own_only(wanted: _Any) -> _Any:
    def served(work: Work, state: Partition, request: SyncRequest) -> Iterator[Change]:
        if owns(work.tx, work.me, state.id):
            yield from wanted(work, state, request)

    return served


E09 = ((sync_answers, "wanted", _own_only),)

# --- E10: 3.2.7.3 adds all DeletedObjects, under the number of the partition asked for ------------


def _all_tombstones(wanted: _Any) -> _Any:
    def served(work: Work, state: Partition, request: SyncRequest) -> Iterator[Change]:
        found: list[Change] = list(wanted(work, state, request))
        for other in work.tx.partitions():
            if other.id != state.id:
                changes = work.tx.changes(other.id, request.from_seq)
                dead = (change for change in changes if isinstance(change, DeletedObject))
                found += [replace(tombstone, partition=state.id) for tombstone in dead]
        yield from sorted(found, key=lambda change: change.seq)

    return served


E10 = ((sync_answers, "wanted", _all_tombstones),)

# --- E11: MS-MQDS 3.1.6.13 fails if the object does not exist -------------------------------------


def _must_be_there(delete: _Any) -> _Any:
    def strict(tx: Any, object_type: Any, change: DirectoryChange, keep: bool) -> Any:
        if applying.find(tx, object_type, change) is None:
            raise DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, "nothing to delete is here")
        return delete(tx, object_type, change, keep)

    return strict


E11 = ((applying, "_delete", _must_be_there),)

# --- E12: 3.1.7.1.2 and 3.1.7.2.7 create no DeletedObject -----------------------------------------


def _without_trace(changed: _Any) -> _Any:
    def forgetful(work: Work, changes: Iterable[OwnChange]) -> None:
        made = list(changes)
        changed(work, made)
        for change in made:
            if change.kind is ChangeKind.DELETE:
                work.tx.unbury(change.obj.partition, change.obj.id)

    return forgetful


def _nothing_kept(apply: _Any) -> _Any:
    return lambda tx, change, *, keep_tombstones: apply(tx, change, keep_tombstones=False)


E12 = (machine, "_changed", _without_trace), (incoming_changes, "apply", _nothing_kept)

# --- E20: 3.1.7.2.9 removes tombstones and does not raise the purged number -----------------------


def _unmarked(_purge: _Any) -> _Any:
    def purge(work: Work, state: Partition) -> None:
        through = acknowledging.purgeable(work, state)
        if through > state.purged_seq:
            work.tx.purge(state.id, through)

    return purge


E20 = ((acknowledging, "purge", _unmarked),)
