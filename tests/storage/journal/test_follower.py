"""Following a journal while it grows, rotates and is mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import Follower
from mqis.wire.guid import Guid
from mqis.wire.journal import Corrupt, JournalRecord, RecordKind, RecordState, Whole, encode_record
from mqis.wire.journal.index import read_index

SERVER = Guid(b"s" * 16)
RECORD = JournalRecord(0, RecordKind.CHANGE, RecordState.LOCAL, body=b"x" * 10)


def encoded(*lsns: int) -> list[tuple[int, bytes]]:
    return [(lsn, encode_record(lsn, RECORD)) for lsn in lsns]


def polled(follower: Follower) -> list[int]:
    """Numbers; -1 for what is corrupt."""
    return [entry.lsn if isinstance(entry, Whole) else -1 for entry in follower.poll()]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(tmp_path, "PSC1", SERVER, segment_bytes=600)) as opened:
        yield opened


def test_each_record_once(journal: Journal) -> None:
    follower = Follower(journal.directory)
    assert polled(follower) == []
    seen = []
    for lsn in range(1, 15):
        journal.append(encoded(lsn))
        if lsn % 3 == 0:
            seen += polled(follower)
    assert polled(follower) == [13, 14]
    assert seen == list(range(1, 13))
    assert polled(follower) == []


def test_from_a_number_on(journal: Journal) -> None:
    journal.append(encoded(*range(1, 15)))
    assert polled(Follower(journal.directory, after=12)) == [13, 14]


def test_a_record_is_shown_when_it_is_whole(journal: Journal) -> None:
    journal.append(encoded(1, 2))
    (path,) = segments(journal.directory).values()
    whole = path.read_bytes()
    follower = Follower(journal.directory)
    for size in range(len(whole) - 130, len(whole)):
        path.write_bytes(whole[:size])
        assert polled(follower) == ([1] if size == len(whole) - 130 else [])
    path.write_bytes(whole)
    assert polled(follower) == [2]


def test_a_segment_that_is_being_made(journal: Journal) -> None:
    journal.append(encoded(1))
    (path,) = segments(journal.directory).values()
    whole = path.read_bytes()
    follower = Follower(journal.directory)
    path.write_bytes(whole[:30])
    assert polled(follower) == []
    path.write_bytes(whole)
    assert polled(follower) == [1]


def test_what_is_cut_and_comes_again_is_shown_once(journal: Journal) -> None:
    journal.append(encoded(1, 2, 3))
    follower = Follower(journal.directory)
    assert polled(follower) == [1, 2, 3]
    journal.cut(2)
    assert polled(follower) == []
    journal.append(encoded(2, 3, 4))
    assert polled(follower) == [4]


def test_damage_is_told_once_and_passed(journal: Journal) -> None:
    journal.append(encoded(1, 2, 3))
    (path,) = segments(journal.directory).values()
    data = bytearray(path.read_bytes())
    data[-2 * 130 + 125] ^= 1
    path.write_bytes(data)
    follower = Follower(journal.directory)
    found = follower.poll()
    assert [type(entry) for entry in found] == [Whole, Corrupt, Whole]
    assert found[1].offset == len(data) - 2 * 130
    journal.append(encoded(4))
    assert polled(follower) == [4]


def test_a_torn_end_is_told_once_another_segment_follows(journal: Journal) -> None:
    journal.append(encoded(*range(1, 7)))
    first, _ = segments(journal.directory).values()
    data = first.read_bytes()
    first.write_bytes(data[: read_index(data, len(data)).end - 3])
    assert polled(Follower(journal.directory)) == [1, 2, 3, -1, 5, 6]
