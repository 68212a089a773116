"""Renders values as text: names for GUIDs, SDDL for descriptors, ``yes`` for 1.

The row of each property says what its values mean (``protocol.directory.types``). The tables serve
the other direction too (``properties.parse_value``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.object_sources import ReferenceNames
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.property_words import NUMBER_WORDS
from mqis.protocol.directory.types.row_columns import UNLIMITED, ValueMeaning
from mqis.texts import iso_moment
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.machine_address import AddressList
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import to_sddl
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber

WORDS: dict[int, Mapping[int, str]] = NUMBER_WORDS
#: The type of what a GUID in the property identifies, so that people read and write its name.
REFERENCES: dict[int, ObjectType] = {
    row.id: row.refers_to for row in ROWS.values() if row.refers_to is not None
}
_MEANINGS: dict[int, ValueMeaning] = {row.id: row.meaning for row in ROWS.values()}


def meaning_of(propid: int) -> ValueMeaning:
    """Returns the meaning of a property's value; ``PLAIN`` for one that nobody knows."""
    return _MEANINGS.get(propid, ValueMeaning.PLAIN)


def shown(propid: int, variant: PropVariant | None, names: ReferenceNames) -> str:
    """Renders a value of a property as text."""
    if variant is None or variant.value is None:
        return ""
    value = variant.value
    if isinstance(value, int):
        return _number(propid, value)
    if isinstance(value, bytes):
        return _octets(propid, value)
    if isinstance(value, Guid):
        return _reference(propid, value, names)
    if isinstance(value, tuple):
        return ", ".join(shown(propid, _element(v), names) for v in value)
    return str(value)


def _element(value: int | str | Guid | PropVariant) -> PropVariant:
    if isinstance(value, PropVariant):
        return value
    kinds: dict[type, VarType] = {int: VarType.UI8, str: VarType.LPWSTR, Guid: VarType.CLSID}
    vt = kinds[type(value)]
    return PropVariant(VarType.I8 if isinstance(value, int) and value < 0 else vt, value)


def _number(propid: int, value: int) -> str:
    meaning = meaning_of(propid)
    if meaning is ValueMeaning.TIME:
        return iso_moment(value * 1_000_000, 0)
    if meaning is ValueMeaning.QUOTA and value == UNLIMITED:
        return "unlimited"
    if meaning is ValueMeaning.SERVICE:
        bits = [bit.name or "" for bit in ServiceBits if value & bit]
        return ", ".join(bit if len(bit) == 3 else bit.lower() for bit in bits) or "none"
    return WORDS.get(propid, {}).get(value, str(value))


def _octets(propid: int, value: bytes) -> str:
    if not value:
        return ""
    try:
        return _READABLE.get(meaning_of(propid), _hex)(value)
    except (WireError, ValueError):
        return _hex(value)


def cell_text(value: object) -> str:
    """A value of a table of the pipeline, without the marks of a programming language."""
    match value:
        case None:
            text = ""
        case bool():
            text = "yes" if value else "no"
        case float():
            text = str(round(value, 3))
        case bytes() | bytearray():
            text = str(Guid(bytes(value))) if len(value) == 16 else value.hex()
        case list() | tuple():
            text = ", ".join(map(cell_text, value))
        case Mapping():
            text = ", ".join(f"{key}={cell_text(item)}" for key, item in value.items())
        case _:
            text = str(value)
    return text


def _hex(value: bytes) -> str:
    return value.hex() if len(value) <= 24 else f"{value[:16].hex()}... ({len(value)} bytes)"


def _keys(value: bytes) -> str:
    keys = PublicKeys.from_bytes(value).keys
    return "; ".join(f"RSA {key.rsa().bit_length} bits, {key.provider_name}" for key in keys)


def _certificates(value: bytes) -> str:
    listed = UserSignCerts.from_bytes(value).certificates
    return "; ".join(f"{c.digest.hex()} ({len(c.certificate)} bytes)" for c in listed)


_READABLE: dict[ValueMeaning, Callable[[bytes], str]] = {
    ValueMeaning.DESCRIPTOR: lambda data: to_sddl(SecurityDescriptor.from_bytes(data)),
    ValueMeaning.SID: lambda data: str(Sid.from_bytes(data)),
    ValueMeaning.SEQUENCE: lambda data: str(SequenceNumber.from_bytes(data)),
    ValueMeaning.KEYS: _keys,
    ValueMeaning.ADDRESSES: lambda data: str(AddressList.from_bytes(data)),
    ValueMeaning.CERTIFICATES: _certificates,
}


def _reference(propid: int, value: Guid, names: ReferenceNames) -> str:
    object_type = REFERENCES.get(propid)
    name = None if object_type is None else names.name_of(object_type, value)
    return str(value) if name is None else name
