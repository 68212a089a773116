"""Locks that identify a running process, safe against reused process numbers.

A file with a process number in it is locked by that process for as long as it lives: a server
inherits the open file from its supervisor. So if the lock is held, the number in the file is that
of a living process and the right one; if it is free, no process runs, whatever number is in it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.files import system_reason

_LOOK_S = 0.05


class ProcessLock:
    """A lock on ``path`` through an open file, which a child process may inherit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def fd(self) -> int:
        if self._file is None:
            raise ValueError(f"{self.path}: this lock is not held")
        return self._file

    def take(self) -> bool:
        """Tries to take the lock; True if it is ours now."""
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise NodesError(
                    f"{self.path}: this lock file cannot be made: {system_reason(error)}"
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                return False
            if _is_at(file, self.path):
                self._file = file
                return True
            os.close(file)  # its holder has removed the file meanwhile

    def name(self, pid: int) -> None:
        """Writes the holder's process number into the file."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{pid}\n".encode(), 0)

    def let_go(self) -> None:
        """Closes our file; a child that inherited it keeps the lock."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def remove(self) -> None:
        """Releases a lock that no child has inherited, and deletes its file."""
        with suppress(OSError):
            self.path.unlink()
        self.let_go()


def _is_at(file: int, path: Path) -> bool:
    """True if an open file is still the one that ``path`` names."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def holder(path: Path) -> int | None:
    """The process that holds a lock; None if it is free; 0 if the holder has not named itself."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodesError(f"{path}: cannot be read: {system_reason(error)}") from error
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(file)


def send(path: Path, number: signal.Signals) -> bool:
    """Sends a signal to the holder of a lock; returns False if there is none.

    A process handle, where the system has them, excludes that the number is reused in between.
    """
    pid = holder(path)
    if not pid:
        return False
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):
        handle = None
    try:
        if holder(path) != pid:
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def end(path: Path, grace_s: float) -> bool:
    """Ends the holder of a lock: SIGTERM, then SIGKILL; returns False if there was none."""
    if not send(path, signal.SIGTERM):
        return False
    if not _wait_until_free(path, grace_s):
        send(path, signal.SIGKILL)
        if not _wait_until_free(path, grace_s):
            raise NodesError(f"{path}: process {holder(path)} does not end, not even after SIGKILL")
    return True


def _wait_until_free(path: Path, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while holder(path) is not None:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True
