"""The property catalogue (MS-MQMQ 2.3).

The rows of its table are written by tools/generate_catalogue.py from docs/spec/mqds-properties.csv.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.objecttype import ObjectType as T
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.propvariant import VarType as V

# --- One property of the catalogue ----------------------------------------------------------------
# ``protocol.directory.types`` says what it means, and who may read and write it.


@dataclass(frozen=True, slots=True)
class Property:
    """One identifier: the type of object that has it, and the variant type of its value."""

    id: PropId
    object_type: ObjectType
    vt: VarType

    @property
    def name(self) -> str:
        """The specification's name, such as PROPID_Q_LABEL."""
        return f"PROPID_{self.id.name}"


# --- The property catalogue (MS-MQMQ 2.3) ---------------------------------------------------------

# identifier, object type, variant type
_TABLE: tuple[tuple[P, T, V], ...] = (
    (P.Q_INSTANCE, T.QUEUE, V.CLSID),
    (P.Q_TYPE, T.QUEUE, V.CLSID),
    (P.Q_PATHNAME, T.QUEUE, V.LPWSTR),
    (P.Q_JOURNAL, T.QUEUE, V.UI1),
    (P.Q_QUOTA, T.QUEUE, V.UI4),
    (P.Q_BASEPRIORITY, T.QUEUE, V.I2),
    (P.Q_JOURNAL_QUOTA, T.QUEUE, V.UI4),
    (P.Q_LABEL, T.QUEUE, V.LPWSTR),
    (P.Q_CREATE_TIME, T.QUEUE, V.I4),
    (P.Q_MODIFY_TIME, T.QUEUE, V.I4),
    (P.Q_AUTHENTICATE, T.QUEUE, V.UI1),
    (P.Q_PRIV_LEVEL, T.QUEUE, V.UI4),
    (P.Q_TRANSACTION, T.QUEUE, V.UI1),
    (P.Q_SCOPE, T.QUEUE, V.UI1),
    (P.Q_QMID, T.QUEUE, V.CLSID),
    (P.Q_PARTITIONID, T.QUEUE, V.CLSID),
    (P.Q_SEQNUM, T.QUEUE, V.BLOB),
    (P.Q_HASHKEY, T.QUEUE, V.UI4),
    (P.Q_LABEL_HASHKEY, T.QUEUE, V.UI4),
    (P.Q_FULL_PATH, T.QUEUE, V.LPWSTR),
    (P.Q_NAME_SUFFIX, T.QUEUE, V.LPWSTR),
    (P.Q_PATHNAME_DNS, T.QUEUE, V.LPWSTR),
    (P.Q_MULTICAST_ADDRESS, T.QUEUE, V.LPWSTR),
    (P.Q_ADS_PATH, T.QUEUE, V.LPWSTR),
    (P.QM_SITE_ID, T.MACHINE, V.CLSID),
    (P.QM_MACHINE_ID, T.MACHINE, V.CLSID),
    (P.QM_PATHNAME, T.MACHINE, V.LPWSTR),
    (P.QM_ENCRYPTION_PK, T.MACHINE, V.VECTOR_UI1),
    (P.QM_ADDRESS, T.MACHINE, V.BLOB),
    (P.QM_CNS, T.MACHINE, V.VECTOR_CLSID),
    (P.QM_OUTFRS, T.MACHINE, V.VECTOR_CLSID),
    (P.QM_INFRS, T.MACHINE, V.VECTOR_CLSID),
    (P.QM_SERVICE, T.MACHINE, V.UI4),
    (P.QM_PARTITIONID, T.MACHINE, V.CLSID),
    (P.QM_HASHKEY, T.MACHINE, V.UI4),
    (P.QM_SEQNUM, T.MACHINE, V.BLOB),
    (P.QM_QUOTA, T.MACHINE, V.UI4),
    (P.QM_JOURNAL_QUOTA, T.MACHINE, V.UI4),
    (P.QM_MACHINE_TYPE, T.MACHINE, V.LPWSTR),
    (P.QM_CREATE_TIME, T.MACHINE, V.I4),
    (P.QM_MODIFY_TIME, T.MACHINE, V.I4),
    (P.QM_FOREIGN, T.MACHINE, V.UI1),
    (P.QM_OS, T.MACHINE, V.UI4),
    (P.QM_FULL_PATH, T.MACHINE, V.LPWSTR),
    (P.QM_SITE_IDS, T.MACHINE, V.VECTOR_CLSID),
    (P.QM_OUTFRS_DN, T.MACHINE, V.VECTOR_LPWSTR),
    (P.QM_INFRS_DN, T.MACHINE, V.VECTOR_LPWSTR),
    (P.QM_SERVICE_ROUTING, T.MACHINE, V.UI1),
    (P.QM_SERVICE_DSSERVER, T.MACHINE, V.UI1),
    (P.QM_SERVICE_DEPCLIENTS, T.MACHINE, V.UI1),
    (P.QM_ENCRYPTION_PK_BASE, T.MACHINE, V.VECTOR_UI1),
    (P.QM_ENCRYPTION_PK_ENHANCED, T.MACHINE, V.VECTOR_UI1),
    (P.QM_PATHNAME_DNS, T.MACHINE, V.LPWSTR),
    (P.QM_OBJ_SECURITY, T.MACHINE, V.BLOB),
    (P.QM_SECURITY_INFORMATION, T.MACHINE, V.UI4),
    (P.QM_ENCRYPT_PKS, T.MACHINE, V.BLOB),
    (P.QM_SIGN_PKS, T.MACHINE, V.BLOB),
    (P.QM_OWNER_SID, T.MACHINE, V.BLOB),
    (P.QM_GROUP_IN_CLUSTER, T.MACHINE, V.UI1),
    (P.S_PATHNAME, T.SITE, V.LPWSTR),
    (P.S_SITEID, T.SITE, V.CLSID),
    (P.S_GATES, T.SITE, V.VECTOR_CLSID),
    (P.S_PSC, T.SITE, V.LPWSTR),
    (P.S_INTERVAL1, T.SITE, V.UI2),
    (P.S_INTERVAL2, T.SITE, V.UI2),
    (P.S_PARTITIONID, T.SITE, V.CLSID),
    (P.S_SEQNUM, T.SITE, V.BLOB),
    (P.S_FULL_NAME, T.SITE, V.LPWSTR),
    (P.S_NT4_STUB, T.SITE, V.UI2),
    (P.S_FOREIGN, T.SITE, V.UI1),
    (P.S_DONOTHING, T.SITE, V.UI1),
    (P.CN_PROTOCOLID, T.CN, V.UI1),
    (P.CN_NAME, T.CN, V.LPWSTR),
    (P.CN_GUID, T.CN, V.CLSID),
    (P.CN_PARTITIONID, T.CN, V.CLSID),
    (P.CN_SEQNUM, T.CN, V.BLOB),
    (P.E_NAME, T.ENTERPRISE, V.LPWSTR),
    (P.E_NAMESTYLE, T.ENTERPRISE, V.UI1),
    (P.E_CSP_NAME, T.ENTERPRISE, V.LPWSTR),
    (P.E_PECNAME, T.ENTERPRISE, V.LPWSTR),
    (P.E_S_INTERVAL1, T.ENTERPRISE, V.UI2),
    (P.E_S_INTERVAL2, T.ENTERPRISE, V.UI2),
    (P.E_PARTITIONID, T.ENTERPRISE, V.CLSID),
    (P.E_SEQNUM, T.ENTERPRISE, V.BLOB),
    (P.E_ID, T.ENTERPRISE, V.CLSID),
    (P.E_CRL, T.ENTERPRISE, V.BLOB),
    (P.E_CSP_TYPE, T.ENTERPRISE, V.UI4),
    (P.E_ENCRYPT_ALG, T.ENTERPRISE, V.UI4),
    (P.E_SIGN_ALG, T.ENTERPRISE, V.UI4),
    (P.E_HASH_ALG, T.ENTERPRISE, V.UI4),
    (P.E_CIPHER_MODE, T.ENTERPRISE, V.UI4),
    (P.E_LONG_LIVE, T.ENTERPRISE, V.UI4),
    (P.E_VERSION, T.ENTERPRISE, V.UI2),
    (P.U_SID, T.USER, V.BLOB),
    (P.U_SIGN_CERT, T.USER, V.BLOB),
    (P.U_PARTITIONID, T.USER, V.CLSID),
    (P.U_SEQNUM, T.USER, V.BLOB),
    (P.U_DIGEST, T.USER, V.VECTOR_CLSID),
    (P.U_ID, T.USER, V.CLSID),
    (P.L_NEIGHBOR1, T.ROUTINGLINK, V.CLSID),
    (P.L_NEIGHBOR2, T.ROUTINGLINK, V.CLSID),
    (P.L_COST, T.ROUTINGLINK, V.UI4),
    (P.L_PARTITIONID, T.ROUTINGLINK, V.CLSID),
    (P.L_SEQNUM, T.ROUTINGLINK, V.BLOB),
    (P.L_ID, T.ROUTINGLINK, V.CLSID),
    (P.L_GATES_DN, T.ROUTINGLINK, V.VECTOR_LPWSTR),
    (P.L_NEIGHBOR1_DN, T.ROUTINGLINK, V.LPWSTR),
    (P.L_NEIGHBOR2_DN, T.ROUTINGLINK, V.LPWSTR),
    (P.L_DESCRIPTION, T.ROUTINGLINK, V.LPWSTR),
    (P.L_FULL_PATH, T.ROUTINGLINK, V.LPWSTR),
    (P.L_ACTUAL_COST, T.ROUTINGLINK, V.UI4),
    (P.L_GATES, T.ROUTINGLINK, V.VECTOR_CLSID),
    (P.Q_SECURITY, T.QUEUE, V.BLOB),
    (P.Q_OBJ_SECURITY, T.QUEUE, V.BLOB),
    (P.Q_SECURITY_INFORMATION, T.QUEUE, V.UI4),
    (P.QM_SECURITY, T.MACHINE, V.BLOB),
    (P.QM_SIGN_PK, T.MACHINE, V.BLOB),
    (P.QM_ENCRYPT_PK, T.MACHINE, V.BLOB),
    (P.QM_UPGRADE_DACL, T.MACHINE, V.BLOB),
    (P.S_SECURITY, T.SITE, V.BLOB),
    (P.S_PSC_SIGNPK, T.SITE, V.BLOB),
    (P.S_SECURITY_INFORMATION, T.SITE, V.UI4),
    (P.D_SEQNUM, T.DELETEDOBJECT, V.BLOB),
    (P.D_PARTITIONID, T.DELETEDOBJECT, V.CLSID),
    (P.D_SCOPE, T.DELETEDOBJECT, V.UI1),
    (P.D_OBJTYPE, T.DELETEDOBJECT, V.UI1),
    (P.D_IDENTIFIER, T.DELETEDOBJECT, V.CLSID),
    (P.CN_SECURITY, T.CN, V.BLOB),
    (P.E_SECURITY, T.ENTERPRISE, V.BLOB),
)

#: Every property of the protocols by its number.
PROPERTIES: dict[int, Property] = {row[0]: Property(*row) for row in _TABLE}


# --- Values of properties -------------------------------------------------------------------------
# Typed by the catalogue: nobody has to spell a property's variant type.

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
