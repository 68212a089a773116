"""Who may write what: the create and update tables of MS-MQDS 3.1.4.21.8.2 and 8.3.

Three voices write to a directory. A client's create and update follow the tables. An event
(3.1.6.3, 3.1.6.4: replication, import) carries what another authority decided; it takes every
stored property and skips what it does not know.

The tables come in two profiles. STANDARD is the text. OWN_STORE, the default, is a server without
Active Directory behind it: what the standard leaves to Active Directory it takes from the caller.
"""

from __future__ import annotations

from enum import Enum

from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.property import WriteRule
from mqis.wire.mqds.propid import PropId


class Profile(Enum):
    STANDARD = "standard"
    OWN_STORE = "own-store"


#: Both profiles: 238 is what clients send where the table prints the private 1203 (8.2.1).
_UPDATE: dict[int, WriteRule] = {PropId.QM_ENCRYPT_PKS: WriteRule.APPLY}
_CREATE: dict[int, WriteRule] = {
    PropId.QM_ENCRYPT_PKS: WriteRule.APPLY,
    # 3.1.4.4 takes the SID of a new user from it, although no table lists it.
    PropId.U_SID: WriteRule.APPLY,
}

_OWN_STORE_UPDATE: dict[int, WriteRule] = {
    PropId.QM_CNS: WriteRule.APPLY,  # <90>
    PropId.QM_SERVICE: WriteRule.APPLY,  # <88>: how a server gets or loses its role
    # The partition follows from the site. A client cannot move objects between authorities.
    PropId.Q_PARTITIONID: WriteRule.IGNORE,
    PropId.QM_PARTITIONID: WriteRule.IGNORE,
}
_OWN_STORE_CREATE: dict[int, WriteRule] = {
    PropId.QM_ADDRESS: WriteRule.APPLY,  # <111>: else clients find no address
    PropId.QM_CNS: WriteRule.APPLY,
    # The documented client sends the list; it is refused just beside 201 (writing.py).
    PropId.QM_SITE_IDS: WriteRule.APPLY,
    PropId.S_PSC: WriteRule.APPLY,  # <120>: nobody else could name the authority of the site
    PropId.Q_PARTITIONID: WriteRule.IGNORE,
}


def on_update(propid: PropId, profile: Profile) -> WriteRule:
    """What a client's update does with the property."""
    if profile is Profile.OWN_STORE and propid in _OWN_STORE_UPDATE:
        return _OWN_STORE_UPDATE[propid]
    return _UPDATE.get(propid, PROPERTIES[propid].on_update)


def on_create(propid: PropId, profile: Profile) -> WriteRule:
    """What a client's create does with the property."""
    if profile is Profile.OWN_STORE and propid in _OWN_STORE_CREATE:
        return _OWN_STORE_CREATE[propid]
    return _CREATE.get(propid, PROPERTIES[propid].on_create)


#: What must come with a create (MS-MQDS 3.1.4.4). A link needs one of 803 and 812 besides.
REQUIRED: dict[ObjectType, tuple[PropId, ...]] = {
    ObjectType.USER: (PropId.U_SIGN_CERT, PropId.U_DIGEST),
    ObjectType.ROUTINGLINK: (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2),
}

#: Peers fill them with zero (E68), and what comes is dropped.
RESERVED: frozenset[int] = frozenset(
    {
        PropId.Q_HASHKEY,
        PropId.Q_LABEL_HASHKEY,
        PropId.Q_ADS_PATH,
        PropId.QM_HASHKEY,
        PropId.QM_UPGRADE_DACL,
        PropId.S_DONOTHING,  # reads as zero; that a write has no effect is a MUST (8.2.8)
        PropId.E_S_INTERVAL1,
        PropId.E_S_INTERVAL2,
        PropId.E_CRL,
        PropId.E_CSP_TYPE,
        PropId.E_ENCRYPT_ALG,
        PropId.E_SIGN_ALG,
        PropId.E_HASH_ALG,
        PropId.E_CIPHER_MODE,
        PropId.L_GATES_DN,
    }
)

#: Another name of a stored property: the value goes under the one on the right.
STORED_AS: dict[int, PropId] = {
    PropId.Q_OBJ_SECURITY: PropId.Q_SECURITY,
    PropId.QM_OBJ_SECURITY: PropId.QM_SECURITY,
    PropId.QM_SIGN_PK: PropId.QM_SIGN_PKS,
    PropId.QM_ENCRYPT_PK: PropId.QM_ENCRYPT_PKS,
    PropId.L_COST: PropId.L_ACTUAL_COST,
}
