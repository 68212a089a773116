"""Segment files: appending, rotation, recovery of a torn end, damage, a full disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from mqis.storage.journal import Journal
from mqis.storage.journal import journal as journal_module
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segment_name, segments, snapshot_name
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.journal.keeping import expendable, retain
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from tests.disks import small_disk
from tests.storage.test_sqlite_errors import opened_files

SERVER = Guid(b"s" * 16)


def record(number: int, size: int = 10) -> JournalRecord:
    return JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL, body=b"x" * size)


def encoded(*lsns: int, size: int = 10) -> list[tuple[int, bytes]]:
    return [(lsn, encode_record(lsn, record(lsn, size))) for lsn in lsns]


@contextmanager
def journal(directory: Path, segment_bytes: int = 1 << 20) -> Iterator[Journal]:
    with closing(Journal(directory, "PSC1", SERVER, segment_bytes=segment_bytes)) as opened:
        yield opened


def held(directory: Path) -> list[int]:
    found = list(records(directory))
    assert [entry.record for entry in found] == [record(entry.lsn) for entry in found]
    return [entry.lsn for entry in found]


def last_segment(directory: Path) -> Path:
    return list(segments(directory).values())[-1]


def test_records_are_appended_and_found(tmp_path: Path) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2))
        opened.append([])
        opened.append(encoded(3))
        assert (opened.last_lsn, opened.durable_lsn) == (3, 0)
        opened.sync()
        assert opened.durable_lsn == 3
    assert held(tmp_path) == [1, 2, 3]
    assert [entry.lsn for entry in records(tmp_path, after=1)] == [2, 3]
    assert next(records(tmp_path, after=1)).record == record(2)
    assert next(records(tmp_path, after=3), None) is None
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []


def test_a_journal_goes_on_where_it_ended(tmp_path: Path) -> None:
    for lsn in (1, 2, 3):
        with journal(tmp_path) as opened:
            assert opened.last_lsn == opened.durable_lsn == lsn - 1
            assert opened.mended == []
            opened.append(encoded(lsn))
    assert held(tmp_path) == [1, 2, 3]
    assert len(segments(tmp_path)) == 1


@pytest.mark.parametrize("lsns", [(3,), (2,), (5, 5), (6, 5)])
def test_numbers_ascend(tmp_path: Path, lsns: tuple[int, ...]) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2, 3))
        with pytest.raises(ValueError, match="do not ascend"):
            opened.append(encoded(*lsns))
    assert held(tmp_path) == [1, 2, 3]


def test_segments_rotate_by_size(tmp_path: Path) -> None:
    """Wherever batches end: the files are the same."""
    one, other = tmp_path / "one", tmp_path / "other"
    with journal(one, 600) as opened:
        opened.append(encoded(*range(5, 25)))
    with journal(other, 600) as opened:
        for lsn in range(5, 25):
            opened.append(encoded(lsn))
    assert held(one) == list(range(5, 25))
    found = segments(one)
    assert list(found) == [1, 2, 3, 4, 5]
    headers = [Segment.load(path).header for path in found.values()]
    assert [(h.number, h.first_lsn) for h in headers] == [(n, 4 * n + 1) for n in range(1, 6)]
    assert {(h.server, h.server_id, h.snapshot) for h in headers} == {("PSC1", SERVER, "")}
    for path in found.values():
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_rotation_flushes_the_segment_before(tmp_path: Path) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 8)))
        assert opened.durable_lsn == 4


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with journal(tmp_path), pytest.raises(StorageError, match="another process is writing"):
        Journal(tmp_path, "PSC1", SERVER)
    with journal(tmp_path) as opened:
        opened.append(encoded(1))


def test_the_journal_of_another_server_is_refused(tmp_path: Path) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1))
    with pytest.raises(StorageError, match=r"belongs to PSC1 .*, not to OTHER") as caught:
        Journal(tmp_path, "OTHER", Guid(b"o" * 16))
    assert opened_files(tmp_path / "lock") == 0, caught.value


# --- what a crash leaves --------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, 131))
def test_a_torn_end_is_cut_back(tmp_path: Path, cut: int) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2, 3))
    path = last_segment(tmp_path)
    os.truncate(path, path.stat().st_size - cut)
    with journal(tmp_path) as opened:
        assert opened.last_lsn == 2
        told = " ".join(opened.mended)
        assert (f"{130 - cut} bytes" in told and "torn" in told) == (cut < 130)
        opened.append(encoded(3, 4))
    assert held(tmp_path) == [1, 2, 3, 4]
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []


@pytest.mark.parametrize("rest", [bytes(4096), b"\xa5" * 300, encoded(4)[0][1][:-1] + b"?"])
def test_an_end_that_is_no_record_is_cut_back(tmp_path: Path, rest: bytes) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2, 3))
    path = last_segment(tmp_path)
    sound = path.read_bytes()
    path.write_bytes(sound + rest)
    with journal(tmp_path) as opened:
        assert opened.last_lsn == 3
        assert len(opened.mended) == 1
    assert path.read_bytes() == sound


@pytest.mark.parametrize("keep", [0, 1, 8, 63, 64, 66, 171])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_segment_that_was_not_begun_is_removed(tmp_path: Path, keep: int, zeros: bool) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 6)))
    path = last_segment(tmp_path)
    content = path.read_bytes()
    path.write_bytes(bytes(keep) if zeros else content[:keep])
    with journal(tmp_path, 600) as opened:
        assert opened.last_lsn == 4
        assert opened.mended == [f"{path.name}: removed, because its header was never written"]
        opened.append(encoded(5))
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_kept_and_named(tmp_path: Path) -> None:
    """Durable records are not cut off because an earlier one is damaged."""
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2, 3))
    path = last_segment(tmp_path)
    data = bytearray(path.read_bytes())
    offset = len(data) - 2 * 130
    data[offset + 125] ^= 1
    path.write_bytes(data)
    with journal(tmp_path) as opened:
        assert opened.mended == []
        opened.append(encoded(4))
    assert [entry.lsn for entry in records(tmp_path)] == [1, 3, 4]
    corrupt, gap = [str(fault) for fault in check_journal(tmp_path).faults]
    assert corrupt.startswith(f"{path.name}: offset {offset}: corrupt: ")
    assert "record 3 is where 2 belongs" in gap


def test_a_damaged_header_is_named(tmp_path: Path) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1))
    path = last_segment(tmp_path)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"segment-0000000001\.mqj.*checksum"):
        Journal(tmp_path, "PSC1", SERVER)
    assert "checksum" in str(check_journal(tmp_path).faults[0])


def test_cut_forgets_a_record_and_what_follows(tmp_path: Path) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 8)))
        assert not opened.cut(4), "it lies in a segment that is sealed"
        assert opened.cut(6)
        assert opened.last_lsn == opened.durable_lsn == 5
        opened.append(encoded(6, 7, 8))
    assert held(tmp_path) == list(range(1, 9))


def test_a_segment_of_which_nothing_is_left_goes_on_with_the_same_number(tmp_path: Path) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 6)))
        assert opened.cut(5), "the only record of its segment"
    with journal(tmp_path, 600) as opened:
        assert opened.last_lsn == opened.durable_lsn == 4
        opened.append(encoded(5, 6))
    assert held(tmp_path) == list(range(1, 7))


# --- a disk that fails ----------------------------------------------------------------------------


def test_a_full_disk_leaves_whole_records(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, "256k"), journal(disk) as opened:
        filler = disk / "filler"
        filler.write_bytes(bytes(100_000))
        with pytest.raises(StorageError, match=r"no room left.*nothing is lost"):
            fill(opened)
        last = opened.last_lsn
        assert last > 50
        assert [str(fault) for fault in check_journal(disk).faults] == []
        opened.sync()
        filler.unlink()
        opened.append(encoded(last + 1))
        opened.sync()
        assert [entry.lsn for entry in records(disk)] == list(range(1, last + 2))


def fill(journal: Journal) -> None:
    for lsn in range(1, 1000):
        journal.append(encoded(lsn, size=1000))


def failing(times: int) -> Callable[[int], None]:
    left = times

    def flush(descriptor: int) -> None:
        nonlocal left
        if left:
            left -= 1
            raise OSError(5, "Input/output error")
        os.fsync(descriptor)

    return flush


def test_a_failed_flush_takes_back_what_may_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system reports such an error once; a second flush would succeed and prove nothing."""
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2))
        opened.sync()
        opened.append(encoded(3, 4))
        monkeypatch.setattr(journal_module, "flush", failing(1))
        with pytest.raises(StorageError, match="the disk failed"):
            opened.sync()
        assert (opened.last_lsn, opened.durable_lsn) == (2, 2)
        opened.append(encoded(3, 4))
        opened.sync()
        assert opened.durable_lsn == 4
    assert held(tmp_path) == [1, 2, 3, 4]


