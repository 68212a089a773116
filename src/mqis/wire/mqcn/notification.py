"""Change Notification Message, version 1: from a directory service (MS-MQCN 2.2.4, 2.2.6).

 0  u8   Version: 1
 1  u8   NumberOfUpdateNotifications n
 2       n Notification Updates, one behind the other without padding:

 0  u8   Command: 0 created, 1 changed, 2 deleted
 1  u8   UseGuid
 2       PathName, zero-terminated, or GuidIdentifier (16): exactly one of them
+0  16   GuidMasterId: the directory server that sends the notification
+16 24   Reserved
+40 u8   NumberOfProperties m
+41 4*m  PropertyId
     m   PropertyValue, packed without a tag: the identifier alone fixes the type

A message body has one byte more than its notification; it has no meaning (3.3.5.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final, Self

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.propvariant import PropVariant
from mqis.wire.reader import Reader
from mqis.wire.structure import Structure
from mqis.wire.writer import Writer

#: The queue number of ``private$\\notify_queue$`` on every queue manager (1.9).
NOTIFY_QUEUE_ID: Final = 3

VERSION: Final = 1
MAX_PATH = 1024
_RESERVED = 24


class NotificationCommand(IntEnum):
    CREATE = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class NotificationUpdate:
    """The creation, change or deletion of the object that ``path`` or ``guid`` names."""

    command: NotificationCommand
    path: str | None
    guid: Guid | None
    master: Guid
    properties: tuple[tuple[int, PropVariant], ...] = ()

    def __post_init__(self) -> None:
        if (self.path is None) == (self.guid is None):
            raise ValueError("an update names its object by path or by GUID, never by both")
        if self.path is not None and len(self.path.encode("utf-16-le", "surrogatepass")) > (
            2 * MAX_PATH
        ):
            raise ValueError(f"a path name has at most {MAX_PATH} UTF-16 units")
        if len(self.properties) > 0xFF:
            raise ValueError("an update has at most 255 properties")
        for propid, variant in self.properties:
            entry = PROPERTIES.get(propid)
            if entry is None or entry.vt is not variant.vt:
                raise ValueError(f"property {propid} cannot have a value of type {variant.vt}")

    @classmethod
    def decode(cls, reader: Reader) -> NotificationUpdate:
        at = reader.offset
        number, use_guid = reader.u8(), reader.u8()
        if number > NotificationCommand.DELETE:
            raise reader.error(f"command {number} is none of create, update, delete", at)
        if use_guid > 1:
            raise reader.error(f"UseGuid is 0 or 1, not {use_guid}", at + 1)
        path = None if use_guid else reader.utf16z(MAX_PATH, "PathName")
        guid = reader.guid() if use_guid else None
        master = reader.guid()
        reader.bytes(_RESERVED, "Reserved")
        ids = [(reader.offset, reader.u32()) for _ in range(reader.u8())]
        properties = tuple((propid, _value(reader, at, propid)) for at, propid in ids)
        return cls(NotificationCommand(number), path, guid, master, properties)

    def encode(self, writer: Writer) -> None:
        writer.u8(self.command)
        writer.u8(self.guid is not None)
        if self.guid is not None:
            writer.guid(self.guid)
        else:
            writer.utf16z(self.path or "")
        writer.guid(self.master)
        writer.bytes(bytes(_RESERVED))
        writer.u8(len(self.properties))
        for propid, _ in self.properties:
            writer.u32(propid)
        for _, variant in self.properties:
            variant.encode(writer)


def _value(reader: Reader, at: int, propid: int) -> PropVariant:
    entry = PROPERTIES.get(propid)
    if entry is None:
        raise reader.error(f"property {propid} is unknown, so nothing behind it can be read", at)
    return PropVariant.decode(reader, entry.vt)


@dataclass(frozen=True, slots=True)
class ChangeNotification(Structure):
    """The body of a message to a notification queue."""

    NAME: ClassVar[str] = "the change notification"

    updates: tuple[NotificationUpdate, ...]

    def __post_init__(self) -> None:
        if len(self.updates) > 0xFF:
            raise ValueError("a notification has at most 255 updates")

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        version = reader.u8()
        if version != VERSION:
            raise reader.error(f"a directory service sends version 1, not {version}", 0)
        return cls(tuple(NotificationUpdate.decode(reader) for _ in range(reader.u8())))

    def encode(self, writer: Writer) -> None:
        writer.u8(VERSION)
        writer.u8(len(self.updates))
        for update in self.updates:
            update.encode(writer)

    def to_body(self) -> bytes:
        """The notification with the meaningless byte that follows it (3.3.5.3)."""
        return self.to_bytes() + b"\0"

    @classmethod
    def from_body(cls, body: bytes) -> ChangeNotification:
        """Decodes a body; ignores what follows the notification."""
        return cls.decode(Reader(body))
