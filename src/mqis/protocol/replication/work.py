"""One operation of replication: the transaction that it runs in, and its effects.

Every function of this package takes a ``Work`` first. What it reads and writes of the directory
goes through ``tx``; what it remembers between operations is in ``memory``; what is to happen in
the world is an effect, for after the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mqis.protocol.clock import Instant
from mqis.protocol.directory.objects import Partition
from mqis.protocol.ports import Entropy, Transaction
from mqis.protocol.queueing.queued_message import (
    REPLICATION_LIFETIME_S,
    REQUEST_LIFETIME_S,
    REQUEST_PRIORITY,
    QueuedMessage,
)
from mqis.protocol.replication.effects import Changed, Effect, Refusal, RefusalReason, Send
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.server_identity import Sender, Server
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeReply, ChangeRequest, encode_message
from mqis.wire.mqdsrp.messages import Message as ReplicationMessage
from mqis.wire.mqqb.identifier import MessageIdentifier

# --- Counters of replication since the start, for monitoring --------------------------------------
# No decision depends on them.


@dataclass(slots=True)
class Counters:
    #: Changes that this server made as an authority, and those of them that another asked for.
    made: int = 0
    decided: int = 0
    #: Changes of other authorities that were put into the replica.
    applied: int = 0
    #: Requests for what is missing, repetitions included, and replies that were taken.
    sync_requests: int = 0
    sync_replies: int = 0
    #: Full synchronisations of a partition: begun and come to their end.
    sync0_started: int = 0
    sync0_completed: int = 0
    #: Requests of others, answered with changes or with the word that only sync0 helps.
    syncs_served: int = 0
    #: Change requests that were passed on for another server, and those that nobody answered.
    relayed_requests: int = 0
    unanswered_requests: int = 0


# --- One operation of replication: the transaction that it runs in, and its effects ---------------

#: Message numbers are taken from the store in blocks, so that none comes twice after a restart.
_BLOCK = 4096
_MODULUS = 1 << 32


@dataclass(slots=True)
class Work:
    """The context of one operation."""

    tx: Transaction
    at: Instant
    me: Server
    settings: ReplicationSettings
    memory: Memory
    entropy: Entropy
    #: Whether changes and messages are written down; a server without a journal needs no records.
    journaled: bool = True
    #: The message that is being handled.
    sender: Sender | None = None
    counters: Counters = field(default_factory=Counters)
    #: Whether somebody wants to hear of each change.
    watched: bool = False
    effects: list[Effect] = field(default_factory=list)
    _changed: set[ObjectType] = field(default_factory=set)

    @property
    def now(self) -> float:
        return self.at.monotonic

    # --- what goes out ----------------------------------------------------------------------------

    def send(
        self,
        machine: str,
        message: ReplicationMessage,
        *,
        acknowledge: bool = False,
        again: bool = False,
    ) -> None:
        """Send Replication Message (3.1.7.2.1); ``again``: with the attributes of 3.3.7.9."""
        urgent = isinstance(message, (ChangeRequest, ChangeReply))
        body = encode_message(message)
        outgoing = QueuedMessage(
            body,
            priority=REQUEST_PRIORITY if urgent and not again else 3,
            lifetime_s=REQUEST_LIFETIME_S if urgent or again else REPLICATION_LIFETIME_S,
            acknowledge=acknowledge or urgent or again,
        )
        neighbor = self.memory.neighbor(machine)
        if neighbor is not None:
            neighbor.in_flight += 1
        identifier = self._next_identifier()
        self.record(
            JournalRecord(
                self.at.unix_us,
                RecordKind.MESSAGE,
                RecordState.QUEUED,
                peer=machine,
                message=identifier,
                operation=message.OPERATION,
                body=body,
            )
        )
        self.effects.append(Send(machine, identifier, outgoing))

    def _next_identifier(self) -> MessageIdentifier:
        memory = self.memory
        if not memory.message_ids_left:
            last = self._start_of_block()
            reserved = (last + _BLOCK) % _MODULUS
            self.tx.put_state("queueing", b"message-id", reserved.to_bytes(4, "big"))
            memory.last_message_id, memory.message_ids_left = last, _BLOCK - 1
        memory.message_ids_left -= 1
        memory.last_message_id = (memory.last_message_id + 1) % _MODULUS or 1
        return MessageIdentifier(self.me.id, memory.last_message_id)

    def _start_of_block(self) -> int:
        """The first number of a new block: the store's counter, or the clock if that is ahead.

        A store that was put back from a backup has an old one, and others still know the numbers
        that came after it: they would drop our messages as repetitions.
        """
        by_clock = (int(self.at.unix) << 8) % _MODULUS
        known = self.tx.state("queueing", b"message-id")
        if known is None:
            return by_clock
        stored = int.from_bytes(known, "big")
        ahead = (stored - by_clock) % _MODULUS < _MODULUS // 2
        return stored if ahead else by_clock

    # --- what is told -----------------------------------------------------------------------------

    def record(self, record: JournalRecord) -> None:
        if self.journaled:
            self.tx.append(record)

    def refuse(
        self, reason: RefusalReason, text: str, change: DirectoryChange | None = None
    ) -> None:
        """Refuses a message, or one change of it, and records that."""
        sender = self.sender
        label = "" if sender is None else sender.label
        session = 0 if sender is None else sender.session
        self.effects.append(Refusal(label, reason, text, session))
        kind = RecordKind.MESSAGE if change is None else RecordKind.CHANGE
        record = JournalRecord(
            self.at.unix_us,
            kind,
            RecordState.REFUSED,
            peer=label,
            message=None if sender is None else sender.identifier,
            session=session,
            reason=text,
        )
        if change is not None:
            record = replace(
                record,
                operation=change.command,
                partition=change.partition,
                seq=change.seq,
                previous_seq=change.previous_seq,
                object_id=change.guid or Guid.NULL,
            )
        self.record(record)

    def changed(self, object_type: ObjectType) -> None:
        """An object is different now."""
        self._changed.add(object_type)

    def mark(self) -> tuple[int, frozenset[ObjectType]]:
        """The effects so far; ``back_to`` takes later ones back, after a rolled-back savepoint."""
        return len(self.effects), frozenset(self._changed)

    def back_to(self, mark: tuple[int, frozenset[ObjectType]]) -> None:
        count, changed = mark
        del self.effects[count:]
        self._changed = set(changed)

    def finish(self) -> list[Effect]:
        if self._changed:
            self.effects.append(Changed(frozenset(self._changed)))
        return self.effects

    # --- what is asked everywhere -----------------------------------------------------------------

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        return self.tx.partition(id)

    def put(self, partition: Partition) -> Partition:
        self.tx.put_partition(partition)
        return partition
