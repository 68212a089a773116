"""From a supplied value to the stored one: conversions and checks of MS-MQDS 3.1.4.21.8.

Each entry takes the bare value and gives back what to store, or raises ``ValueError`` with what
is wrong; a property without an entry is copied.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.address import AddressList
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_AES_PROVIDER,
    ENHANCED_PROVIDER,
    PublicKeys,
)
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

#: Costs of routing links (812); reading 803 adds the same number per foreign end.
MAX_LINK_COST = 999_999
MAX_LABEL = 124

#: PROPID_QM_OS (MS-MQDS 3.1.4.21.8.1.3).
OPERATING_SYSTEMS = {
    0x000: "unknown",
    0x100: "foreign",
    0x200: "Windows 95",
    0x300: "Windows client",
    0x400: "Windows server",
    0x500: "Windows enterprise server",
}
PRIVACY_LEVELS = {0: "none", 1: "optional", 2: "body"}
NETWORK_PROTOCOLS = {1: "IP", 3: "IPX", 5: "foreign"}
OLD_DIRECTORY, NEW_DIRECTORY = 3, 200


def stored_value(propid: PropId, variant: PropVariant) -> PropVariant:
    """What to store for a supplied value, or ``DirectoryError``."""
    entry = PROPERTIES[propid]
    if variant.vt is not entry.vt:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
            f"{entry.name} is {entry.vt}, not {variant.vt}",
        )
    convert = _CONVERSIONS.get(propid)
    if convert is None:
        return variant
    try:
        converted = convert(variant.value)
        return variant if converted is variant.value else PropVariant(variant.vt, converted)
    except (ValueError, WireError) as error:
        code = _CODES.get(propid, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE)
        raise DirectoryError(code, f"{entry.name}: {error}") from error


def _flag(value: Value) -> Value:
    """1 means true, anything else false."""
    return int(value == 1)


def _one_of(known: dict[int, str]) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        if value not in known:
            meanings = ", ".join(f"{number} ({word})" for number, word in known.items())
            raise ValueError(f"{value!r} is none of {meanings}")
        return value

    return convert


def _label(value: Value) -> Value:
    """Windows counts UTF-16 units, of which a character beyond the BMP has two."""
    if isinstance(value, str) and len(value.encode("utf-16-le", "surrogatepass")) > 2 * MAX_LABEL:
        raise ValueError(f"a label has at most {MAX_LABEL} UTF-16 units")
    return value


def _site(value: Value) -> Value:
    """A null site would put the machine in the enterprise's partition."""
    if not value:
        raise ValueError("the null GUID is not a site")
    return value


def _sites(value: Value) -> Value:
    if not isinstance(value, tuple) or not value:
        raise ValueError("the list must not be empty")
    return tuple(map(_site, value))  # type: ignore[arg-type]


def _cost(value: Value) -> Value:
    if not isinstance(value, int) or not 1 <= value <= MAX_LINK_COST:
        raise ValueError(f"a link costs 1 to {MAX_LINK_COST}, not {value!r}")
    return value


def _name_style(value: Value) -> Value:
    """2 is the internal default and acts as 0."""
    if value not in (0, 1, 2):
        raise ValueError(f"{value!r} is none of 0, 1, 2")
    return int(value == 1)


def _provider(value: Value) -> Value:
    if value not in (BASE_PROVIDER, ENHANCED_PROVIDER, ENHANCED_AES_PROVIDER):
        raise ValueError(f"{value!r} is not a known cryptographic provider")
    return value


def _version(value: Value) -> Value:
    return OLD_DIRECTORY if value == OLD_DIRECTORY else NEW_DIRECTORY


def _parsed(parse: Callable[[bytes], object]) -> Callable[[Value], Value]:
    """The bytes as they are, once ``parse`` accepts them. No bytes mean that there is nothing."""

    def convert(value: Value) -> Value:
        if isinstance(value, bytes) and value:
            parse(value)
        return value

    return convert


def _certificates(data: bytes) -> object:
    """A list, or one bare certificate, which the event wraps with an identifier (events.py)."""
    return UserSignCerts.from_property(data, Guid.NULL)


def _keys(data: bytes) -> None:
    """A key that cannot be read could never be used: it is refused now, not when it is needed."""
    for key in PublicKeys.from_bytes(data).keys:
        key.rsa()


_KEYS = _parsed(_keys)
_DESCRIPTOR = _parsed(SecurityDescriptor.from_bytes)

_CONVERSIONS: dict[int, Callable[[Value], Value]] = {
    PropId.Q_JOURNAL: _flag,
    PropId.Q_LABEL: _label,
    PropId.Q_AUTHENTICATE: _flag,
    PropId.Q_PRIV_LEVEL: _one_of(PRIVACY_LEVELS),
    PropId.Q_TRANSACTION: _flag,
    PropId.Q_SCOPE: _one_of({0: "site", 1: "enterprise"}),
    PropId.Q_SECURITY: _DESCRIPTOR,
    PropId.Q_OBJ_SECURITY: _DESCRIPTOR,
    PropId.QM_SITE_ID: _site,
    PropId.QM_ADDRESS: _parsed(AddressList.from_bytes),
    PropId.QM_FOREIGN: _flag,
    PropId.QM_OS: _one_of(OPERATING_SYSTEMS),
    PropId.QM_SITE_IDS: _sites,
    PropId.QM_SERVICE_ROUTING: _flag,
    PropId.QM_SERVICE_DSSERVER: _flag,
    PropId.QM_SERVICE_DEPCLIENTS: _flag,
    PropId.QM_GROUP_IN_CLUSTER: _flag,
    PropId.QM_ENCRYPT_PKS: _KEYS,
    PropId.QM_SIGN_PKS: _KEYS,
    PropId.QM_SIGN_PK: _KEYS,
    PropId.QM_ENCRYPT_PK: _KEYS,
    PropId.QM_SECURITY: _DESCRIPTOR,
    PropId.QM_OBJ_SECURITY: _DESCRIPTOR,
    PropId.S_NT4_STUB: _flag,
    PropId.S_FOREIGN: _flag,
    PropId.S_SECURITY: _DESCRIPTOR,
    PropId.S_PSC_SIGNPK: _KEYS,
    PropId.CN_PROTOCOLID: _one_of(NETWORK_PROTOCOLS),
    PropId.CN_SECURITY: _DESCRIPTOR,
    PropId.E_NAMESTYLE: _name_style,
    PropId.E_CSP_NAME: _provider,
    PropId.E_VERSION: _version,
    PropId.E_SECURITY: _DESCRIPTOR,
    PropId.U_SID: _parsed(Sid.from_bytes),
    PropId.U_SIGN_CERT: _parsed(_certificates),
    PropId.L_COST: _cost,
    PropId.L_ACTUAL_COST: _cost,
}

#: Where a wrong value has a code of its own.
_CODES: dict[int, HResult] = {
    **dict.fromkeys(
        (
            PropId.QM_ENCRYPT_PKS,
            PropId.QM_SIGN_PKS,
            PropId.QM_SIGN_PK,
            PropId.QM_ENCRYPT_PK,
            PropId.S_PSC_SIGNPK,
        ),
        HResult.MQ_ERROR_INVALID_PARAMETER,
    ),
    **dict.fromkeys(
        (
            PropId.Q_SECURITY,
            PropId.Q_OBJ_SECURITY,
            PropId.QM_SECURITY,
            PropId.QM_OBJ_SECURITY,
            PropId.S_SECURITY,
            PropId.CN_SECURITY,
            PropId.E_SECURITY,
        ),
        HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR,
    ),
}
