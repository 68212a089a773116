"""Mutations that put a plausible bug into journals or archives, for the world ``archive``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.storage.archive import archiver
from mqis.storage.journal import journal, keeping
from mqis.storage.journal.appender import Appender, _waiting
from mqis.storage.journal.journal import Journal

_Any = Callable[..., Any]


def _behind_gaps(_retain: _Any) -> _Any:
    def retain(directory: Path, keep: int, is_archived: Callable[[Path], bool] | None) -> None:
        for before in keeping.expendable(directory, keep)[:1]:
            for path in before:
                if is_archived is None or is_archived(path):
                    path.unlink()

    return retain


def _up_to_the_gap(_retain: _Any) -> _Any:
    def retain(directory: Path, keep: int, is_archived: Callable[[Path], bool] | None) -> None:
        for before in keeping.expendable(directory, keep)[:1]:
            for path in before:
                if is_archived is not None and not is_archived(path):
                    return
                path.unlink()

    return retain


def _always(_continues: _Any) -> _Any:
    return lambda _path, _place, _there: True


def _unread(copied: _Any) -> _Any:
    def put(path: Path, place: Path) -> Any:
        try:
            return copied(path, place)
        except StorageError as error:
            if "differs from the file" not in str(error):
                raise
            size = path.stat().st_size
            return archiver._digest(path, size), size

    return put


def _unflushed(_sync: _Any) -> _Any:
    def sync(opened: Journal) -> None:
        opened.durable_lsn, opened._durable_end = opened.last_lsn, opened._end
        opened._sealer.mark()

    return sync


def _unnamed(_flush_directory: _Any) -> _Any:
    return lambda _directory: None


def _not_again(_copy: _Any) -> _Any:
    def copy(appender: Appender, view: View) -> int:
        copied, writer = 0, appender._journal
        while rows := _waiting(view, appender._settled):
            known = [row for row in rows if row[0] <= writer.last_lsn]
            if known:
                appender._compare(known)
            new = [row for row in rows if row[0] > writer.last_lsn]
            writer.append(new)
            appender._settled, appender._newest = rows[-1][0], rows[-1]
            copied += len(new)
        return copied

    return copy


A01 = ((keeping, "retain", _behind_gaps),)
A02 = ((archiver, "_continues", _always),)
A03 = ((archiver, "_copied", _unread),)
A04 = ((Journal, "sync", _unflushed),)
A05 = ((journal, "flush_directory", _unnamed),)
A06 = ((keeping, "retain", _up_to_the_gap),)
A07 = ((Appender, "_copy", _not_again),)

BUGS: dict[str, tuple[str, tuple[tuple[ModuleType | type, str, _Any], ...]]] = {
    "A01": ("retention deletes archived files also behind one that is not archived", A01),
    "A02": ("a journal begun anew is taken for the continuation of the archived one", A02),
    "A03": ("a copy in the archive is not read back", A03),
    "A04": ("the store forgets records that are not flushed", A04),
    "A05": ("the name of a new segment is not flushed", A05),
    "A06": ("retention deletes segments up to one that is not archived", A06),
    "A07": ("records that a failed flush has cut off are not copied again", A07),
}
