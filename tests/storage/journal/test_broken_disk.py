"""A disk that fails while a segment ends or begins: the simulation found what was lost then."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal import journal as journal_module
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import records
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

SERVER = Guid(b"s" * 16)


def happen(store: MemoryStore, times: int) -> None:
    with store.write() as tx:
        for number in range(times):
            tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL))


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, "the disk failed")


def by_a_copy(appender: Appender) -> None:
    appender.copy()


def by_a_snapshot(appender: Appender) -> None:
    appender.snapshot()


def by_a_seal(appender: Appender) -> None:
    appender.seal()


@pytest.mark.parametrize("end", [by_a_copy, by_a_snapshot, by_a_seal])
def test_records_are_copied_again_if_the_end_of_a_segment_cannot_be_flushed(
    end: Callable[[Appender], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were copied before, and the journal has cut them off."""
    store = MemoryStore()
    with closing(Journal(tmp_path, "PSC1", SERVER, segment_bytes=600)) as journal:
        appender = Appender(store, journal)
        happen(store, 2)
        assert appender.copy() == 2
        happen(store, 10)
        with monkeypatch.context() as broken:
            broken.setattr(journal_module, "flush", refuse)
            with pytest.raises(StorageError, match="the disk failed"):
                end(appender)
        appender.flush()
        assert not list(_outbox(store))
    assert [entry.lsn for entry in records(tmp_path)] == list(range(1, 13))


def _outbox(store: MemoryStore) -> list[int]:
    with store.read() as view:
        return [lsn for lsn, _ in view.outbox(0, 100)]


def test_a_segment_that_can_neither_begin_nor_be_removed_is_begun_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal's thread retries after a StorageError, and ends with any other error."""
    store = MemoryStore()
    happen(store, 3)
    with closing(Journal(tmp_path, "PSC1", SERVER)) as journal:
        appender = Appender(store, journal)
        with monkeypatch.context() as broken:
            broken.setattr(journal_module, "flush_directory", refuse)
            broken.setattr(Path, "unlink", refuse)
            with pytest.raises(StorageError, match="the disk failed"):
                appender.flush()
        assert list(segments(tmp_path)) == [1], "its name was given, and could not be removed"
        assert appender.flush() == 3
    assert [entry.lsn for entry in records(tmp_path)] == [1, 2, 3]
