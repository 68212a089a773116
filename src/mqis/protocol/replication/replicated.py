"""Which properties travel (MC-MQDSRP 3.2.7.8, column DirectoryChangePropID), and as what.

The directory stores some of them under other identifiers. What is not listed stays with the
authority: a replica could never get it by synchronisation, so propagation does not carry it either
and replicas are equal whichever way a change came.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.rules import STORED_AS
from mqis.protocol.directory.service import Service
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import prop
from mqis.wire.propvariant import PropVariant, Value, VarType

_P = PropId

#: In the order of the table.
REPLICATED: dict[ObjectType, tuple[PropId, ...]] = {
    ObjectType.SITE: (
        _P.S_GATES,
        _P.S_INTERVAL1,
        _P.S_INTERVAL2,
        _P.S_PATHNAME,
        _P.S_PSC,
        _P.S_PSC_SIGNPK,
        _P.S_SECURITY,
    ),
    ObjectType.CN: (_P.CN_NAME, _P.CN_PROTOCOLID, _P.CN_SECURITY),
    ObjectType.ENTERPRISE: (
        _P.E_NAME,
        _P.E_NAMESTYLE,
        _P.E_CSP_NAME,
        _P.E_PECNAME,
        _P.E_LONG_LIVE,
        _P.E_VERSION,
        _P.E_SECURITY,
        _P.E_S_INTERVAL1,
        _P.E_S_INTERVAL2,
        _P.E_CRL,
        _P.E_CSP_TYPE,
        _P.E_ENCRYPT_ALG,
        _P.E_SIGN_ALG,
        _P.E_HASH_ALG,
        _P.E_CIPHER_MODE,
    ),
    ObjectType.USER: (_P.U_SID, _P.U_DIGEST, _P.U_SIGN_CERT),
    ObjectType.ROUTINGLINK: (_P.L_COST, _P.L_NEIGHBOR1, _P.L_NEIGHBOR2),
    ObjectType.MACHINE: (
        _P.QM_FOREIGN,
        _P.QM_QUOTA,
        _P.QM_JOURNAL_QUOTA,
        _P.QM_CNS,
        _P.QM_MACHINE_TYPE,
        _P.QM_OS,
        _P.QM_ADDRESS,
        _P.QM_CREATE_TIME,
        _P.QM_ENCRYPT_PK,
        _P.QM_INFRS,
        _P.QM_MODIFY_TIME,
        _P.QM_OUTFRS,
        _P.QM_PATHNAME,
        _P.QM_SERVICE,
        _P.QM_SIGN_PK,
        _P.QM_SITE_ID,
        _P.QM_SECURITY,
        _P.QM_HASHKEY,
    ),
    ObjectType.QUEUE: (
        _P.Q_SCOPE,
        _P.Q_QMID,
        _P.Q_TYPE,
        _P.Q_BASEPRIORITY,
        _P.Q_JOURNAL,
        _P.Q_QUOTA,
        _P.Q_JOURNAL_QUOTA,
        _P.Q_CREATE_TIME,
        _P.Q_MODIFY_TIME,
        _P.Q_PATHNAME,
        _P.Q_LABEL,
        _P.Q_AUTHENTICATE,
        _P.Q_PRIV_LEVEL,
        _P.Q_TRANSACTION,
        _P.Q_SECURITY,
        _P.Q_HASHKEY,
        _P.Q_LABEL_HASHKEY,
    ),
}
#: Listed but without a meaning: zero goes out, and what comes in is not kept (E68).
FILLERS: frozenset[int] = frozenset(
    {
        _P.Q_HASHKEY,
        _P.Q_LABEL_HASHKEY,
        _P.QM_HASHKEY,
        _P.E_S_INTERVAL1,
        _P.E_S_INTERVAL2,
        _P.E_CRL,
        _P.E_CSP_TYPE,
        _P.E_ENCRYPT_ALG,
        _P.E_SIGN_ALG,
        _P.E_HASH_ALG,
        _P.E_CIPHER_MODE,
    }
)


#: Under which identifier the directory stores each.
_STORED_AS: dict[int, PropId] = {
    propid: PropId.QM_SITE_IDS if propid is PropId.QM_SITE_ID else STORED_AS.get(propid, propid)
    for listed in REPLICATED.values()
    for propid in listed
    if propid not in FILLERS
}
#: From a stored property to the one that it travels as.
TRAVELS_AS: dict[int, PropId] = {
    **{stored: PropId(propid) for propid, stored in _STORED_AS.items()},
    PropId.QM_SERVICE_DSSERVER: PropId.QM_SERVICE,
}

_ZEROS: dict[VarType, Value] = {
    VarType.UI1: 0,
    VarType.I2: 0,
    VarType.UI2: 0,
    VarType.I4: 0,
    VarType.UI4: 0,
    VarType.LPWSTR: "",
    VarType.BLOB: b"",
    VarType.CLSID: Guid.NULL,
    VarType.VECTOR_CLSID: (),
}


@cache
def _zero(propid: int) -> PropVariant:
    """What a property is sent as that has no value: the type has to be right (E68)."""
    entry = PROPERTIES[propid]
    return entry.default or PropVariant(entry.vt, _ZEROS[entry.vt])


def sent_value(obj: DirectoryObject, propid: PropId) -> PropVariant:
    """What a replicated property of an object is on the wire."""
    stored = _STORED_AS.get(propid)
    if stored is None:
        return _zero(propid)
    if propid is PropId.QM_SERVICE:
        return prop(propid, Service.of(obj).bits)
    found = obj.properties.get(stored)
    if found is None:
        return _zero(propid)
    if stored is propid:
        return found
    if propid is PropId.QM_SITE_ID:
        sites = found.value
        first = sites[0] if isinstance(sites, tuple) and sites else None
        return prop(propid, first if isinstance(first, Guid) else Guid.NULL)
    return prop(propid, found.value)


def whole_object(obj: DirectoryObject) -> tuple[tuple[int, PropVariant], ...]:
    """Everything that travels of an object, as a synchronisation sends it."""
    return tuple([(propid, sent_value(obj, propid)) for propid in REPLICATED[obj.type]])


def changed_properties(
    obj: DirectoryObject, changed: Iterable[int]
) -> tuple[tuple[int, PropVariant], ...]:
    """What travels of some changed properties. There is always one: it tells the type (E59)."""
    wanted = {TRAVELS_AS[propid] for propid in changed if propid in TRAVELS_AS}
    if not wanted:
        wanted = {REPLICATED[obj.type][0]}
    listed = (propid for propid in REPLICATED[obj.type] if propid in wanted)
    return tuple((propid, sent_value(obj, propid)) for propid in listed)


def content(obj: DirectoryObject) -> dict[int, PropVariant]:
    """What two replicas of an object have to agree on."""
    listed = (propid for propid in REPLICATED[obj.type] if propid not in FILLERS)
    return {propid: sent_value(obj, propid) for propid in listed}
