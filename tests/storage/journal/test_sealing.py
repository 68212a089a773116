"""The chain that a journal writes: over crashes, failures, old versions and new keys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mqis.protocol.errors import StorageError
from mqis.protocol.journal import ChainState
from mqis.runtime.node.signer import MachineKey
from mqis.storage.journal import Journal
from mqis.storage.journal import journal as journal_module
from mqis.storage.journal.checking import (
    JournalCheck,
    StoreEnd,
    check_journal,
    server_id_of,
)
from mqis.storage.journal.journal_files import segment_name, segments, snapshot_name
from mqis.storage.journal.journal_reader import Segment, records
from mqis.storage.journal.keeping import Keeper
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    SegmentSeal,
    encode_record,
)
from mqis.wire.journal.index import index_length, read_index

SERVER = Guid(b"s" * 16)


@cache
def own() -> MachineKey:
    return MachineKey.generate()


@cache
def newer() -> MachineKey:
    return MachineKey.generate()


def encoded(*lsns: int) -> list[tuple[int, bytes]]:
    record = JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL, body=b"x" * 10)
    return [(lsn, encode_record(lsn, record)) for lsn in lsns]


@contextmanager
def opened(directory: Path, key: MachineKey | None, segment_bytes: int = 600) -> Iterator[Journal]:
    with closing(
        Journal(directory, "PSC1", SERVER, segment_bytes=segment_bytes, key=key)
    ) as journal:
        yield journal


def checked(directory: Path, *keys: MachineKey) -> JournalCheck:
    return check_journal(directory, [key.public for key in keys])


def headers(directory: Path) -> list[SegmentHeader]:
    return [Segment.load(path).header for path in segments(directory).values()]


def held(directory: Path) -> list[int]:
    return [entry.lsn for entry in records(directory)]


def test_a_chain_is_whole_over_restarts(tmp_path: Path) -> None:
    for first in range(1, 40, 5):
        with opened(tmp_path, own()) as journal:
            journal.append(encoded(*range(first, first + 5)))
    result = checked(tmp_path, own())
    assert result.findings == ()
    assert result.records == 40
    assert result.sealed_lsn == headers(tmp_path)[-1].first_lsn - 1
    assert server_id_of(tmp_path) == SERVER


# --- crashes --------------------------------------------------------------------------------------


class Instants:
    """Copies a directory before and after each system call, as a kill at that instant leaves it."""

    def __init__(self, directory: Path, copies: Path) -> None:
        self._directory = directory
        self._copies = copies
        self.taken: list[Path] = []

    def watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self._copy()
            result = call(*arguments)
            self._copy()
            return result

        return watched

    def _copy(self) -> None:
        place = self._copies / str(len(self.taken))
        self.taken.append(shutil.copytree(self._directory, place))


def test_a_kill_at_any_instant_of_a_rotation_leaves_a_whole_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "journal"
    with opened(place, own()) as journal:
        journal.append(encoded(1, 2))
        instants = Instants(place, tmp_path / "copies")
        for module, name in (
            (os, "open"),
            (os, "pwrite"),
            (os, "rename"),
            (os, "close"),
            (journal_module, "flush"),
            (journal_module, "flush_directory"),
        ):
            monkeypatch.setattr(module, name, instants.watch(getattr(module, name)))
        monkeypatch.setattr(shutil, "copytree", _plain_copy)
        for lsn in range(3, 9):
            journal.append(encoded(lsn))
        monkeypatch.undo()
    numbers = {max(segments(copy)) for copy in instants.taken}
    assert numbers >= {1, 2, 3}
    assert any(list(copy.glob("*.part")) for copy in instants.taken)
    for copy in instants.taken:
        assert checked(copy, own()).findings == (), "before the server starts again"
        last = held(copy)[-1]
        with opened(copy, own()) as journal:
            journal.append(encoded(*range(last + 1, 12)))
        assert checked(copy, own()).findings == ()
        assert held(copy) == list(range(1, 12))


def _plain_copy(source: Path, target: Path) -> Path:
    """Copies without the functions that are watched."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_an_unfinished_header_of_an_older_version_is_a_torn_end(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1, 2))
    (tmp_path / segment_name(2)).write_bytes(b"MQISJRNL\1\0")
    (finding,) = checked(tmp_path, own()).findings
    assert finding.check == ChainState.TORN
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(3))
    assert checked(tmp_path, own()).findings == ()


def test_a_failed_flush_leaves_a_whole_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1))
        journal.sync()
        journal.append(encoded(2, 3))
        with monkeypatch.context() as patched:
            patched.setattr(journal_module, "flush", failing)
            with pytest.raises(StorageError, match="the disk failed"):
                journal.sync()
        journal.append(encoded(*range(2, 10)))
    assert len(segments(tmp_path)) > 2
    assert checked(tmp_path, own()).findings == ()
    assert held(tmp_path) == list(range(1, 10))


