"""The enterprise, of which there is one (MS-MQMQ 2.3.5)."""

from __future__ import annotations

from mqis.protocol.directory.types.ldap import CHANGE, FIND, NONE, AttributeSyntax, Ldap, Unkept
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import (
    APPLY,
    IGNORE,
    INVALID,
    UNLISTED,
    PropertyRole,
    Takes,
    ValueMeaning,
)
from mqis.wire.mqds.keys import BASE_PROVIDER, ENHANCED_AES_PROVIDER, ENHANCED_PROVIDER
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value

OLD_DIRECTORY, NEW_DIRECTORY = 3, 200
#: The life of a message in an enterprise whose entry in Active Directory names none.
FOUR_DAYS_S = 345_600


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


# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.E_NAME, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.NAME, lasting=True, replicated=1),
    PropertyRow(P.E_NAMESTYLE, IGNORE, APPLY, Takes.ENTERPRISE,
        default=0, check=_name_style, replicated=2,
        ldap=Ldap("mSMQNameStyle", AttributeSyntax.FLAG, CHANGE, 0)),
    # Active Directory does not have it: mSMQCSPName is of another meaning (E-MQDSSM-26).
    PropertyRow(P.E_CSP_NAME, IGNORE, APPLY, Takes.ENTERPRISE,
        default="Microsoft Enhanced RSA and AES Cryptographic Provider", check=_provider,
        replicated=3),
    PropertyRow(P.E_PECNAME, IGNORE, UNLISTED, Takes.NOBODY, replicated=4,
        ldap=Unkept("")),
    PropertyRow(P.E_S_INTERVAL1, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=8),
    PropertyRow(P.E_S_INTERVAL2, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=9),
    PropertyRow(P.E_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.E_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.E_ID, IGNORE, INVALID, Takes.NOTHING, role=PropertyRole.IDENTIFIER,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.E_CRL, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=10),
    PropertyRow(P.E_CSP_TYPE, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=11),
    PropertyRow(P.E_ENCRYPT_ALG, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=12),
    PropertyRow(P.E_SIGN_ALG, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=13),
    PropertyRow(P.E_HASH_ALG, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=14),
    PropertyRow(P.E_CIPHER_MODE, IGNORE, UNLISTED, Takes.NOTHING,
        readable=False, reserved=True, replicated=15),
    PropertyRow(P.E_LONG_LIVE, IGNORE, APPLY, Takes.ENTERPRISE, replicated=5,
        ldap=Ldap("mSMQLongLived", AttributeSyntax.UNSIGNED, CHANGE, FOUR_DAYS_S)),
    PropertyRow(P.E_VERSION, IGNORE, APPLY, Takes.ENTERPRISE,
        unset=NEW_DIRECTORY, check=_version, replicated=6,
        ldap=Ldap("mSMQVersion", AttributeSyntax.VERSION, CHANGE, OLD_DIRECTORY)),
    PropertyRow(P.E_SECURITY, IGNORE, UNLISTED, Takes.PERMISSIONS,
        role=PropertyRole.SECURITY, readable=False, meaning=ValueMeaning.DESCRIPTOR, replicated=7,
        ldap=Ldap("nTSecurityDescriptor", AttributeSyntax.DESCRIPTOR, NONE)),
)
# fmt: on