def test_a_segment_that_cannot_be_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with journal(tmp_path) as opened:
        monkeypatch.setattr(journal_module, "flush", failing(1))
        with pytest.raises(StorageError, match="the disk failed"):
            opened.append(encoded(1))
        assert segments(tmp_path) == {}
        opened.append(encoded(1))
    assert held(tmp_path) == [1]


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"journal .*file"):
        Journal(tmp_path / "file" / "journal", "PSC1", SERVER)


# --- snapshots and retention ----------------------------------------------------------------------


def snapshot(directory: Path, lsn: int) -> Path:
    path = directory / snapshot_name(lsn)
    path.write_text("{}\n")
    return path


def test_a_segment_names_the_snapshot_it_starts_from(tmp_path: Path) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2))
        snapshot(tmp_path, 2)
        opened.seal()
        opened.append(encoded(3))
        opened.seal()
        opened.append(encoded(4))
    headers = [Segment.load(path).header for path in segments(tmp_path).values()]
    named = [(h.first_lsn, h.snapshot, h.snapshot_lsn) for h in headers]
    assert named == [(1, "", 0), (3, snapshot_name(2), 2), (4, snapshot_name(2), 2)]


def test_a_snapshot_begins_a_segment_after_reopening_too(tmp_path: Path) -> None:
    """A crash may come between the snapshot and the end of the segment."""
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2))
    snapshot(tmp_path, 2)
    (tmp_path / "snapshot-x.jsonl.part").write_text("unfinished")
    with journal(tmp_path) as opened:
        opened.append(encoded(3))
    assert Segment.load(last_segment(tmp_path)).header.snapshot == snapshot_name(2)
    assert list(segments(tmp_path)) == [1, 2]
    assert not list(tmp_path.glob("*.part"))


