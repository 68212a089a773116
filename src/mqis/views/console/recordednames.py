"""The names of the objects in journal records, as far as a visitor may read them."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.directory.object_sources import Source
from mqis.protocol.directory.objects import NAME_PROPERTY
from mqis.views.presentation.rendering import shown
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.describing import Style, describe
from mqis.wire.seqnum import SequenceNumber

#: A longer body is not decoded for a line of a list.
_MOST_BODY = 64 << 10
_LISTED = 3
_NAMED = (ObjectType.SITE, ObjectType.MACHINE, ObjectType.QUEUE, *NAME_PROPERTY)


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object of a record; without a name, ``name`` is empty."""

    name: str = ""
    #: The type, such as "queue"; empty if it is unknown.
    kind: str = ""
    #: The directory has it now.
    exists: bool = False


NAMELESS = NamedObject()


class RecordedNames:
    """Looks names up in a directory; without one, records name their objects themselves."""

    def __init__(self, source: Source | None = None) -> None:
        self._source = source
        self._known: dict[tuple[ObjectType, Guid], str | None] = {}

    def of(self, record: JournalRecord, *, itself: bool) -> NamedObject:
        """The object that a record is about; ``itself``: the record's content may name it."""
        if record.object_id == Guid.NULL:
            return NAMELESS
        try:
            object_type = ObjectType(record.object_type)
        except ValueError:
            return NAMELESS
        name = self._name(object_type, record.object_id)
        if name is not None:
            return NamedObject(name, object_type.label, exists=True)
        return NamedObject(_name_in(record, object_type) if itself else "", object_type.label)

    def content(self, record: JournalRecord) -> str:
        """The content of a message in words, with the names of its objects and partitions."""
        if record.kind is not RecordKind.MESSAGE or not record.body:
            return ""
        if len(record.body) > _MOST_BODY:
            return f"{len(record.body):,} bytes"
        try:
            message = decode_body(record)
        except MqisError:
            return ""
        if message is None or isinstance(message, DirectoryChange):
            return ""
        return describe(message, Style(self._any, _short, _LISTED))

    def find(self, text: str) -> Guid | None:
        """The identifier of the object with that name, of any type."""
        if self._source is None:
            return None
        found = (self._source.id_of(object_type, text) for object_type in dict.fromkeys(_NAMED))
        return next((each for each in found if each is not None), None)

    def _any(self, id: Guid) -> str:  # noqa: A002
        """The name of an object or partition of unknown type; its identifier if it has none."""
        if id == Guid.NULL:
            return "enterprise"
        names = (self._name(object_type, id) for object_type in dict.fromkeys(_NAMED))
        return next(filter(None, names), str(id))

    def _name(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        key = object_type, id
        if key not in self._known:
            try:
                self._known[key] = self._read(object_type, id)
            except MqisError:  # not readable, or the store fails: the list goes on without it
                self._known[key] = None
        return self._known[key]

    def _read(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        if self._source is None:
            return None
        if object_type is ObjectType.ROUTINGLINK:
            return _link_name(self._source, id)
        return self._source.name_of(object_type, id)


def _short(seq: SequenceNumber) -> str:
    """A number without leading zeros; a request for all changes names the greatest."""
    return "the last" if seq == SequenceNumber.MAX else f"{seq.value:x}"


def _link_name(source: Source, id: Guid) -> str:  # noqa: A002
    """A link has no name: that of the sites that it joins."""
    ends = PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2
    values = source.get(ObjectType.ROUTINGLINK, str(id), ends).values
    return " - ".join(shown(end, values[end], source) for end in ends)


def _name_in(record: JournalRecord, object_type: ObjectType) -> str:
    """The name that the change itself has; empty if it has none."""
    try:
        change = decode_body(record)
    except MqisError:
        return ""
    if not isinstance(change, DirectoryChange):
        return ""
    propid = NAME_PROPERTY.get(object_type)
    named = next((value for number, value in change.properties if number == propid), None)
    return change.path or ("" if named is None else str(named.value))
