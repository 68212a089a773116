"""The thread that copies the outbox of the store to the journal.

Commits wake it. It appends the waiting records, with pauses so that it does not slow the writer,
flushes them to the disk now and then, and trims the outbox after that. If it fails, the outbox
keeps everything: it reports the error once, retries later, and reports when it succeeds again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from typing import Protocol

from mqis.protocol.errors import StorageError

log = logging.getLogger(__name__)

#: Seconds between two copies, and between two flushes, while there is something to copy.
PAUSE_S = 0.05
FLUSH_S = 1.0
#: Seconds from a failure to the retry.
RETRY_S = 5.0

Report = Callable[[StorageError | None], None]


class OutboxReader(Protocol):
    """Copies from the outbox to the files; implemented by ``storage.journal``."""

    def copy(self) -> int: ...

    def flush(self) -> int: ...


def _log(error: StorageError | None) -> None:
    if error is None:
        log.info("the journal is written again")
    else:
        log.error("the journal cannot be written: %s", error)


class JournalThread:
    """Copies until it is closed. It calls ``report``, from its thread, with an error, and with
    None when that is over; by default it writes both to the log.
    """

    def __init__(
        self,
        appender: OutboxReader,
        report: Report = _log,
        *,
        pause_s: float = PAUSE_S,
        flush_s: float = FLUSH_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._appender = appender
        self._report = report
        self._pause_s = pause_s
        self._flush_s = flush_s
        self._retry_s = retry_s
        self._woken = Event()
        self._closing = Event()
        self.failed = False
        self.copied = 0
        self._unflushed = True  # what an earlier process left behind
        self._thread = Thread(target=self._work, name="mqis-journal", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wakes the thread after a commit. Any thread may call this; it does not block."""
        self._woken.set()

    def close(self) -> None:
        """Copies and flushes the rest, then stops. What cannot be copied stays in the outbox."""
        self._closing.set()
        self._woken.set()
        self._thread.join()

    def _work(self) -> None:
        flush_at = monotonic()
        while not self._closing.is_set():
            if self._unflushed and monotonic() >= flush_at:
                self._try(self._appender.flush)
                self._unflushed = self.failed
                flush_at = monotonic() + (self._retry_s if self.failed else self._flush_s)
            self._wait(flush_at)
            if self._woken.is_set() and not self.failed:
                self._woken.clear()
                self._unflushed = True
                self._try(self._appender.copy)
                if self.failed:
                    flush_at = monotonic() + self._retry_s
        self._try(self._appender.flush)

    def _wait(self, flush_at: float) -> None:
        """Waits for a commit, at most until the next flush is due; then pauses."""
        left = max(0.0, flush_at - monotonic())
        if self.failed:
            self._closing.wait(left)
        elif self._woken.wait(left if self._unflushed else None):
            self._closing.wait(self._pause_s)

    def _try(self, step: Callable[[], int]) -> None:
        try:
            self.copied += step()
        except StorageError as error:
            if not self.failed:
                self.failed = True
                self._report(error)
        else:
            if self.failed:
                self.failed = False
                self._report(None)
