"""The conversion of an event's arguments to those of a call (MS-MQDS 3.2.6).

An event that has to be refused without a call raises ``RequestRefusedError`` here.
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
    DirectoryElement,
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
from mqis.texts import counted
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import PropertyRestriction, SortColumn
from mqis.wire.propvariant import PropVariant

E = TypeVar("E", bound=DirectoryElement)

#: The attribute by which an object is addressed, beside its identifier.
_NAME: dict[type[DirectoryElement], str] = {
    QueueManager: "computer_name",
    Queue: "pathname",
    Site: "name",
    ConnectedNetwork: "name",
}
#: Attributes that are read beyond the tables: routing needs a site's gates (MQDS-3.2.6.3.4-02).
_ALSO_READ: dict[type[DirectoryElement], tuple[Attribute, ...]] = {
    Site: (Attribute(("site_gate_identifier_list",), PropId.S_GATES, Conversion.COPY, "r"),),
}


class RequestRefusedError(ValueError):
    """The event cannot be carried out with these arguments; no call was made."""

    def __init__(
        self, detail: str, status: DirectoryOperationResult = DirectoryOperationResult.GENERIC_ERROR
    ) -> None:
        super().__init__(detail)
        self.status = status


class Operator(IntEnum):
    """The comparison of an attribute with a value, by the numbers of rel (2.2.11)."""

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
    """attribute-sort-order (MS-MQDMPR 3.1.7.1.21); priority 0: do not sort by this attribute."""

    priority: int = 0
    ascending: bool = True


def equal(attribute: str, value: object) -> Filter:
    """The filter for objects whose attribute has this value: ``equal("label", "Orders")``."""
    return Filter(attribute, Operator.EQUALS, value)


def object_type_of(kind: type[DirectoryElement]) -> ObjectType:
    found = ELEMENTS.get(kind)
    if found is None:
        raise RequestRefusedError(
            f"{getattr(kind, '__name__', kind)} is not an element of the directory"
        )
    return found


def key_of(kind: type[DirectoryElement]) -> str:
    """The attribute by which one object is found."""
    return _NAME.get(kind, "certificate_digest_list" if kind is User else "identifier")


def default_attributes(kind: type[DirectoryElement]) -> tuple[str, ...]:
    """The attributes read by default: all readable ones except private properties."""
    object_type_of(kind)
    return tuple(row.names[0] for row in _readable(kind) if not row.private)


def _readable(kind: type[DirectoryElement]) -> list[Attribute]:
    return [row for row in ATTRIBUTES[kind] if row.read] + list(_ALSO_READ.get(kind, ()))


# --- Create Directory Object (3.2.6.1) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Creation:
    """The arguments of S_DSCreateObject."""

    target: Target
    descriptor: bytes | None
    properties: Mapping[int, PropVariant]


#: The attributes that must be populated, and those of them that a given list must name.
_REQUIRED: dict[type[DirectoryElement], tuple[tuple[str, ...], tuple[str, ...]]] = {
    QueueManager: (("site_identifier_list", "computer_name"), ("site_identifier_list",)),
    Queue: (("pathname",), ()),
    Site: (("name",), ()),
    RoutingLink: (("site1_identifier", "site2_identifier", "actual_cost"),) * 2,
    ConnectedNetwork: (("name",), ("name",)),
    User: (("security_identifier",), ("security_identifier",)),
}
#: The types whose descriptor is sent if it is listed. Without a list only a queue's is sent,
#: because servers refuse other descriptors (3.1.4.4).
_SECURED = (QueueManager, Queue, Site)


def creation(element: DirectoryElement, attributes: Iterable[str] | None = None) -> Creation:
    kind = type(element)
    object_type = object_type_of(kind)
    if kind not in _REQUIRED:
        raise RequestRefusedError(f"a {object_type.label} cannot be created")
    listed = None if attributes is None else {python_name(name) for name in attributes}
    populated, required = _REQUIRED[kind]
    for name in populated:
        if getattr(element, name) is None:
            raise RequestRefusedError(f"a {object_type.label} cannot be created without {name}")
    if listed is not None and not listed.issuperset(required):
        raise RequestRefusedError(
            f"the attributes of a {object_type.label} must include {', '.join(required)}"
        )
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


def _creation_path(element: DirectoryElement) -> str | None:
    if isinstance(element, RoutingLink):
        ends = (element.site1_identifier, element.site2_identifier)
        return "".join(end.big_endian.hex().upper() for end in ends if end is not None)
    name = _NAME.get(type(element))
    return None if name is None else str(getattr(element, name))


def _properties(
    element: DirectoryElement, rows: Iterable[Attribute], listed: set[str] | None
) -> dict[int, PropVariant]:
    """The properties of populated attributes, only of those listed if there is a list."""
    return {
        row.propid: property_of(row, element)
        for row in rows
        if any(
            getattr(element, name) is not None and (listed is None or name in listed)
            for name in row.names
        )
    }


# --- Delete Directory Object, Write Directory (3.2.6.2, 3.2.6.7) ----------------------------------


def deletion(element: DirectoryElement) -> Target:
    kind = type(element)
    object_type = object_type_of(kind)
    if kind is Enterprise:
        raise RequestRefusedError("an enterprise cannot be deleted")
    if isinstance(element, User):
        return Target(object_type, None, _one_digest(element.certificate_digest_list))
    return _address(element, object_type)


def _address(element: DirectoryElement, object_type: ObjectType) -> Target:
    """The target by name if the specification says so, else by identifier."""
    name = _NAME[type(element)] if isinstance(element, (QueueManager, Queue)) else None
    path = None if name is None else getattr(element, name)
    if path is not None:
        return Target(object_type, path)
    if element.identifier is None:
        wanted = "identifier" if name is None else f"{name} or identifier"
        raise RequestRefusedError(f"a {object_type.label} is addressed by its {wanted}")
    return Target(object_type, None, element.identifier)


def _one_digest(value: object) -> Guid:
    """The digest of the only certificate by which a user is addressed (3.2.6.2.6, 3.2.6.3.7)."""
    digests = (value,) if isinstance(value, (Guid, str)) else value
    if not isinstance(digests, (tuple, list)) or len(digests) != 1:
        raise RequestRefusedError("a user is addressed by exactly one certificate digest")
    return _as_guid(digests[0])


def _as_guid(value: object) -> Guid:
    if isinstance(value, str):
        try:
            return Guid.parse(value)
        except ValueError as error:
            raise RequestRefusedError(str(error)) from error
    if not isinstance(value, Guid):
        raise RequestRefusedError(f"{value!r} is not a GUID")
    return value


def writing(
    element: DirectoryElement, attributes: Iterable[str] | None = None
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
class ElementColumns(Generic[E]):
    """The attributes to read of an element, and the properties that carry them, each once."""

    kind: type[E]
    attributes: tuple[str, ...]
    propids: tuple[PropId, ...]

    def element(self, values: Sequence[PropVariant]) -> E:
        """Makes an element of these values, which are in the order of ``propids`` (3.2.6.5.1)."""
        by_id = dict(zip(self.propids, values, strict=True))
        rows = {row.names[0]: row for row in _readable(self.kind)}
        populated: dict[str, Any] = {
            name: attribute_of(rows[name], name, by_id) for name in self.attributes if name in rows
        }
        return self.kind(**populated)


def columns(kind: type[E], attributes: Iterable[str] | None = None) -> ElementColumns[E]:
    """The columns for a list of attributes; unknown names are ignored."""
    object_type_of(kind)
    names = list(default_attributes(kind) if attributes is None else map(python_name, attributes))
    if "directory_server_type" in names and "directory_server" not in names:
        names.append("directory_server")  # it tells whether the type has a meaning
    rows = {row.names[0]: row for row in _readable(kind)}
    propids = dict.fromkeys(rows[name].propid for name in names if name in rows)
    if not propids:
        raise RequestRefusedError(
            f"the directory has none of these attributes: {', '.join(names) or 'none given'}",
            DirectoryOperationResult.ATTRIBUTE_NOT_FOUND,
        )
    return ElementColumns(kind, tuple(names), tuple(propids))


def direct_target(kind: type[DirectoryElement], filters: Sequence[Filter]) -> Target | None:
    """The target that a single filter names, if one call can read it; None if it takes a lookup."""
    object_type = object_type_of(kind)
    if len(filters) != 1 or filters[0].operator != Operator.EQUALS:
        return None
    name, value = python_name(filters[0].attribute), filters[0].value
    if kind is User:  # no call reads a user by identifier: 3.2.6.3.7 requires a digest
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
        raise RequestRefusedError(f"{value!r} is not a {name}")
    return Target(object_type, value)


@dataclass(frozen=True, slots=True)
class Lookup(Generic[E]):
    """The arguments of S_DSLookupBegin."""

    columns: ElementColumns[E]
    restrictions: tuple[PropertyRestriction, ...]
    sort: tuple[SortColumn, ...]


def lookup(
    kind: type[E],
    filters: Sequence[Filter] | None,
    attributes: Sequence[str] | None = None,
    sort_order: Sequence[SortOrder] | None = None,
) -> Lookup[E]:
    """Prepares a lookup; ``sort_order`` is parallel to the attributes, or to the default ones."""
    object_type_of(kind)
    names = default_attributes(kind) if attributes is None else tuple(attributes)
    orders = tuple(sort_order or (SortOrder(),) * len(names))
    if len(orders) != len(names):
        raise RequestRefusedError(
            f"there are {counted(len(orders), 'sort order')} for {counted(len(names), 'attribute')}"
        )
    return Lookup(
        columns(kind, attributes),
        tuple(_restriction(kind, wanted) for wanted in filters or ()),
        _sort_keys(kind, names, orders),
    )


def _restriction(kind: type[DirectoryElement], wanted: Filter) -> PropertyRestriction:
    name = python_name(wanted.attribute)
    row = next((r for r in ATTRIBUTES[kind] if r.filterable and r.names[0] == name), None)
    if row is None:
        known = ", ".join(sorted(r.names[0] for r in ATTRIBUTES[kind] if r.filterable))
        raise RequestRefusedError(
            f"a {ELEMENTS[kind].label} cannot be looked up by {name}; it can by {known}"
        )
    try:
        return PropertyRestriction(
            Operator(wanted.operator), row.propid, constant(row, wanted.value)
        )
    except ValueError as error:
        raise RequestRefusedError(f"{name}: {error}") from error


def _sort_keys(
    kind: type[DirectoryElement], names: Sequence[str], orders: Sequence[SortOrder]
) -> tuple[SortColumn, ...]:
    """The sort keys, highest priority first; attributes without a property are dropped."""
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
