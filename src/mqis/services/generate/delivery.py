"""How changes get from server to server, as the journals of all of them tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.replication.changes import propagated
from mqis.protocol.replication.server import Role
from mqis.services.generate.plan import Member
from mqis.storage.journal import Journal
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

_WAITING = 5000
REFUSED_BECAUSE = "the name is taken in another partition"
EXPIRED_BECAUSE = "message class 0x8002"


@dataclass(frozen=True, slots=True)
class Sent:
    """A change under way: as it travels, and what the journals say of its object."""

    change: DirectoryChange
    object_type: ObjectType
    object_id: Guid


@dataclass(slots=True)
class Book:
    """The journal of one server."""

    journal: Journal
    last_lsn: int = 0
    ordinal: int = 0
    _waiting: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, record: JournalRecord) -> None:
        self.last_lsn += 1
        self._waiting.append((self.last_lsn, encode_record(self.last_lsn, record)))
        if len(self._waiting) >= _WAITING:
            self.flush()

    def flush(self) -> None:
        self.journal.append(self._waiting)
        self._waiting = []

    def close(self) -> None:
        self.flush()
        self.journal.close()


@dataclass(frozen=True, slots=True)
class Hop:
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Mishap:
    """What befalls one message."""

    kind: str
    hop: Hop


class Delivery:
    """Everything that is sent arrives before the next change is made, unless it has a mishap."""

    def __init__(self, members: Sequence[Member], directory: Path, random: Random) -> None:
        self.members = {member.name: member for member in members}
        self.now_us = 0
        self._random = random
        self._books = {
            member.name: Book(Journal(directory / member.name, member.name, member.id))
            for member in members
        }
        self._authorities = {m.site: m.name for m in members if m.role is not Role.BSC}
        self._authorities[Guid.NULL] = members[0].name

    def close(self) -> None:
        for book in self._books.values():
            book.close()

    def neighbors(self, name: str, *, all_pscs: bool) -> list[str]:
        """Whom a server sends to: its own backups, and as the authority all other PSCs."""
        me = self.members[name]
        found = []
        for other in self.members.values():
            backup = other.role is Role.BSC and other.psc == name
            if other.name != name and (backup or (all_pscs and other.role is not Role.BSC)):
                found.append(other.name)
        return [] if me.role is Role.BSC else found

    def path(self, partition: Guid, server: str) -> list[Hop]:
        """The way from the authority of a partition to a server."""
        authority, psc = self._authorities[partition], self.members[server].psc
        stops = [authority, *([psc] if psc not in (authority, server) else []), server]
        return [Hop(a, b) for a, b in pairwise(stops)]

    def below(self, server: str) -> list[str]:
        """Whoever gets everything through a server."""
        return [server, *self.neighbors(server, all_pscs=False)]

    # --- the records ------------------------------------------------------------------------------

    def made(self, change: OwnChange) -> Sent:
        """A change of the authority, in its journal."""
        outgoing = propagated(change, SequenceNumber.MIN)
        obj = change.obj
        listed = tuple((p, obj.properties[p]) for p in change.changed if p in obj.properties)
        body = Writer()
        replace(outgoing, properties=listed or outgoing.properties).encode(body)
        sent = Sent(outgoing, obj.type, obj.id)
        authority = self._authorities[obj.partition]
        self._books[authority].write(
            self._change(sent, RecordState.LOCAL, outgoing.command, body=body.getvalue())
        )
        return sent

    def send(self, batch: Sequence[Sent], mishap: Mishap | None = None) -> None:
        """Changes of one partition to everybody."""
        authority = self._authorities[batch[0].change.partition]
        start = self.now_us
        latest = start
        for target in self.neighbors(authority, all_pscs=True):
            self.now_us = start
            self._message(Hop(authority, target), batch, mishap)
            latest = max(latest, self.now_us)
        self.now_us = latest

    def _message(self, hop: Hop, batch: Sequence[Sent], mishap: Mishap | None) -> None:
        fate = mishap.kind if mishap is not None and mishap.hop == hop else ""
        if fate == "never_sent":
            return
        source, book = self.members[hop.source], self._books[hop.source]
        book.ordinal += 1
        identifier = MessageIdentifier(source.id, book.ordinal)
        message = ChangePropagation(source.site, tuple(sent.change for sent in batch))
        body = encode_message(message)
        outgoing = JournalRecord(
            self.now_us,
            RecordKind.MESSAGE,
            RecordState.QUEUED,
            peer=hop.target,
            message=identifier,
            body=body,
        )
        book.write(outgoing)
        if fate == "expired":
            self._later(outgoing, book, RecordState.EXPIRED, EXPIRED_BECAUSE)
            return
        self._later(outgoing, book, RecordState.WRITTEN)
        if fate == "lost":
            return
        self.now_us += self._random.randint(2000, 40_000)
        for _ in range(2 if fate == "duplicated" else 1):
            self._receive(hop, batch, outgoing, refuse=fate == "refused")
        book.write(self._told(outgoing, RecordState.ACKNOWLEDGED))
        if fate != "refused":
            for backup in self.neighbors(hop.target, all_pscs=False):
                self._message(Hop(hop.target, backup), batch, mishap)

    def _later(
        self, outgoing: JournalRecord, book: Book, state: RecordState, reason: str = ""
    ) -> None:
        self.now_us += self._random.randint(50, 900)
        book.write(self._told(outgoing, state, reason))

    def _told(self, outgoing: JournalRecord, state: RecordState, reason: str = "") -> JournalRecord:
        session = 0 if state is RecordState.EXPIRED else 1
        return replace(
            outgoing,
            time_us=self.now_us,
            state=state,
            session=session,
            reason=reason,
            operation=0,
            body=b"",
        )

    def _receive(
        self, hop: Hop, batch: Sequence[Sent], outgoing: JournalRecord, *, refuse: bool
    ) -> None:
        book = self._books[hop.target]
        arrived = replace(
            outgoing,
            time_us=self.now_us,
            state=RecordState.RECEIVED,
            peer=hop.source,
            session=1,
        )
        book.write(arrived)
        for sent in batch:
            state = RecordState.REFUSED if refuse else RecordState.APPLIED
            record = self._change(sent, state, sent.change.command)
            if refuse:
                record = replace(record, reason=REFUSED_BECAUSE, object_type=0)
            book.write(replace(record, peer=hop.source, message=arrived.message, session=1))

    def _change(
        self, sent: Sent, state: RecordState, command: int, *, body: bytes = b""
    ) -> JournalRecord:
        return JournalRecord(
            self.now_us,
            RecordKind.CHANGE,
            state,
            operation=command,
            partition=sent.change.partition,
            seq=sent.change.seq,
            previous_seq=sent.change.previous_seq,
            object_type=sent.object_type,
            object_id=sent.object_id,
            body=body,
        )
