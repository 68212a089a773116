"""Converts values of any structure to plain values, for JSON and trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from typing import Any

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propvariant import VarType
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber


def as_json(value: Any) -> Any:
    """Converts a value: dataclasses to objects, bytes to hexadecimal, codes to names."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if is_dataclass(value):
        shown = (field.name for field in fields(value) if field.repr)
        return {name: as_json(getattr(value, name)) for name in shown}
    return value


def _int(value: int) -> int | str:
    """Converts integers over 64 bits to text: readers of JSON cannot keep them."""
    return value if value.bit_length() <= 64 else f"0x{value:x}"


#: Conversions by type; the first match counts, as a flag is an enumeration and an integer too.
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((Guid, Sid, SequenceNumber, VarType), str),
    (Flag, lambda value: [flag.name for flag in type(value) if flag in value]),
    (Enum, lambda value: value.name),
    (bool, bool),
    (int, _int),
    (bytes, bytes.hex),
    (dict, lambda value: {str(key): as_json(item) for key, item in value.items()}),
    ((tuple, list, PropertyList), lambda value: [as_json(item) for item in value]),
)
