"""Claims on stores: only one process may write to a store.

A server, and a command that writes to a store, claim it first; a second claim is refused: two
servers on one store would give the same numbers to different changes. Commands that only read need
no claim. The kernel or the database releases the claim of a process that died, so no stale claim
remains.

A claim on a file is a lock on another file beside it (``mqis.db.lock``), which names the process:
SQLite has locks of its own on the database, which the process would lose by closing any other
handle of that file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.config.processlocks import ProcessLock, holder
from mqis.config.stores import file_of, open_store
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store


class StoreInUse(StorageError):
    """Another process has claimed the store."""


@contextmanager
def claimed_store(
    url: str, *, create: bool = False, timeout_s: float | None = None
) -> Iterator[Store]:
    """Opens a store and claims it until the block ends.

    Raises ``StoreInUse`` if another process has claimed it. A file that ``create`` made goes away
    again if the block fails: an empty store would look like a directory that lost everything.
    """
    path = file_of(url)
    with ExitStack() as ending:
        if path is not None:
            ending.enter_context(claimed_file(path))
            if create and not os.path.lexists(path):
                ending.enter_context(_removed_on_failure(path))
        store = open_store(url, create=create, claim=True, timeout_s=timeout_s)
        ending.callback(store.close)
        yield store


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for companion in ("", "-wal", "-shm", "-journal"):
            path.with_name(f"{path.name}{companion}").unlink(missing_ok=True)
        raise


@contextmanager
def claimed_file(path: Path) -> Iterator[None]:
    """Claims the file of a store, by its real path."""
    real = path.resolve()
    if not _is_writable(real):  # opening the store reports that
        yield
        return
    _refuse_other_names(real)
    lock = ProcessLock(lock_of(real))
    try:
        taken = lock.take()
    except NodesError as error:
        raise StorageError(
            f"{error}; if this lock file belongs to another user, delete it while no process uses "
            "the store"
        ) from error
    if not taken:
        raise StoreInUse(_in_use(real))
    try:
        lock.name(os.getpid())
        yield
    finally:
        lock.remove()


def lock_of(path: Path) -> Path:
    real = path.resolve()
    return real.with_name(f"{real.name}.lock")


def _is_writable(path: Path) -> bool:
    there = path if path.exists() else path.parent
    return os.access(there, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _in_use(path: Path) -> str:
    process = holder(lock_of(path))
    owner = f"process {process}" if process else "another process"
    return (
        f"{path}: {owner} uses this store; stop it first: two servers on one store would give the "
        "same numbers to different changes"
    )


def _refuse_other_names(path: Path) -> None:
    """Refuses a file with several hard links: SQLite would keep a separate log beside each."""
    names = path.stat().st_nlink if path.exists() else 1
    if names > 1:
        raise StorageError(
            f"{path}: this file has {names} names (hard links), and changes made under one of them "
            f"would be lost under the others; find them with 'find / -samefile {path}' and keep one"
        )
