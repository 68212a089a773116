"""Gathers the input of the pipeline from a run directory, whether its servers run or not.

First every store is exported, then every journal is copied: so a journal has all changes that the
exports have. Closed segments never change and are linked, not copied. The result replaces that of
an earlier call at the end, so a failed call leaves the earlier one.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from mqis.admin.transfer import export_file
from mqis.config.errors import NodesError
from mqis.config.nodes import NodePlace, load_nodes
from mqis.config.stores import open_store
from mqis.enterprise.launch import make_run_directory
from mqis.files import make_private_directory, whole_directory
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import NumberedOutbox, Store
from mqis.storage.journal.checking import copied_lsn
from mqis.storage.journal.journal_files import segments, snapshots
from mqis.storage.journal.journal_reader import Segment
from mqis.wire.journal import Torn

#: The directory, in the run directory, of what was gathered.
GATHERED = "gathered"
#: Servers copy records to their journals after at most a second.
_PATIENCE_S = 5.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Gathered:
    enterprise: str
    #: The directory with one export for each server.
    exports: Path
    #: The directory with one directory of segments for each server; None if no server has any.
    journals: Path | None
    servers: tuple[str, ...]
    #: What could not be read, each with the server and the reason.
    problems: tuple[str, ...]


def gather(run: Path) -> Gathered:
    """Writes exports and copies of journals into the run directory.

    A server that cannot be read is a problem; ``NodesError`` if there is nothing but problems.
    """
    nodes = load_nodes(run)
    make_run_directory(run)
    final = run / GATHERED
    try:
        with whole_directory(final, replace=True) as draft:
            exports = draft / "exports"
            problems = [*_exports(nodes.nodes, exports)]
            problems += _journals(nodes.nodes, draft / "journals")
            read = tuple(node.name for node in nodes if _export_of(node, exports).exists())
            if not read:
                raise NodesError(f"{run}: no server's directory can be read: {'; '.join(problems)}")
    except OSError as error:
        raise NodesError(f"{run}: cannot be gathered: {error}") from error
    journals = final / "journals"
    kept = journals if any(journals.glob("*/*.mqj")) else None
    return Gathered(nodes.enterprise, final / "exports", kept, read, tuple(problems))


def _export_of(node: NodePlace, exports: Path) -> Path:
    return exports / f"{node.name}.jsonl"


def _exports(nodes: Sequence[NodePlace], target: Path) -> Iterator[str]:
    """Exports every store; yields the problems."""
    make_private_directory(target)
    for node in nodes:
        try:
            with closing(open_store(node.store)) as store:
                export_file(store, _export_of(node, target))
        except StorageError as error:
            yield f"{node.name}: {error}"


# --- journals -------------------------------------------------------------------------------------


def _journals(nodes: Sequence[NodePlace], target: Path) -> Iterator[str]:
    """Copies every journal; yields the problems."""
    make_private_directory(target)
    for node in nodes:
        try:
            if node.pid is not None:
                _wait_for_copies(node)
            _copy_journal(node, target / node.name)
        except StorageError as error:
            yield f"{node.name}: {error}"


def _wait_for_copies(node: NodePlace) -> None:
    """Waits until the journal has all records that the store has now, at most for a while."""
    with closing(open_store(node.store)) as store:
        wanted = _last_lsn(store)
        until = time.monotonic() + _PATIENCE_S
        while _copied(store) < wanted and time.monotonic() < until:
            time.sleep(_LOOK_S)


def _last_lsn(store: Store) -> int:
    with store.read() as view:
        return view.last_lsn() if isinstance(view, NumberedOutbox) else 0


def _copied(store: Store) -> int:
    with store.read() as view:
        return copied_lsn(view)


def _copy_journal(node: NodePlace, target: Path) -> None:
    source = Path(node.journal)
    if not node.journal or not source.is_dir():
        return
    make_private_directory(target)
    found = segments(source)
    last = max(found, default=0)
    for number, path in found.items():
        if number == last:
            shutil.copyfile(path, target / path.name)
            if node.pid is not None:
                _cut_unfinished(target / path.name)
        else:
            _link(path, target / path.name)
    for path in snapshots(source).values():
        _link(path, target / path.name)


def _link(source: Path, target: Path) -> None:
    """Links a file, or copies it to another file system; retention may have removed it."""
    with suppress(FileNotFoundError):
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(source, target)


def _cut_unfinished(path: Path) -> None:
    """Cuts off the record that the server was writing while its journal was copied."""
    try:
        segment = Segment.load(path)
    except StorageError:  # the server was writing the header
        path.unlink()
        return
    for entry in segment.entries():
        if isinstance(entry, Torn):
            os.truncate(path, entry.offset)
