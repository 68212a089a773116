"""Encodes millions of journal records: the parts that many of them share are encoded once."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from zlib import crc32

from mqis.wire.journal.layout import encode_record
from mqis.wire.journal.record import JournalRecord

_LENGTH_CRC = Struct("<II")
_LSN_TIME = Struct("<Qq")
_U32 = Struct("<I")
#: Offsets of a record's fields (docs/journal.md): after LSN and time, the message's source, its
#: ordinal, the lengths of the names, the length of the body, the reserved field.
_FIXED_AT, _SOURCE_AT, _ORDINAL_AT, _NAMES_AT, _BODY_AT, _RESERVED_AT = 24, 88, 104, 108, 112, 116


@dataclass(frozen=True, slots=True)
class RecordPattern:
    """The encoded parts that all records of one kind share: source of the messages, and peer."""

    #: The fields from the version up to the message's source.
    fixed: bytes
    source: bytes
    lengths: bytes
    names: bytes

    @classmethod
    def of(cls, record: JournalRecord) -> RecordPattern:
        """The pattern of a record that names a message and has no body."""
        data = encode_record(0, record)
        return cls(
            data[_FIXED_AT:_SOURCE_AT],
            data[_SOURCE_AT:_ORDINAL_AT],
            data[_NAMES_AT:_BODY_AT],
            data[_RESERVED_AT:],
        )

    def record(
        self, lsn: int, time_us: int, ordinal: int, body: bytes = b"", fixed: bytes = b""
    ) -> bytes:
        """The bytes of a record; ``fixed`` is of another record, about its change."""
        covered = b"".join(
            (
                _LSN_TIME.pack(lsn, time_us),
                fixed or self.fixed,
                self.source,
                _U32.pack(ordinal),
                self.lengths,
                _U32.pack(len(body)),
                self.names,
                body,
            )
        )
        return _LENGTH_CRC.pack(_LENGTH_CRC.size + len(covered), crc32(covered)) + covered


def fixed_of(record: JournalRecord) -> bytes:
    """The fixed fields of a record that names a message, for ``RecordPattern.record``."""
    return encode_record(0, record)[_FIXED_AT:_SOURCE_AT]
