"""Retention with an archive: nothing behind a file that is not archived is deleted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqis import places
from mqis.protocol.errors import StorageError
from mqis.storage.archive import Archiver, archiver
from mqis.storage.journal import Appender, Journal
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.files import segments, snapshots
from mqis.storage.journal.keeping import Keeper
from mqis.storage.memory import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

SERVER = Guid(b"s" * 16)


@pytest.mark.req("SEC-13-03")
def test_what_is_archived_stays_while_an_older_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive fails at the second segment, whose start is a snapshot that is archived."""
    directory, store = tmp_path / "journal", MemoryStore()
    with closing(Journal(directory, "PSC1", SERVER)) as journal:
        appender = Appender(store, journal)
        for _ in range(4):
            appender.snapshot()
            with store.write() as tx:
                for number in range(5):
                    tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL))
            appender.flush()
        made = Archiver(directory, tmp_path / "archive", SERVER)
        keeper = Keeper(store, journal, every=100, keep=1, is_archived=made.is_archived)
        with monkeypatch.context() as patched:
            put_at = places.put_at

            def refusing(source: Path, place: Path) -> None:
                if source.name == "segment-0000000002.mqj":
                    raise StorageError("the share is full")
                put_at(source, place)

            patched.setattr(archiver, "put_at", refusing)
            with pytest.raises(StorageError, match="the share is full"):
                made.step()
        keeper.prune()
        assert list(segments(directory)) == [2, 3, 4]
        assert list(snapshots(directory)) == [5, 10, 15], "segment 2 begins at snapshot 5"
        assert not check_journal(directory).faults
        made.step()
        keeper.prune()
    assert list(segments(directory)) == [4]
    assert list(snapshots(directory)) == [15]
