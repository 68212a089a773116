"""A journal that a server began anew, in an archive that lacks the start of the earlier one."""

from __future__ import annotations

from pathlib import Path

from mqis.storage.archive import Archiver, archived_journals, restore_journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import records
from mqis.storage.journal.keeping import retain
from mqis.storage.memory_store import MemoryStore
from tests.storage.archive.test_archiver import SERVER, happen, names, write_journal


def test_a_journal_begun_anew_does_not_continue_the_archived_one(tmp_path: Path) -> None:
    """The archive came after retention: it has segments 3 and 4, the new journal 1 and 2."""
    archive, old, new = (tmp_path / name for name in ("archive", "old", "new"))
    write_journal(old, 5)
    retain(old, keep_snapshots=3)
    Archiver(old, archive, SERVER).step()
    assert list(segments(archive / str(SERVER))) == [3, 4]
    store = MemoryStore()
    happen(store, 1)  # another past than that of the first journal
    write_journal(new, 2, store)
    assert list(segments(new)) == [1, 2, 3]
    Archiver(new, archive, SERVER).step()

    assert names(archive) == [str(SERVER), f"{SERVER}.2"]
    assert list(segments(archive / str(SERVER))) == [3, 4]
    for journal, source in zip(archived_journals(archive), (old, new), strict=True):
        restored = tmp_path / journal.name
        restore_journal(journal, restored)
        kept = {entry.lsn: entry.record for entry in records(source)}
        assert all(kept[entry.lsn] == entry.record for entry in records(restored))


def test_equal_first_segments_do_not_make_one_journal_of_two(tmp_path: Path) -> None:
    """The first records waited in the store when the journal was moved away."""
    archive, old, new = (tmp_path / name for name in ("archive", "old", "new"))
    stores = MemoryStore(), MemoryStore()
    for store in stores:
        happen(store, 3)
    write_journal(old, 3, stores[0])
    Archiver(old, archive, SERVER).step()
    happen(stores[1], 1)  # from here on they differ
    write_journal(new, 3, stores[1])
    first = "segment-0000000001.mqj"
    (new / first).write_bytes((old / first).read_bytes())
    Archiver(new, archive, SERVER).step()
    assert names(archive) == [str(SERVER), f"{SERVER}.2"]
