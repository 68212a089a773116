"""The world of one run with an archive: a server's journal thread and archiver, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.sim.archive import archive_checks
from mqis.sim.archive.archive_checks import ArchiveHistory, JournalPast, records_in
from mqis.sim.archive.archive_scenario import (
    ArchiveMishap,
    ArchiveScenario,
    ArchiveStep,
    Committed,
    Do,
    Fail,
    Happen,
    ServerTask,
)
from mqis.sim.archive.disk import DiskFault, Ended, SimDisk
from mqis.sim.mutations import replaced
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.simulated_stores import SqliteDisk
from mqis.storage.archive import Archiver, archived_journals, archiver, restore_journal
from mqis.storage.archive.archiver import NAME
from mqis.storage.database import DatabaseStore
from mqis.storage.journal.belonging import belonging_fault
from mqis.storage.journal.journal import Journal
from mqis.storage.journal.journal_files import write_snapshot
from mqis.storage.journal.keeping import Keeper
from mqis.storage.outbox import restart_outbox
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record

FAULTS: dict[str, str] = {
    **{f"fault {fault}": str(fault) for fault in DiskFault},
    **{
        f"fault {mishap}": str(mishap)
        for mishap in ArchiveMishap
        if mishap is not ArchiveMishap.BACKUP
    },
}
DECISIONS: dict[str, str] = {
    "copy": "copy records to the journal",
    "flush": "flush the journal",
    "seal": "end a segment",
    "archive": "archive closed files",
    "refused": "report an error and retry later",
    "restart": "start again",
}
_SERVER = Guid(b"simulated server")
_SEAL_S = 30.0
#: Numbers that a restore skips.
_JUMP = 1 << 20
#: More records than a run has.
_ALL = 1_000_000
#: Rounds within which everything closed has to be archived after the last fault.
_ROUNDS = 5


class _NoAnswer(StorageError):
    """The archive is out of reach; nothing on the disk is interrupted."""


class _Server:
    """The parts of a running server."""

    def __init__(self, world: ArchiveWorld) -> None:
        with world.store.read() as view:
            fault = belonging_fault(view, world.directory)
        if fault is not None:
            raise Violation("store and journal belong together", fault)
        scenario = world.scenario
        self.archiver: Archiver | None = None
        if world.configured:
            self.archiver = Archiver(world.directory, world.archive, _SERVER)
        self.journal = Journal(
            world.directory, "PSC1", _SERVER, segment_bytes=scenario.segment_bytes
        )
        self.keeper = Keeper(
            world.store,
            self.journal,
            every=scenario.every,
            keep=scenario.keep,
            seal_s=_SEAL_S,
            is_archived=None if self.archiver is None else self.archiver.is_archived,
            clock=lambda: world.now,
        )


class ArchiveWorld:
    """One run; ``run`` raises ``Violation`` if a rule does not hold."""

    def __init__(self, scenario: ArchiveScenario, trace: SimTrace, directory: Path) -> None:
        self.scenario = scenario
        self.trace = trace
        self.now = 0.0
        self.healed_s = 0.0
        self.messages = 0
        self.configured = False
        self._random = Random(f"{scenario.seed}/archive world")
        root, aside = directory / "disk", directory / "aside"
        self.directory, self.archive = root / "journal", root / "archive"
        self._moved = directory / "moved"
        for path in (self.archive, aside, self._moved):
            path.mkdir(parents=True)
        self._restored = directory / "restored"
        self.disk = SimDisk(root, aside, self._random)
        #: The store is on a disk of its own, which does not fail: SQLite promises that.
        self._database = SqliteDisk(directory, "store")
        self._backup: Callable[[], None] | None = None
        self._server: _Server | None = None
        #: False from a failure of the disk until retention has completed what was interrupted.
        self._settled = True
        self._pasts = [JournalPast()]
        self._history = ArchiveHistory(self.archive)
        #: A number that is not smaller than any record's before a restore.
        self._highest = 0
        #: Questions that the archive still answers, then does not; and if it tears the next copy.
        self._answers = self._away = 0
        self._tears = False
        #: A torn copy, and the size that it should have.
        self._torn: tuple[Path, int] | None = None
        with self.store.write() as tx:
            tx.put_partition(Partition(ENTERPRISE_PARTITION, "PSC1"))

    @property
    def store(self) -> Store:
        return self._database.store

    @property
    def _past(self) -> JournalPast:
        return self._pasts[-1]

    def close(self) -> None:
        self._stop()
        self._database.close()

    def run(self) -> None:
        functions = ("listed", "open_at", "size_at", "put_at")
        wrapped = tuple((archiver, name, self._answering) for name in functions)
        with replaced(wrapped), replaced(((archiver, "put_at", self._tearing),)):
            for step in self.scenario.steps:
                self.now = max(self.now, step.at)
                self._perform(step)
                if isinstance(step, Do):  # only the server changes files
                    self._check()
            self._heal()

    def _note(self, kind: str, text: str = "") -> None:
        self.trace.note(self.now, kind, text)

    # --- the archive's faults ---------------------------------------------------------------------

    def _answering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*values: Any, **options: Any) -> Any:
            if self._away and self._answers:
                self._answers -= 1
            elif self._away:
                self._away -= 1
                raise _NoAnswer("the archive does not answer")
            return original(*values, **options)

        return answer

    def _tearing(self, original: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def put(source: Path, place: Path) -> None:
            original(source, place)
            if self._tears:
                self._tears = False
                data = place.read_bytes()
                place.write_bytes(data[: self._random.randrange(len(data))])
                self._torn = place, len(data)

        return put

    # --- steps ------------------------------------------------------------------------------------

    def _perform(self, step: ArchiveStep) -> None:
        match step:
            case Committed(_, count):
                self._commit(count)
            case Do(_, work):
                self._do(work)
            case Fail(_, fault, calls, failing):
                self._note(f"fault {fault}", f"after {calls} calls, {failing} times")
                self.disk.arm(fault, calls, failing)
            case Happen(_, mishap, calls, after):
                self._note(f"fault {mishap}", f"{calls} after {after}")
                self._happen(mishap, calls, after)

    def _commit(self, count: int) -> None:
        with self.store.write() as tx:
            for _ in range(count):
                self.messages += 1
                time_us = self.messages * 1_000_000
                tx.append(JournalRecord(time_us, RecordKind.CHANGE, RecordState.LOCAL))
        self._past.records.update(self._waiting())
        self._note("commit", str(count))

    def _waiting(self) -> dict[int, bytes]:
        with self.store.read() as view:
            return {lsn: encode_record(lsn, record) for lsn, record in view.outbox(0, _ALL)}

    def _do(self, work: ServerTask) -> None:
        if work is ServerTask.CONFIGURE:
            self.configured = True
        if work in (ServerTask.CONFIGURE, ServerTask.RESTART):
            self._stop()
        try:
            with self.disk:
                done = self._work(work)
        except StorageError as error:
            if not isinstance(error.__cause__, _NoAnswer):
                self._settled = False
            self._note("refused", _without(error, self.directory.parent))
        except Ended:
            self._settled = False
            self._note("ended", work.value)
            self._stop()
            self.disk.restart()
        else:
            self._settled = self._settled or (work is ServerTask.FLUSH and not self._waits())
            self._note(work.value, str(done))

    def _work(self, work: ServerTask) -> int:
        if self._server is None:
            self._server = _Server(self)
        server = self._server
        match work:
            case ServerTask.COPY:
                return server.keeper.copy()
            case ServerTask.FLUSH:
                return server.keeper.flush()
            case ServerTask.SEAL:
                server.journal.seal()
            case ServerTask.ARCHIVE if server.archiver is not None:
                copied = server.archiver.step()
                if copied:
                    server.keeper.prune()
                return copied
        return 0

    def _waits(self) -> bool:
        """Returns whether closed files are not archived: retention waits for them."""
        server = self._server
        return server is not None and server.archiver is not None and bool(server.archiver.look())

    def _stop(self) -> None:
        if self._server is not None:
            self._server.journal.close()
            self._server = None

    def _happen(self, mishap: ArchiveMishap, calls: int, after: int) -> None:
        match mishap:
            case ArchiveMishap.LOST_LIST:
                self._stop()
                (self.directory / NAME).unlink(missing_ok=True)
            case ArchiveMishap.SPOILT_LIST if (self.directory / NAME).exists():
                self._stop()
                (self.directory / NAME).write_text('{"version": 1')
            case ArchiveMishap.MOVED | ArchiveMishap.RESTORED if self._has_torn_copy():
                pass  # nobody could complete it
            case ArchiveMishap.MOVED:
                self._begin_anew()
            case ArchiveMishap.BACKUP:
                self._stop()
                self._backup = self._database.backup()
            case ArchiveMishap.RESTORED if self._backup is not None:
                self._stop()
                self._backup()
                self._restart_numbers()
                self._begin_anew()
                with self.store.read() as view:
                    self.directory.mkdir()
                    self.disk.trust(write_snapshot(view, self.directory, self._highest))
            case ArchiveMishap.PLACE_AWAY:
                self._answers, self._away = after, calls
            case ArchiveMishap.PLACE_TORN:
                self._tears = True

    def _restart_numbers(self) -> None:
        """As ``mqis restore`` does: numbers that may have been used are skipped."""
        store = self.store
        assert isinstance(store, DatabaseStore)
        self._highest = max(self._highest, *self._past.records, 0) + _JUMP
        with store.writing() as rows:
            restart_outbox(rows, self._highest)

    def _has_torn_copy(self) -> bool:
        return self._torn is not None and self._torn[0].stat().st_size < self._torn[1]

    def _begin_anew(self) -> None:
        """The journal's directory goes; what waits in the store goes into a new journal."""
        self._stop()
        if self.directory.exists():
            self.directory.rename(self._moved / str(len(self._pasts)))
            self.disk.flush_names()
        self._pasts.append(JournalPast(self._waiting()))

    # --- checks -----------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._server is None:
            return  # the next start mends the files
        self._check_files()

    def _check_files(self) -> None:
        if self._settled:
            archive_checks.check_local(self.directory, self._past)
        archived: dict[int, bytes] | None = None
        if self.configured:
            archived = {}
            for place in sorted(path for path in self.archive.iterdir() if path.is_dir()):
                found = records_in(place)
                archived |= {n: d for n, d in found.items() if self._past.records.get(n) == d}
        archive_checks.check_nothing_lost(
            self._past, set(self._waiting()), self.directory, archived, self.scenario.keep
        )
        archive_checks.check_list(self.directory, self.archive)
        self._history.check(None if self._torn is None else self._torn[0])

    def _heal(self) -> None:
        """Ends all faults: everything closed is archived, and every journal comes back."""
        self._note("heal")
        self.disk.calm()
        self._away, self._tears = 0, False
        self.configured = True
        self._do(ServerTask.RESTART)
        for _ in range(_ROUNDS):
            self._do(ServerTask.FLUSH)
            self._do(ServerTask.ARCHIVE)
        server = self._server
        if server is None or server.archiver is None or server.archiver.look():
            raise Violation("liveness", "closed files are not archived")
        self._check_files()
        archive_checks.check_directories(self.archive, self._pasts)
        for journal in archived_journals(self.archive):
            restore_journal(journal, self._restored / journal.name)


def _without(error: Exception, root: Path) -> str:
    """The text of an error without the directory of this run."""
    return str(error).replace(str(root), "")
