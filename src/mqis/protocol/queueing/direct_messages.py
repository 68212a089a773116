"""The decision about a received direct message (MS-MQQB 3.1.5.8, as far as it applies).

Direct messages carry no address, which most steps of the text treat as another machine's: here it
is local. The age of a message is not checked, since clocks differ by more than the ten seconds that
some messages live (E67). A message is remembered as seen only once it is delivered, so that an
attacker without a key cannot make this side drop another's next messages as duplicates.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.queueing.events import Delivered, Nacked, Notified, Refused
from mqis.protocol.queueing.message_tables import DuplicateTable, SentTable
from mqis.protocol.queueing.replication_queue import (
    MQIS_QUEUE_ID,
    NOTIFY_QUEUE,
    canonical,
    machine_of,
)
from mqis.protocol.queueing.signing import Signer, SigningPolicy, examine
from mqis.wire.guid import Guid
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageClass, is_nack
from mqis.wire.mqqb.queuename import QueueKind
from mqis.wire.mqqb.userheader import UserHeader


class Receiver:
    """Decides whether a message is delivered or refused."""

    def __init__(
        self,
        guid: Guid,
        machine: str,
        *,
        duplicates: DuplicateTable,
        sent: SentTable,
        policy: SigningPolicy,
        signer: Signer | None,
        counts: Callable[[Guid], bool] | None = None,
    ) -> None:
        """``counts`` says which peers' messages are accepted; None: those of all."""
        self._guid = guid
        self._machine = canonical(machine)
        self._duplicates = duplicates
        self._sent = sent
        self._policy = policy
        self._signer = signer
        self._counts = counts

    def judge(
        self, message: UserMessage, peer: Guid, session: int, now: float
    ) -> Delivered | Notified | Nacked | Refused:
        header = message.header
        identifier = MessageIdentifier(header.source, header.message_id)
        reason = self._objection(message, identifier, peer)
        if reason is not None:
            return Refused(identifier, session, reason)
        if self._duplicates.seen(identifier, now):
            return Refused.as_duplicate(identifier, session)
        authenticated, reason = self._examine(message)
        if reason is not None:
            return Refused(identifier, session, reason)
        if is_nack(message.properties.message_class):
            return self._nack(message, identifier, session, now)
        self._duplicates.add(identifier, now)
        body = message.properties.body
        if not self._is_local(header):
            return Notified(identifier, body, authenticated, session)
        return Delivered(identifier, body, message.priority, authenticated, session)

    def _objection(
        self, message: UserMessage, identifier: MessageIdentifier, peer: Guid
    ) -> str | None:
        reason = None
        if identifier.source != peer:  # nothing is routed, so nobody sends for another
            reason = f"from {identifier.source} on the session of {peer}"
        elif self._counts is not None and not self._counts(peer):
            reason = f"{peer} is no server of the directory"
        elif message.transaction is not None:
            reason = "transactional"
        elif message.security is not None and message.security.encrypted:
            reason = "encrypted"
        return reason

    def _examine(self, message: UserMessage) -> tuple[bool, str | None]:
        """Returns whether a message is authenticated, and the reason to refuse it, if any."""
        message_class = message.properties.message_class
        if not self._is_local(message.header) and not self._is_notice(message):
            return False, "not for the replication queue of this machine"
        if message_class != MessageClass.NORMAL and not is_nack(message_class):
            return False, f"message class 0x{message_class:04x}"
        return examine(message, self._policy, self._signer)

    def _is_local(self, header: UserHeader) -> bool:
        name = header.destination
        if name.kind is QueueKind.DIRECT:
            machine = machine_of(name.direct)
            return machine is not None and canonical(machine) == self._machine
        mine = header.address == self._guid
        wanted = QueueKind.PRIVATE_AT_DESTINATION, MQIS_QUEUE_ID
        return mine and (name.kind, name.private_id) == wanted

    def _is_notice(self, message: UserMessage) -> bool:
        """True if a message is for the notification queue, by its number or by its name."""
        name = message.header.destination
        if message.properties.message_class != MessageClass.NORMAL:
            return False
        if name.kind is QueueKind.DIRECT:
            machine = machine_of(name.direct, NOTIFY_QUEUE)
            return machine is not None and canonical(machine) == self._machine
        wanted = QueueKind.PRIVATE_AT_DESTINATION, NOTIFY_QUEUE_ID
        return message.header.address == self._guid and (name.kind, name.private_id) == wanted

    def _nack(
        self, message: UserMessage, identifier: MessageIdentifier, session: int, now: float
    ) -> Nacked | Refused:
        """Accepts a NACK only about an own message, and only from the machine it was sent to."""
        subject = MessageIdentifier.from_bytes(message.properties.correlation_id)
        sent = self._sent.get(subject.ordinal, now) if subject.source == self._guid else None
        if sent is None or sent.peer != identifier.source:
            return Refused(identifier, session, "acknowledges nothing that was sent to its sender")
        self._sent.take(subject.ordinal, now)
        self._duplicates.add(identifier, now)
        message_class = message.properties.message_class
        return Nacked(subject, sent.machine, sent.message, message_class, local=False)
