"""Takes entries of an Active Directory into a store of our own, and remembers what did not fit.

An entry that cannot become an object is left out and told: in an estate of twenty years there is
always one. Whatever would make the whole store wrong, such as another enterprise, ends the import.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.transfer import CreatingImport, ImportResult
from mqis.protocol.activedirectory.entry import BadAttribute, LdapEntry
from mqis.protocol.activedirectory.importing import (
    ImportSources,
    guids_in,
    imported_object,
    is_placed,
    network_of,
    without_unfit,
)
from mqis.protocol.directory.export_format import ExportHeader
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction
from mqis.wire.guid import Guid
from mqis.wire.hresult import meaning_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

WITHOUT_DESCRIPTOR = "objects were read without their permissions (nTSecurityDescriptor)"
WITHOUT_SITE = "machines name no site"
UNKNOWN_SITE = "machines name a site that is not there"
UNKNOWN_GATE = "links name gates that are not there"


@dataclass(slots=True)
class EstateResult:
    """The objects that were imported, and the remarks."""

    imported: ImportResult = field(default_factory=ImportResult)
    notes: TransferNotes = field(default_factory=TransferNotes)


class EstateTaker:
    """Takes the entries of one estate into one transaction, type by type."""

    def __init__(self, tx: Transaction, notes: TransferNotes) -> None:
        self._tx = tx
        self._create = CreatingImport(tx, ExportHeader(None, ()))
        self._notes = notes

    def entry(
        self,
        entry: LdapEntry,
        object_type: ObjectType,
        sources: ImportSources,
        computer: LdapEntry | None = None,
    ) -> DirectoryObject | None:
        """Creates the object of an entry; None if it was left out."""
        unfit: list[BadAttribute] = []
        try:
            found = imported_object(entry, object_type, sources, computer, unfit)
            made = self._made(entry, found)
            if object_type is ObjectType.SITE:
                self._create.entry(network_of(made), 0)
        except BadAttribute as error:
            self._notes.tell(f"left out: {error.attribute} {error.reason}", entry.plain_name)
            return None
        except DirectoryError as error:
            # The code is the same for many entries, the detail is not.
            reason = f"left out: {meaning_of(error.hresult)}"
            self._notes.tell(reason, entry.plain_name, error.detail)
            return None
        for bad in unfit:
            self._notes.tell(f"{bad.attribute} does not fit", entry.plain_name, bad.reason)
        self._remark(made, entry)
        return made

    def _made(self, entry: LdapEntry, obj: DirectoryObject) -> DirectoryObject:
        """Creates an object, without those of its values that the store refuses."""
        try:
            self._create.entry(obj, 0)
        except DirectoryError:
            fitting, unfit = without_unfit(obj)
            if not unfit:
                raise
            for propid in unfit:
                self._notes.tell(f"PROPID_{propid.name} does not fit: left out", entry.plain_name)
            self._create.entry(fitting, 0)
            return fitting
        return obj

    def finish(self) -> ImportResult:
        self._create.finish()
        return self._create.result

    def _remark(self, made: DirectoryObject, entry: LdapEntry) -> None:
        tell = self._notes.tell
        if made.type in SECURITY_PROPERTY and not entry.values("nTSecurityDescriptor"):
            tell(WITHOUT_DESCRIPTOR, entry.plain_name)
        if made.type is ObjectType.MACHINE:
            if not is_placed(made):
                tell(WITHOUT_SITE, entry.plain_name)
            elif not all(self._is_site(site) for site in guids_in(made.value(PropId.QM_SITE_IDS))):
                tell(UNKNOWN_SITE, entry.plain_name)
        if made.type is ObjectType.ROUTINGLINK:
            named, found = entry.values("mSMQSiteGates"), guids_in(made.value(PropId.L_GATES))
            if len(named) > len(found):
                tell(UNKNOWN_GATE, entry.plain_name)

    def _is_site(self, site: Guid) -> bool:
        return self._tx.get(ObjectType.SITE, site) is not None
