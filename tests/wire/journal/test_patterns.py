"""A record made from a pattern has the bytes of a record that was encoded as a whole."""

from __future__ import annotations

from dataclasses import replace

from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, decode_record, encode_record
from mqis.wire.journal.patterns import RecordPattern, fixed_of
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

SOURCE = Guid(b"s" * 16)
SAMPLE = JournalRecord(
    time_us=1,
    kind=RecordKind.MESSAGE,
    state=RecordState.RECEIVED,
    peer="psc\u00e9",
    message=MessageIdentifier(SOURCE, 1),
    session=3,
    operation=2,
    partition=Guid(b"p" * 16),
    seq=SequenceNumber(7),
    reason="late",
)


def test_numbers_time_and_body_are_those_given() -> None:
    made = RecordPattern.of(SAMPLE).record(99, -5, 0x01020304, b"body")
    wanted = replace(
        SAMPLE, time_us=-5, message=MessageIdentifier(SOURCE, 0x01020304), body=b"body"
    )
    assert made == encode_record(99, wanted)
    assert decode_record(made) == (99, wanted)


def test_the_fields_of_another_change_take_the_place_of_the_samples() -> None:
    other = replace(SAMPLE, kind=RecordKind.CHANGE, seq=SequenceNumber(8), operation=1)
    made = RecordPattern.of(SAMPLE).record(1, 1, 1, fixed=fixed_of(other))
    assert made == encode_record(1, other)
