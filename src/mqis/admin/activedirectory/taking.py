"""Takes the objects of an Active Directory into a store of our own: all of them, or nothing.

An entry that cannot become an object is left out and told: in an estate of twenty years there is
always one. Whatever would make the whole store wrong, such as another enterprise, ends the import.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from mqis.admin.activedirectory.notes import TransferNotes
from mqis.admin.transfer import CreatingImport, ImportResult, Progress, silent
from mqis.protocol.activedirectory.importing import (
    as_new,
    check_host,
    gates_of_link,
    is_placed,
    kept_objects,
    with_defaults,
)
from mqis.protocol.directory.export_format import ExportHeader
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.directory.types.computing import guids_of
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.protocol.ldap.ports import LdapDirectory
from mqis.protocol.ports import Transaction
from mqis.runtime.activedirectory.estate import EstateReader
from mqis.runtime.activedirectory.reading import ForestReader, ReadObject
from mqis.wire.guid import Guid
from mqis.wire.hresult import meaning_of
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

WITHOUT_DESCRIPTOR = "objects were read without their permissions (nTSecurityDescriptor)"
WITHOUT_SITE = "machines name no site"
UNKNOWN_SITE = "machines name a site that is not there"
UNKNOWN_GATE = "links name gates that are not there"

_A_REPORT = 500


@dataclass(slots=True)
class EstateResult:
    """The objects that were imported, and the remarks."""

    imported: ImportResult = field(default_factory=ImportResult)
    notes: TransferNotes = field(default_factory=TransferNotes)


async def open_estate(clients: Sequence[LdapDirectory], notes: TransferNotes) -> EstateReader:
    """Opens what is to be imported; what does not fit becomes a remark."""

    def skipped(_type: ObjectType, entry: LdapEntry, error: ProtocolError) -> None:
        reason = f"{error.attribute} {error.reason}" if isinstance(error, BadAttribute) else error
        notes.tell(f"left out: {reason}", entry.plain_name)

    def unfit(_type: ObjectType, entry: LdapEntry, values: Sequence[BadAttribute]) -> None:
        for bad in values:
            notes.tell(f"{bad.attribute} does not fit", entry.plain_name, bad.reason)

    return EstateReader.of(
        [await ForestReader.open(each, skipped, unfit, hidden=True) for each in clients]
    )


async def take_estate(
    estate: EstateReader,
    tx: Transaction,
    notes: TransferNotes,
    without_enterprise: str,
    progress: Progress = silent,
) -> ImportResult:
    """Creates all objects of an estate in one transaction."""
    taker, done = EstateTaker(tx, notes), 0
    async with aclosing(estate.found()) as found:
        async for each in found:
            taker.take(each)
            done += 1
            if done % _A_REPORT == 0:
                progress(done, 0)
    if not taker.has_enterprise:
        notes.tell(without_enterprise, str(estate.first.forest.root))
    return taker.finish()


class EstateTaker:
    """Takes the objects of one estate into one transaction, type by type."""

    def __init__(self, tx: Transaction, notes: TransferNotes) -> None:
        self.has_enterprise = False
        self._tx = tx
        self._create = CreatingImport(tx, ExportHeader(None, ()))
        self._notes = notes

    def take(self, found: ReadObject) -> None:
        """Creates an object, unless the store refuses it."""
        entry = found.entry
        self.has_enterprise |= found.obj.type is ObjectType.ENTERPRISE
        try:
            for obj in kept_objects(found.obj):
                self._make(entry, as_new(obj))
        except DirectoryError as error:
            # The code is the same for many entries, the detail is not.
            reason = f"left out: {meaning_of(error.hresult)}"
            self._notes.tell(reason, entry.plain_name, error.detail)
        else:
            self._remark(kept_objects(found.obj)[0], entry)

    def _make(self, entry: LdapEntry, obj: DirectoryObject) -> None:
        """Creates an object, with defaults instead of values that the store refuses."""
        if obj.type is ObjectType.QUEUE:
            check_host(obj, self._tx)
        try:
            self._create.entry(obj, 0)
        except DirectoryError:
            fitting, unfit = with_defaults(obj)
            if not unfit:
                raise
            for propid in unfit:
                self._notes.tell(f"PROPID_{propid.name} does not fit: left out", entry.plain_name)
            self._create.entry(as_new(fitting), 0)

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
            elif not all(self._is_site(site) for site in guids_of(made.value(PropId.QM_SITE_IDS))):
                tell(UNKNOWN_SITE, entry.plain_name)
        if made.type is ObjectType.ROUTINGLINK:
            gates = {gate for gate in gates_of_link(entry) if self._is_machine(gate)}
            if len(entry.values("mSMQSiteGates")) > len(gates):
                tell(UNKNOWN_GATE, entry.plain_name)

    def _is_site(self, site: Guid) -> bool:
        return self._tx.get(ObjectType.SITE, site) is not None

    def _is_machine(self, gate: Guid) -> bool:
        return self._tx.get(ObjectType.MACHINE, gate) is not None
