"""The thread that archives the journal. The server never waits for it.

It looks for closed files every few seconds. If the archive fails, it retries later, after longer
and longer pauses. It reports the error once, and once when archiving succeeds again. A store that
hangs keeps only this thread waiting: closing gives it a moment and then leaves it behind.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol

from mqis.protocol.clock import pause_after
from mqis.protocol.errors import StorageError

#: Seconds between two looks, and from a failure to the first and to the last retries.
LOOK_S, RETRY_S, LONGEST_RETRY_S = 5.0, 5.0, 300.0
#: Seconds that closing waits for a copy under way.
CLOSE_S = 3.0

Report = Callable[[StorageError | None], None]


class JournalArchiver(Protocol):
    """Copies what waits; implemented by ``storage.archive``."""

    def step(self, stopped: Callable[[], bool]) -> int: ...


class ArchiveThread:
    """Archives until it is closed; calls ``archived`` after each step that copied something."""

    def __init__(
        self,
        archiver: JournalArchiver,
        archived: Callable[[], None],
        report: Report,
        *,
        look_s: float = LOOK_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._archiver = archiver
        self._archived = archived
        self._report = report
        self._look_s = look_s
        self._retry_s = retry_s
        self._pause_s = 0.0
        self._closing = Event()
        self._failures = 0
        self._thread = Thread(target=self._work, name="mqis-archive", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops after the file that is being copied; the next start copies the rest."""
        self._closing.set()
        self._thread.join(CLOSE_S)

    @property
    def failed(self) -> bool:
        return self._failures > 0

    def _work(self) -> None:
        while not self._closing.wait(self._pause_s):
            try:
                if self._archiver.step(self._closing.is_set):
                    self._archived()
            except StorageError as error:
                self._fail(error)
            else:
                self._succeed()

    def _fail(self, error: StorageError) -> None:
        self._failures += 1
        self._pause_s = pause_after(self._failures, self._retry_s, LONGEST_RETRY_S)
        if self._failures == 1:
            self._report(error)

    def _succeed(self) -> None:
        self._pause_s = self._look_s
        if self.failed:
            self._failures = 0
            self._report(None)
