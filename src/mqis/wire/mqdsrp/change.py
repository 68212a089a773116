"""DirectoryChange (MC-MQDSRP 2.2.4): a change of one object.

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

from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqdsrp.propertylist import Listed, PropertyList, decode_list
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer

MAX_PATH = 1024
MAX_PROPERTIES = 255
#: The size of a change with an empty path and no properties.
SMALLEST = 45


#: PartitionID, the three sequence numbers, NumberOfProperties.
_NUMBERS = Struct(">16sQQQB")


class Command(IntEnum):
    CREATE = 0
    UPDATE = 1
    DELETE = 2
    SYNC = 3


_COMMANDS = tuple(Command)


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """A change of the object that ``path`` or ``guid`` names."""

    command: Command
    path: str | None
    guid: Guid | None
    partition: Guid
    previous_seq: SequenceNumber
    seq: SequenceNumber
    purged_seq: SequenceNumber
    properties: Listed = ()
    #: The encoded bytes, kept because a change goes to every neighbour and a PSC forwards the
    #: changes that it received.
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.path is None) == (self.guid is None):
            raise ValueError("a change names its object by path or by GUID, never by both (E63)")
        if self.path is not None and len(self.path.encode("utf-16-le", "surrogatepass")) > (
            2 * MAX_PATH
        ):
            raise ValueError(f"a path name has at most {MAX_PATH} UTF-16 units")
        if len(self.properties) > MAX_PROPERTIES:
            raise ValueError(f"a change has at most {MAX_PROPERTIES} properties")
        if isinstance(self.properties, PropertyList):
            return  # its values have the types of their identifiers
        for propid, variant in self.properties:
            entry = PROPERTIES.get(propid)
            if entry is None or entry.vt is not variant.vt:
                raise ValueError(f"property {propid} cannot have a value of type {variant.vt}")

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
        partition, previous, seq, purged, count = reader.unpack(_NUMBERS, "DirectoryChange")
        properties = decode_list(reader, count)
        change: DirectoryChange = object.__new__(cls)  # decoded fields need no checks
        for name, value in (
            ("command", _COMMANDS[number]),
            ("path", path),
            ("guid", guid),
            ("partition", Guid(partition)),
            ("previous_seq", SequenceNumber(previous)),
            ("seq", SequenceNumber(seq)),
            ("purged_seq", SequenceNumber(purged)),
            ("properties", properties),
            ("_encoded", reader.since(at)),
        ):
            object.__setattr__(change, name, value)
        return change

    def encode(self, writer: Writer) -> None:
        writer.bytes(self.encoded)

    @property
    def encoded(self) -> bytes:
        """The encoded bytes of the change."""
        if self._encoded is None:
            object.__setattr__(self, "_encoded", self._encode())
        assert self._encoded is not None
        return self._encoded

    def _encode(self) -> bytes:
        writer = Writer()
        writer.u8(self.command)
        writer.u8(self.guid is not None)
        if self.guid is not None:
            writer.guid(self.guid)
        else:
            writer.utf16z(self.path or "")
        writer.bytes(
            _NUMBERS.pack(
                self.partition.raw,
                self.previous_seq.value,
                self.seq.value,
                self.purged_seq.value,
                len(self.properties),
            )
        )
        writer.bytes(PropertyList.of(self.properties).encoded())
        return writer.getvalue()
