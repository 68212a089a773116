"""A process that writes a journal, archives it and deletes what is archived, killed again and
again: the archive and the disk together always have every record."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from time import sleep

from mqis.storage.archive import Archiver, archived_journals, restore_journal
from mqis.storage.archive.archiver import closed_files
from mqis.storage.journal.checking import check_journal
from mqis.storage.journal.journal_files import segments
from mqis.storage.journal.journal_reader import records
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid

SERVER = Guid(b"s" * 16)
KILLS = 3

PROGRAM = """
import sys
from time import sleep
from pathlib import Path
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.runtime.archive_thread import ArchiveThread
from mqis.runtime.journal_thread import JournalThread
from mqis.storage.archive import Archiver
from mqis.storage.journal import Journal
from mqis.storage.journal.keeping import Keeper
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState

home, server = Path(sys.argv[1]), Guid(b"s" * 16)
store = SqliteStore(home / "store.db")
with store.write() as tx:
    tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))
journal = Journal(home / "journal", "PSC1", server)
archiver = Archiver(journal.directory, home / "archive", server)
keeper = Keeper(store, journal, every=20, keep=1, is_archived=archiver.is_archived)

def archived():
    keeper.prune()
    print("archived", flush=True)

ArchiveThread(archiver, archived, lambda error: print(error, flush=True), look_s=0.001)
thread = JournalThread(keeper, lambda error: None, pause_s=0.001, flush_s=0.001)
while True:
    with store.write() as tx:
        for number in range(5):
            tx.append(JournalRecord(number, RecordKind.CHANGE, RecordState.LOCAL, body=bytes(500)))
    thread.wake()
    sleep(0.002)
"""


def test_records_survive_kills(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.db", create=True).close()
    random = Random(18)
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        with process.stdout:
            for _ in range(random.randint(1, 3)):
                assert process.stdout.readline() == b"archived\n"
            sleep(random.uniform(0, 0.03))  # the moment of the kill
            process.kill()
            process.wait()
        _examine(tmp_path)
    assert 1 not in segments(tmp_path / "journal")  # retention has deleted it


def _archived(home: Path) -> dict[int, Path]:
    directory = home / "archive" / str(SERVER)
    return segments(directory) if directory.exists() else {}


def _examine(home: Path) -> None:
    journal = home / "journal"
    made = Archiver(journal, home / "archive", SERVER)
    for path in closed_files(journal):
        if made.is_archived(path):
            copy = home / "archive" / str(SERVER) / path.name
            assert copy.read_bytes() == path.read_bytes()
    lsns = {entry.lsn for entry in records(journal)} if segments(journal) else set()
    with closing(SqliteStore(home / "store.db")) as store, store.read() as view:
        lsns |= {lsn for lsn, _ in view.outbox(0, 1_000_000)}
        last = view.last_lsn()  # type: ignore[attr-defined]
    if _archived(home):
        (kept,) = archived_journals(home / "archive")
        target = home / f"restored-{last}"
        restore_journal(kept, target)
        assert check_journal(target).faults == ()
        lsns |= {entry.lsn for entry in records(target)}
    assert lsns == set(range(1, last + 1))
