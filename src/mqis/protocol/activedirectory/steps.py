"""Plans: the LDAP operations of one change in order, and what has to be read before.

Operations of a plan are no transaction. They are ordered so that a plan which was interrupted can
be made and run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mqis.protocol.activedirectory.row import AttributeRow, NameReference
from mqis.protocol.activedirectory.rows import rows_of
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, EntryChange, ModifyEntry
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import Value

NO_SUCH_OBJECT = 32
ENTRY_ALREADY_EXISTS = 68
#: An attribute has other values than those that were read: noSuchAttribute for one to delete, and
#: for one to add constraintViolation or attributeOrValueExists, because another is there.
OTHER_VALUES = frozenset({16, 19, 20})


@dataclass(frozen=True, slots=True)
class PlanStep:
    """``accepted``: result codes beside success after which the plan goes on.

    ``conflicts``: codes by which the directory says that the entry has changed since it was read.
    """

    change: EntryChange
    accepted: frozenset[int] = frozenset()
    conflicts: frozenset[int] = frozenset()


def needed_right(change: EntryChange) -> str:
    """The right that an account needs for a change (5.1), for a log."""
    match change:
        case AddEntry():
            kinds = [value.decode(errors="replace") for value in change.values("objectClass")]
            above = DistinguishedName.parse(change.name).parent
            return f"to create {kinds[-1] if kinds else 'an'} entries below {above}"
        case ModifyEntry():
            names = [each.attribute for each in change.changes]
            if names == ["nTSecurityDescriptor"]:
                return "to change permissions (WRITE_DAC, WRITE_OWNER)"
            return f"to write {', '.join(names)}"
        case DeleteEntry():
            what = "this entry with all below it" if change.tree else "this entry"
            return f"to delete {what}"
    return "to rename this entry"


@dataclass(frozen=True, slots=True)
class PlanNeeds:
    """What a plan has to know."""

    #: The computer to search by ``sAMAccountName`` (NAME and a dollar sign) or ``dNSHostName``.
    computer: str = ""
    #: Identifiers of sites and machines whose names to read.
    names: frozenset[Guid] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The answers. A name that was not found is left out of ``references``."""

    computer: LdapEntry | None = None
    references: References = field(default_factory=References)


def references_in(object_type: ObjectType, properties: Properties) -> frozenset[Guid]:
    """The identifiers in properties that are written as names."""
    found: set[Guid] = set()
    for row in rows_of(object_type):
        if row.reference and row.id in properties:
            found |= set(_guids(properties[row.id].value))
    return frozenset(found)


def attributes_of(
    object_type: ObjectType, properties: Properties, use: Use, references: References
) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    """Yields the attributes that given properties become, each once; no values: it is cleared."""
    written: set[str] = set()
    for row in rows_of(object_type):
        given = properties.get(row.id)
        if given is None or not row.uses & use or row.attribute in written:
            continue
        written.add(row.attribute)
        yield row.attribute, _encoded(row, given.value, references)


def _encoded(row: AttributeRow, value: Value, references: References) -> tuple[bytes, ...]:
    if row.reference:
        found = [references.names.get(guid) for guid in _guids(value)]
        if row.reference is NameReference.ONE and None in found:
            raise invalid(f"{row.id.name}: no site with that identifier was found")
        return tuple(str(name).encode() for name in found if name is not None)
    try:
        return row.encode(value)
    except ValueError as error:
        raise invalid(f"{row.id.name}: {error}") from error


def _guids(value: Value) -> tuple[Guid, ...]:
    if isinstance(value, Guid):
        return (value,)
    return tuple(v for v in value if isinstance(v, Guid)) if isinstance(value, tuple) else ()


def invalid(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, detail)


def missing(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, detail)


def not_found(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, detail)


def value_in(properties: Properties, propid: int) -> Value:
    found = properties.get(propid)
    return None if found is None else found.value


def with_values(
    attributes: Iterable[tuple[str, tuple[bytes, ...]]],
) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The attributes of an add: a directory refuses an empty one."""
    return tuple((name, values) for name, values in attributes if values)