def test_retention_keeps_what_follows_the_oldest_kept_snapshot(tmp_path: Path) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 11)))  # 1-4, 5-8, 9-10
        assert retain(tmp_path, 1) == []
        first = snapshot(tmp_path, 10)
        opened.seal()
        opened.append(encoded(*range(11, 21)))  # 11-14, 15-18, 19-20
        second = snapshot(tmp_path, 20)
        opened.seal()
        opened.append(encoded(21))
        assert expendable(tmp_path, 3) == []
        kept_two = [path.name for path in retain(tmp_path, 2)]
        assert kept_two == [segment_name(n) for n in (1, 2, 3)]
        assert first.exists()
        kept_one = [path.name for path in retain(tmp_path, 1)]
        assert kept_one == [*(segment_name(n) for n in (4, 5, 6)), first.name]
        assert second.exists()
        opened.append(encoded(22))
    assert held(tmp_path) == [21, 22]
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []


def test_retention_keeps_a_segment_that_a_snapshot_lies_in(tmp_path: Path) -> None:
    with journal(tmp_path, 600) as opened:
        opened.append(encoded(*range(1, 11)))
        snapshot(tmp_path, 6)
        assert retain(tmp_path, 1) == [], "history would begin in the middle of the segment"
    assert held(tmp_path) == list(range(1, 11))


def test_retention_never_takes_the_last_segment(tmp_path: Path) -> None:
    with journal(tmp_path) as opened:
        opened.append(encoded(1, 2))
        snapshot(tmp_path, 2)
        assert retain(tmp_path, 1) == []
    with pytest.raises(ValueError, match="at least one"):
        retain(tmp_path, 0)
