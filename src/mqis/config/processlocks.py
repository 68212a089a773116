"""Which process is whose, safe against numbers that come again.

A file with a process number in it is locked by that process for as long as it lives: a server
inherits the open file from its supervisor. So if the lock is held, the number in the file is that
of a living process and the right one; if it is free, nobody is there, whatever number it says.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from mqis.config.nodes import NodesError

_LOOK_S = 0.05


class ProcessLock:
    """``path`` locked through an open file, to be kept or handed to a child process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def fd(self) -> int:
        if self._file is None:
            raise ValueError(f"{self.path}: not locked")
        return self._file

    def take(self) -> bool:
        """Whether the lock is ours now."""
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise NodesError(f"{self.path}: cannot be made: {error.strerror}") from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                return False
            if _is_at(file, self.path):
                self._file = file
                return True
            os.close(file)  # whoever had it has removed it meanwhile

    def name(self, pid: int) -> None:
        """Write down who holds it."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{pid}\n".encode(), 0)

    def let_go(self) -> None:
        """Close our end; a child that inherited it holds the lock on."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def remove(self) -> None:
        """Let go of a lock that no child holds on, and leave no file behind."""
        with suppress(OSError):
            self.path.unlink()
        self.let_go()


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file is still the one that ``path`` names."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def holder(path: Path) -> int | None:
    """The process that holds a lock; None if nobody does. 0: somebody, who has not said so yet."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodesError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(file)


def send(path: Path, number: signal.Signals) -> bool:
    """Send a signal to who holds a lock; False if nobody does.

    Where the system has handles of processes, the number cannot change its meaning in between.
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
    """End who holds a lock, with grace and then without; whether there was anybody."""
    if not send(path, signal.SIGTERM):
        return False
    if not _gone(path, grace_s):
        send(path, signal.SIGKILL)
        if not _gone(path, grace_s):
            raise NodesError(f"{path}: process {holder(path)} does not end")
    return True


def _gone(path: Path, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while holder(path) is not None:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True
