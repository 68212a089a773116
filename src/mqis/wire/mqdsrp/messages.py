"""The eight replication messages (MC-MQDSRP 2.2.5, 2.2.6), told apart by their operation byte.

Every message begins with the base header:

     0  u8   Version, 0
     1  16   SiteID of the sending queue manager
    17  u8   Operation

A message is a member of ``MessageOperation``, a class, and its name in ``Message``; decoding,
captures and descriptions follow from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, get_args

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import SMALLEST, DirectoryChange
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

MAX_NAME = 256
VERSION = 0


class MessageOperation(IntEnum):
    CHANGE_PROPAGATION = 0
    CHANGE_REQUEST = 1
    SYNC_REQUEST = 2
    SYNC_REPLY = 3
    CHANGE_REPLY = 4
    ALREADY_PURGED = 5
    PSC_ACK = 6
    BSC_ACK = 7


class Sync0(IntEnum):
    """CompleteSync0 of a sync reply: the state of a full synchronisation."""

    NONE = 0
    MORE = 1
    COMPLETE = 2


def _units(name: str) -> int:
    return len(name.encode("utf-16-le", "surrogatepass")) // 2


def _encode_name(writer: Writer, name: str) -> None:
    """Encodes a name, refusing one that is longer than decoders accept."""
    if _units(name) > MAX_NAME:
        raise ValueError(f"a machine name has at most {MAX_NAME} UTF-16 units")
    writer.utf16z(name)


# 0 16 PartitionID, 16 8 LastSeqNumber, 24 8 PurgedSeqNumber (2.2.3)
@dataclass(frozen=True, slots=True)
class PartitionSeqNumbers:
    """A server's progress in one partition."""

    partition: Guid
    last_seq: SequenceNumber
    purged_seq: SequenceNumber

    SIZE: ClassVar[int] = 32

    @classmethod
    def decode(cls, reader: Reader) -> PartitionSeqNumbers:
        return cls(reader.guid(), SequenceNumber.decode(reader), SequenceNumber.decode(reader))

    def encode(self, writer: Writer) -> None:
        writer.guid(self.partition)
        self.last_seq.encode(writer)
        self.purged_seq.encode(writer)


# 0 u16 Count; only if it is not 0: 2 MachineName, then Count records (2.2.5.4)
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """SeqNumberHeader: the sender's sequence numbers; without records only the count 0 is sent."""

    machine: str = ""
    partitions: tuple[PartitionSeqNumbers, ...] = ()

    def __post_init__(self) -> None:
        if self.machine and not self.partitions:
            raise ValueError("a heartbeat without partitions names no machine")

    @classmethod
    def decode(cls, reader: Reader) -> Heartbeat:
        at = reader.offset
        count = reader.u16()
        if not count:
            return cls()
        machine = reader.utf16z(MAX_NAME, "MachineName")
        if count * PartitionSeqNumbers.SIZE > reader.remaining:
            raise reader.error(f"{count} partition records do not fit", at)
        return cls(machine, tuple(PartitionSeqNumbers.decode(reader) for _ in range(count)))

    def encode(self, writer: Writer) -> None:
        writer.u16(len(self.partitions))
        if self.partitions:
            _encode_name(writer, self.machine)
            for partition in self.partitions:
                partition.encode(writer)


# 18 u8 Flush, 19 u16 Count, 21 changes, then the heartbeat, always there (2.2.6.9)
@dataclass(frozen=True, slots=True)
class ChangePropagation:
    """Changes that the authority made, and the sender's progress."""

    site: Guid
    changes: tuple[DirectoryChange, ...] = ()
    heartbeat: Heartbeat = Heartbeat()
    flush: int = 0

    OPERATION: ClassVar[MessageOperation] = MessageOperation.CHANGE_PROPAGATION

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> ChangePropagation:
        flush = reader.u8()
        at = reader.offset
        changes = _changes(reader, reader.u16(), at)
        return cls(site, changes, Heartbeat.decode(reader), flush)

    def encode_body(self, writer: Writer) -> None:
        writer.u8(self.flush)
        writer.u16(len(self.changes))
        for change in self.changes:
            change.encode(writer)
        self.heartbeat.encode(writer)


