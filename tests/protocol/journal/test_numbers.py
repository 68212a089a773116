"""Sequence numbers in a journal: a number that no record has was given out around it."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import Partition
from mqis.protocol.journal.numbers import SKIPPED, ChangeNumbers, are_missing
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.seqnum import SequenceNumber
from tests.builders import guid

SITE = guid(0x3001)


def change(seq: int, state: RecordState = RecordState.LOCAL) -> JournalRecord:
    return JournalRecord(0, RecordKind.CHANGE, state, partition=SITE, seq=SequenceNumber(seq))


def gaps(numbers: ChangeNumbers, *records: JournalRecord) -> list[tuple[int, int]]:
    found = [numbers.add(record) for record in records]
    return [(gap.first, gap.last) for gap in found if gap is not None]


def test_consecutive_numbers_have_no_gap() -> None:
    assert gaps(ChangeNumbers(), *(change(seq) for seq in range(5, 9))) == []


def test_a_skipped_number_is_a_gap() -> None:
    assert gaps(ChangeNumbers(), change(5), change(6), change(9), change(10)) == [(7, 8)]


def test_a_restored_authority_skips_numbers_on_purpose() -> None:
    assert not are_missing(5, 5 + SKIPPED)
    assert gaps(ChangeNumbers(), change(5), change(6 + 2 * SKIPPED)) == []


def test_a_record_tells_which_numbers_an_authority_skipped() -> None:
    """However few they are; those behind it are changes again."""
    numbers = ChangeNumbers()
    assert gaps(numbers, change(5), change(8, RecordState.SKIPPED), change(9)) == []
    assert gaps(numbers, change(11)) == [(10, 10)]


@pytest.mark.parametrize("state", [RecordState.APPLIED, RecordState.REFUSED])
def test_changes_of_others_have_gaps(state: RecordState) -> None:
    """A synchronisation leaves out what was replaced; a refused change counts for nothing."""
    numbers = ChangeNumbers()
    assert gaps(numbers, change(5), change(9, state)) == []
    expected = [] if state is RecordState.APPLIED else [(6, 9)]
    assert gaps(numbers, change(10)) == expected


def test_a_snapshot_tells_the_numbers_before_the_first_record() -> None:
    numbers = ChangeNumbers()
    numbers.begin([Partition(SITE, "psc1", SequenceNumber(7))])
    assert gaps(numbers, change(9)) == [(8, 8)]
    numbers = ChangeNumbers()
    numbers.begin([])
    assert gaps(numbers, change(3)) == [(1, 2)], "a new partition begins with 1"


def test_the_store_may_be_ahead() -> None:
    numbers = ChangeNumbers()
    numbers.add(change(5))
    assert list(numbers.behind([Partition(SITE, "psc1", SequenceNumber(5))])) == []
    (gap,) = numbers.behind([Partition(SITE, "psc1", SequenceNumber(6))])
    assert str(gap) == (
        f"change 6 of partition {SITE} is in no record: the directory was changed without its "
        "journal"
    )
