"""Values of properties, typed by the catalogue: nobody has to spell a property's variant type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.propvariant import PropVariant, Value

_Id = TypeVar("_Id", bound=int)


def prop(propid: int, value: Value) -> PropVariant:
    """The value with the type that its property has.

    ``ValueError`` for a value that does not fit that type, and for an unknown property.
    """
    found = PROPERTIES.get(propid)
    if found is None:
        raise ValueError(f"there is no property {propid}")
    return PropVariant(found.vt, value)


def pair(propid: _Id, value: Value) -> tuple[_Id, PropVariant]:
    """A property as lists hold it: its identifier, and the value with its type."""
    return propid, prop(propid, value)


def props(values: Mapping[_Id, Value | PropVariant]) -> dict[_Id, PropVariant]:
    """Several properties, each value with the type of its property; a typed value is kept."""
    return {
        propid: value if isinstance(value, PropVariant) else prop(propid, value)
        for propid, value in values.items()
    }
