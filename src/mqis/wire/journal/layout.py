"""The bytes of a journal record, versions 1 and 2 (docs/journal.md), in the outbox and in segments.

The header has a fixed size and its fields have fixed offsets, little-endian throughout, so that
the headers of a whole segment can be read as one array. Peer and reason (UTF-8) and body follow.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TypeVar
from zlib import crc32

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal.record import JournalRecord, RecordKind, RecordState
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.reader import Reader
from mqis.wire.seqnum import SequenceNumber

E = TypeVar("E", RecordKind, RecordState)

#: The version of each record: a reader of version 1 refuses the states that it does not know.
VERSIONS = {state: 2 if state is RecordState.SKIPPED else 1 for state in RecordState}
#: Far above the size of any message; a greater length means damage.
MAX_RECORD = 1 << 24

#: Name and NumPy type of each field, in order and without gaps: ``numpy.dtype(list(FIELDS))``.
FIELDS: tuple[tuple[str, str], ...] = (
    ("length", "<u4"),
    ("crc", "<u4"),
    ("lsn", "<u8"),
    ("time_us", "<i8"),
    ("version", "u1"),
    ("kind", "u1"),
    ("state", "u1"),
    ("flags", "u1"),
    ("operation", "<u2"),
    ("object_type", "<u2"),
    ("session", "<u8"),
    ("partition", "V16"),
    ("seq", "<u8"),
    ("previous_seq", "<u8"),
    ("object_id", "V16"),
    ("message_source", "V16"),
    ("message_ordinal", "<u4"),
    ("peer_length", "<u2"),
    ("reason_length", "<u2"),
    ("body_length", "<u4"),
    ("reserved", "<u4"),
)
#: The fields behind the checksum, which covers them; then the two fields before it.
_COVERED = Struct("<QqBBBBHHQ16sQQ16s16sIHHII")
_LENGTH_CRC = Struct("<II")
_LENGTH_CRC_LSN = Struct("<IIQ")
COVERED_AT = _LENGTH_CRC.size
#: The lengths of peer, reason and body, and their offset in the covered part.
_PARTS = Struct("<HHI")
_PARTS_AT = 100
HEADER_SIZE = COVERED_AT + _COVERED.size

#: ``length_and_crc(data, offset)`` of the record that begins at an offset.
length_and_crc = _LENGTH_CRC.unpack_from

HAS_MESSAGE = 0x01

_NO_MESSAGE = bytes(16)


def length_of_parts(data: bytes, offset: int) -> int:
    """The length of the record at an offset, as the lengths of its parts add up."""
    peer, reason, body = _PARTS.unpack_from(data, offset + COVERED_AT + _PARTS_AT)
    return HEADER_SIZE + int(peer + reason + body)


def encode_record(lsn: int, record: JournalRecord) -> bytes:
    """Encodes the record under number ``lsn``; raises ``ValueError`` if a field does not fit."""
    peer = record.peer.encode("utf-8", "surrogatepass") if record.peer else b""
    reason = record.reason.encode("utf-8", "surrogatepass") if record.reason else b""
    message = record.message
    try:
        covered = b"".join(
            (
                _COVERED.pack(
                    lsn,
                    record.time_us,
                    VERSIONS[record.state],
                    record.kind,
                    record.state,
                    0 if message is None else HAS_MESSAGE,
                    record.operation,
                    record.object_type,
                    record.session,
                    record.partition.raw,
                    record.seq.value,
                    record.previous_seq.value,
                    record.object_id.raw,
                    _NO_MESSAGE if message is None else message.source.raw,
                    0 if message is None else message.ordinal,
                    len(peer),
                    len(reason),
                    len(record.body),
                    0,
                ),
                peer,
                reason,
                record.body,
            )
        )
    except struct_error as error:
        raise ValueError(f"a field of {record!r} does not fit: {error}") from None
    length = COVERED_AT + len(covered)
    if length > MAX_RECORD:
        raise ValueError(f"a journal record has at most {MAX_RECORD} bytes, not {length}")
    return _LENGTH_CRC.pack(length, crc32(covered)) + covered


def decode_record(data: bytes) -> tuple[int, JournalRecord]:
    """Decodes the only record in ``data`` and its number."""
    reader = Reader(data)
    found = read_record(reader)
    reader.expect_end("the journal record")
    return found


def read_record(reader: Reader) -> tuple[int, JournalRecord]:
    """Decodes the next record in ``reader``.

    It checks the lengths first, then the checksum, then the fields. With false lengths the same
    bytes would be summed again and again.
    """
    at = reader.offset
    length, crc = reader.u32(), reader.u32()
    if not HEADER_SIZE <= length <= MAX_RECORD:
        raise WireError(f"{length} is not a possible length of a journal record", at)
    fixed = reader.sub(length - COVERED_AT, "the journal record").bytes(_COVERED.size)
    if sum(_PARTS.unpack_from(fixed, _PARTS_AT)) != length - HEADER_SIZE:
        reason = "the parts of the journal record do not add up to its length"
        raise WireError(reason, at + COVERED_AT)
    covered = reader.since(at + COVERED_AT)
    if crc32(covered) != crc:
        raise WireError("the checksum of the journal record does not match", at)
    return _fields(covered, at + COVERED_AT)


def split_records(data: bytes) -> list[tuple[int, bytes]]:
    """Splits consecutive records without decoding them; returns each with its number."""
    found = []
    offset, end = 0, len(data)
    while offset < end:
        if end - offset < HEADER_SIZE:
            raise WireError("the bytes end within the header of a journal record", offset)
        length, crc, lsn = _LENGTH_CRC_LSN.unpack_from(data, offset)
        if not HEADER_SIZE <= length <= end - offset:
            raise WireError(f"{length} is not a possible length of this journal record", offset)
        record = data[offset : offset + length]
        if crc32(memoryview(record)[COVERED_AT:]) != crc:
            raise WireError("the checksum of the journal record does not match", offset)
        found.append((lsn, record))
        offset += length
    return found


def _fields(covered: bytes, at: int) -> tuple[int, JournalRecord]:
    (
        lsn,
        time_us,
        version,
        kind,
        state,
        flags,
        operation,
        object_type,
        session,
        partition,
        seq,
        previous_seq,
        object_id,
        source,
        ordinal,
        peer_length,
        reason_length,
        _,
        reserved,
    ) = _COVERED.unpack_from(covered)
    if version not in VERSIONS.values():
        raise WireError(f"the journal record has version {version}, mqis reads 1 and 2", at)
    if flags & ~HAS_MESSAGE or reserved:
        raise WireError("the journal record sets bits that no version defines", at)
    if not flags and (ordinal or source != _NO_MESSAGE):
        raise WireError("the journal record has a message id, but its flag for one is not set", at)
    known_state = _known(RecordState, state, "state", at)
    if version != VERSIONS[known_state]:
        raise WireError(f"a journal record of version {version} cannot have state {state}", at)
    reason_at = _COVERED.size + peer_length
    body_at = reason_at + reason_length
    return lsn, JournalRecord(
        time_us,
        _known(RecordKind, kind, "kind", at),
        known_state,
        _text(covered[_COVERED.size : reason_at], "peer", at),
        MessageIdentifier(Guid(source), ordinal) if flags else None,
        session,
        operation,
        Guid(partition),
        SequenceNumber(seq),
        SequenceNumber(previous_seq),
        object_type,
        Guid(object_id),
        _text(covered[reason_at:body_at], "reason", at),
        covered[body_at:],
    )


def _known(codes: type[E], value: int, what: str, at: int) -> E:
    try:
        return codes(value)
    except ValueError:
        raise WireError(f"{value} is not a {what} of journal records", at) from None


def _text(raw: bytes, what: str, at: int) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise WireError(f"the {what} of the journal record is not UTF-8", at) from None
