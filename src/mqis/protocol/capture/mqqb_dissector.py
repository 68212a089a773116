"""The dissector of sessions between queue managers (MS-MQQB) and the messages in them."""

from __future__ import annotations

import re
from typing import ClassVar

from mqis.protocol.capture.framing import Dissector, Tell
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.private_queues import QUEUES, QueueProtocol
from mqis.protocol.capture.row import Meaning, PacketPosition
from mqis.wire.errors import WireError
from mqis.wire.mqqb.baseheader import BASE_SIZE, BaseHeader
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.internal import ConnectionParameters, EstablishConnection, InternalPacket
from mqis.wire.mqqb.packet import UserMessage, decode_packet
from mqis.wire.mqqb.properties import NO_CORRELATION, MessageClass
from mqis.wire.mqqb.queuename import QueueKind, QueueName
from mqis.wire.reader import Reader

#: VersionNumber, Reserved, Flags, Signature.
_BEGINNING = re.compile(rb"\x10...LIOR", re.DOTALL)


class MqqbDissector(Dissector):
    """Reads one session; the side that sent the first request sends the requests."""

    NAME: ClassVar[str] = "mqqb"
    HEAD: ClassVar[int] = BASE_SIZE

    def __init__(self, tell: Tell, limits: CaptureLimits) -> None:
        super().__init__(tell, limits)
        self._initiator: int | None = None

    @classmethod
    def length(cls, head: bytes) -> int:
        return BaseHeader.decode(Reader(head)).length

    @classmethod
    def find(cls, data: bytes | bytearray, at: int) -> int:
        found = _BEGINNING.search(data, at)
        return found.start() if found else -1

    def message(self, side: int, data: bytes, place: PacketPosition) -> None:
        try:
            packet = decode_packet(data)
        except WireError as error:
            meaning = Meaning(self.NAME, "packet", error=str(error))
        else:
            if isinstance(packet, UserMessage):
                meaning = self._user_message(packet)
            else:
                meaning = self._internal(side, packet)
        self.tell(side, place, len(data), meaning)

    def _internal(self, side: int, packet: InternalPacket) -> Meaning:
        kind = type(packet).__name__
        if isinstance(packet, EstablishConnection | ConnectionParameters):
            if self._initiator is None and isinstance(packet, EstablishConnection):
                self._initiator = side
                self.opened_by(side)
            if self._initiator is not None:
                kind += " request" if side == self._initiator else " response"
        if isinstance(packet, EstablishConnection):
            sender = packet.client if side == self._initiator else packet.server
            summary = "refused" if packet.refused else f"{packet.client} to {packet.server}"
            return Meaning(self.NAME, kind, summary, packet, queue_manager=sender or None)
        if isinstance(packet, ConnectionParameters):
            summary = f"window {packet.window}, acknowledge within {packet.ack_timeout_ms} ms"
            return Meaning(self.NAME, kind, summary, packet)
        header = packet.header
        summary = f"has {header.ack_seq}, recoverable {header.recoverable_ack_seq}"
        return Meaning(self.NAME, kind, summary, packet)

    def _user_message(self, packet: UserMessage) -> Meaning:
        """Describes a message: its body, if its queue is known, and its sender and destination."""
        found, machine = _queue(packet.header.destination)
        inner = _content(packet, found)
        header, properties = packet.header, packet.properties
        detail = {
            "header": header,
            "class": _class_name(properties.message_class),
            "label": properties.label.rstrip("\0"),
            "correlation": _correlation(properties.correlation_id),
            "signed": packet.security is not None and bool(packet.security.signature),
            "priority": packet.priority,
            "body_bytes": len(properties.body),
            "body": properties.body if inner.detail is None else inner.detail,
            "session": packet.session,
        }
        machines = tuple(dict.fromkeys((machine, *inner.machines) if machine else inner.machines))
        return inner._replace(
            detail=detail,
            call_id=header.message_id,
            queue_manager=header.source,
            machines=machines,
        )


def _queue(name: QueueName) -> tuple[QueueProtocol | None, str]:
    """The known queue that a name means, and its machine if the name contains it."""
    if name.kind is QueueKind.DIRECT:
        host, _, path = name.direct.partition("\\")
        machine = host.partition(":")[2]
        folded = path.casefold()
        return next((q for q in QUEUES if q.queue == folded), None), machine
    if name.kind is QueueKind.PRIVATE_AT_DESTINATION:
        found = next((q for q in QUEUES if q.private_id == name.private_id), None)
        return found, ""
    return None, ""


def _content(packet: UserMessage, queue: QueueProtocol | None) -> Meaning:
    header, properties = packet.header, packet.properties
    to = _queue_text(header.destination)
    identity = f"{MessageIdentifier(header.source, header.message_id)} to {to}"
    if properties.message_class != MessageClass.NORMAL:
        return Meaning(MqqbDissector.NAME, _class_name(properties.message_class), identity)
    if queue is None:
        summary = f"{identity}, {len(properties.body)} bytes"
        return Meaning(MqqbDissector.NAME, "UserMessage", summary)
    if packet.security is not None and packet.security.encrypted:
        return Meaning(queue.name, "encrypted message", identity)
    try:
        return queue.decode(properties.body)
    except WireError as error:
        return Meaning(queue.name, "message", identity, error=f"in the body: {error}")


def _queue_text(name: QueueName) -> str:
    if name.kind is QueueKind.DIRECT:
        return name.direct
    if name.kind is QueueKind.PUBLIC:
        return f"PUBLIC={name.guid}"
    if name.kind is QueueKind.PRIVATE_AT_DESTINATION:
        return f"private queue {name.private_id}"
    return "no queue"


def _class_name(number: int) -> str:
    try:
        return MessageClass(number).name
    except ValueError:
        return f"class 0x{number:04x}"


def _correlation(octets: bytes) -> str | None:
    return None if octets == NO_CORRELATION else str(MessageIdentifier.from_bytes(octets))
