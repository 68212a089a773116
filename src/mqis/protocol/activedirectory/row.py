"""One row of the mapping: where Active Directory keeps a property, and who may write it there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntFlag

from mqis.protocol.activedirectory.codecs import AttributeCodec, Octets
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.ldap.entry import BadAttribute
from mqis.wire.errors import WireError
from mqis.wire.mqds.catalogue import PROPERTIES, prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value

#: Makes the value of a property; None if the object has none.
ReadValue = Callable[[EntryView], Value]


class NameReference(IntFlag):
    """The property has identifiers where the attribute has names of entries."""

    NONE = 0
    ONE = 1
    MANY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeRow:
    """A property that is not stored in Active Directory has no attributes."""

    id: PropId
    read: ReadValue
    #: What to ask of the object's entry, and of the entry of its computer.
    attributes: tuple[str, ...] = ()
    computer_attributes: tuple[str, ...] = ()
    uses: Use = Use.NONE
    #: Of an attribute that is written or compared: how.
    codec: AttributeCodec | None = None
    #: What the property shows while the attribute is absent; None if that is an error.
    absent: Value = None
    #: What an object has instead of a value that cannot be read; None: ``absent``, if there is one.
    instead: Value = None
    reference: NameReference = NameReference.NONE

    @property
    def object_type(self) -> ObjectType:
        return PROPERTIES[self.id].object_type

    @property
    def attribute(self) -> str:
        return self.attributes[0]

    def value(self, view: EntryView) -> PropVariant | None:
        """Reads the property; ``BadAttribute`` for a value that does not fit."""
        try:
            value = self.read(view)
            return None if value is None else prop(self.id, value)
        except (ValueError, WireError, UnicodeError) as error:
            where = (*self.attributes, *self.computer_attributes, self.id.name)[0]
            raise BadAttribute(view.entry.name, where, str(error)) from error

    def remark(self, view: EntryView) -> str:
        """Says that the property shows another value than the attribute has; mostly empty."""
        values = view.entry.values(self.attribute) if self.codec is not None else ()
        return self.codec.remark(values) if self.codec is not None and values else ""

    def encode(self, value: Value) -> Octets:
        """The values of the attribute; none if it is to be absent."""
        if self.codec is None:
            raise ValueError(f"{self.id.name} is not written as an attribute")
        return self.codec.encode(value)


def stored(
    id: PropId,  # noqa: A002
    codec: AttributeCodec,
    attribute: str,
    absent: Value,
    uses: Use,
) -> AttributeRow:
    """A property that is one attribute of its entry; ``absent`` None: it has to be there."""

    def read(view: EntryView) -> Value:
        values = view.entry.values(attribute)
        if values:
            return codec.decode(values)
        if absent is None:
            raise ValueError("is missing, or the account may not read it")
        return absent

    return AttributeRow(
        id=id, read=read, attributes=(attribute,), uses=uses, codec=codec, absent=absent
    )


def referring(
    id: PropId,  # noqa: A002
    read: ReadValue,
    attribute: str,
    uses: Use,
    *,
    many: bool = False,
) -> AttributeRow:
    """A property with identifiers of objects whose names the attribute has."""
    row = computed(id, read, attribute, instead=() if many else None)
    return replace(row, uses=uses, reference=NameReference.MANY if many else NameReference.ONE)


def computed(
    id: PropId,  # noqa: A002
    read: ReadValue,
    *attributes: str,
    computer: str = "",
    instead: Value = None,
) -> AttributeRow:
    """A property that is made of attributes and never written or compared as one."""
    needed = (computer,) if computer else ()
    return AttributeRow(
        id=id, read=read, attributes=attributes, computer_attributes=needed, instead=instead
    )


def constant(id: PropId, value: Value) -> AttributeRow:  # noqa: A002
    """A property that Active Directory does not keep; it shows the same for all objects."""
    return AttributeRow(id=id, read=lambda _view: value)