def test_a_cut_leaves_a_whole_chain(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1, 2, 3))
        assert journal.cut(2)
        journal.append(encoded(*range(2, 10)))
    assert checked(tmp_path, own()).findings == ()
    assert held(tmp_path) == list(range(1, 10))


def test_a_full_disk_leaves_a_whole_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write that fails is not part of the digest, although half of it was on the disk."""
    whole = os.pwrite

    def half(descriptor: int, data: bytes, offset: int) -> int:
        whole(descriptor, data[: len(data) // 2], offset)
        raise OSError(28, "No space left on device")

    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1))
        for lsn in range(2, 8):
            with monkeypatch.context() as patched:
                patched.setattr(os, "pwrite", half)
                with pytest.raises(StorageError, match="no room left"):
                    journal.append(encoded(lsn))
            journal.append(encoded(lsn))
    assert len(segments(tmp_path)) > 2
    assert not list(tmp_path.glob("*.part"))
    assert checked(tmp_path, own()).findings == ()
    assert held(tmp_path) == list(range(1, 8))


# --- versions and keys ----------------------------------------------------------------------------


def old_journal(directory: Path) -> None:
    """Two segments of version 1."""
    for number, first in ((1, 1), (2, 4)):
        header = SegmentHeader("PSC1", SERVER, number, first)
        rows = encoded(*range(first, first + 3))
        data = header.to_bytes() + b"".join(row for _, row in rows)
        (directory / segment_name(number)).write_bytes(data)


def test_an_old_journal_is_continued_with_new_segments(tmp_path: Path) -> None:
    old_journal(tmp_path)
    (finding,) = checked(tmp_path, own()).findings
    assert (finding.check, finding.first, finding.last) == (ChainState.UNSIGNED, 1, 2)
    assert checked(tmp_path).sealed_lsn == 0
    with opened(tmp_path, own()) as journal:
        assert journal.last_lsn == 6
        journal.append(encoded(7))
    assert [header.version for header in headers(tmp_path)] == [1, 1, 3]
    assert held(tmp_path) == list(range(1, 8))
    result = checked(tmp_path, own())
    assert [f.check for f in result.findings] == [ChainState.UNSIGNED]
    assert result.sealed_lsn == 6


def test_a_journal_of_version_2_is_continued_with_new_segments(tmp_path: Path) -> None:
    """Its open segment gets no index, because readers of version 2 know none."""
    header = SegmentHeader("PSC1", SERVER, 1, 1, seal=SegmentSeal())
    data = header.to_bytes() + b"".join(row for _, row in encoded(1, 2, 3))
    path = tmp_path / segment_name(1)
    path.write_bytes(data)
    with opened(tmp_path, None) as journal:
        journal.append(encoded(4))
    assert path.read_bytes() == data
    assert [header.version for header in headers(tmp_path)] == [2, 3]
    assert held(tmp_path) == [1, 2, 3, 4]
    assert {f.check for f in checked(tmp_path).findings} == {ChainState.UNSIGNED}


# --- the index ------------------------------------------------------------------------------------


def test_a_sealed_segment_ends_with_its_index(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(*range(1, 7)))
    first, second = (path.read_bytes() for path in segments(tmp_path).values())
    found = read_index(first, len(first))
    entries = list(Segment.load(tmp_path / segment_name(1)).entries())
    (block,) = found.blocks
    assert (block.offset, block.first_lsn) == (entries[0].offset, 1)
    assert (block.records, block.last_lsn) == (len(entries), len(entries))
    assert found.end == entries[-1].offset + entries[-1].length
    assert index_length(second) == 0
    # The next header seals it.
    path = tmp_path / segment_name(1)
    path.write_bytes(first[: found.end])
    assert [f.check for f in checked(tmp_path, own()).faults] == [ChainState.TAMPERED]


def test_a_segment_goes_on_with_the_index_of_all_its_records(tmp_path: Path) -> None:
    with opened(tmp_path, own(), 10_000) as journal:
        journal.append(encoded(1, 2))
    with opened(tmp_path, own(), 10_000) as journal:
        journal.append(encoded(3))
        journal.seal()
    data = (tmp_path / segment_name(1)).read_bytes()
    assert [(b.first_lsn, b.last_lsn) for b in read_index(data, len(data)).blocks] == [(1, 3)]


def test_behind_an_index_another_segment_begins(tmp_path: Path) -> None:
    """As after a kill between the index and the header that would have followed."""
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1, 2))
        journal.seal()
    for lsn in (3, 4):
        with opened(tmp_path, own(), 10_000) as journal:
            assert not journal.mended
            assert journal.last_lsn == lsn - 1
            journal.append(encoded(lsn))
    assert [header.first_lsn for header in headers(tmp_path)] == [1, 3]
    assert checked(tmp_path, own()).findings == ()
    assert held(tmp_path) == [1, 2, 3, 4]


def test_a_torn_index_is_cut_off(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1, 2))
        journal.seal()
    path = tmp_path / segment_name(1)
    path.write_bytes(path.read_bytes()[:-3])
    with opened(tmp_path, own(), 10_000) as journal:
        assert ["torn" in text for text in journal.mended] == [True]
        journal.append(encoded(3))
        journal.seal()
    assert held(tmp_path) == [1, 2, 3]
    data = path.read_bytes()
    assert [block.records for block in read_index(data, len(data)).blocks] == [3]


def test_a_segment_without_room_for_its_index_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1, 2))
        journal.sync()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            journal.seal()
        journal.append(encoded(3))
    data = (tmp_path / segment_name(1)).read_bytes()
    assert index_length(data) == 0
    assert checked(tmp_path, own()).findings == ()
    assert held(tmp_path) == [1, 2, 3]


def test_the_old_end_is_sealed_by_the_first_new_header(tmp_path: Path) -> None:
    old_journal(tmp_path)
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(7))
    path = tmp_path / segment_name(2)
    path.write_bytes(path.read_bytes() + encoded(7)[0][1])
    assert any(f.check == ChainState.TAMPERED for f in checked(tmp_path, own()).faults)


def test_a_damaged_end_of_an_old_journal_is_still_repaired(tmp_path: Path) -> None:
    old_journal(tmp_path)
    with opened(tmp_path, own()) as journal:
        assert journal.cut(5)
        journal.append(encoded(5, 6))
    assert held(tmp_path) == list(range(1, 7))
    assert [f.check for f in checked(tmp_path, own()).findings] == [ChainState.UNSIGNED]


def test_a_new_key_begins_a_segment(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(1))
    with opened(tmp_path, newer()) as journal:
        journal.append(encoded(2))
    assert len(segments(tmp_path)) == 2
    assert checked(tmp_path, own(), newer()).findings == ()
    (notice,) = checked(tmp_path, newer()).findings
    assert (notice.check, notice.first, notice.last) == (ChainState.UNCHECKED, 1, 1)
    assert "covers it" in notice.what


def test_without_a_key_segments_are_chained_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, None) as journal:
        journal.append(encoded(*range(1, 10)))
    assert [f.check for f in checked(tmp_path).findings] == [ChainState.UNSIGNED]
    assert [str(fault) for fault in check_journal(tmp_path).faults] == []
    path = tmp_path / segment_name(1)
    path.write_bytes(path.read_bytes().replace(b"x" * 10, b"y" * 10, 1))
    assert any(
        "perhaps the disk failed" in fault
        for fault in [str(fault) for fault in check_journal(tmp_path).faults]
    )


# --- times and the store --------------------------------------------------------------------------


def happen(store: MemoryStore, times: int = 1) -> None:
    with store.write() as tx:
        for _ in range(times):
            tx.append(JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL))


def test_a_segment_ends_after_its_time(tmp_path: Path) -> None:
    store, now = MemoryStore(), [0.0]
    with opened(tmp_path, own(), 1 << 20) as journal:
        keeper = Keeper(store, journal, every=1000, keep=0, seal_s=60, clock=lambda: now[0])
        for second in (0.0, 59.0, 61.0, 62.0, 120.0, 122.0, 123.0):
            now[0] = second
            happen(store)
            keeper.flush()
    assert [header.first_lsn for header in headers(tmp_path)] == [1, 4, 7]
    assert checked(tmp_path, own()).findings == ()


def test_without_a_time_a_segment_goes_on(tmp_path: Path) -> None:
    store, now = MemoryStore(), [0.0]
    with opened(tmp_path, own(), 1 << 20) as journal:
        keeper = Keeper(store, journal, every=1000, keep=0, clock=lambda: now[0])
        for second in (0.0, 1e6, 2e6):
            now[0] = second
            happen(store)
            keeper.flush()
    assert len(segments(tmp_path)) == 1


def test_the_end_is_compared_with_the_store(tmp_path: Path) -> None:
    with opened(tmp_path, own()) as journal:
        journal.append(encoded(*range(1, 10)))
    assert check_journal(tmp_path, [own().public], StoreEnd(reaches=9)).findings == ()
    list(segments(tmp_path).values())[-1].unlink()
    assert checked(tmp_path, own()).findings == (), "the files alone do not tell"
    (finding,) = check_journal(tmp_path, [own().public], StoreEnd(reaches=9)).findings
    assert finding.check == ChainState.MISSING
    assert "the store has given it record 9, it ends at 6" in finding.what


def test_a_new_journal_may_be_a_snapshot_alone(tmp_path: Path) -> None:
    (tmp_path / snapshot_name(500)).write_text("{}\n")
    assert check_journal(tmp_path, end=StoreEnd(reaches=500)).findings == ()
    assert len(check_journal(tmp_path, end=StoreEnd(reaches=501)).faults) == 1
