"""Imports LDIF files, as ``ldapsearch`` and ``ldifde`` write them: all of them, or nothing.

The files are read once, in whatever order their entries stand. What is read goes into a spool on
disk; only names, and what links and gates need, stay in memory. Then the store takes the objects
in the order in which they refer to one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.spool import EntrySpool
from mqis.admin.activedirectory.taking import EstateResult, EstateTaker
from mqis.admin.transfer import Progress, ReadBytes, silent
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.activedirectory.importing import (
    ImportSources,
    gates_of_sites,
    readable_link,
    type_of,
)
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.export_format import BYTE_ORDER_MARK
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import MAXIMUM_LINE, LdifError, numbered_records
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType

NO_COMPUTER = "machines stand below a computer that is not in the file: no signing keys"
NO_ENTERPRISE = "the files have no CN=MsmqServices: take the configuration partition along as well"

#: Whatever an object refers to comes before it; the computers of machines are no objects.
_ORDER = (
    ObjectType.ENTERPRISE,
    ObjectType.SITE,
    ObjectType.ROUTINGLINK,
    ObjectType.USER,
    ObjectType.MACHINE,
    ObjectType.QUEUE,
)
#: The attributes of computers that machines need.
_COMPUTER_ATTRIBUTES = ("dNSHostName", "mSMQSignCertificates", "servicePrincipalName")
_LINES_A_REPORT = 10_000
_SUFFIXES = (".ldif", ".ldf")
_BEGINNINGS = (b"dn:", b"version:", b"#", BYTE_ORDER_MARK, b"\xff\xfe")


def is_ldif(path: Path) -> bool:
    """Returns whether a file is LDIF, by its name or its first line."""
    if path.suffix.lower() in _SUFFIXES:
        return True
    try:
        with path.open("rb") as file:
            begin = file.read(16).lower()
    except OSError:
        return False
    # An export may begin with a byte order mark as well.
    is_export = begin.removeprefix(BYTE_ORDER_MARK).startswith(b"{")
    return begin.startswith(_BEGINNINGS) and not is_export


def import_ldif(store: Store, paths: Sequence[Path], progress: Progress = silent) -> EstateResult:
    """Imports all files or nothing; ``LdifError`` with file, line and reason."""
    result = EstateResult()
    with EntrySpool() as spool:
        dump = LdifDump(spool, result.notes)
        total = sum(_size(path) for path in paths)
        bar = ReadBytes(progress, total, _LINES_A_REPORT)
        for path in paths:
            dump.read(path, bar)
        with store.write() as tx:
            taker = EstateTaker(tx, result.notes)
            dump.give(taker)
            result.imported = taker.finish()
    return result


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error


class LdifDump:
    """The entries of LDIF files, sorted by type."""

    def __init__(self, spool: EntrySpool, notes: TransferNotes) -> None:
        self._spool = spool
        self._notes = notes
        self._names: dict[Guid, DistinguishedName] = {}
        self._sites_of: dict[Guid, tuple[Guid, ...]] = {}
        self._computers: dict[str, LdapEntry] = {}
        self._root = DistinguishedName()
        self._has_enterprise = False

    # --- reading ----------------------------------------------------------------------------------

    def read(self, path: Path, taken: Callable[[int], None]) -> None:
        """Reads one file to its end."""
        try:
            with path.open("rb") as file:
                lines = _lines(file, taken)
                for line, record in numbered_records(lines, str(path)):
                    if not isinstance(record, AddEntry):
                        raise LdifError(
                            str(path), line, "a change, not an entry: import what ldapsearch shows"
                        )
                    self._sort(LdapEntry(record.name, record.attributes), str(path), line)
        except OSError as error:
            raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error

    def _sort(self, entry: LdapEntry, source: str, line: int) -> None:
        try:
            object_type = type_of(entry)
            name = entry.distinguished_name
        except (BadAttribute, WireError) as error:
            raise LdifError(source, line, str(error)) from error
        if object_type is not None:
            self._keep(entry, object_type, name)
        elif entry.is_of("computer"):
            kept = ((a, entry.values(a)) for a in _COMPUTER_ATTRIBUTES if entry.values(a))
            self._computers[_key(name)] = LdapEntry(entry.name, tuple(kept))

    def _keep(self, entry: LdapEntry, object_type: ObjectType, name: DistinguishedName) -> None:
        self._spool.add(object_type, entry)
        guid = entry.guid
        if guid is not None and object_type in (ObjectType.SITE, ObjectType.MACHINE):
            self._names[guid] = name
            sites = entry.values("mSMQSites")
            self._sites_of[guid] = tuple(Guid(value) for value in sites if len(value) == 16)
        if object_type is ObjectType.ENTERPRISE:
            self._has_enterprise = True
        if not self._root and object_type is not ObjectType.USER:
            self._root = _domain(name)

    # --- giving -----------------------------------------------------------------------------------

    def give(self, taker: EstateTaker) -> None:
        """Gives all objects to a store."""
        if not self._has_enterprise:
            self._notes.tell(NO_ENTERPRISE, str(self._root))
        forest = Forest(self._root.child("CN", "Configuration"), self._root, self._root)
        sources = ImportSources(forest, References(self._names))
        sources = ImportSources(forest, sources.references, self._gates(sources))
        for object_type in _ORDER:
            for entry in self._spool.entries(object_type):
                computer = self._computer(entry) if object_type is ObjectType.MACHINE else None
                taker.entry(entry, object_type, sources, computer)

    def _gates(self, sources: ImportSources) -> dict[Guid, tuple[Guid, ...]]:
        entries = self._spool.entries(ObjectType.ROUTINGLINK)
        links = [link for entry in entries if (link := readable_link(entry, sources))]
        return gates_of_sites(links, self._sites_of)

    def _computer(self, machine: LdapEntry) -> LdapEntry | None:
        found = self._computers.get(_key(machine.distinguished_name.parent))
        if found is None:
            self._notes.tell(NO_COMPUTER, machine.name)
        return found


def _lines(file: BinaryIO, taken: Callable[[int], None]) -> Iterator[bytes]:
    """The lines of a file; a longer one than the reader takes comes in pieces, which it refuses."""
    while line := file.readline(MAXIMUM_LINE + 1):
        taken(len(line))
        yield line


def _key(name: DistinguishedName) -> str:
    return str(name).casefold()


def _domain(name: DistinguishedName) -> DistinguishedName:
    """The DC parts at the end of a name."""
    at = len(name.parts)
    while at and name.parts[at - 1].attribute.upper() == "DC":
        at -= 1
    return DistinguishedName(name.parts[at:])
