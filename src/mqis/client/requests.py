"""From the arguments of an event to those of a call (MS-MQDS 3.2.6), without making it.

Whatever an event refuses by itself it refuses here, as ``Refusal``: then nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from mqis.client.attributes import ATTRIBUTES
from mqis.client.elements import (
    ELEMENTS,
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from mqis.client.mapping import (
    Attribute,
    Conversion,
    attribute_of,
    constant,
    property_of,
    python_name,
)
from mqis.client.results import DirectoryOperationResult
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.objects import NAME_PROPERTY
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query import PropertyRestriction, SortColumn
from mqis.wire.mqds.values import props
from mqis.wire.propvariant import PropVariant

E = TypeVar("E", bound=DirectoryObject)

#: What an object is addressed by, besides its identifier.
_NAME: dict[type[DirectoryObject], str] = {
    QueueManager: "computer_name",
    Queue: "pathname",
    Site: "name",
    ConnectedNetwork: "name",
}
#: Reading beyond the tables: routing needs the gates of a site (MQDS-3.2.6.3.4-02).
_ALSO_READ: dict[type[DirectoryObject], tuple[Attribute, ...]] = {
    Site: (Attribute(("site_gate_identifier_list",), PropId.S_GATES, Conversion.COPY, "r"),),
}


class Refusal(ValueError):
    """The event cannot be carried out as it was asked for; no call was made."""

    def __init__(
        self, detail: str, status: DirectoryOperationResult = DirectoryOperationResult.GENERIC_ERROR
    ) -> None:
        super().__init__(detail)
        self.status = status


class Operator(IntEnum):
    """How an attribute stands to a value, by the numbers of rel (2.2.11)."""

    LESS_THAN = 0
    LESS_THAN_OR_EQUAL = 1
    GREATER_THAN = 2
    GREATER_THAN_OR_EQUAL = 3
    EQUALS = 4
    NOT_EQUALS = 5


class Filter(NamedTuple):
    """attribute-filter expression (MS-MQDMPR 3.1.7.1.20)."""

    attribute: str
    operator: Operator
    value: object


class SortOrder(NamedTuple):
    """attribute-sort-order (MS-MQDMPR 3.1.7.1.21); priority 0: not sorted by."""

    priority: int = 0
    ascending: bool = True


def equal(attribute: str, value: object) -> Filter:
    return Filter(attribute, Operator.EQUALS, value)


def object_type_of(kind: type[DirectoryObject]) -> ObjectType:
    found = ELEMENTS.get(kind)
    if found is None:
        raise Refusal(f"{getattr(kind, '__name__', kind)} is not an element of the directory")
    return found


def default_attributes(kind: type[DirectoryObject]) -> tuple[str, ...]:
    """What is read if nothing is named: all that is readable but the server's own properties."""
    object_type_of(kind)
    return tuple(row.names[0] for row in _readable(kind) if not row.private)


def _readable(kind: type[DirectoryObject]) -> list[Attribute]:
    return [row for row in ATTRIBUTES[kind] if row.read] + list(_ALSO_READ.get(kind, ()))


# --- Create Directory Object (3.2.6.1) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Creation:
    """Arguments of S_DSCreateObject."""

    target: Target
    descriptor: bytes | None
    properties: Mapping[int, PropVariant]


#: Attributes that must be populated, and of these the ones that a given list must name.
_NEEDED: dict[type[DirectoryObject], tuple[tuple[str, ...], tuple[str, ...]]] = {
    QueueManager: (("site_identifier_list", "computer_name"), ("site_identifier_list",)),
    Queue: (("pathname",), ()),
    Site: (("name",), ()),
    RoutingLink: (("site1_identifier", "site2_identifier", "actual_cost"),) * 2,
    ConnectedNetwork: (("name",), ("name",)),
    User: (("security_identifier",), ("security_identifier",)),
}
#: Types whose descriptor goes along when it is named; without a list, just a queue's, because
#: servers refuse a descriptor for anything else (3.1.4.4).
_SECURED = (QueueManager, Queue, Site)


