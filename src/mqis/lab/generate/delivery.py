"""Delivers changes from server to server and records that in the servers' journals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from mqis.lab.generate.plan import PlannedServer
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.replication.outgoing_changes import local_record, propagated
from mqis.protocol.replication.server_identity import Role
from mqis.storage.journal import Journal
from mqis.storage.journal.sealing import SealingKey
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from mqis.wire.journal.patterns import RecordPattern, fixed_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Message, MessageOperation, encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

_WAITING = 5000
REFUSED_BECAUSE = "the name is taken in another partition"
EXPIRED_BECAUSE = "message class 0x8002"
_ANY = MessageIdentifier(Guid.NULL, 0)
#: Range of microseconds for writing to a session, and for the transit to another server.
_WRITING, _TRAVEL = (50, 900), (2000, 40_000)


@dataclass(frozen=True, slots=True)
class ChangeUnderWay:
    """A change in transit, and the type and identifier of its object."""

    change: DirectoryChange
    object_type: ObjectType
    object_id: Guid
    #: The fixed fields of the record that a receiver writes when it applies the change.
    applied: bytes

    @classmethod
    def of(
        cls, change: DirectoryChange, object_type: ObjectType, object_id: Guid
    ) -> ChangeUnderWay:
        record = change_record(
            0, RecordState.APPLIED, change, object_type, object_id, message=_ANY, session=1
        )
        return cls(change, object_type, object_id, fixed_of(record))


def change_record(
    time_us: int,
    state: RecordState,
    change: DirectoryChange,
    object_type: int,
    object_id: Guid,
    **more: Any,
) -> JournalRecord:
    return JournalRecord(
        time_us,
        RecordKind.CHANGE,
        state,
        operation=change.command,
        partition=change.partition,
        seq=change.seq,
        previous_seq=change.previous_seq,
        object_type=object_type,
        object_id=object_id,
        **more,
    )


@dataclass(slots=True)
class Book:
    """The journal of one server."""

    journal: Journal
    last_lsn: int = 0
    ordinal: int = 0
    _waiting: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, record: JournalRecord) -> None:
        self.add(encode_record(self.last_lsn + 1, record))

    def add(self, data: bytes) -> None:
        """Appends an encoded record, which must have the next LSN."""
        self.last_lsn += 1
        self._waiting.append((self.last_lsn, data))
        if len(self._waiting) >= _WAITING:
            self.flush()

    def flush(self) -> None:
        self.journal.append(self._waiting)
        self._waiting = []

    def close(self) -> None:
        self.flush()
        self.journal.close()


@dataclass(frozen=True, slots=True)
class DeliveryHop:
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Mishap:
    """A fault of one message, at one step of its path."""

    kind: str
    hop: DeliveryHop


class Delivery:
    """Delivers messages; each arrives before the next change is made, unless it has a mishap."""

    def __init__(
        self,
        members: Sequence[PlannedServer],
        directory: Path,
        random: Random,
        keys: Mapping[str, SealingKey] | None = None,
    ) -> None:
        self.members = {member.name: member for member in members}
        self.now_us = 0
        #: Servers that are away: nothing is sent to them.
        self.away: frozenset[str] = frozenset()
        #: How far the clocks of servers are ahead.
        self.ahead_us: dict[str, int] = {}
        #: The last number that each server has of each partition.
        self.reached: dict[tuple[str, Guid], SequenceNumber] = {}
        self._roll = random.random
        signing = keys or {}
        self._books = {
            m.name: Book(Journal(directory / m.name, m.name, m.id, key=signing.get(m.name)))
            for m in members
        }
        self.authorities = {m.site: m.name for m in members if m.role is not Role.BSC}
        self.authorities[Guid.NULL] = members[0].name
        self._pscs = [m.name for m in members if m.role is not Role.BSC]
        self._backups = {
            name: [m.name for m in members if m.role is Role.BSC and m.psc == name]
            for name in self.members
        }
        self._pattern: Callable[[str, str, RecordState, int, str], RecordPattern] = cache(
            self._make_pattern
        )

    def seal(self, name: str) -> None:
        """Ends the segment of a server's journal; the next record begins another one."""
        self._books[name].flush()
        self._books[name].journal.seal()

    def seal_all(self) -> None:
        """Ends the segments of all servers, as their operators may do every day."""
        for name in self._books:
            self.seal(name)

    def _clock(self, name: str) -> int:
        return self.now_us + self.ahead_us.get(name, 0)

    def close(self) -> None:
        for book in self._books.values():
            book.close()

    def neighbors(self, name: str, *, all_pscs: bool) -> list[str]:
        """The servers that a server sends to: its BSCs and, with ``all_pscs``, all other PSCs."""
        others = [psc for psc in self._pscs if psc != name] if all_pscs else []
        return [n for n in (*others, *self._backups[name]) if n not in self.away]

    def path(self, partition: Guid, server: str) -> list[DeliveryHop]:
        """The steps from the authority of a partition to a server."""
        authority, psc = self.authorities[partition], self.members[server].psc
        stops = [authority, *([psc] if psc not in (authority, server) else []), server]
        return [DeliveryHop(a, b) for a, b in pairwise(stops)]

    def below(self, server: str) -> list[str]:
        """A server and the BSCs that get all changes from it."""
        return [server, *self.neighbors(server, all_pscs=False)]

    # --- changes ----------------------------------------------------------------------------------

    def made(self, change: OwnChange) -> ChangeUnderWay:
        """Records a change in the authority's journal; returns it for sending."""
        outgoing = propagated(change, SequenceNumber.MIN)
        obj = change.obj
        authority = self.authorities[obj.partition]
        self._books[authority].write(local_record(change, outgoing, self._clock(authority)))
        return ChangeUnderWay.of(outgoing, obj.type, obj.id)

    def send(self, batch: Sequence[ChangeUnderWay], mishap: Mishap | None = None) -> None:
        """Sends changes of one partition to all other servers."""
        authority = self.authorities[batch[0].change.partition]
        body = self._body(authority, batch)
        start = self.now_us
        latest = start
        for target in self.neighbors(authority, all_pscs=True):
            self.now_us = start
            self._propagate(DeliveryHop(authority, target), batch, body, mishap)
            latest = max(latest, self.now_us)
        self.now_us = latest

    def _body(self, source: str, batch: Sequence[ChangeUnderWay]) -> bytes:
        changes = tuple([sent.change for sent in batch])
        return encode_message(ChangePropagation(self.members[source].site, changes))

    def _propagate(
        self, hop: DeliveryHop, batch: Sequence[ChangeUnderWay], body: bytes, mishap: Mishap | None
    ) -> None:
        fate = mishap.kind if mishap is not None and mishap.hop == hop else ""
        if not self._message(hop, MessageOperation.CHANGE_PROPAGATION, body, batch, fate):
            return
        backups = self.neighbors(hop.target, all_pscs=False)
        if backups:
            passed_on = self._body(hop.target, batch)
            for backup in backups:
                self._propagate(DeliveryHop(hop.target, backup), batch, passed_on, mishap)

    def send_message(
        self, hop: DeliveryHop, message: Message, batch: Sequence[ChangeUnderWay] = ()
    ) -> None:
        """Sends any other message, which arrives; the receiver applies the changes of ``batch``."""
        self._message(hop, message.OPERATION, encode_message(message), batch)

    # --- the records ------------------------------------------------------------------------------

    def _message(
        self,
        hop: DeliveryHop,
        operation: int,
        body: bytes,
        batch: Sequence[ChangeUnderWay],
        fate: str = "",
    ) -> bool:
        """Records a message at both ends; returns whether the receiver accepted it."""
        if fate == "never_sent":
            return False
        book = self._books[hop.source]
        book.ordinal += 1
        number = book.ordinal
        self._record_state(hop, RecordState.QUEUED, number, operation=operation, body=body)
        self._advance(_WRITING)
        if fate == "expired":
            self._record_state(hop, RecordState.EXPIRED, number, reason=EXPIRED_BECAUSE)
            return False
        self._record_state(hop, RecordState.WRITTEN, number)
        if fate == "lost":
            return False
        self._advance(_TRAVEL)
        for _ in range(2 if fate == "duplicated" else 1):
            self._receive(hop, number, operation, body, batch, refuse=fate == "refused")
        self._record_state(hop, RecordState.ACKNOWLEDGED, number)
        return fate != "refused"

    def _advance(self, span: tuple[int, int]) -> None:
        """Advances the time by a random span."""
        self.now_us += span[0] + int(self._roll() * (span[1] - span[0]))

    def _record_state(
        self,
        hop: DeliveryHop,
        state: RecordState,
        number: int,
        *,
        operation: int = 0,
        reason: str = "",
        body: bytes = b"",
    ) -> None:
        """Records a state of a message in the sender's journal."""
        book = self._books[hop.source]
        pattern = self._pattern(hop.source, hop.target, state, operation, reason)
        book.add(pattern.record(book.last_lsn + 1, self._clock(hop.source), number, body))

    def _receive(
        self,
        hop: DeliveryHop,
        number: int,
        operation: int,
        body: bytes,
        batch: Sequence[ChangeUnderWay],
        *,
        refuse: bool,
    ) -> None:
        book, now = self._books[hop.target], self._clock(hop.target)
        pattern = self._pattern(hop.source, hop.target, RecordState.RECEIVED, operation, "")
        book.add(pattern.record(book.last_lsn + 1, now, number, body))
        if refuse:
            self._refuse(hop, number, batch)
            return
        for sent in batch:
            book.add(pattern.record(book.last_lsn + 1, now, number, fixed=sent.applied))
        if batch:
            last = batch[-1].change
            self.reached[hop.target, last.partition] = last.seq

    def _refuse(self, hop: DeliveryHop, number: int, batch: Sequence[ChangeUnderWay]) -> None:
        message = MessageIdentifier(self.members[hop.source].id, number)
        for sent in batch:
            now = self._clock(hop.target)
            record = change_record(now, RecordState.REFUSED, sent.change, 0, sent.object_id)
            about = {"peer": hop.source, "message": message, "session": 1}
            self._books[hop.target].write(replace(record, reason=REFUSED_BECAUSE, **about))  # type: ignore[arg-type]

    def _make_pattern(
        self, source: str, target: str, state: RecordState, operation: int, reason: str
    ) -> RecordPattern:
        at_target = state is RecordState.RECEIVED
        unsent = state in (RecordState.QUEUED, RecordState.EXPIRED)
        record = JournalRecord(
            0,
            RecordKind.MESSAGE,
            state,
            peer=source if at_target else target,
            message=MessageIdentifier(self.members[source].id, 0),
            session=0 if unsent else 1,
            operation=operation,
            reason=reason,
        )
        return RecordPattern.of(record)