def _changes(reader: Reader, count: int, at: int) -> tuple[DirectoryChange, ...]:
    """Decodes ``count`` changes, a number read at ``at``, after checking that they can fit."""
    if count * SMALLEST > reader.remaining:
        raise reader.error(f"{count} changes do not fit in {reader.remaining} bytes", at)
    return tuple(DirectoryChange.decode(reader) for _ in range(count))


# 18 16 PartitionID, 34 u32 RequestIdentifier, 38 u32 PSCNameOffset, 42 RequesterName, PSCName,
# then the change
@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change for the authority; ``psc`` is the requester's PSC if the requester is a BSC."""

    site: Guid
    partition: Guid
    request_id: int
    requester: str
    psc: str | None
    change: DirectoryChange

    OPERATION: ClassVar[MessageOperation] = MessageOperation.CHANGE_REQUEST

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> ChangeRequest:
        partition, request_id = reader.guid(), reader.u32()
        at = reader.offset
        offset = reader.u32()
        start = reader.offset
        requester = reader.utf16z(MAX_NAME, "RequesterName")
        if offset and offset != (reader.offset - start) // 2:
            raise reader.error(f"PSCNameOffset {offset} is not behind RequesterName", at)
        psc = reader.utf16z(MAX_NAME, "PSCName") if offset else None
        return cls(site, partition, request_id, requester, psc, DirectoryChange.decode(reader))

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.partition)
        writer.u32(self.request_id)
        writer.u32(0 if self.psc is None else _units(self.requester) + 1)
        _encode_name(writer, self.requester)
        if self.psc is not None:
            _encode_name(writer, self.psc)
        self.change.encode(writer)


# 18 u32 RequestIdentifier, 22 HRESULT, 26 RequesterName
@dataclass(frozen=True, slots=True)
class ChangeReply:
    """The result of a change request, for the original requester."""

    site: Guid
    request_id: int
    result: int
    requester: str

    OPERATION: ClassVar[MessageOperation] = MessageOperation.CHANGE_REPLY

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> ChangeReply:
        request_id, result = reader.u32(), reader.u32()
        return cls(site, request_id, result, reader.utf16z(MAX_NAME, "RequesterName"))

    def encode_body(self, writer: Writer) -> None:
        writer.u32(self.request_id)
        writer.u32(self.result)
        _encode_name(writer, self.requester)