def creation(element: DirectoryObject, attributes: Iterable[str] | None = None) -> Creation:
    kind = type(element)
    object_type = object_type_of(kind)
    if kind not in _NEEDED:
        raise Refusal(f"a {object_type.label} cannot be created")
    listed = None if attributes is None else {python_name(name) for name in attributes}
    populated, named = _NEEDED[kind]
    for name in populated:
        if getattr(element, name) is None:
            raise Refusal(f"a {object_type.label} cannot be created without {name}")
    if listed is not None and not listed.issuperset(named):
        raise Refusal(f"the attributes of a {object_type.label} must include {', '.join(named)}")
    path = _creation_path(element)
    rows = [row for row in ATTRIBUTES[kind] if row.created]
    properties = _properties(element, rows, listed)
    if not properties and path is not None:
        # A call carries at least one property; the server ignores this one (3.1.4.4).
        properties = props({NAME_PROPERTY[object_type]: path})
    descriptor = None
    if (kind is Queue and listed is None) or (kind in _SECURED and "security" in (listed or ())):
        descriptor = getattr(element, "security", None)
    return Creation(Target(object_type, path), descriptor, properties)


def _creation_path(element: DirectoryObject) -> str | None:
    if isinstance(element, RoutingLink):
        ends = (element.site1_identifier, element.site2_identifier)
        return "".join(end.big_endian.hex().upper() for end in ends if end is not None)
    name = _NAME.get(type(element))
    return None if name is None else str(getattr(element, name))


def _properties(
    element: DirectoryObject, rows: Iterable[Attribute], listed: set[str] | None
) -> dict[int, PropVariant]:
    """The properties whose attribute is listed and populated, or all that are populated."""
    return {
        row.propid: property_of(row, element)
        for row in rows
        if any(
            getattr(element, name) is not None and (listed is None or name in listed)
            for name in row.names
        )
    }


# --- Delete Directory Object, Write Directory (3.2.6.2, 3.2.6.7) ----------------------------------


def deletion(element: DirectoryObject) -> Target:
    kind = type(element)
    object_type = object_type_of(kind)
    if kind is Enterprise:
        raise Refusal("an enterprise cannot be deleted")
    if isinstance(element, User):
        return Target(object_type, None, _one_digest(element.certificate_digest_list))
    return _address(element, object_type)


def _address(element: DirectoryObject, object_type: ObjectType) -> Target:
    """By name where the specification has it so, else by identifier."""
    name = _NAME[type(element)] if isinstance(element, (QueueManager, Queue)) else None
    path = None if name is None else getattr(element, name)
    if path is not None:
        return Target(object_type, path)
    if element.identifier is None:
        wanted = "identifier" if name is None else f"{name} or identifier"
        raise Refusal(f"a {object_type.label} is addressed by its {wanted}")
    return Target(object_type, None, element.identifier)


def _one_digest(value: object) -> Guid:
    """A user goes by one certificate (3.2.6.2.6, 3.2.6.3.7)."""
    digests = (value,) if isinstance(value, (Guid, str)) else value
    if not isinstance(digests, (tuple, list)) or len(digests) != 1:
        raise Refusal("a user is addressed by exactly one certificate digest")
    return _as_guid(digests[0])


def _as_guid(value: object) -> Guid:
    if isinstance(value, str):
        try:
            return Guid.parse(value)
        except ValueError as error:
            raise Refusal(str(error)) from error
    if not isinstance(value, Guid):
        raise Refusal(f"{value!r} is not a GUID")
    return value


def writing(
    element: DirectoryObject, attributes: Iterable[str] | None = None
) -> tuple[Target, dict[int, PropVariant]]:
    kind = type(element)
    object_type = object_type_of(kind)
    target = _address(element, object_type)
    if attributes is None:
        rows = [row for row in ATTRIBUTES[kind] if row.written_by_default]
        return target, _properties(element, rows, None)
    rows = [row for row in ATTRIBUTES[kind] if row.written]
    return target, _properties(element, rows, {python_name(name) for name in attributes})


# --- Read Directory (3.2.6.3, 3.2.6.4) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns(Generic[E]):
    """What is read of an element: attributes, and the properties that carry them, each once."""

    kind: type[E]
    attributes: tuple[str, ...]
    propids: tuple[PropId, ...]

    def element(self, values: Sequence[PropVariant]) -> E:
        """The element that these values, in the order of ``propids``, make (3.2.6.5.1)."""
        by_id = dict(zip(self.propids, values, strict=True))
        rows = {row.names[0]: row for row in _readable(self.kind)}
        populated: dict[str, Any] = {
            name: attribute_of(rows[name], name, by_id) for name in self.attributes if name in rows
        }
        return self.kind(**populated)


