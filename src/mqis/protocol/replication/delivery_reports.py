"""Reports of the transport about sent messages: under way, delivered, or lost (E50)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqis.protocol.queueing.events import Acknowledged, Dropped, Nacked, Refused, Written
from mqis.protocol.replication import change_requests
from mqis.protocol.replication.work import Work
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqdsrp.messages import ChangeRequest, decode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.properties import MessageClass

TransportEvent = Written | Acknowledged | Nacked | Dropped | Refused

#: A message that was refused for its signature is signed anew and sent again this often (E50).
MAX_RESENDS = 3
_REMEMBERED = 256


def transported(work: Work, events: Iterable[TransportEvent]) -> None:
    for event in events:
        for record in _records(work, event):
            work.record(record)
        if isinstance(event, Acknowledged):
            _free(work, event.machine, len(event.identifiers))
        elif isinstance(event, (Nacked, Dropped)):
            _free(work, event.machine, 1)
            _undelivered(work, event)


def _free(work: Work, machine: str, messages: int) -> None:
    """The way to a neighbour is free for more."""
    neighbor = work.memory.neighbor(machine)
    if neighbor is not None:
        neighbor.in_flight = max(0, neighbor.in_flight - messages)


def _undelivered(work: Work, event: Nacked | Dropped) -> None:
    """Receive Change Request Nack, Receive Request Nack (3.3.7.8, 3.3.7.9).

    The message is what we sent, not what an acknowledgement brought: nobody makes us send his own.
    A sync request that did not arrive is repeated in its own time (E05).
    """
    message = decode_message(event.message.body)
    if isinstance(message, ChangeRequest):
        change_requests.receive_nack(work, message)
    elif event.message_class == MessageClass.NACK_BAD_SIGNATURE and _may_resend(work, event):
        work.send(event.machine, message, again=True)


def _may_resend(work: Work, event: Nacked | Dropped) -> bool:
    resent = work.memory.resent
    count = resent.pop(event.message.body, 0)
    resent[event.message.body] = min(count + 1, MAX_RESENDS)
    while len(resent) > _REMEMBERED:
        del resent[next(iter(resent))]
    return count < MAX_RESENDS


def _records(work: Work, event: TransportEvent) -> Iterator[JournalRecord]:
    match event:
        case Written(identifier, machine, session):
            yield _record(work, RecordState.WRITTEN, identifier, machine, session=session)
        case Acknowledged(identifiers, machine, session):
            for identifier in identifiers:
                yield _record(work, RecordState.ACKNOWLEDGED, identifier, machine, session=session)
        case Nacked(identifier, machine, _, code) | Dropped(identifier, machine, _, code):
            reason = f"message class 0x{code:04X}"
            yield _record(work, RecordState.EXPIRED, identifier, machine, reason=reason)
        case Refused(identifier, session, reason):
            yield _record(work, RecordState.REFUSED, identifier, "", session=session, reason=reason)


def _record(
    work: Work,
    state: RecordState,
    identifier: MessageIdentifier,
    peer: str,
    *,
    session: int = 0,
    reason: str = "",
) -> JournalRecord:
    return JournalRecord(
        work.at.unix_us,
        RecordKind.MESSAGE,
        state,
        peer=peer,
        message=identifier,
        session=session,
        reason=reason,
    )
