"""Values of LDAP attributes as values of properties, and back (MS-MQDSSM 2.2.2).

A codec gets all values of an attribute, at least one. What does not fit raises ``ValueError`` with
the reason; the row that uses the codec adds entry and attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mqis.protocol.directory.types.enterprise import NEW_DIRECTORY, OLD_DIRECTORY
from mqis.protocol.directory.types.ldap import AttributeSyntax
from mqis.protocol.directory.types.machine import OPERATING_SYSTEMS
from mqis.texts import counted
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName, ExtendedName
from mqis.wire.propvariant import Value
from mqis.wire.security.sid import Sid

Octets = tuple[bytes, ...]

_INTEGER = re.compile(rb"-?[0-9]{1,10}")
_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d{1,9})?Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGNED_32 = 1 << 31


def _always(_constant: Value) -> bool:
    return True


def _never(_constant: Value) -> bool:
    return False


def _fits(_values: Octets) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class AttributeCodec:
    """How values are converted, and how far the server compares them as the property does."""

    decode: Callable[[Octets], Value]
    encode: Callable[[Value], Octets]
    #: The server has the order of the property.
    ordered: bool = False
    #: Every entry whose property equals the constant has the constant's value.
    finds: Callable[[Value], bool] = _always
    #: And no other entry has it: what the server finds different shows something different.
    distinguishes: bool = True
    #: Says what the property shows instead of values that it cannot hold; empty if it holds them.
    remark: Callable[[Octets], str] = _fits


def _single(values: Octets) -> bytes:
    if len(values) != 1:
        raise ValueError(f"has {counted(len(values), 'value')}, not one")
    return values[0]


def _integer(value: bytes) -> int:
    """Integers are signed; 4294967295 is taken for -1, as Active Directory takes it."""
    if not _INTEGER.fullmatch(value):
        raise ValueError(f"{value[:40]!r} is not an integer")
    number = int(value)
    if not -_SIGNED_32 <= number < 2 * _SIGNED_32:
        raise ValueError(f"{number} does not fit 32 bits")
    return number


def _wanted(value: Value, kind: type) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not {kind.__name__}")


def _decode_flag(values: Octets) -> Value:
    """Of an attribute with several values, any TRUE counts (mSMQSiteForeign has many)."""
    if not all(value in (b"TRUE", b"FALSE") for value in values):
        raise ValueError(f"{values[0][:40]!r} is neither TRUE nor FALSE")
    return int(b"TRUE" in values)


def _encode_flag(value: Value) -> Octets:
    return (b"TRUE" if value == 1 else b"FALSE",)


def _decode_unsigned(values: Octets) -> Value:
    return _integer(_single(values)) & 0xFFFFFFFF


def _encode_unsigned(value: Value) -> Octets:
    _wanted(value, int)
    assert isinstance(value, int)
    return (b"%d" % (value - 2 * _SIGNED_32 if value >= _SIGNED_32 else value),)


def _between(low: int, high: int) -> Callable[[Value], bool]:
    """The ends stand for everything beyond them as well."""
    return lambda constant: isinstance(constant, int) and low < constant < high


def _small(low: int, high: int) -> AttributeCodec:
    """A number of 16 bits; the nearest is shown of one that has more (E-MQDSSM-60)."""

    def decode(values: Octets) -> Value:
        return min(max(_integer(_single(values)), low), high)

    def remark(values: Octets) -> str:
        number = _integer(_single(values))
        shown = min(max(number, low), high)
        return "" if shown == number else f"{number} does not fit: it is {shown} here"

    finds = _between(low, high)
    return AttributeCodec(decode, _encode_integer, ordered=True, finds=finds, remark=remark)


def _encode_integer(value: Value) -> Octets:
    _wanted(value, int)
    return (b"%d" % value,)  # type: ignore[str-format]


def _decode_privacy(values: Octets) -> Value:
    number = _integer(_single(values))
    if not 0 <= number <= 2:
        raise ValueError(f"{number} is none of 0, 1, 2")
    return number


def _decode_system(values: Octets) -> Value:
    number = _integer(_single(values))
    return number if number in OPERATING_SYSTEMS else 0


def _decode_stub(values: Octets) -> Value:
    return int(any(_integer(value) for value in values))


def _decode_version(values: Octets) -> Value:
    return NEW_DIRECTORY if _integer(_single(values)) >= NEW_DIRECTORY else OLD_DIRECTORY


def _decode_text(values: Octets) -> Value:
    text = values[0].decode()  # of several, such as descriptions, the first
    if "\0" in text:
        raise ValueError("has a zero character")
    return text


def _encode_text(value: Value) -> Octets:
    """An empty text is no value: a directory refuses it (E-MQDSSM-20)."""
    _wanted(value, str)
    assert isinstance(value, str)
    return (value.encode(),) if value else ()


def _decode_guid(values: Octets) -> Value:
    return Guid(_single(values))


def _encode_guid(value: Value) -> Octets:
    _wanted(value, Guid)
    assert isinstance(value, Guid)
    return (value.raw,)


def _decode_guids(values: Octets) -> Value:
    return tuple(map(Guid, values))


def _encode_guids(value: Value) -> Octets:
    """Values are a set: a duplicate is refused."""
    _wanted(value, tuple)
    assert isinstance(value, tuple)
    return tuple(dict.fromkeys(guid.raw for guid in value if isinstance(guid, Guid)))


def _decode_octets(values: Octets) -> Value:
    return _single(values)


def _encode_octets(value: Value) -> Octets:
    _wanted(value, bytes)
    assert isinstance(value, bytes)
    return (value,) if value else ()


def _decode_sid(values: Octets) -> Value:
    try:
        return Sid.from_bytes(_single(values)).to_bytes()
    except WireError as error:
        raise ValueError(f"is not a SID: {error}") from error


def _decode_name(values: Octets) -> Value:
    """Without the identifiers that the extended-DN control puts before it."""
    return str(_extended(_single(values)).name)


def _extended(value: bytes) -> ExtendedName:
    try:
        return ExtendedName.parse(value.decode())
    except WireError as error:
        raise ValueError(f"{value[:40]!r} is not a distinguished name") from error


def _decode_names(values: Octets) -> Value:
    """Names in the order of their identifiers, as the property with those has them."""
    kept = [name for name in map(_extended, values) if not name.is_deleted]
    return tuple(str(name.name) for name in sorted(kept, key=lambda n: n.guid or Guid.NULL))


def _encode_name(value: Value) -> Octets:
    """The name as a directory writes it; ``ValueError`` for a text that is none."""
    _wanted(value, str)
    assert isinstance(value, str)
    try:
        return (str(DistinguishedName.parse(value)).encode(),)
    except WireError as error:
        raise ValueError(f"{value[:40]!r} is not a distinguished name") from error


def _encode_names(value: Value) -> Octets:
    _wanted(value, tuple)
    assert isinstance(value, tuple)
    names = [name if isinstance(name, str) else "" for name in value]
    return tuple(octets for name in names for octets in _encode_name(name))


def _decode_time(values: Octets) -> Value:
    """Seconds since 1970, which end in 2038 on the wire."""
    match = _TIME.fullmatch(_single(values))
    if match is None:
        raise ValueError(f"{values[0][:40]!r} is not a time in UTC, YYYYMMDDhhmmss.0Z")
    moment = datetime(*map(int, match.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
    return min(max(int(moment.timestamp()), 0), _SIGNED_32 - 1)


def _encode_time(value: Value) -> Octets:
    _wanted(value, int)
    assert isinstance(value, int)
    return ((_EPOCH + timedelta(seconds=value)).strftime("%Y%m%d%H%M%S.0Z").encode(),)


def _is_flag(constant: Value) -> bool:
    return constant in (0, 1)


def _is_system(constant: Value) -> bool:
    """Zero stands for every number that is none of the known ones."""
    return constant != 0 and constant in OPERATING_SYSTEMS


def _is_ascii(constant: Value) -> bool:
    """The server folds the case of other letters in its own way.

    One letter outside ASCII has its lower case inside: the Kelvin sign is not found by a k.
    """
    return isinstance(constant, str) and constant.isascii()


FLAG = AttributeCodec(_decode_flag, _encode_flag, finds=_is_flag)
#: Of an attribute with several values: it can have both.
ANY_FLAG = replace(FLAG, distinguishes=False)
#: Compared by the server as a signed number, so its order is not the property's.
UNSIGNED = AttributeCodec(_decode_unsigned, _encode_unsigned)
UNSIGNED_16 = _small(0, 0xFFFF)
SIGNED_16 = _small(-0x8000, 0x7FFF)
PRIVACY = AttributeCodec(_decode_privacy, _encode_integer, ordered=True)
SYSTEM = AttributeCodec(_decode_system, _encode_integer, finds=_is_system)
STUB = AttributeCodec(_decode_stub, _encode_integer, finds=_never)
VERSION = AttributeCodec(_decode_version, _encode_integer, finds=_never)
#: The server ignores more than case: blanks at the ends, and on Windows accents.
TEXT = AttributeCodec(_decode_text, _encode_text, finds=_is_ascii, distinguishes=False)
GUID = AttributeCodec(_decode_guid, _encode_guid)
#: Of an attribute with several values, of which the property shows one.
ANY_GUID = replace(GUID, distinguishes=False)
GUIDS = AttributeCodec(_decode_guids, _encode_guids)
OCTETS = AttributeCodec(_decode_octets, _encode_octets)
#: The server takes two spellings of a name for one.
NAME = AttributeCodec(_decode_name, _encode_name, distinguishes=False)
NAMES = AttributeCodec(_decode_names, _encode_names, distinguishes=False)
SID = AttributeCodec(_decode_sid, _encode_octets)
TIME = AttributeCodec(_decode_time, _encode_time, ordered=True, finds=_between(0, _SIGNED_32 - 1))

BY_SYNTAX = {
    AttributeSyntax.FLAG: FLAG,
    AttributeSyntax.ANY_FLAG: ANY_FLAG,
    AttributeSyntax.UNSIGNED: UNSIGNED,
    AttributeSyntax.UNSIGNED_16: UNSIGNED_16,
    AttributeSyntax.SIGNED_16: SIGNED_16,
    AttributeSyntax.PRIVACY: PRIVACY,
    AttributeSyntax.SYSTEM: SYSTEM,
    AttributeSyntax.STUB: STUB,
    AttributeSyntax.VERSION: VERSION,
    AttributeSyntax.TEXT: TEXT,
    AttributeSyntax.GUID: GUID,
    AttributeSyntax.ANY_GUID: ANY_GUID,
    AttributeSyntax.GUIDS: GUIDS,
    AttributeSyntax.OCTETS: OCTETS,
    AttributeSyntax.SID: SID,
    AttributeSyntax.TIME: TIME,
    AttributeSyntax.DN: NAME,
    AttributeSyntax.DN_LIST: NAMES,
}
