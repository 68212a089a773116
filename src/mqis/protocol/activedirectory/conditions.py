"""Restrictions of a lookup as an LDAP filter, and what it cannot compare (3.1.6.4, 3.1.6.15).

The filter never excludes an object that meets all restrictions. The restrictions that it cannot
express exactly are the residue: they are compared again with the properties that were read.
Values go into the filter as octets, so that nothing in them is a wildcard or a parenthesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mqis.protocol.activedirectory.forest import LDAP_CLASSES
from mqis.protocol.activedirectory.row import AttributeRow, NameReference, Use
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.activedirectory.view import References
from mqis.protocol.directory.restrictions import Relation, Restriction, comparable
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
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import Value

_EQUALITY = (Relation.EQ, Relation.NE)


@dataclass(frozen=True, slots=True)
class Conditions:
    """``filter`` finds a superset of the objects, of which ``residue`` picks the right ones."""

    filter: Filter
    residue: tuple[Restriction, ...]

    def met_by(self, properties: Properties) -> bool:
        """An object without a value for a property meets no restriction on it, not even NE."""
        for restriction in self.residue:
            shown = properties.get(restriction.propid)
            if shown is None or not restriction.holds(shown.value):
                return False
        return True


def conditions_of(
    object_type: ObjectType, restrictions: Iterable[Restriction], references: References
) -> Conditions:
    """Returns the filter and the residue; ``references`` has the names of the compared sites."""
    items: list[Filter] = list(class_filter(object_type))
    residue = []
    for restriction in restrictions:
        made = _filter_of(restriction, references)
        if made is None:
            residue.append(restriction)
        else:
            items.append(made)
    return Conditions(And(tuple(items)), tuple(residue))


def class_filter(object_type: ObjectType) -> Iterable[Filter]:
    """The conditions that entries of a type meet."""
    yield Equality("objectClass", LDAP_CLASSES[object_type].encode())
    if object_type is ObjectType.USER:  # a computer is a user by its class
        yield Equality("objectCategory", b"person")


def _filter_of(restriction: Restriction, references: References) -> Filter | None:
    """The exact filter of one restriction; None if LDAP cannot express it."""
    row = ATTRIBUTE_ROWS[restriction.propid]
    if not row.uses & Use.FILTER:
        return None
    try:
        values = _values(row, restriction.constant.value, references)
    except ValueError:  # half of a surrogate pair, for example: nothing in the directory has it
        return None
    if restriction.relation in _EQUALITY:
        return _equality(row, restriction, values)
    if row.codec is None or not row.codec.ordered or len(values) != 1:
        return None
    return _with_absent(row, restriction, _ordered(row.attribute, restriction.relation, values[0]))


def _values(row: AttributeRow, constant: Value, references: References) -> tuple[bytes, ...]:
    if row.reference is NameReference.NONE:
        return row.encode(constant)
    name = references.names.get(constant) if isinstance(constant, Guid) else None
    if name is None:
        raise ValueError("no entry with that identifier was found")
    return (str(name).encode(),)


def _equality(
    row: AttributeRow, restriction: Restriction, values: tuple[bytes, ...]
) -> Filter | None:
    """A list equals a constant if it has the constant's values (3.1.6.4.6.2)."""
    if isinstance(restriction.constant.value, tuple):
        if restriction.relation is Relation.NE or not values:
            return None
        return And(tuple(Equality(row.attribute, value) for value in values))
    equal: Filter = Not(Present(row.attribute))  # the empty text is the absent attribute
    if values:
        equal = Equality(row.attribute, values[0])
    if restriction.relation is Relation.EQ:
        return _with_absent(row, restriction, equal)
    other: Filter = Not(equal)  # also true without the attribute
    if row.absent is not None and restriction.holds(row.absent):
        return other
    return And((other, Present(row.attribute)))


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


def sorted_properties(
    rows: Iterable[Properties], keys: Sequence[tuple[int, bool]]
) -> list[Properties]:
    """Sorts results by properties, the most important first; True sorts downwards (3.1.6.4.1.3).

    The converted values are compared, so that numbers and times sort as such and text without case.
    """
    found = list(rows)
    for propid, descending in reversed(keys):
        found.sort(key=lambda row: _sort_key(row, propid), reverse=descending)
    return found


def _sort_key(row: Properties, propid: int) -> tuple[bool, object]:
    value = row.get(propid)
    return (value is not None, None if value is None else comparable(value.value))
