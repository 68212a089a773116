"""Values as people read them: names for GUIDs, SDDL for descriptors, ``yes`` for 1.

The tables serve the other direction too (``properties.parse_value``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from mqis.protocol.directory.objects import SEQUENCE_PROPERTY, Scope
from mqis.protocol.directory.service import ServiceBits
from mqis.protocol.directory.sources import Names
from mqis.protocol.directory.values import NETWORK_PROTOCOLS, OPERATING_SYSTEMS, PRIVACY_LEVELS
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.address import AddressList
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sddl import to_sddl
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber

_FLAGS = frozenset(
    {
        PropId.Q_JOURNAL,
        PropId.Q_AUTHENTICATE,
        PropId.Q_TRANSACTION,
        PropId.QM_FOREIGN,
        PropId.QM_SERVICE_ROUTING,
        PropId.QM_SERVICE_DSSERVER,
        PropId.QM_SERVICE_DEPCLIENTS,
        PropId.QM_GROUP_IN_CLUSTER,
        PropId.S_NT4_STUB,
        PropId.S_FOREIGN,
    }
)
WORDS: dict[int, dict[int, str]] = {
    **{flag: {0: "no", 1: "yes"} for flag in _FLAGS},
    PropId.Q_SCOPE: {scope.value: scope.name.lower() for scope in Scope},
    PropId.Q_PRIV_LEVEL: PRIVACY_LEVELS,
    PropId.QM_OS: OPERATING_SYSTEMS,
    PropId.CN_PROTOCOLID: NETWORK_PROTOCOLS,
}
TIMES = frozenset(
    {PropId.Q_CREATE_TIME, PropId.Q_MODIFY_TIME, PropId.QM_CREATE_TIME, PropId.QM_MODIFY_TIME}
)
DESCRIPTORS = frozenset(
    {
        PropId.Q_SECURITY,
        PropId.Q_OBJ_SECURITY,
        PropId.QM_SECURITY,
        PropId.QM_OBJ_SECURITY,
        PropId.S_SECURITY,
        PropId.CN_SECURITY,
        PropId.E_SECURITY,
    }
)
SIDS = frozenset({PropId.U_SID, PropId.QM_OWNER_SID})
UNLIMITED = frozenset(
    {PropId.Q_QUOTA, PropId.Q_JOURNAL_QUOTA, PropId.QM_QUOTA, PropId.QM_JOURNAL_QUOTA}
)
#: What a GUID in the property identifies, so that its name can be shown and be asked for.
REFERENCES: dict[int, ObjectType] = {
    PropId.Q_QMID: ObjectType.MACHINE,
    PropId.QM_SITE_ID: ObjectType.SITE,
    PropId.QM_SITE_IDS: ObjectType.SITE,
    PropId.QM_CNS: ObjectType.CN,
    PropId.QM_OUTFRS: ObjectType.MACHINE,
    PropId.QM_INFRS: ObjectType.MACHINE,
    PropId.S_GATES: ObjectType.MACHINE,
    PropId.L_NEIGHBOR1: ObjectType.SITE,
    PropId.L_NEIGHBOR2: ObjectType.SITE,
    PropId.L_GATES: ObjectType.MACHINE,
}


def shown(propid: int, variant: PropVariant | None, names: Names) -> str:
    """A value as people read it."""
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
    if propid in TIMES:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if propid in UNLIMITED and value == 0xFFFFFFFF:
        return "unlimited"
    if propid == PropId.QM_SERVICE:
        bits = [bit.name or "" for bit in ServiceBits if value & bit]
        return ", ".join(bit if len(bit) == 3 else bit.lower() for bit in bits) or "none"
    return WORDS.get(propid, {}).get(value, str(value))


def _octets(propid: int, value: bytes) -> str:
    if not value:
        return ""
    try:
        return _READABLE.get(propid, _hex)(value)
    except (WireError, ValueError):
        return _hex(value)


def _hex(value: bytes) -> str:
    return value.hex() if len(value) <= 24 else f"{value[:16].hex()}... ({len(value)} bytes)"


def _keys(value: bytes) -> str:
    keys = PublicKeys.from_bytes(value).keys
    return "; ".join(f"RSA {key.rsa().bit_length} bits, {key.provider_name}" for key in keys)


def _certificates(value: bytes) -> str:
    listed = UserSignCerts.from_bytes(value).certificates
    return "; ".join(f"{c.digest.hex()} ({len(c.certificate)} bytes)" for c in listed)


_READABLE: dict[int, Callable[[bytes], str]] = {
    **dict.fromkeys(DESCRIPTORS, lambda data: to_sddl(SecurityDescriptor.from_bytes(data))),
    **dict.fromkeys(SIDS, lambda data: str(Sid.from_bytes(data))),
    **dict.fromkeys(
        SEQUENCE_PROPERTY.values(), lambda data: str(SequenceNumber(int.from_bytes(data, "big")))
    ),
    **dict.fromkeys(
        (
            PropId.QM_SIGN_PKS,
            PropId.QM_ENCRYPT_PKS,
            PropId.QM_SIGN_PK,
            PropId.QM_ENCRYPT_PK,
            PropId.S_PSC_SIGNPK,
        ),
        _keys,
    ),
    PropId.QM_ADDRESS: lambda data: str(AddressList.from_bytes(data)),
    PropId.U_SIGN_CERT: _certificates,
}


def _reference(propid: int, value: Guid, names: Names) -> str:
    object_type = REFERENCES.get(propid)
    name = None if object_type is None else names.name_of(object_type, value)
    return str(value) if name is None else name
