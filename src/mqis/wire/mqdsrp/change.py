"""DirectoryChange (MC-MQDSRP 2.2.4): one change of one object.

 0  u8   Command: 0 create, 1 update, 2 delete, 3 sync
 1  u8   UseGuid
 2       PathName, zero-terminated, or GuidIdentifier (16): exactly one of them
+0  16   PartitionID
+16  8   PreviousSeqNumber
+24  8   SeqNumber
+32  8   PurgedSeqNumber
+40 u8   NumberOfProperties n
+41 4*n  PropertyID
     n   PropertyValue, packed without a tag: the identifier alone fixes the type
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

MAX_PATH = 1024
MAX_PROPERTIES = 255
#: A change with an empty path and no properties.
SMALLEST = 45


class Command(IntEnum):
    CREATE = 0
    UPDATE = 1
    DELETE = 2
    SYNC = 3


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """What became of the object that ``path`` or ``guid`` names."""

    command: Command
    path: str | None
    guid: Guid | None
    partition: Guid
    previous_seq: SequenceNumber
    seq: SequenceNumber
    purged_seq: SequenceNumber
    properties: tuple[tuple[int, PropVariant], ...] = ()

    def __post_init__(self) -> None:
        if (self.path is None) == (self.guid is None):
            raise ValueError("a change names its object by path or by GUID, never by both (E63)")
        if self.path is not None and len(self.path.encode("utf-16-le", "surrogatepass")) > (
            2 * MAX_PATH
        ):
            raise ValueError(f"a path name has at most {MAX_PATH} UTF-16 units")
        if len(self.properties) > MAX_PROPERTIES:
            raise ValueError(f"a change has at most {MAX_PROPERTIES} properties")
        for propid, variant in self.properties:
            entry = PROPERTIES.get(propid)
            if entry is None or entry.vt is not variant.vt:
                raise ValueError(f"property {propid} does not travel as {variant.vt}")

    @classmethod
    def decode(cls, reader: Reader) -> DirectoryChange:
        at = reader.offset
        number = reader.u8()
        if number > Command.SYNC:
            raise reader.error(f"command {number} is none of create, update, delete, sync", at)
        use_guid = reader.u8()
        if use_guid > 1:
            raise reader.error(f"UseGuid is 0 or 1, not {use_guid}", at + 1)
        path = None if use_guid else reader.utf16z(MAX_PATH, "PathName")
        guid = reader.guid() if use_guid else None
        partition = reader.guid()
        previous, seq, purged = (SequenceNumber.decode(reader) for _ in range(3))
        ids = [(reader.offset, reader.u32()) for _ in range(reader.u8())]
        properties = tuple((propid, _value(reader, at, propid)) for at, propid in ids)
        return cls(Command(number), path, guid, partition, previous, seq, purged, properties)

    def encode(self, writer: Writer) -> None:
        writer.u8(self.command)
        writer.u8(self.guid is not None)
        if self.guid is not None:
            writer.guid(self.guid)
        else:
            writer.utf16z(self.path or "")
        writer.guid(self.partition)
        self.previous_seq.encode(writer)
        self.seq.encode(writer)
        self.purged_seq.encode(writer)
        writer.u8(len(self.properties))
        for propid, _ in self.properties:
            writer.u32(propid)
        for _, variant in self.properties:
            variant.encode(writer)


def _value(reader: Reader, at: int, propid: int) -> PropVariant:
    entry = PROPERTIES.get(propid)
    if entry is None:  # no length tells where the next value starts (MQDSRP-2.2.4-08)
        raise reader.error(f"property {propid} is unknown, so nothing behind it can be read", at)
    return PropVariant.decode(reader, entry.vt)
