"""Any decoded value as JSON text: dataclasses as objects, bytes as hexadecimal, codes by name.

The converter of a type is looked up once: captures hold millions of values of a few types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from json import JSONEncoder
from typing import Any

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propvariant import VarType
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber

Convert = Callable[[Any, int], Any]

_encode = JSONEncoder(separators=(",", ":")).encode
_AS_IS = frozenset({str, bool, type(None)})
_AS_TEXT = (Guid, Sid, SequenceNumber, VarType)


def as_text(value: object, longest: int) -> str:
    """The value as JSON; of a byte string at most ``longest`` bytes are shown."""
    return _encode(_plain(value, longest))


def field_names(kind: type) -> tuple[str, ...]:
    """The field names of a dataclass, cached because ``fields`` is slow."""
    found = _NAMES.get(kind)
    if found is None:
        found = _NAMES[kind] = tuple(field.name for field in fields(kind))
    return found


def _plain(value: Any, longest: int) -> Any:
    kind = type(value)
    convert = _CONVERTERS.get(kind)
    if convert is None:
        convert = _CONVERTERS[kind] = _converter(kind)
    return convert(value, longest)


def _converter(kind: type) -> Convert:
    if issubclass(kind, _AS_TEXT):
        return lambda value, _: str(value)
    if issubclass(kind, Flag):
        return lambda value, _: [flag.name for flag in kind if flag in value]
    if issubclass(kind, Enum):
        return lambda value, _: value.name
    if is_dataclass(kind):
        # Fields that begin with an underscore are caches, not parts of the value.
        return _fields([name for name in field_names(kind) if not name.startswith("_")])
    return _CONTAINERS.get(kind, lambda value, _: value)


def _fields(names: list[str]) -> Convert:
    def convert(value: Any, longest: int) -> dict[str, Any]:
        made = {}
        for name in names:
            item = getattr(value, name)
            made[name] = item if type(item) in _AS_IS else _plain(item, longest)
        return made

    return convert


def _octets(value: bytes | memoryview, longest: int) -> str:
    if len(value) <= longest:
        return value.hex()
    return f"{value[:longest].hex()}... ({len(value)} bytes)"


def json_integer(value: int, _longest: int = 0) -> int | str:
    """Integers of more than 64 bits as text: most readers of JSON cannot hold them."""
    return value if value.bit_length() <= 64 else f"0x{value:x}"


def _items(value: Sequence[Any], longest: int) -> list[Any]:
    return [_plain(item, longest) for item in value]


def _dict(value: dict[Any, Any], longest: int) -> dict[str, Any]:
    return {str(key): _plain(item, longest) for key, item in value.items()}


_CONTAINERS: dict[type, Convert] = {
    bytes: _octets,
    memoryview: _octets,
    int: json_integer,
    tuple: _items,
    list: _items,
    PropertyList: _items,
    dict: _dict,
}
_CONVERTERS: dict[type, Convert] = {}
_NAMES: dict[type, tuple[str, ...]] = {}
