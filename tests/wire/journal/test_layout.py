"""The bytes of a journal record, both ways."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    decode_record,
    encode_record,
)
from mqis.wire.journal.layout import FIELDS, HEADER_SIZE, MAX_RECORD, split_records
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.journal import lsns, records

RECORD = JournalRecord(
    time_us=0x0102030405060708,
    kind=RecordKind.MESSAGE,
    state=RecordState.REFUSED,
    peer="PSC\u00e9",
    message=MessageIdentifier(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), 0x11223344),
    session=0x55,
    operation=3,
    partition=Guid(b"p" * 16),
    seq=SequenceNumber(0xAABB),
    previous_seq=SequenceNumber(0xAABA),
    object_type=2,
    object_id=Guid(b"o" * 16),
    reason="no",
    body=b"body",
)
COVERED = (
    bytes.fromhex(
        "8877665544332211"  # lsn
        "0807060504030201"  # time
        "01 01 08 01"  # version, MESSAGE, REFUSED, has a message
        "0300 0200"  # operation, object type
        "5500000000000000"
        + "70" * 16
        + "bbaa000000000000 baaa000000000000"
        + "6f" * 16
        + "d4c3b2a101000200030405060708090a 44332211"
        "0500 0200 04000000 00000000"
    )
    + "PSC\u00e9nobody".encode()
)
VECTOR = (8 + len(COVERED)).to_bytes(4, "little") + crc32(COVERED).to_bytes(4, "little") + COVERED
LSN = 0x1122334455667788


def test_vector_both_ways() -> None:
    assert encode_record(LSN, RECORD) == VECTOR
    assert decode_record(VECTOR) == (LSN, RECORD)


def test_a_skipped_range_is_a_record_of_version_2() -> None:
    """A reader of version 1 does not know the state, so it must not take the record."""
    skipped = replace(RECORD, kind=RecordKind.CHANGE, state=RecordState.SKIPPED)
    encoded = sealed(COVERED[:16] + b"\x02\x02\x09" + COVERED[19:])
    assert encode_record(LSN, skipped) == encoded
    assert decode_record(encoded) == (LSN, skipped)


@given(lsns, records())
def test_round_trip(lsn: int, record: JournalRecord) -> None:
    encoded = encode_record(lsn, record)
    assert decode_record(encoded) == (lsn, record)
    assert split_records(encoded * 3) == [(lsn, encoded)] * 3


def test_numpy_reads_the_header() -> None:
    """Without gaps, each field where the documentation has it."""
    dtype = np.dtype(list(FIELDS))
    assert dtype.itemsize == HEADER_SIZE == 120
    header = np.frombuffer(VECTOR[:HEADER_SIZE], dtype)[0]
    assert int(header["length"]) == len(VECTOR)
    assert int(header["lsn"]) == LSN
    assert int(header["time_us"]) == RECORD.time_us
    assert (header["kind"], header["state"], header["flags"]) == (1, 8, 1)
    assert (header["operation"], header["object_type"], header["session"]) == (3, 2, 0x55)
    assert (int(header["seq"]), int(header["previous_seq"])) == (0xAABB, 0xAABA)
    assert header["partition"].tobytes() == b"p" * 16
    assert header["object_id"].tobytes() == b"o" * 16
    assert header["message_source"].tobytes() == RECORD.message.source.raw  # type: ignore[union-attr]
    assert int(header["message_ordinal"]) == 0x11223344
    lengths = [int(header[f"{part}_length"]) for part in ("peer", "reason", "body")]
    assert lengths == [5, 2, 4]


@pytest.mark.parametrize(
    "changed",
    [
        replace(RECORD, time_us=1 << 63),
        replace(RECORD, session=-1),
        replace(RECORD, operation=1 << 16),
        replace(RECORD, object_type=-1),
        replace(RECORD, peer="x" * 65536),
        replace(RECORD, reason="x" * 65536),
        replace(RECORD, body=bytes(MAX_RECORD)),
    ],
)
def test_what_does_not_fit_is_refused(changed: JournalRecord) -> None:
    with pytest.raises(ValueError, match=r"fit|at most"):
        encode_record(1, changed)


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="fit"):
        encode_record(1 << 64, RECORD)


def sealed(covered: bytes) -> bytes:
    """With length and checksum that agree."""
    start = (8 + len(covered)).to_bytes(4, "little") + crc32(covered).to_bytes(4, "little")
    return start + covered


def patched(offset: int, value: bytes) -> bytes:
    """The vector with other bytes at an offset of the record, and its checksum made to agree."""
    covered = bytearray(COVERED)
    covered[offset - 8 : offset - 8 + len(value)] = value
    return sealed(bytes(covered))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (patched(24, b"\3"), "version 3, mqis reads 1 and 2"),
        (patched(24, b"\2"), "version 2 cannot have state 8"),
        (patched(26, b"\x09"), "version 1 cannot have state 9"),
        (patched(25, b"\0"), "0 is not a kind"),
        (patched(26, b"\x0a"), "10 is not a state"),
        (patched(27, b"\3"), "bits that no version defines"),
        (patched(116, b"\1"), "bits that no version defines"),
        (patched(27, b"\0"), "flag for one is not set"),
        (patched(108, b"\6"), "do not add up"),
        (patched(112, b"\xff\xff\xff\xff"), "do not add up"),
        (patched(120, b"\xff"), "peer of the journal record is not UTF-8"),
        (patched(125, b"\xff"), "reason of the journal record is not UTF-8"),
        (VECTOR[:-1], "needs"),
        (VECTOR + b"\0", "after the end"),
        (VECTOR[:7], "needs"),
        (bytes(200), "is not a possible length"),
        (b"\xff" * 200, "is not a possible length"),
        (VECTOR[:-1] + b"z", "checksum"),
    ],
)
def test_damage_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode_record(data)


@given(st.binary(max_size=300), st.integers(0, len(VECTOR)))
def test_garbage_raises_only_wire_error(noise: bytes, at: int) -> None:
    for data in (noise, VECTOR[:at] + noise, sealed(noise)):
        for decode in (decode_record, split_records):
            try:
                decode(data)
            except WireError as error:
                offset = error.offset
            else:
                offset = 0
            assert 0 <= offset <= len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (VECTOR + VECTOR[:50], "end within the header"),
        (VECTOR + VECTOR[:-1], "is not a possible length"),
        (VECTOR + bytes(120), "is not a possible length"),
        (VECTOR + VECTOR[:-1] + b"z", "checksum"),
    ],
)
def test_a_run_of_records_is_whole_or_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason) as caught:
        split_records(data)
    assert caught.value.offset == len(VECTOR)
