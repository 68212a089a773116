"""Answering those who lack something (3.2.7.3, 3.2.7.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import takewhile

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DirectoryObject,
    Partition,
    PurgeState,
    Scope,
    name_key,
)
from mqis.protocol.ports import Change
from mqis.protocol.replication import number_recovery, remains
from mqis.protocol.replication.admission import is_controller
from mqis.protocol.replication.effects import Objection, RefusalReason
from mqis.protocol.replication.outgoing_changes import scope_of
from mqis.protocol.replication.quarantine import complete_through
from mqis.protocol.replication.remains import fitting
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import AlreadyPurged, Sync0, SyncReply, SyncRequest


def receive_sync_request(work: Work, sender: Sender, request: SyncRequest) -> None:
    """Receive Sync Request: a reply, or word that only the whole partition helps.

    A partition that is itself being synchronised answers nobody (3.1.1.5.3), in one reply or in
    parts (E73); who asked asks again. Only its authority, if that is being restored, gets what is
    here (E72).
    """
    objection = _objection_to_sender(work, sender, request)
    if objection is not None:
        return work.refuse(*objection)
    state = work.partition(request.partition)
    if state is None:
        text = f"partition {request.partition} is unknown here"
        return work.refuse(RefusalReason.UNKNOWN_PARTITION, text)
    if work.me.is_bsc and not _restores(work, request, state):
        return work.refuse(RefusalReason.WRONG_SOURCE, "a backup controller serves nobody")
    if state.id not in work.memory.recoveries and not _has_no_office(work, request, state):
        _answer(work, state, request)
    return None


def _has_no_office(work: Work, request: SyncRequest, state: Partition) -> bool:
    """Returns whether this server was promoted, and its copy of the enterprise does not say so yet.

    Its copies are those of a backup. That of the enterprise names the former PSC: others of the
    site would take that from it, and turn to the former one for good. A server that is promoted
    after it would take its copies for the newest (E75).
    """
    if work.me.is_pec or _restores(work, request, state):
        return False
    return not number_recovery.has_served(work.tx, work.me.site)


def _answer(work: Work, state: Partition, request: SyncRequest) -> None:
    restores = _restores(work, request, state)
    if state.purge_state is not PurgeState.NORMAL:
        if restores:
            work.send(request.requester, remains.reply_to(work, state, request))
        return
    if work.memory.progress(state.id).incomplete:
        if restores:
            copy = reply_to(work, state, request)
            work.send(request.requester, replace(copy, purged_seq=remains.INCOMPLETE))
        return
    if _has_nothing_yet(work, state, request):
        return
    work.counters.syncs_served += 1
    if is_purged(request, state):
        work.send(request.requester, AlreadyPurged(work.me.site, state.id, state.purged_seq))
    else:
        work.send(request.requester, reply_to(work, state, request))


def _objection_to_sender(work: Work, sender: Sender, request: SyncRequest) -> Objection | None:
    if not is_controller(work, sender):
        text = f"{sender.label} is no directory server, nothing is sent to it"
        return Objection(RefusalReason.STRANGER, text)
    if sender.name is None or name_key(sender.name) != name_key(request.requester):
        text = f"{sender.label} asks in the name of {request.requester}"
        return Objection(RefusalReason.IMPERSONATION, text)
    return None


def _restores(work: Work, request: SyncRequest, state: Partition) -> bool:
    """The authority that is being restored asks even its backup controllers.

    So does the PEC where it stands in for a PSC (``standing_in``).
    """
    enterprise = work.partition(ENTERPRISE_PARTITION)
    pec = state.owner if enterprise is None else enterprise.owner
    requester = name_key(request.requester)
    return request.is_sync0 and requester in (name_key(state.owner), name_key(pec))


def is_purged(request: SyncRequest, state: Partition) -> bool:
    """Returns whether tombstones that the requester has not seen have been purged."""
    return request.from_seq < state.purged_seq and request.known_purged_seq < state.purged_seq


def reply_to(work: Work, state: Partition, request: SyncRequest) -> SyncReply:
    """The reply: all changes above From, whatever To says (E03), or what fits a message (E54)."""
    last = state.last_seq
    if not _restores(work, request, state):
        last = max(request.from_seq, complete_through(work, state))
    changes = visible(wanted(work, state, request), granted_scope(work, state, request))
    known = takewhile(lambda change: change.seq <= last, changes)
    chosen, complete = fitting(work.settings, known, request.from_seq, state.purged_seq)
    to_seq = last if complete else chosen[-1].seq
    more = Sync0.COMPLETE if request.is_sync0 else Sync0.NONE
    if not complete or _is_held_back(work, state, request):
        more = Sync0.MORE
    return SyncReply(
        work.me.site,
        state.id,
        request.from_seq,
        to_seq,
        state.purged_seq,
        more,
        in_order(chosen),
    )


def _is_held_back(work: Work, state: Partition, request: SyncRequest) -> bool:
    """Returns whether this copy has changes that it does not pass on: an object is set aside.

    What is before that object is a part of the reply then: of the objects that were changed again
    behind it, the earlier versions are here no more (E73). The rest follows when the object is
    here; until then there is no answer, and who asked asks again. A restored authority gets all.
    """
    return not _restores(work, request, state) and complete_through(work, state) < state.last_seq


def _has_nothing_yet(work: Work, state: Partition, request: SyncRequest) -> bool:
    """Returns whether the requester has all that this copy passes on for now."""
    if is_purged(request, state) or not _is_held_back(work, state, request):
        return False
    return request.from_seq >= complete_through(work, state)


def in_order(changes: list[DirectoryChange]) -> tuple[DirectoryChange, ...]:
    """Ascending, each naming the one before it (E01)."""
    return tuple(changes)


def wanted(work: Work, state: Partition, request: SyncRequest) -> Iterator[Change]:
    """Objects and tombstones of the partition, whoever owns it (E09), and of no other (E10)."""
    return work.tx.changes(state.id, request.from_seq)


def granted_scope(work: Work, state: Partition, request: SyncRequest) -> int:
    """The requested scope, unless the directory knows the requester as a server of another site.

    All queues are for the servers of the partition's site, for our own backup controllers, and for
    an authority that is being restored (E58).
    """
    machine = work.tx.find(ObjectType.MACHINE, request.requester)
    if machine is None or machine.partition in (state.id, work.me.site):
        return request.scope
    return request.scope if _restores(work, request, state) else Scope.ENTERPRISE


def visible(changes: Iterable[Change], scope: int) -> Iterator[Change]:
    """Another site does not see queues that are known in their own alone (E58)."""
    for change in changes:
        hidden = (
            scope == Scope.ENTERPRISE
            and isinstance(change, DirectoryObject)
            and scope_of(change) is Scope.SITE
        )
        if not hidden:
            yield change
