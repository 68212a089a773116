"""Exports and imports whole directories (the format: ``protocol.directory.export``).

An import is one transaction: all of the file, or nothing. There are two kinds.

*Create*, the default, adds the file's objects to whatever the store holds, as if they had been
created here. Identifiers, names, properties and times stay; partitions follow from the sites, and
numbers are new. Tombstones are skipped: they belong to another history. The enterprise object is
created if there is none, and skipped if it exists; a file of another enterprise is refused, and so
is any other object that exists already. If the store is that of a server that keeps a journal, each
object gets a journal record, and goes only into a partition that the server decides about.

*Restore* needs an empty store and makes it equal to the exported one: numbers, partitions and
tombstones included. Exporting it again gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from time import time, time_ns
from typing import BinaryIO

from mqis.files import output_file, system_reason
from mqis.protocol.directory.export_format import (
    ORDER,
    ExportError,
    ExportHeader,
    check_against_catalogue,
    format_entry,
    format_header,
    parse_entry,
    sealed,
)
from mqis.protocol.directory.export_lines import exported_lines, remember_server
from mqis.protocol.directory.export_reading import ExportLines
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    DeletedObject,
    DirectoryObject,
    name_key,
)
from mqis.protocol.directory.ownchange import NotAuthority, OwnChange
from mqis.protocol.directory.ownership import authority, enterprise
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Change, NumberedOutbox, Store, Transaction, View
from mqis.runtime.entropy import SystemEntropy
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber

#: (done, total): lines for an export, bytes for an import; total 0 if nobody knows it.
Progress = Callable[[int, int], None]

_LINES_A_WRITE = 500


def silent(_done: int, _total: int) -> None: ...


# --- export ---------------------------------------------------------------------------------------


def export_store(store: Store, out: BinaryIO, progress: Progress = silent) -> int:
    """Writes the store as one view shows it; returns the number of objects and tombstones."""
    with store.read() as view:
        total, lines = exported_lines(view)
        done = 0
        while batch := list(islice(lines, _LINES_A_WRITE)):
            out.write(("\n".join(batch) + "\n").encode("ascii"))
            done += len(batch)
            progress(min(done, total), total)
    return total


def export_objects(objects: Iterable[DirectoryObject], out: BinaryIO) -> int:
    """Writes objects that a server told, in the order of exports; returns their number.

    There are no partitions in the first line, because a server tells no sequence numbers, and no
    server: it does not tell which one it is.
    """
    held = list(objects)
    names = (obj.path for obj in held if obj.type is ObjectType.ENTERPRISE)
    header = ExportHeader(next(names, None), (), len(held) + 1)
    for line in sealed(chain([format_header(header)], map(format_entry, held))):
        out.write(f"{line}\n".encode("ascii"))
    return len(held)


def export_file(store: Store, path: Path, progress: Progress = silent) -> int:
    """Exports into a file, which is replaced only when the export is complete."""
    return write_export(path, lambda out: export_store(store, out, progress))


def write_export(path: Path, write: Callable[[BinaryIO], int]) -> int:
    """Calls ``write`` with a file, which takes its place only when it is complete."""
    try:
        with output_file(path) as out:
            return write(out)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {system_reason(error)}") from error


# --- import ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class ImportResult:
    """The result of an import."""

    objects: Counter[ObjectType] = field(default_factory=Counter)
    tombstones: int = 0
    #: Lines that were read and have no effect: tombstones, an existing enterprise.
    skipped: int = 0
    #: Those of them that are tombstones.
    skipped_tombstones: int = 0
    #: The reason to doubt that the file is as mqis wrote it; "": none.
    doubt: str = ""


def import_file(
    store: Store, path: Path, *, restore: bool = False, progress: Progress = silent
) -> ImportResult:
    """Imports all of the file or nothing; raises ``ExportError`` with file, line and key."""
    lines: ExportLines | None = None
    try:
        with path.open("rb") as file, store.write() as tx:
            lines = ExportLines(file, ReadBytes(progress, path.stat().st_size))
            header = lines.header()
            take = _Restore(tx, header) if restore else _CreateOnce(tx, header)
            for number, text in lines:
                take.entry(parse_entry(text, number), number)
            lines.expect(header)
            take.finish()
            take.result.doubt = lines.doubt
    except (ExportError, DirectoryError) as error:
        raise _located(error, str(path), lines.number if lines else 0) from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error
    return take.result


def _located(error: ExportError | DirectoryError, source: str, line: int) -> ExportError:
    if isinstance(error, ExportError):
        return ExportError(error.reason, error.line, error.key, source)
    return ExportError(str(error), line, source=source)


class ReadBytes:
    """The progress of an import: bytes read so far, told every so many lines."""

    def __init__(self, progress: Progress, total: int, lines: int = _LINES_A_WRITE) -> None:
        self._progress = progress
        self._total = total
        self._lines_a_report = lines
        self._done = self._lines = 0

    def __call__(self, size: int) -> None:
        self._done += size
        self._lines += 1
        if self._lines % self._lines_a_report == 0 or self._done == self._total:
            self._progress(self._done, self._total)


class _Seen:
    """The objects read so far, with their lines, so that a duplicate can name the first."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._lines: dict[tuple[object, ...], int] = {}

    def living(self, obj: DirectoryObject, line: int) -> None:
        label, raw, path = obj.type.label, obj.id.raw, obj.path
        grave = "deleted", raw, obj.partition.raw
        self._refuse(grave, line, "id", f"the tombstone of {label} {obj.id}")
        self._add((obj.type, raw), line, "id", f"{label} {obj.id}")
        if path is not None:
            self._add((obj.type, name_key(path)), line, "path", f"{label} {path!r}")

    def dead(self, tombstone: DeletedObject, line: int) -> None:
        id_, partition = tombstone.id, tombstone.partition
        for object_type in ORDER:
            if (object_type, id_.raw) in self._lines:
                living = self._view.get(object_type, id_)
                if living is not None and living.partition == partition:
                    self._refuse((object_type, id_.raw), line, "id", f"{object_type.label} {id_}")
        self._add(("deleted", id_.raw, partition.raw), line, "id", f"the tombstone of {id_}")

    def number(self, entry: Change, line: int) -> None:
        what = f"number {entry.seq} of partition {entry.partition}"
        self._add((entry.partition.raw, entry.seq.value), line, "seq", what)

    def _add(self, identity: tuple[object, ...], line: int, key: str, what: str) -> None:
        self._refuse(identity, line, key, what)
        self._lines[identity] = line

    def _refuse(self, identity: tuple[object, ...], line: int, key: str, what: str) -> None:
        first = self._lines.get(identity)
        if first is not None:
            raise ExportError(f"{what} is on line {first} already", line, key)


