"""Fields of journal records read from their headers, for searches that decode few of them.

No checksum is looked at: decode what is found.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from struct import Struct

from mqis.wire.guid import Guid
from mqis.wire.journal.layout import HAS_MESSAGE, HEADER_SIZE, length_and_crc
from mqis.wire.journal.record import RecordKind, RecordState
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import MessageOperation

#: Length and CRC, lsn, time and version, kind, state, flags, operation.
_HEADER = Struct("<8sQ9sBBxH")
_OBJECT_AT = 72
_DONE = (RecordState.LOCAL, RecordState.APPLIED)
#: Kind, state and flags; the message's identifier; the length of the body.
_KIND_AT, _STATE_AT, _FLAGS_AT = 25, 26, 27
_MESSAGE_AT, _MESSAGE_SIZE = 88, 20
_BODY_LENGTH = Struct("<I")
_BODY_LENGTH_AT = 112
#: A change propagation: Operation, then Flush and the number of changes (MC-MQDSRP 2.2.6.9).
_OPERATION_IN_BODY, _COUNT_IN_BODY = 17, slice(19, 21)


def lsn_at(data: bytes, at: int) -> int:
    """The number of the record that begins at an offset."""
    lsn: int = _HEADER.unpack_from(data, at)[1]
    return lsn


def end_of(data: bytes, at: int) -> int:
    """The end of the record that begins at an offset."""
    length: int = length_and_crc(data, at)[0]
    return at + length


def matching(
    data: bytes,
    starts: Sequence[int],
    kind: RecordKind | None = None,
    state: RecordState | None = None,
    object_id: Guid | None = None,
) -> Iterator[int]:
    """The offsets of the records that have these values, the last first; None is any value."""
    raw = None if object_id is None else object_id.raw
    for at in reversed(starts):
        _, _, _, its_kind, its_state, _ = _HEADER.unpack_from(data, at)
        if kind is not None and its_kind != kind:
            continue
        if state is not None and its_state != state:
            continue
        if raw is None or data[at + _OBJECT_AT : at + _OBJECT_AT + 16] == raw:
            yield at


def deletions(data: bytes, starts: Sequence[int]) -> Iterator[int]:
    """The offsets of the deletions that the server made or applied, the first first."""
    for at in starts:
        _, _, _, kind, state, operation = _HEADER.unpack_from(data, at)
        if kind == RecordKind.CHANGE and operation == Command.DELETE and state in _DONE:
            yield at


def about(data: bytes, starts: Sequence[int], objects: Container[bytes]) -> Iterator[int]:
    """The offsets of the records about one of these objects, the last first."""
    for at in reversed(starts):
        if data[at + _OBJECT_AT : at + _OBJECT_AT + 16] in objects:
            yield at


def message_state_at(data: bytes, at: int) -> int:
    """The state of the message that a record is about; 0 for the record of a change."""
    return data[at + _STATE_AT] if data[at + _KIND_AT] == RecordKind.MESSAGE else 0


def message_at(data: bytes, at: int) -> bytes:
    """The identifier of the record's message as stored; empty if the record names none."""
    if not data[at + _FLAGS_AT] & HAS_MESSAGE:
        return b""
    return data[at + _MESSAGE_AT : at + _MESSAGE_AT + _MESSAGE_SIZE]


def carries_heartbeat(data: bytes, at: int) -> bool:
    """Returns whether the record's body is a change propagation without changes."""
    size: int = _BODY_LENGTH.unpack_from(data, at + _BODY_LENGTH_AT)[0]
    body_at = end_of(data, at) - size
    if data[at + _KIND_AT] != RecordKind.MESSAGE or body_at < at + HEADER_SIZE:
        return False
    return is_heartbeat(data[body_at : body_at + _COUNT_IN_BODY.stop])


def is_heartbeat(body: bytes) -> bool:
    """Returns whether a message's body, or its first bytes, is a propagation without changes."""
    if len(body) < _COUNT_IN_BODY.stop:
        return False
    is_propagation = body[_OPERATION_IN_BODY] == MessageOperation.CHANGE_PROPAGATION
    return is_propagation and not any(body[_COUNT_IN_BODY])
