"""All rows of all object types, and the tables that several modules derive from them.

Tables are computed once, when this module is imported. A table that one module alone needs is
derived there, from ``ROWS``.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.directory.types import (
    computing,
    deletion,
    enterprise,
    link,
    machine,
    network,
    queue,
    site,
    user,
)
from mqis.protocol.directory.types.property_row import Compute, PropertyRow
from mqis.protocol.directory.types.row_columns import PropertyRole, Takes
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

_MODULES = (queue, machine, site, deletion, network, enterprise, user, link)

#: Every property by its number, in the order of the numbers.
ROWS: dict[int, PropertyRow] = {
    row.id: row
    for row in sorted((row for module in _MODULES for row in module.ROWS), key=lambda row: row.id)
}


def ids_where(condition: Callable[[PropertyRow], bool]) -> frozenset[int]:
    """Returns the properties whose rows meet the condition."""
    return frozenset(row.id for row in ROWS.values() if condition(row))


def by_role(role: PropertyRole) -> dict[ObjectType, PropId]:
    """Returns the property of each type that plays the role, for the types that have one."""
    return {row.object_type: row.id for row in ROWS.values() if row.role is role}


def by_type(place: Callable[[PropertyRow], int]) -> dict[ObjectType, tuple[PropId, ...]]:
    """Returns the properties of each type in the order of their places; 0 leaves a property out."""
    found: dict[ObjectType, tuple[PropId, ...]] = {}
    for row in sorted(filter(place, ROWS.values()), key=place):
        found[row.object_type] = (*found.get(row.object_type, ()), row.id)
    return found


def _computed(row: PropertyRow) -> Compute | None:
    outside = {
        PropertyRole.IDENTIFIER: computing.identifier,
        PropertyRole.SEQUENCE: computing.sequence,
        PropertyRole.PARTITION: computing.partition,
    }
    if row.role in outside:
        return outside[row.role]
    if row.computed is None and row.alias_of is not None:
        return computing.stored(row.alias_of)
    return row.computed


#: The properties that do not show what is stored under their number, and what they show instead.
COMPUTED: dict[int, Compute] = {
    row.id: compute for row in ROWS.values() if (compute := _computed(row)) is not None
}
#: The value that a create stores where the caller supplies none.
DEFAULTS: dict[int, PropVariant] = {
    row.id: default for row in ROWS.values() if (default := row.variant(row.default)) is not None
}
#: Another name of a stored property: the value goes under the one on the right.
STORED_AS: dict[int, PropId] = {
    row.id: row.alias_of for row in ROWS.values() if row.alias_of is not None
}
#: The properties that S_DSGetPropsEx gives, one at a time, and the type that has each (3.3.4.2).
EXTENDED: dict[PropId, ObjectType] = {
    row.id: row.object_type for row in ROWS.values() if row.extended
}
#: The properties that give power over others, and the right that each of them takes.
POWERS: dict[PropId, Takes] = {
    row.id: row.takes for row in ROWS.values() if row.takes is not Takes.NOTHING
}
