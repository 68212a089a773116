"""Fields of journal records read from their headers, for searches that decode few of them.

No checksum is looked at: decode what is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

from mqis.wire.guid import Guid
from mqis.wire.journal.layout import length_and_crc
from mqis.wire.journal.record import RecordKind, RecordState
from mqis.wire.mqdsrp.change import Command

#: Length and CRC, lsn, time and version, kind, state, flags, operation.
_HEADER = Struct("<8sQ9sBBxH")
_OBJECT_AT = 72
_DONE = (RecordState.LOCAL, RecordState.APPLIED)


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
