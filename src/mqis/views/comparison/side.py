"""One side of a comparison: the objects of a directory in the order of exports, from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mqis.config.stores import open_store, without_passwords
from mqis.files import system_reason
from mqis.protocol.directory.export_format import ORDER, ExportError
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import View
from mqis.storage.journal.past import PastMoment, past_directory
from mqis.views.presentation.rendering import REFERENCES
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

_NAMED = frozenset(REFERENCES.values())


@dataclass(frozen=True, slots=True)
class DirectorySide:
    """The directory of one side; ``objects`` can be read once."""

    label: str
    objects: Iterator[DirectoryObject]
    #: The stored properties that this source does not tell.
    hidden: frozenset[int] = frozenset()
    #: Remarks for the reader of the comparison.
    notes: tuple[str, ...] = ()


class SideNames:
    """The names of a side's objects that others refer to, collected while they pass.

    They are complete when all objects have passed: links come before the machines that they name.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[ObjectType, bytes], str] = {}

    def collected(self, objects: Iterator[DirectoryObject]) -> Iterator[DirectoryObject]:
        for obj in objects:
            if obj.type in _NAMED and obj.path is not None:
                self._names[obj.type, obj.id.raw] = obj.path
            yield obj

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        return self._names.get((object_type, id.raw))

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        """Finds an object by its exact name; comparisons do not need it."""
        for (kind, raw), known in self._names.items():
            if kind is object_type and known == name:
                return Guid(raw)
        return None


@contextmanager
def stored_side(url: str, label: str = "") -> Iterator[DirectorySide]:
    """Opens a store; a server may use it meanwhile. ``label`` names it instead of the URL."""
    with closing(open_store(url)) as store, store.read() as view:
        yield DirectorySide(label or without_passwords(url), objects_in_order(view))


def objects_in_order(view: View) -> Iterator[DirectoryObject]:
    """Yields all objects in the order of exports."""
    for object_type in ORDER:
        yield from view.objects(object_type)


@contextmanager
def past_side(directory: Path, moment: PastMoment) -> Iterator[DirectorySide]:
    """Rebuilds the directory that the server held then."""
    store, lsn = past_directory(directory, moment)
    label = f"{directory}@{moment.text}" if moment.text else str(directory)
    with store.read() as view:
        yield DirectorySide(label, objects_in_order(view), notes=(f"{label}: record {lsn}",))


@contextmanager
def exported_side(path: Path, warn: Callable[[str], None]) -> Iterator[DirectorySide]:
    """Opens an export; its lines are read, and checked, while the objects are.

    ``warn`` is called behind the last line if the file is not as mqis wrote it.
    """
    try:
        with path.open("rb") as file:
            yield DirectorySide(str(path), _located(_objects(file, path, warn), str(path)))
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error


def _located(objects: Iterator[DirectoryObject], source: str) -> Iterator[DirectoryObject]:
    try:
        yield from objects
    except ExportError as error:
        raise ExportError(error.reason, error.line, error.key, source) from error


def _objects(file: BinaryIO, path: Path, warn: Callable[[str], None]) -> Iterator[DirectoryObject]:
    lines = ExportLines(file)
    yield from lines.objects(lines.header())
    if lines.doubt:
        warn(f"{path}: it was {lines.doubt}")