class CreatingImport:
    """Creates the objects through the directory's events, with new numbers."""

    def __init__(self, tx: Transaction, header: ExportHeader) -> None:
        self.result = ImportResult()
        self._tx = tx
        served = is_journaled(tx)
        self._events = DirectoryEvents(
            tx,
            int(time()),
            SystemEntropy(),
            owns=self._owns if served else None,
            observe=self._record if served else None,
        )
        self._root = enterprise(tx)
        if self._root is not None and header.enterprise is not None:
            self._expect_name(header.enterprise, 1, "enterprise")

    def _owns(self, partition: Guid) -> bool:
        # A store without a server does not wait for the modules of replication.
        from mqis.protocol.replication.number_recovery import has_served  # noqa: PLC0415

        return has_served(self._tx, partition)

    def _record(self, change: OwnChange) -> None:
        """Writes the journal record that the server would write; it copies it when it starts."""
        from mqis.protocol.replication.outgoing_changes import unsent_record  # noqa: PLC0415 -- as above

        self._tx.append(unsent_record(change, time_ns() // 1000))

    def _expect_name(self, name: str, line: int, key: str) -> None:
        assert self._root is not None
        here = self._root.path or ""
        if name_key(name) != name_key(here):
            raise ExportError(f"{name!r} is not {here!r}, the enterprise of the store", line, key)

    def entry(self, entry: Change, line: int) -> None:
        if isinstance(entry, DeletedObject):
            self.result.skipped += 1
            self.result.skipped_tombstones += 1
            return
        check_against_catalogue(entry, line)
        if entry.type is ObjectType.ENTERPRISE and self._root is not None:
            self._expect_name(entry.path or "", line, "path")
            if entry.id != self._root.id:
                here = f"the store's enterprise {self._root.path!r} is {self._root.id}"
                raise ExportError(here, line, "id")
            self.result.skipped += 1
            return
        created = self._created(entry, line)
        self.result.objects[entry.type] += 1
        if entry.type is ObjectType.ENTERPRISE:
            self._root = created

    def _created(self, entry: DirectoryObject, line: int) -> DirectoryObject:
        try:
            return self._events.create_directory_object(entry.type, _as_created(entry))
        except NotAuthority as error:
            partition = error.change.obj.partition
            owner = authority(partition, self._tx) or "another server"
            raise ExportError(
                f"{owner} decides about partition {partition}, in which this {entry.type.label} "
                "would be: a server of an enterprise imports only into its own partitions",
                line,
                "partition",
            ) from None

    def finish(self) -> None:
        """Sets the owners of partitions that were created before their site or enterprise."""
        for partition in self._tx.partitions():
            if not partition.owner:
                owner = authority(partition.id, self._tx) or ""
                self._tx.put_partition(replace(partition, owner=owner))


class _CreateOnce(CreatingImport):
    """Creates the objects of a file, and refuses a line that stands there twice."""

    def __init__(self, tx: Transaction, header: ExportHeader) -> None:
        super().__init__(tx, header)
        self._seen = _Seen(tx)

    def entry(self, entry: Change, line: int) -> None:
        if isinstance(entry, DeletedObject):
            self._seen.dead(entry, line)
        else:
            self._seen.living(entry, line)
        super().entry(entry, line)


def is_journaled(view: View) -> bool:
    """Returns whether the store's server has written records, so that each change needs one."""
    return isinstance(view, NumberedOutbox) and view.last_lsn() > 0


def _as_created(obj: DirectoryObject) -> dict[int, PropVariant]:
    """The properties for a create event: the stored ones and the identifier."""
    identifier = IDENTIFIER_PROPERTY[obj.type]
    return {**obj.properties, identifier: prop(identifier, obj.id)}


class _Restore:
    """Restores the objects with their numbers."""

    def __init__(self, tx: Transaction, header: ExportHeader) -> None:
        self.result = ImportResult()
        self._tx = tx
        self._seen = _Seen(tx)
        self._last: dict[Guid, SequenceNumber] = {}
        if tx.partitions() or any(tx.count(object_type) for object_type in ObjectType):
            raise StorageError("the store is not empty; --restore needs a new one")
        if header.server is not None:
            remember_server(tx, header.server)
        for partition in header.partitions:
            tx.put_partition(partition)
            self._last[partition.id] = partition.last_seq

    def entry(self, entry: Change, line: int) -> None:
        self._check_number(entry, line)
        if isinstance(entry, DeletedObject):
            self._seen.dead(entry, line)
            self._tx.bury(entry)
            self.result.tombstones += 1
            return
        check_against_catalogue(entry, line)
        self._seen.living(entry, line)
        self._tx.insert(entry)
        self.result.objects[entry.type] += 1

    def _check_number(self, entry: Change, line: int) -> None:
        last = self._last.get(entry.partition)
        if last is None:
            raise ExportError(f"{entry.partition} is not a partition of line 1", line, "partition")
        if not SequenceNumber.MIN < entry.seq <= last:
            reason = f"{entry.seq} is not in 1 to {last}, the last of its partition in line 1"
            raise ExportError(reason, line, "seq")
        self._seen.number(entry, line)

    def finish(self) -> None: ...