# 18 16 PartitionID, 34 8 From, 42 8 To, 50 8 KnownPurged, 58 u8 IsSync0, 59 u8 Scope,
# 60 RequesterName
@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A request for the changes numbered above ``from_seq`` up to ``to_seq``."""

    site: Guid
    partition: Guid
    from_seq: SequenceNumber
    to_seq: SequenceNumber
    known_purged_seq: SequenceNumber
    is_sync0: bool
    scope: int
    requester: str

    OPERATION: ClassVar[MessageOperation] = MessageOperation.SYNC_REQUEST

    def __post_init__(self) -> None:
        if self.scope not in (0, 1):
            raise ValueError(f"Scope is 0 or 1, not {self.scope}")

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> SyncRequest:
        partition = reader.guid()
        from_seq, to_seq, known = (SequenceNumber.decode(reader) for _ in range(3))
        at = reader.offset
        is_sync0, scope = reader.u8(), reader.u8()
        if is_sync0 > 1:
            raise reader.error(f"IsSync0 is 0 or 1, not {is_sync0}", at)
        if scope > 1:
            raise reader.error(f"Scope is 0 or 1, not {scope}", at + 1)
        name = reader.utf16z(MAX_NAME, "RequesterName")
        return cls(site, partition, from_seq, to_seq, known, bool(is_sync0), scope, name)

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.partition)
        self.from_seq.encode(writer)
        self.to_seq.encode(writer)
        self.known_purged_seq.encode(writer)
        writer.u8(self.is_sync0)
        writer.u8(self.scope)
        _encode_name(writer, self.requester)


# 18 16 PartitionID, 34 8 From, 42 8 To, 50 8 Purged, 58 u32 Count, 62 u32 CompleteSync0,
# 66 changes
@dataclass(frozen=True, slots=True)
class SyncReply:
    """Changes of a partition in ascending order (E01)."""

    site: Guid
    partition: Guid
    from_seq: SequenceNumber
    to_seq: SequenceNumber
    purged_seq: SequenceNumber
    complete_sync0: Sync0
    changes: tuple[DirectoryChange, ...] = ()

    OPERATION: ClassVar[MessageOperation] = MessageOperation.SYNC_REPLY

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> SyncReply:
        partition = reader.guid()
        from_seq, to_seq, purged = (SequenceNumber.decode(reader) for _ in range(3))
        count_at = reader.offset
        count = reader.u32()
        at = reader.offset
        number = reader.u32()
        if number > Sync0.COMPLETE:
            raise reader.error(f"CompleteSync0 is 0, 1 or 2, not {number}", at)
        changes = _changes(reader, count, count_at)
        return cls(site, partition, from_seq, to_seq, purged, Sync0(number), changes)

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.partition)
        self.from_seq.encode(writer)
        self.to_seq.encode(writer)
        self.purged_seq.encode(writer)
        writer.u32(len(self.changes))
        writer.u32(self.complete_sync0)
        for change in self.changes:
            change.encode(writer)


# 18 16 PartitionID, 34 8 PurgedSeqNumber
@dataclass(frozen=True, slots=True)
class AlreadyPurged:
    """The requested changes have been purged; the requester needs a full synchronisation."""

    site: Guid
    partition: Guid
    purged_seq: SequenceNumber

    OPERATION: ClassVar[MessageOperation] = MessageOperation.ALREADY_PURGED

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> AlreadyPurged:
        return cls(site, reader.guid(), SequenceNumber.decode(reader))

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.partition)
        self.purged_seq.encode(writer)


# 18 16 PSCSiteID, 34 16 AckedPartitionID, 50 8 AckedSeqNumber, 58 PSCName
@dataclass(frozen=True, slots=True)
class PscAck:
    """A PSC's acknowledgement of all changes up to ``seq``."""

    site: Guid
    psc_site: Guid
    partition: Guid
    seq: SequenceNumber
    psc: str

    OPERATION: ClassVar[MessageOperation] = MessageOperation.PSC_ACK

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> PscAck:
        psc_site, partition, seq = reader.guid(), reader.guid(), SequenceNumber.decode(reader)
        return cls(site, psc_site, partition, seq, reader.utf16z(MAX_NAME, "PSCName"))

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.psc_site)
        writer.guid(self.partition)
        self.seq.encode(writer)
        _encode_name(writer, self.psc)


# 18 16 BSCMachineID, 34 BSCName
@dataclass(frozen=True, slots=True)
class BscAck:
    """A BSC's sign of life; it acknowledges no changes."""

    site: Guid
    machine: Guid
    name: str

    OPERATION: ClassVar[MessageOperation] = MessageOperation.BSC_ACK

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> BscAck:
        return cls(site, reader.guid(), reader.utf16z(MAX_NAME, "BSCName"))

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.machine)
        _encode_name(writer, self.name)


Message = (
    ChangePropagation
    | ChangeRequest
    | SyncRequest
    | SyncReply
    | ChangeReply
    | AlreadyPurged
    | PscAck
    | BscAck
)

#: Decoders of message bodies by operation, one for each class of ``Message``.
_BODIES: dict[int, Callable[[Guid, Reader], Message]] = {
    kind.OPERATION: kind.decode_body for kind in get_args(Message)
}


def decode_message(data: bytes) -> Message:
    """Decodes the body of an MSMQ message; ignores surplus bytes."""
    reader = Reader(data)
    version = reader.u8()
    if version != VERSION:
        raise reader.error(f"replication version {version} is unknown, only {VERSION} is known", 0)
    site = reader.guid()
    operation = reader.u8()
    decode = _BODIES.get(operation)
    if decode is None:
        raise reader.error(f"operation {operation} is not one of 0 to {max(_BODIES)}", 17)
    return decode(site, reader)


def encode_message(message: Message) -> bytes:
    writer = Writer()
    writer.u8(VERSION)
    writer.guid(message.site)
    writer.u8(message.OPERATION)
    message.encode_body(writer)
    return writer.getvalue()
