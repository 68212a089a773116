"""Values of any structure as plain ones: what JSON has, and what trees are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from typing import Any

from mqis.wire.guid import Guid
from mqis.wire.propvariant import VarType
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber


def as_json(value: Any) -> Any:
    """Dataclasses as objects, bytes as hexadecimal, codes by their names."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if is_dataclass(value):
        shown = (field.name for field in fields(value) if field.repr)
        return {name: as_json(getattr(value, name)) for name in shown}
    return value


def _int(value: int) -> int | str:
    """Readers of JSON keep integers of 64 bits at best; a modulus is longer."""
    return value if value.bit_length() <= 64 else f"0x{value:x}"


#: The first that fits; a flag is an enumeration and an integer too.
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((Guid, Sid, SequenceNumber, VarType), str),
    (Flag, lambda value: [flag.name for flag in type(value) if flag in value]),
    (Enum, lambda value: value.name),
    (bool, bool),
    (int, _int),
    (bytes, bytes.hex),
    (dict, lambda value: {str(key): as_json(item) for key, item in value.items()}),
    ((tuple, list), lambda value: [as_json(item) for item in value]),
)
