"""Entries as properties and objects (MS-MQDSSM 3.1.6.3, 3.1.6.10, 3.1.6.11)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.row import AttributeRow
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS, GIVEN_NAMES, KEPT, rows_of
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber

#: Attributes that a dump often lacks, and that an account may not be allowed to read: an import
#: leaves such a property out, instead of refusing the entry.
_OFTEN_HIDDEN: Final = frozenset(
    {"ntsecuritydescriptor", "whencreated", "whenchanged", "parentguid"}
)
_NEEDED: Final = {
    propid: row.attribute
    for propid, row in ATTRIBUTE_ROWS.items()
    if row.attributes and row.attribute.lower() in _OFTEN_HIDDEN
}
#: Asked for with every entry.
ALWAYS = ("objectClass", "objectGUID", "distinguishedName")


@cache
def kept_of(object_type: ObjectType) -> tuple[PropId, ...]:
    """The properties of ``KEPT`` that objects of a type have."""
    return tuple(row.id for row in rows_of(object_type) if row.id in KEPT)


@cache
def shown_of(object_type: ObjectType) -> tuple[PropId, ...]:
    """Those, and the names that Active Directory gives: what a pass-through server shows."""
    given = tuple(row.id for row in rows_of(object_type) if row.id in GIVEN_NAMES)
    return kept_of(object_type) + given


def columns_of(propids: Iterable[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns what to ask of the object's entry and of its computer's, each name once.

    Descriptors are asked for by name: ``*`` never brings one (E-MQDSSM-02).
    """
    own, computer = dict.fromkeys(ALWAYS), dict[str, None]()
    for propid in propids:
        row = ATTRIBUTE_ROWS[propid]
        own |= dict.fromkeys(row.attributes)
        computer |= dict.fromkeys(row.computer_attributes)
    return tuple(own), tuple(computer)


def shown_in(entry: LdapEntry, propids: Iterable[PropId]) -> tuple[PropId, ...]:
    """Those of the properties whose attributes are not hidden: these are not made up."""
    return tuple(
        propid for propid in propids if propid not in _NEEDED or entry.values(_NEEDED[propid])
    )


def check_class(entry: LdapEntry, object_type: ObjectType) -> None:
    """Refuses an entry of another class, which would read as an object full of defaults."""
    if not entry.is_of(LDAP_CLASSES[object_type]):
        raise DirectoryError(
            HResult.MQDS_OBJECT_NOT_FOUND, f"{entry.name} is not a {object_type.label}"
        )


def read_properties(
    view: EntryView,
    object_type: ObjectType,
    propids: Iterable[int],
    unfit: list[BadAttribute] | None = None,
) -> dict[int, PropVariant]:
    """Returns those of the properties that have a value.

    ``BadAttribute`` (a ``ProtocolError``) if a value does not fit or one that is needed is missing.
    With ``unfit``, a value that does not fit goes there, and the object has the default instead:
    an object is not lost for a value that it can do without.
    """
    check_class(view.entry, object_type)
    found: dict[int, PropVariant] = {}
    for propid in propids:
        row = ATTRIBUTE_ROWS[propid]
        value = row.value(view) if unfit is None else _value_or_default(row, view, unfit)
        if value is not None:
            found[propid] = value
    return found


def _value_or_default(
    row: AttributeRow, view: EntryView, unfit: list[BadAttribute]
) -> PropVariant | None:
    try:
        value = row.value(view)
    except BadAttribute as error:
        instead = default_of(row.id)
        if instead is None:
            raise
        unfit.append(error)
        return instead
    remark = row.remark(view)
    if remark:
        unfit.append(BadAttribute(view.entry.name, row.attribute, remark))
    return value


def default_of(propid: int) -> PropVariant | None:
    """The value of a property whose attribute says nothing; None if an object needs it."""
    row = ATTRIBUTE_ROWS[propid]
    value = row.instead if row.absent is None else row.absent
    return None if value is None else prop(propid, value)


def read_object(
    view: EntryView,
    object_type: ObjectType,
    partition: Guid,
    propids: Iterable[int],
    unfit: list[BadAttribute] | None = None,
) -> DirectoryObject:
    """Returns an entry as an object with these properties; a store of our own numbers it anew."""
    properties = read_properties(view, object_type, propids, unfit)
    guid = view.entry.guid
    if guid is None:
        raise DirectoryError(
            HResult.MQ_ERROR_DS_ERROR, f"{view.entry.name} was read without its objectGUID"
        )
    return DirectoryObject(object_type, guid, partition, SequenceNumber.MIN, properties)