def columns(kind: type[E], attributes: Iterable[str] | None = None) -> Columns[E]:
    """The columns of a list of attributes; names that no table has are passed over."""
    object_type_of(kind)
    names = list(default_attributes(kind) if attributes is None else map(python_name, attributes))
    if "directory_server_type" in names and "directory_server" not in names:
        names.append("directory_server")  # which alone tells whether the type means anything
    rows = {row.names[0]: row for row in _readable(kind)}
    propids = dict.fromkeys(rows[name].propid for name in names if name in rows)
    if not propids:
        raise Refusal(
            f"none of {', '.join(names) or 'no attributes'} is in the directory",
            DirectoryOperationResult.ATTRIBUTE_NOT_FOUND,
        )
    return Columns(kind, tuple(names), tuple(propids))


def direct_target(kind: type[DirectoryObject], filters: Sequence[Filter]) -> Target | None:
    """The object that a single filter names, if one call can read it; None to look it up."""
    object_type = object_type_of(kind)
    if len(filters) != 1 or filters[0].operator != Operator.EQUALS:
        return None
    name, value = python_name(filters[0].attribute), filters[0].value
    if kind is User:  # by identifier no call reads a user: the steps of 3.2.6.3.7 want a digest
        return (
            Target(object_type, None, _one_digest(value))
            if name == "certificate_digest_list"
            else None
        )
    if name == "identifier":
        return Target(object_type, None, _as_guid(value))
    if kind not in (QueueManager, Queue) or name != _NAME[kind]:
        return None
    if not isinstance(value, str):
        raise Refusal(f"{value!r} is not a {name}")
    return Target(object_type, value)


@dataclass(frozen=True, slots=True)
class Lookup(Generic[E]):
    """Arguments of S_DSLookupBegin."""

    columns: Columns[E]
    restrictions: tuple[PropertyRestriction, ...]
    sort: tuple[SortColumn, ...]


def lookup(
    kind: type[E],
    filters: Sequence[Filter] | None,
    attributes: Sequence[str] | None = None,
    sort_order: Sequence[SortOrder] | None = None,
) -> Lookup[E]:
    """``sort_order`` runs parallel to the attributes, or to the default ones."""
    object_type_of(kind)
    names = default_attributes(kind) if attributes is None else tuple(attributes)
    orders = tuple(sort_order or (SortOrder(),) * len(names))
    if len(orders) != len(names):
        raise Refusal(f"{len(orders)} sort orders for {len(names)} attributes")
    return Lookup(
        columns(kind, attributes),
        tuple(_restriction(kind, wanted) for wanted in filters or ()),
        _sort_keys(kind, names, orders),
    )


def _restriction(kind: type[DirectoryObject], wanted: Filter) -> PropertyRestriction:
    name = python_name(wanted.attribute)
    row = next((r for r in ATTRIBUTES[kind] if r.filterable and r.names[0] == name), None)
    if row is None:
        raise Refusal(f"a {ELEMENTS[kind].label} cannot be looked up by {name}")
    try:
        return PropertyRestriction(
            Operator(wanted.operator), row.propid, constant(row, wanted.value)
        )
    except ValueError as error:
        raise Refusal(f"{name}: {error}") from error


def _sort_keys(
    kind: type[DirectoryObject], names: Sequence[str], orders: Sequence[SortOrder]
) -> tuple[SortColumn, ...]:
    """The highest priority first; attributes without a property go, and their order with them."""
    rows = {row.names[0]: row for row in _readable(kind)}
    wanted = [
        (order, rows[name])
        for name, order in zip(map(python_name, names), orders, strict=True)
        if order.priority and name in rows
    ]
    wanted.sort(key=lambda pair: -pair[0].priority)
    keys: dict[PropId, SortColumn] = {}
    for order, row in wanted:
        keys.setdefault(row.propid, SortColumn(row.propid, 0 if order.ascending else 1))
    return tuple(keys.values())
