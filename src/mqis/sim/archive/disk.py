"""A disk that fails: its files are real, its promises are those of a disk.

Inside ``with disk:`` the calls of ``os`` that change files go through it. What was not flushed is
lost when the power fails: the end of a file, and the newest of the names that were given or removed
in a directory. A call can fail, and the process or the power can end at any call.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

from mqis.sim.mutations import Replacement, replaced


class DiskFault(StrEnum):
    """The way in which a call goes wrong."""

    KILL = "process killed"
    POWER = "power failed"
    FULL = "no room"
    BROKEN = "disk error"


class Ended(BaseException):
    """The process has ended: no handler of it may do anything more."""


@dataclass(slots=True)
class _Fuse:
    """Calls until the fault, and the number of calls that fail then."""

    fault: DiskFault
    calls: int
    failing: int


@dataclass(slots=True)
class _Renaming:
    """A change of names that is not flushed; ``undo`` takes it back."""

    directory: Path
    undo: Callable[[], None]


_ERRORS = {DiskFault.FULL: errno.ENOSPC, DiskFault.BROKEN: errno.EIO}


def _put_back(kept: Path, path: Path) -> None:
    kept.rename(path)


class SimDisk:
    """The files below ``root``; ``aside`` keeps those that were removed and may come back."""

    def __init__(self, root: Path, aside: Path, random: Random) -> None:
        self._root = root
        self._aside = aside
        self._random = random
        self._fuse: _Fuse | None = None
        self._ended = False
        #: Flushed bytes of each file, by inode.
        self._flushed: dict[int, int] = {}
        self._unflushed: list[_Renaming] = []
        self._kept = 0
        self._stack = ExitStack()

    def arm(self, fault: DiskFault, calls: int, failing: int = 1) -> None:
        """Makes the call after so many others go wrong."""
        self._fuse = _Fuse(fault, calls, failing)

    def trust(self, path: Path) -> None:
        """Counts a file that was written without faults as flushed."""
        self._flushed[path.stat().st_ino] = path.stat().st_size

    def flush_names(self) -> None:
        """Counts all names as flushed."""
        self._unflushed = []

    def calm(self) -> None:
        self._fuse = None

    def __enter__(self) -> SimDisk:
        names = ("open", "pwrite", "fsync", "ftruncate", "rename", "replace", "unlink")
        calls: tuple[Replacement, ...] = tuple(
            (os, name, getattr(self, f"_wrap_{name}")) for name in names
        )
        self._stack.enter_context(replaced(calls))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- calls ------------------------------------------------------------------------------------

    def _called(self, *, may_fail: bool = True) -> None:
        """Ends the process or fails, if it is time for that."""
        if self._ended:
            raise Ended
        fuse = self._fuse
        if fuse is None:
            return
        if fuse.calls > 0:
            fuse.calls -= 1
            return
        if fuse.fault in (DiskFault.KILL, DiskFault.POWER):
            self._ended = True
            raise Ended
        if may_fail:
            fuse.failing -= 1
            if fuse.failing <= 0:
                self._fuse = None
            raise OSError(_ERRORS[fuse.fault], os.strerror(_ERRORS[fuse.fault]))

    def _wrap_open(self, original: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
            if flags & (os.O_CREAT | os.O_TRUNC):
                self._called()
            return original(path, flags, *args, **options)

        return opened

    def _wrap_pwrite(self, original: Callable[..., int]) -> Callable[..., int]:
        def written(descriptor: int, data: bytes, offset: int) -> int:
            try:
                self._called()
            except (Ended, OSError):  # a part of it may be there
                if self._fuse is None or self._fuse.fault is not DiskFault.BROKEN:
                    original(descriptor, data[: self._random.randrange(len(data))], offset)
                raise
            return original(descriptor, data, offset)

        return written

    def _wrap_fsync(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def flushed(descriptor: int) -> None:
            self._called()
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                self._unflushed = [
                    change
                    for change in self._unflushed
                    if change.directory.stat().st_ino != found.st_ino
                ]
            else:
                self._flushed[found.st_ino] = found.st_size

        return flushed

    def _wrap_ftruncate(self, original: Callable[..., None]) -> Callable[..., None]:
        def truncated(descriptor: int, length: int) -> None:
            self._called(may_fail=False)
            original(descriptor, length)
            inode = os.fstat(descriptor).st_ino
            self._flushed[inode] = min(length, self._flushed.get(inode, 0))

        return truncated

    def _wrap_rename(self, original: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: Any, target: Any, **options: Any) -> None:
            self._called()
            former = self._keep(Path(target)) if Path(target).exists() else None
            original(source, target, **options)

            def undo() -> None:
                original(target, source)
                if former is not None:
                    original(former, target)

            self._unflushed.append(_Renaming(Path(target).parent, undo))

        return renamed

    _wrap_replace = _wrap_rename

    def _wrap_unlink(self, original: Callable[..., None]) -> Callable[..., None]:
        def unlinked(path: Any, **options: Any) -> None:
            self._called(may_fail=self._fuse is None or self._fuse.fault is not DiskFault.FULL)
            if not Path(path).exists():
                original(path, **options)
                return
            kept = self._keep(Path(path))
            original(path, **options)
            self._unflushed.append(_Renaming(Path(path).parent, lambda: _put_back(kept, path)))

        return unlinked

    def _keep(self, path: Path) -> Path:
        """Keeps a file under another name."""
        self._kept += 1
        kept = self._aside / str(self._kept)
        os.link(path, kept)
        return kept

    # --- the end ----------------------------------------------------------------------------------

    def restart(self) -> None:
        """Starts again after the end; without power, what was not flushed is lost."""
        lost_power = self._fuse is not None and self._fuse.fault is DiskFault.POWER
        self._ended, self._fuse = False, None
        if lost_power:
            self._forget_names()
            for path in sorted(path for path in self._root.rglob("*") if path.is_file()):
                self._forget_end(path)
        self.flush_names()

    def _forget_names(self) -> None:
        """Takes back some of the newest changes of names, the newest first."""
        left = self._random.randint(0, len(self._unflushed))
        for change in reversed(self._unflushed[left:]):
            change.undo()

    def _forget_end(self, path: Path) -> None:
        found = path.stat()
        flushed = min(self._flushed.get(found.st_ino, 0), found.st_size)
        if flushed == found.st_size:
            return
        end = self._random.randint(flushed, found.st_size)
        with path.open("r+b") as file:
            file.truncate(end)
            if self._random.random() < 0.5:  # the length was written, the bytes were not
                file.truncate(found.st_size)
        self._flushed[found.st_ino] = path.stat().st_size
