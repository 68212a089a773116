"""Changes for another authority: asking, passing on, deciding, answering.

3.1.7.1.1 Change Remote Object, 3.3.7.1 Process Change Request, 3.2.7.2 Receive Change Request,
3.2.7.6 Send Change Reply, 3.3.7.6 Receive Change Reply, 3.3.7.8 Receive Change Request Nack.

A request that gets no answer is unknown, not failed: the authority keeps its answer in the
transaction that made the change, so that the same request gets the same answer again.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    NAME_PROPERTY,
    DirectoryObject,
    name_key,
)
from mqis.protocol.directory.ownchange import NotAuthority, OwnChange
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication import replays, standing_in
from mqis.protocol.replication.admission import (
    authority_of,
    is_controller,
    may_change,
    owns,
    speaks_for,
)
from mqis.protocol.replication.applying import find, type_of
from mqis.protocol.replication.effects import (
    RefusalReason,
    RequestAnswered,
    RequestDecided,
    RequestPassedOn,
)
from mqis.protocol.replication.memory import Waiting
from mqis.protocol.replication.outgoing_changes import requested
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.trust import Requester
from mqis.protocol.replication.work import Work
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeReply, ChangeRequest

_MODULUS = 1 << 32

Decide = Callable[[Work, list[OwnChange]], None]

#: The text's MQDS_NO_RSP_FROM_OWNER and MQDS_OWNER_NOT_REACHED have no values (E66).
NO_RESPONSE = HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER
NOT_REACHED = HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE


# --- asking ---------------------------------------------------------------------------------------


def change_remote_object(work: Work, change: OwnChange, local: int) -> None:
    """Change Remote Object: ``local`` is what the caller calls it in ``RequestAnswered``."""
    memory, me = work.memory, work.me
    memory.last_request = (memory.last_request + 1) % _MODULUS
    request = ChangeRequest(
        me.site,
        change.obj.partition,
        memory.last_request,
        me.name,
        memory.psc if me.is_bsc else None,
        requested(change, replays.next_stamp(work)),
    )
    hop = next_hop(work, request)
    if not hop:
        work.effects.append(RequestAnswered(local, HResult.MQDS_UNKNOWN_SOURCE))
        return
    _pass_on(work, request, hop, local)


def next_hop(work: Work, request: ChangeRequest) -> str:
    """A BSC asks its PSC, a PSC the authority; empty where that is nobody."""
    if work.me.is_bsc:
        return work.memory.psc
    state = work.partition(request.partition)
    name = "" if state is None else authority_of(work.tx, state)
    return "" if work.me.is_called(name) else name


def _pass_on(work: Work, request: ChangeRequest, hop: str, local: int | None) -> None:
    """Send it and remember who waits; the loop goes on meanwhile (E45)."""
    settings = work.settings
    key = (name_key(request.requester), request.request_id)
    relayed = work.me.is_bsc and request.partition != work.me.site
    wait_s = settings.relayed_wait_s if relayed else settings.reply_wait_s
    work.memory.waiting[key] = Waiting(
        request, hop, work.now + wait_s, work.now + settings.repeat_s, local
    )
    work.send(hop, request)


def repeat_or_give_up(work: Work) -> None:
    """Requests whose answers are late."""
    for key, waiting in list(work.memory.waiting.items()):
        if waiting.deadline <= work.now:
            work.counters.unanswered_requests += 1
            del work.memory.waiting[key]
            _conclude(work, waiting, NO_RESPONSE)
        elif waiting.repeat_at <= work.now:
            waiting.repeat_at = work.now + work.settings.repeat_s
            work.send(waiting.next_hop, waiting.request)


def _conclude(work: Work, waiting: Waiting, result: int) -> None:
    if waiting.local is not None:
        work.effects.append(RequestAnswered(waiting.local, result))
    else:
        reply(work, waiting.request, result)


def receive_change_reply(work: Work, sender: Sender, message: ChangeReply) -> None:
    """Receive Change Reply: both names of a request tell whose it is (E46)."""
    key = (name_key(message.requester), message.request_id)
    waiting = work.memory.waiting.get(key)
    if waiting is None:
        return work.refuse(RefusalReason.UNSOLICITED, "an answer that nobody waits for")
    if sender.name is None or name_key(sender.name) != name_key(waiting.next_hop):
        return work.refuse(
            RefusalReason.IMPERSONATION, f"{sender.label} answers for {waiting.next_hop}"
        )
    del work.memory.waiting[key]
    _conclude(work, waiting, message.result)
    return None


def receive_nack(work: Work, request: ChangeRequest) -> None:
    """Receive Change Request Nack: the next server could not be reached."""
    waiting = work.memory.waiting.get((name_key(request.requester), request.request_id))
    if waiting is not None and waiting.request == request:
        del work.memory.waiting[name_key(request.requester), request.request_id]
        _conclude(work, waiting, NOT_REACHED)


# --- deciding -------------------------------------------------------------------------------------


def receive_change_request(
    work: Work, sender: Sender, request: ChangeRequest, changed: Decide
) -> None:
    """Receive Change Request: decide, pass on for an own BSC, or say no (E48)."""
    if not is_controller(work, sender) or sender.name is None:
        return work.refuse(
            RefusalReason.STRANGER,
            f"{sender.label} is no directory server, its changes are not made",
        )
    if not speaks_for(work, sender.name, request):
        return work.refuse(
            RefusalReason.IMPERSONATION, f"{sender.name} asks in the name of {request.requester}"
        )
    if owns(work.tx, work.me, request.partition):
        requester = Requester.of(work, sender, request)
        return reply(work, request, decide_once(work, requester, request, changed))
    if work.me.is_bsc:
        return reply(work, request, HResult.MQ_ERROR)
    hop = next_hop(work, request)
    if request.psc is None or not work.me.is_called(request.psc) or not hop:
        return reply(work, request, HResult.MQDS_UNKNOWN_SOURCE)
    if (name_key(request.requester), request.request_id) not in work.memory.waiting:
        work.counters.relayed_requests += 1
        if work.watched:
            passed_on = RequestPassedOn(request.requester, request.request_id, hop)
            work.effects.append(passed_on)
        _pass_on(work, request, hop, None)
    return None


def decide_once(work: Work, requester: Requester, request: ChangeRequest, changed: Decide) -> int:
    """The first answer to this request, given now or before."""
    known = replays.answer_to(work, request)
    if known is not None:
        return known
    objection = replays.refusal(work, request)
    if objection is not None:
        work.refuse(*objection)
        return NO_RESPONSE  # it may have been made once, or not: nobody here knows any more
    result = _decide(work, requester, request, changed)
    replays.remember(work, request, result)
    return result


def _decide(work: Work, requester: Requester, request: ChangeRequest, changed: Decide) -> int:
    """Make the change as any other of ours, as far as the requesting server is believed."""
    made: list[OwnChange] = []

    def permit(change: OwnChange) -> None:
        requester.check(work, change)
        standing_in.check(work, change)

    events = DirectoryEvents(
        work.tx,
        int(work.at.unix),
        work.entropy,
        own_site=work.me.site,
        owns=lambda partition: may_change(work, partition),
        permit=permit,
        observe=made.append,
        by=request.requester,
    )
    try:
        with work.tx.savepoint():
            _make(events, request.change)
    except DirectoryError as error:
        return _decided(work, request, error.hresult, [])
    except NotAuthority:
        return _decided(work, request, HResult.MQDS_UNKNOWN_SOURCE, [])
    work.counters.decided += len(made)
    changed(work, made)
    return _decided(work, request, HResult.MQ_OK, made)


def _decided(work: Work, request: ChangeRequest, result: int, made: list[OwnChange]) -> int:
    """Told to those who watch."""
    if work.watched:
        names = request.requester, request.request_id
        work.effects.append(RequestDecided(*names, result, tuple(made)))
    return result


def _make(events: DirectoryEvents, change: DirectoryChange) -> None:
    object_type = type_of(change)
    found = find(events.transaction, object_type, change)
    properties = dict(change.properties)
    if change.command is Command.CREATE or (change.command is Command.SYNC and found is None):
        if change.path and object_type in NAME_PROPERTY:
            name = NAME_PROPERTY[object_type]
            properties.setdefault(name, prop(name, change.path))
        if change.guid is not None:
            identifier = IDENTIFIER_PROPERTY[object_type]
            properties[identifier] = prop(identifier, change.guid)
        events.create_directory_object(object_type, properties, partition=change.partition)
        return
    obj = _existing(found, change)
    if change.command is Command.DELETE:
        events.delete_directory_object(obj)
    else:
        events.update_directory_object(obj, properties)


def _existing(obj: DirectoryObject | None, change: DirectoryChange) -> DirectoryObject:
    if obj is None:
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND, f"no object {change.path or change.guid}"
        )
    return obj


def reply(work: Work, request: ChangeRequest, result: int) -> None:
    """Send Change Reply: straight to a neighbour, else through the requester's PSC (E47)."""
    requester = request.requester
    known = work.memory.neighbor(requester) is not None
    machine = requester if known or not request.psc else request.psc
    if work.me.is_called(machine):
        machine = requester
    answer = ChangeReply(work.me.site, request.request_id, result & 0xFFFFFFFF, requester)
    work.send(machine, answer)
