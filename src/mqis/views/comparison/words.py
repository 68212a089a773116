"""The differences of two directories in the words of ``mqis get``: names, texts and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from mqis.protocol.directory.directory_difference import (
    ObjectDifference,
    ObjectFate,
    PropertyDifference,
    compare,
    paired,
)
from mqis.protocol.directory.export_format import ORDER, value_to_json
from mqis.protocol.directory.object_sources import ReferenceNames
from mqis.protocol.directory.objects import DirectoryObject, Scope, name_key
from mqis.protocol.replication.outgoing_changes import scope_of
from mqis.protocol.replication.replicated import content
from mqis.views.comparison.side import DirectorySide, SideNames
from mqis.views.presentation.properties import friendly
from mqis.views.presentation.rendering import shown
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value


@dataclass(frozen=True, slots=True)
class ComparedParts:
    """The parts of two directories that are compared; by default everything."""

    #: Only these types; empty: all.
    types: frozenset[ObjectType] = frozenset()
    #: Properties that are not compared, by their words.
    ignored: frozenset[str] = frozenset()
    #: Only what servers copy to each other, in the form in which they send it.
    replicated: bool = False

    def chosen(self, objects: Iterator[DirectoryObject]) -> Iterator[DirectoryObject]:
        for obj in objects:
            if self.types and obj.type not in self.types:
                continue
            if not self.replicated:
                yield obj
            elif scope_of(obj) is not Scope.SITE:  # other sites may have it or not
                yield replace(obj, properties=content(obj))


@dataclass(frozen=True, slots=True)
class ChangedProperty:
    """A property under its word, with both values as ``mqis get`` shows them; None is no value."""

    word: str
    before: str | None
    after: str | None
    #: The same as plain values of ``mqis get --json``.
    raw_before: object
    raw_after: object


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """An object that differs, by name."""

    type: ObjectType
    fate: ObjectFate
    name: str
    id: Guid
    #: The identifier that an object which was replaced had before.
    former_id: Guid | None
    properties: tuple[ChangedProperty, ...]


class DirectoryComparison:
    """The result: which objects differ, and in what. It holds the differences and no more."""

    def __init__(
        self, before: DirectorySide, after: DirectorySide, parts: ComparedParts | None = None
    ) -> None:
        parts = parts or ComparedParts()
        self.before, self.after = before.label, after.label
        hidden = before.hidden | after.hidden
        self.notes = (*before.notes, *after.notes)
        #: The words of the properties that a side could not tell, and that were not compared.
        self.not_compared = tuple(sorted({friendly(propid) for propid in hidden}))
        self._names = SideNames(), SideNames()
        chooses = _choice(hidden, parts.ignored)
        old, new = (
            parts.chosen(names.collected(side.objects))
            for names, side in zip(self._names, (before, after), strict=True)
        )
        self._found = paired(compare(old, new, chooses), chooses)

    @property
    def same(self) -> bool:
        return not self._found

    def counts(self) -> dict[ObjectFate, int]:
        counted = Counter(one.fate for one in self._found)
        return {fate: counted[fate] for fate in ObjectFate}

    def groups(self) -> Iterator[tuple[ObjectType, list[ChangedObject]]]:
        """Yields the types that have differences in the order of exports, with objects by name."""
        for object_type in ORDER:
            members = [self._shown(o) for o in self._found if o.object.type is object_type]
            if members:
                yield object_type, sorted(members, key=lambda one: (name_key(one.name), one.id))

    def _shown(self, one: ObjectDifference) -> ChangedObject:
        is_replaced = one.fate is ObjectFate.REPLACED
        former = one.before.id if is_replaced and one.before is not None else None
        names = self._names[one.after is not None]
        changes = tuple(self._property(each) for each in one.properties)
        obj = one.object
        return ChangedObject(obj.type, one.fate, title(obj, names), obj.id, former, changes)

    def _property(self, each: PropertyDifference) -> ChangedProperty:
        values = each.before, each.after
        before, after = (
            None if value is None else shown(each.propid, value, names)
            for value, names in zip(values, self._names, strict=True)
        )
        if before is not None and before == after:
            before, after = (f"{before} ({_mark(value)})" for value in values)
        plain = (None if value is None else value_to_json(value.value) for value in values)
        return ChangedProperty(friendly(each.propid), before, after, *plain)


def _choice(hidden: frozenset[int], ignored: frozenset[str]) -> Callable[[int], bool]:
    if not hidden and not ignored:
        return lambda _propid: True
    return lambda propid: propid not in hidden and friendly(propid) not in ignored


def _mark(variant: PropVariant | None) -> str:
    """Tells two values apart that have the same text: a key of the same length, a name."""
    value: Value = None if variant is None else variant.value
    if isinstance(value, Guid):
        return str(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    packed = b"" if variant is None else variant.packed()
    return f"SHA-256 {sha256(packed).hexdigest()[:16]}"


def title(obj: DirectoryObject, names: ReferenceNames) -> str:
    """The name of an object: its path, the ends of a link, the SID of a user, or its identifier."""
    if obj.path is not None:
        return obj.path
    ends: tuple[PropId, ...] = ()
    if obj.type is ObjectType.ROUTINGLINK:
        ends = PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2
    elif obj.type is ObjectType.USER:
        ends = (PropId.U_SID,)
    texts = [shown(end, obj.properties.get(end), names) for end in ends]
    return " - ".join(texts) if texts and all(texts) else str(obj.id)
