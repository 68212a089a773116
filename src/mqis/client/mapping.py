"""The conversion between values of attributes and of properties (MS-MQDS 3.2.6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from mqis.client.elements import (
    CryptographicProvider,
    DirectoryServerType,
    OperatingSystemType,
    PrivacyLevel,
    Scope,
)
from mqis.protocol.directory.types.enterprise import NEW_DIRECTORY, OLD_DIRECTORY
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES, prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import VECTOR, PropVariant, Value, VarType

#: The first property that is private to servers (2.2.10.1).
FIRST_PRIVATE = 1000

_ROUTING_SERVER, _REMOTE_ACCESS_SERVER = 0x01, 0x10


class Conversion(Enum):
    """The conversion of an attribute to a property and back."""

    COPY = auto()
    #: True and False as 1 and 0.
    FLAG = auto()
    #: True and False as 3 and 200.
    OLD_DIRECTORY = auto()
    #: True and False as 1 and 0; a server's default is 2, which means 0.
    NAMESTYLE = auto()
    OPERATING_SYSTEM = auto()
    PRIVACY_LEVEL = auto()
    SCOPE = auto()
    PROVIDER = auto()
    #: Four attributes as bits of one number.
    SERVICE = auto()


@dataclass(frozen=True, slots=True)
class Attribute:
    """A table row: the attributes that a property carries, and the events that use it."""

    names: tuple[str, ...]
    propid: PropId
    conversion: Conversion
    uses: str

    @property
    def created(self) -> bool:
        return "c" in self.uses

    @property
    def read(self) -> bool:
        return "r" in self.uses

    @property
    def filterable(self) -> bool:
        return "f" in self.uses

    @property
    def written(self) -> bool:
        return "w" in self.uses

    @property
    def written_by_default(self) -> bool:
        """False if a server would fail the whole call because of it (3.1.4.21.8.2)."""
        return "d" in self.uses

    @property
    def private(self) -> bool:
        return self.propid >= FIRST_PRIVATE


def python_name(attribute: str) -> str:
    """The Python spelling of an attribute, given in either spelling."""
    if attribute == "SID":  # its name in 3.2.6.1.6
        return "security_identifier"
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", attribute)
    return spaced.lower()


# --- towards the server ---------------------------------------------------------------------------


def property_of(attribute: Attribute, element: object) -> PropVariant:
    """The property value of an element's attribute; ``ValueError`` if it does not fit."""
    if attribute.conversion is Conversion.SERVICE:
        return prop(attribute.propid, _service(element))
    return constant(attribute, getattr(element, attribute.names[0]))


def constant(attribute: Attribute, value: object) -> PropVariant:
    """The property value of an attribute's value; identifiers may be text (MS-MQBR)."""
    vt = PROPERTIES[attribute.propid].vt
    if vt & VECTOR and isinstance(value, (list, Guid, str)):
        value = tuple(value) if isinstance(value, list) else (value,)
    if isinstance(value, tuple):
        return PropVariant(vt, tuple(_identifier(vt, item) for item in value))
    return PropVariant(vt, _identifier(vt, _TO_WIRE[attribute.conversion](value)))


def _identifier(vt: VarType, value: Any) -> Any:
    wanted = vt in (VarType.CLSID, VarType.VECTOR_CLSID) and isinstance(value, str)
    return Guid.parse(value) if wanted else value


def _service(element: object) -> int:
    """The value of PROPID_QM_SERVICE for the populated attributes (3.2.6.1.1.1)."""
    bits = 0
    if getattr(element, "routing_server", None):
        bits |= _ROUTING_SERVER
    if getattr(element, "remote_access_server", None):
        bits |= _REMOTE_ACCESS_SERVER
    kind = getattr(element, "directory_server_type", None)
    if getattr(element, "directory_server", None) and kind is not None:
        bits |= DirectoryServerType(kind)
    return bits


def _no_rule(value: object) -> Value:
    raise ValueError("this attribute cannot be compared with a constant")


_TO_WIRE: dict[Conversion, Callable[[Any], Value]] = {
    Conversion.COPY: lambda value: value,
    Conversion.FLAG: lambda value: 1 if value else 0,
    Conversion.OLD_DIRECTORY: lambda value: OLD_DIRECTORY if value else NEW_DIRECTORY,
    Conversion.NAMESTYLE: lambda value: 1 if value else 0,
    Conversion.OPERATING_SYSTEM: lambda value: int(OperatingSystemType(value)),
    Conversion.PRIVACY_LEVEL: lambda value: int(PrivacyLevel(value)),
    Conversion.SCOPE: lambda value: int(Scope(value)),
    Conversion.PROVIDER: lambda value: CryptographicProvider(value).value,
    Conversion.SERVICE: _no_rule,
}


# --- from the server ------------------------------------------------------------------------------


def attribute_of(
    attribute: Attribute, name: str, values: Mapping[PropId, PropVariant]
) -> object | None:
    """The value of an attribute by these properties; None if they do not tell.

    A value of another variant type (VT_EMPTY and VT_NULL included) or outside its table leaves the
    attribute unpopulated: no rule covers it.
    """
    found = values.get(attribute.propid)
    if found is None or found.vt is not PROPERTIES[attribute.propid].vt:
        return None
    if attribute.conversion is Conversion.SERVICE:
        return _from_service(name, found.value, values)
    return _FROM_WIRE[attribute.conversion](found.value)


def _from_service(name: str, bits: Any, values: Mapping[PropId, PropVariant]) -> object | None:
    if name == "remote_access_server":
        return bool(bits & _REMOTE_ACCESS_SERVER)
    flag = values.get(PropId.QM_SERVICE_DSSERVER)
    if flag is None or flag.value != 1:  # 3.2.6.3.1.1
        return None
    # If several bits are set, the highest one counts.
    return next(kind for kind in reversed(DirectoryServerType) if bits & kind or not kind)


def _member(enumeration: type[Enum]) -> Callable[[Any], object | None]:
    known = {member.value: member for member in enumeration}
    return known.get


_FROM_WIRE: dict[Conversion, Callable[[Any], object | None]] = {
    Conversion.COPY: lambda value: value,
    Conversion.FLAG: {1: True, 0: False}.get,
    Conversion.OLD_DIRECTORY: lambda value: value == OLD_DIRECTORY,
    Conversion.NAMESTYLE: {0: False, 1: True, 2: False}.get,
    Conversion.OPERATING_SYSTEM: _member(OperatingSystemType),
    Conversion.PRIVACY_LEVEL: _member(PrivacyLevel),
    Conversion.SCOPE: _member(Scope),
    Conversion.PROVIDER: _member(CryptographicProvider),
}
