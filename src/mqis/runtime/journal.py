"""A thread that keeps the journal up with the store.

It is woken after commits and appends what waits, seldom enough that the writer hardly notices, and
puts it on the disk now and then, which is when the outbox is trimmed. If it fails, the outbox keeps
everything: it says why once, tries again later, and says when it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from typing import Protocol

from mqis.protocol.errors import StorageError

#: Between two copies, and between two flushes, while there is something to copy.
PAUSE_S = 0.05
FLUSH_S = 1.0
#: After a failure, until it is tried again.
RETRY_S = 5.0

Report = Callable[[StorageError | None], None]


class Appender(Protocol):
    """From the outbox to the files, as ``storage.journal`` does it."""

    def copy(self) -> int: ...

    def flush(self) -> int: ...


def _silent(_error: StorageError | None) -> None: ...


class JournalThread:
    """Copies until it is closed. ``report`` hears of an error, and None when that is over.

    It is called from the thread.
    """

    def __init__(
        self,
        appender: Appender,
        report: Report = _silent,
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
        """Something was committed. Any thread may call this, and it does not wait."""
        self._woken.set()

    def close(self) -> None:
        """Copies and flush what there is, then stop. What cannot be copied stays in the outbox."""
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
        """For a commit, but not longer than to the next flush if one is due; then a little more."""
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
