"""Restrictions of a lookup as conditions of an LDAP filter (3.1.6.4, 3.1.6.15).

Every object that meets the restrictions meets the conditions. The reverse need not hold: the lookup
compares what the properties show once more, because LDAP cannot express every restriction, and
compares some values in its own way. Values go into the filter as octets, so that nothing in them is
a wildcard or a parenthesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.row import AttributeRow, NameReference
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.ldap import Use
from mqis.wire.guid import Guid
from mqis.wire.ldap.filters import (
    And,
    Equality,
    Filter,
    GreaterOrEqual,
    LessOrEqual,
    Not,
    Or,
    Present,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value

#: Longer values are compared afterwards: 128 restrictions still fit into a request (Samba takes
#: searches of 256,000 octets at most).
LONGEST_VALUE: Final = 1024
#: A machine with none of these has no service bits.
_SERVICES: Final[Filter] = Or(
    (
        Equality("mSMQRoutingServices", b"TRUE"),
        Equality("mSMQDsServices", b"TRUE"),
        And((Present("mSMQServiceType"), Not(Equality("mSMQServiceType", b"0")))),
    )
)


def search_filter(object_type: ObjectType, *conditions: Filter) -> Filter:
    """The filter of the entries of a type that meet some conditions."""
    return And((*class_filter(object_type), *conditions))


def class_filter(object_type: ObjectType) -> Iterable[Filter]:
    """The conditions that entries of a type meet."""
    yield Equality("objectClass", LDAP_CLASSES[object_type].encode())
    if object_type is ObjectType.USER:  # a computer is a user by its class
        yield Equality("objectCategory", b"person")


def conditions_of(restrictions: Iterable[Restriction], references: References) -> Iterator[Filter]:
    """Yields the conditions of those restrictions that LDAP can express.

    ``references`` has the names of the entries in ``referred``.
    """
    for restriction in restrictions:
        made = _condition_of(restriction, references)
        if made is not None:
            yield made


def referred(restrictions: Iterable[Restriction]) -> set[Guid]:
    """The identifiers that the directory compares by the names of their entries."""
    return {
        restriction.constant.value
        for restriction in restrictions
        if isinstance(restriction.constant.value, Guid)
        and (row := ATTRIBUTE_ROWS.get(restriction.propid)) is not None
        and row.reference is NameReference.ONE
    }


def _condition_of(restriction: Restriction, references: References) -> Filter | None:
    """The condition of one restriction; None if LDAP cannot express it."""
    if restriction.propid is PropId.QM_SERVICE:
        return None if restriction.holds(0) else _SERVICES
    row, constant = ATTRIBUTE_ROWS.get(restriction.propid), restriction.constant.value
    if row is None:
        return None
    try:
        values = _values(row, constant, references)
    except ValueError:
        return None
    if any(len(value) > LONGEST_VALUE for value in values):
        return None
    compare = _list_condition if isinstance(constant, tuple) else _single_condition
    return compare(row, restriction, values)


def _single_condition(
    row: AttributeRow, restriction: Restriction, values: tuple[bytes, ...]
) -> Filter | None:
    match restriction.relation:
        case Relation.EQ:
            return _with_absent(row, restriction, _equality(row, values))
        case Relation.NE:
            return _inequality(row, restriction, values)
    if row.codec is None or not row.codec.ordered:
        return None
    return _with_absent(row, restriction, _ordered(row.attribute, restriction.relation, values[0]))


def _values(row: AttributeRow, constant: Value, references: References) -> tuple[bytes, ...]:
    """The constant as values of the attribute; ``ValueError`` if it cannot be compared as such."""
    if not row.uses & Use.FILTER or (row.codec is not None and not row.codec.finds(constant)):
        raise ValueError(f"{row.id.name} is not compared with this by the directory")
    if row.reference is NameReference.NONE:
        return row.encode(constant)
    name = references.names.get(constant) if isinstance(constant, Guid) else None
    if name is None:
        raise ValueError("no entry with that identifier was found")
    return (str(name).encode(),)


def _list_condition(
    row: AttributeRow, restriction: Restriction, values: tuple[bytes, ...]
) -> Filter | None:
    """A list equals a constant only if it has the constant's values (3.1.6.4.6.2)."""
    if restriction.relation is not Relation.EQ or not values:
        return None
    return And(tuple(Equality(row.attribute, value) for value in values))


def _equality(row: AttributeRow, values: tuple[bytes, ...]) -> Filter:
    if values:
        return Equality(row.attribute, values[0])
    return Not(Present(row.attribute))  # the empty text is the absent attribute


def _inequality(
    row: AttributeRow, restriction: Restriction, values: tuple[bytes, ...]
) -> Filter | None:
    """The negation of an equality, which is also true without the attribute."""
    shows_default = row.absent is not None and restriction.holds(row.absent)
    if row.codec is not None and not row.codec.distinguishes:
        return None if shows_default else Present(row.attribute)
    other = Not(_equality(row, values))
    return other if shows_default else And((other, Present(row.attribute)))


def _ordered(attribute: str, relation: Relation, value: bytes) -> Filter:
    """LDAP has no strict comparison: it is the other one without equality."""
    below = relation in (Relation.LT, Relation.LE)
    found: Filter = LessOrEqual(attribute, value) if below else GreaterOrEqual(attribute, value)
    if relation in (Relation.LT, Relation.GT):
        return And((found, Not(Equality(attribute, value))))
    return found


def _with_absent(row: AttributeRow, restriction: Restriction, found: Filter) -> Filter:
    """An entry without the attribute shows its default, which may meet the restriction."""
    if row.absent is not None and restriction.holds(row.absent):
        return Or((found, Not(Present(row.attribute))))
    return found
