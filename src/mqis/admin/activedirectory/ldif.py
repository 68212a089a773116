"""LDIF files, as ``ldapsearch`` and ``ldifde`` write them, as a directory that is only read.

The files are read once, in whatever order their entries stand. What is read goes into a spool on
disk; only names, and what links and gates need, stay in memory. Then ``EstateReader`` reads it
like a domain controller, in the order in which objects refer to one another.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Final

from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.activedirectory.taking import EstateResult, open_estate, take_estate
from mqis.admin.transfer import ImportResult, Progress, ReadBytes, silent
from mqis.files import system_reason
from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.importing import type_of
from mqis.protocol.activedirectory.view import NameKey
from mqis.protocol.directory.export_format import BYTE_ORDER_MARK
from mqis.protocol.errors import StorageError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ports import Store, Transaction
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, EntryChange, RenameEntry
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.filters import And, Equality
from mqis.wire.ldap.ldif import MAXIMUM_LINE, LdifError, numbered_records
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType

NO_COMPUTER = "machines stand below a computer that is not in the file: no signing keys"
NO_ENTERPRISE = "the files have no CN=MsmqServices: take the configuration partition along as well"

_SIGNING_KEYS = "mSMQSignCertificates"
#: The attributes of computers that machines and queues need.
_COMPUTER_ATTRIBUTES: Final = (
    "sAMAccountName", "dNSHostName", _SIGNING_KEYS, "servicePrincipalName"
)  # fmt: skip
#: The attributes that name other entries.
_NAMES: Final = frozenset(
    {"msmqsite1", "msmqsite2", "msmqsitegates", "msmqoutroutingservers", "msmqinroutingservers"}
)
_TYPES: Final = {
    name.lower().encode(): kind for kind, name in LDAP_CLASSES.items() if kind is not ObjectType.CN
}
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


def dumped_entries(
    path: Path, taken: Callable[[int], None] = lambda _size: None
) -> Iterator[tuple[int, LdapEntry]]:
    """Yields the entries of a file with their lines; ``LdifError`` with file, line and reason."""
    try:
        with path.open("rb") as file:
            for line, record in numbered_records(_lines(file, taken), str(path)):
                if not isinstance(record, AddEntry):
                    raise LdifError(
                        str(path), line, f"{record.name} is a change, not an entry: give what "
                        "ldapsearch shows"
                    )  # fmt: skip
                yield line, LdapEntry(record.name, record.attributes)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error


def _lines(file: BinaryIO, taken: Callable[[int], None]) -> Iterator[bytes]:
    """The lines of a file; a longer one than the reader takes comes in pieces, which it refuses."""
    while line := file.readline(MAXIMUM_LINE + 1):
        taken(len(line))
        yield line


def import_ldif(store: Store, paths: Sequence[Path], progress: Progress = silent) -> EstateResult:
    """Imports all files or nothing; ``LdifError`` with file, line and reason."""
    result = EstateResult()
    with EntrySpool() as spool:
        dump = LdifDirectory(spool, result.notes)
        total = sum(_size(path) for path in paths)
        bar = ReadBytes(progress, total, _LINES_A_REPORT)
        for path in paths:
            dump.take(path, bar)
        with store.write() as tx:
            result.imported = asyncio.run(_taken(dump, tx, result.notes))
    return result


async def _taken(dump: LdifDirectory, tx: Transaction, notes: TransferNotes) -> ImportResult:
    estate = await open_estate([dump], notes)
    return await take_estate(estate, tx, notes, NO_ENTERPRISE)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {system_reason(error)}") from error


class LdifDirectory:
    """The entries of LDIF files, sorted by type: an ``LdapDirectory`` for ``ForestReader``.

    Names of other entries come with the identifiers that the files have for them.
    """

    def __init__(self, spool: EntrySpool, notes: TransferNotes) -> None:
        self._spool = spool
        self._notes = notes
        self._guids: dict[NameKey, Guid] = {}
        self._sites_of: dict[Guid, tuple[bytes, ...]] = {}
        self._computers: dict[NameKey, LdapEntry] = {}
        self._root = DistinguishedName()

    # --- files ------------------------------------------------------------------------------------

    def take(self, path: Path, taken: Callable[[int], None]) -> None:
        """Reads one file to its end."""
        for line, entry in dumped_entries(path, taken):
            try:
                self._sort(entry)
            except (BadAttribute, WireError) as error:
                raise LdifError(str(path), line, str(error)) from error

    def _sort(self, entry: LdapEntry) -> None:
        object_type, name = type_of(entry), entry.distinguished_name
        if object_type is not None:
            self._keep(entry, object_type, name)
        elif entry.is_of("computer"):
            kept = ((a, entry.values(a)) for a in _COMPUTER_ATTRIBUTES if entry.values(a))
            self._computers[name.key] = LdapEntry(entry.name, tuple(kept))

    def _keep(self, entry: LdapEntry, object_type: ObjectType, name: DistinguishedName) -> None:
        self._spool.add(object_type, entry)
        guid = entry.guid
        if guid is not None and object_type in (ObjectType.SITE, ObjectType.MACHINE):
            self._guids[name.key] = guid
            self._sites_of[guid] = entry.values("mSMQSites")
        if not self._root and object_type is not ObjectType.USER:
            self._root = _domain(name)

    # --- what a reader asks -----------------------------------------------------------------------

    async def read(
        self,
        name: str | Guid,
        attributes: Sequence[str] = (),
        controls: Sequence[LdapControl] = (),
    ) -> LdapEntry | None:
        """The root, the sites of a machine, or a computer."""
        if isinstance(name, Guid):
            sites = self._sites_of.get(name)
            return None if sites is None else LdapEntry(str(name), (("mSMQSites", sites),))
        if not name:
            return self._root_entry()
        found = self._computers.get(DistinguishedName.parse(name).key)
        if found is None and _SIGNING_KEYS in attributes:
            self._notes.tell(NO_COMPUTER, name)
        return found

    def _root_entry(self) -> LdapEntry:
        configuration = str(self._root.child("CN", "Configuration"))
        root = str(self._root) or "DC=unknown"
        names = (("configurationNamingContext", configuration), ("rootDomainNamingContext", root))
        rows = (*names, ("defaultNamingContext", root))
        return LdapEntry("", tuple((attribute, (text.encode(),)) for attribute, text in rows))

    async def search(self, query: LdapQuery) -> AsyncGenerator[LdapEntry, None]:
        """All entries of the class that a query asks for; links are asked for by their ends, too,
        but all of them are few."""
        conditions = query.filter.items if isinstance(query.filter, And) else (query.filter,)
        for each in conditions:
            if isinstance(each, Equality) and each.attribute == "objectClass":
                object_type = _TYPES[each.value.lower()]
                for entry in self._spool.entries(object_type):
                    yield self._completed(entry, object_type)

    def _completed(self, entry: LdapEntry, object_type: ObjectType) -> LdapEntry:
        """With identifiers beside names, and what records that add an entry leave out: the cn of
        a site, and the machine of a queue, which a directory works out itself."""
        rows = [
            (name, tuple(map(self._extended, values)) if name.lower() in _NAMES else values)
            for name, values in entry.attributes
        ]
        if object_type is ObjectType.SITE and not entry.values("cn"):
            rows.append(("cn", (entry.distinguished_name.leaf.encode(),)))
        if object_type is ObjectType.QUEUE and not entry.values("parentGUID"):
            machine = self._guids.get(entry.distinguished_name.parent.key)
            rows += [] if machine is None else [("parentGUID", (machine.raw,))]
        return LdapEntry(entry.name, tuple(rows))

    def _extended(self, value: bytes) -> bytes:
        try:
            guid = self._guids.get(DistinguishedName.parse(value.decode()).key)
        except (WireError, UnicodeError):
            return value  # the link is left out for it
        return value if guid is None else b"<GUID=%s>;" % str(guid).encode() + value

    async def apply(
        self, change: EntryChange | RenameEntry, controls: Sequence[LdapControl] = ()
    ) -> None:
        raise LdapError(f"{change.name}: a dump of a directory is only read")

    async def close(self) -> None:
        """Nothing to do: the spool ends with its block."""


def _domain(name: DistinguishedName) -> DistinguishedName:
    """The DC parts at the end of a name."""
    at = len(name.parts)
    while at and name.parts[at - 1].attribute.upper() == "DC":
        at -= 1
    return DistinguishedName(name.parts[at:])


class EntrySpool:
    """Files without names, which vanish with the process; nobody else can write into them."""

    def __init__(self) -> None:
        self._files: dict[ObjectType, IO[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> EntrySpool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, object_type: ObjectType, entry: LdapEntry) -> None:
        file = self._files.get(object_type)
        if file is None:
            file = self._stack.enter_context(TemporaryFile())  # noqa: SIM115
            self._files[object_type] = file
        pickle.dump((entry.name, entry.attributes), file, pickle.HIGHEST_PROTOCOL)

    def entries(self, object_type: ObjectType) -> Iterator[LdapEntry]:
        """Yields the entries of a type in the order in which they came, as often as asked."""
        file = self._files.get(object_type)
        if file is None:
            return
        file.seek(0)
        while True:
            try:
                name, attributes = pickle.load(file)
            except EOFError:
                return
            yield LdapEntry(name, attributes)
