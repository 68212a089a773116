"""Writes a store as LDIF that an Active Directory takes, and tells what is lost on the way.

Every record adds an entry, in the order in which the entries refer to one another:

    mqis export --ldif estate.ldif --base DC=corp,DC=example
    ldbadd --relax -H sam.ldb estate.ldif

With identifiers the file is for a database that no server runs on; a running domain controller
gives new ones and refuses the file. ``mqis export ldaps://DC`` loads into that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.transfer import Progress, silent
from mqis.protocol.activedirectory.exporting import (
    ExportPlaces,
    computer_entry,
    exported_entry,
    is_worth_telling,
    routing_servers,
)
from mqis.protocol.activedirectory.forest import Forest
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import View
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_RECORDS_A_WRITE = 500


@dataclass(frozen=True, slots=True)
class LdifOptions:
    """``base`` is the forest's root domain; ``computers`` the container of computer accounts."""

    base: str = ""
    computers: str = ""
    #: Write objectGUID, and the sites.
    identifiers: bool = True
    #: Write computer accounts.
    accounts: bool = True


def export_ldif(
    view: View,
    out: BinaryIO,
    options: LdifOptions,
    notes: TransferNotes,
    progress: Progress = silent,
) -> int:
    """Writes the objects of a view as LDIF; returns the number of records."""
    export = LdifExport(view, places_of(view, options), notes, options)
    done = 0
    for text in write_ldif(export.records(), version=False):
        out.write(text.encode("ascii"))
        done += 1
        if done % _RECORDS_A_WRITE == 0:
            progress(done, 0)
    return done


def places_of(view: View, options: LdifOptions) -> ExportPlaces:
    """The names of all sites and machines below the base."""
    root = _parsed("--base", options.base or _base_of(view))
    forest = Forest(root.child("CN", "Configuration"), root, root)
    computers = root.child("CN", "Computers")
    if options.computers:
        computers = _parsed("--computers", options.computers)
    places = ExportPlaces(forest, computers, identifiers=options.identifiers)
    names: dict[Guid, DistinguishedName] = {}
    gates: dict[Guid, tuple[Guid, ...]] = {}
    for site in view.objects(ObjectType.SITE):
        names[site.id] = forest.site(site.path or "")
        gates[site.id] = guids_of(site.value(PropId.S_GATES))
    for machine in view.objects(ObjectType.MACHINE):
        names[machine.id] = places.machine(machine.path or "")
    return replace(places, names=names, gates=gates)


def _base_of(view: View) -> str:
    root = enterprise(view)
    name = "" if root is None else root.path or ""
    if not name.upper().startswith("DC="):
        raise StorageError(
            f"the enterprise {name!r} is not called like a domain: name the domain of the "
            "Active Directory with --base, such as --base DC=corp,DC=example"
        )
    return name


def _parsed(option: str, text: str) -> DistinguishedName:
    try:
        found = DistinguishedName.parse(text)
    except WireError as error:
        raise StorageError(f"{option}: {text!r} is not a distinguished name: {error}") from error
    if not found.parts or found.parts[-1].attribute.upper() != "DC":
        raise StorageError(f"{option}: {text!r} does not end in a domain (DC=corp,DC=example)")
    return found


class LdifExport:
    """The records of one export."""

    def __init__(
        self, view: View, places: ExportPlaces, notes: TransferNotes, options: LdifOptions
    ) -> None:
        self._view = view
        self._places = places
        self._notes = notes
        self._options = options
        self._written: set[str] = set()

    def records(self) -> Iterator[AddEntry]:
        """Yields all records, each name once: servers of a site share their container."""
        for record in self._all():
            key = record.name.casefold()
            if key not in self._written:
                self._remember(record, key)
                yield record

    def _remember(self, record: AddEntry, key: str) -> None:
        """Queues are many, and no two records share the name of one."""
        if record.values("objectClass") != (b"mSMQQueue",):
            self._written.add(key)

    def _all(self) -> Iterator[AddEntry]:
        self._tell_left_out()
        view, machines = self._view, self._machines
        if self._options.identifiers:
            yield from self._entries(view.objects(ObjectType.SITE))
        if self._options.accounts:
            for machine in view.objects(ObjectType.MACHINE):
                yield computer_entry(machine, self._places)
        yield from self._entries(machines(named=False))
        yield from self._entries(machines(named=True))
        yield from self._entries(view.objects(ObjectType.ROUTINGLINK))
        yield from self._entries(view.objects(ObjectType.QUEUE))

    def _machines(self, *, named: bool) -> Iterator[DirectoryObject]:
        """Machines that name routing servers come after those that do not."""
        for machine in self._view.objects(ObjectType.MACHINE):
            if bool(routing_servers(machine)) is named:
                yield machine

    def _entries(self, objects: Iterable[DirectoryObject]) -> Iterator[AddEntry]:
        for obj in objects:
            try:
                made = exported_entry(obj, self._places, with_computer=self._options.accounts)
            except (DirectoryError, WireError) as error:
                self._notes.tell(f"left out ({obj.type.label}): {error}", obj.path or str(obj.id))
                continue
            for propid in made.lost:
                if is_worth_telling(propid):
                    self._notes.tell(
                        f"PROPID_{propid.name} is not kept, or not exactly", obj.path or str(obj.id)
                    )
            yield from made.records

    def _tell_left_out(self) -> None:
        tell, view = self._notes.tell, self._view
        for root in view.objects(ObjectType.ENTERPRISE):
            tell("the enterprise is the Active Directory's own CN=MsmqServices", root.path or "")
        for user in view.objects(ObjectType.USER):
            tell("certificates belong to users of the domain and are not written", str(user.id))
        for network in view.objects(ObjectType.CN):
            tell("connected networks are sites in an Active Directory", network.path or "")
        if not self._options.identifiers:
            for site in view.objects(ObjectType.SITE):
                tell(
                    "sites are not written: they must have these identifiers already",
                    site.path or "",
                )
