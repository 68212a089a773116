"""The place of every property in Active Directory, as its row says (``protocol.directory.types``).

Here is only what no column can say: the properties that are made of several attributes or of other
entries.
"""

from __future__ import annotations

from functools import cache

from mqis.protocol.activedirectory import codecs, made
from mqis.protocol.activedirectory.row import (
    AttributeRow,
    computed,
    constant,
    referring,
    stored,
)
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.ldap import AttributeSyntax, Ldap, Unkept
from mqis.protocol.directory.types.property_row import PropertyRow
from mqis.protocol.directory.types.row_columns import PropertyRole
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P

_OUTSIDE = (PropertyRole.IDENTIFIER, PropertyRole.SEQUENCE, PropertyRole.PARTITION)
#: The properties that an object of a store keeps under their own number.
KEPT = frozenset(
    row.id
    for row in ROWS.values()
    if row.stored
    and row.alias_of is None
    and (row.computed is None or row.also_stored)
    and row.role not in _OUTSIDE
)

_MADE = {
    row.id: row
    for row in (
        computed(P.Q_PATHNAME, made.queue_path, "mSMQQueueNameExt", computer="sAMAccountName"),
        computed(P.Q_QMID, made.parent, "parentGUID"),
        computed(P.QM_PATHNAME, made.computer_name, computer="sAMAccountName"),
        computed(
            P.QM_SERVICE,
            made.service_bits,
            *("mSMQServiceType", "mSMQRoutingServices", "mSMQDsServices"),
            instead=0,
        ),
        # Written to the computer's entry, with the digests of its certificates.
        computed(P.QM_SIGN_PKS, made.signing_keys, computer="mSMQSignCertificates", instead=b""),
        computed(P.QM_GROUP_IN_CLUSTER, made.clustered, computer="servicePrincipalName"),
        computed(P.S_GATES, made.gates),
        computed(P.CN_PROTOCOLID, made.network_protocol, "mSMQSiteForeign"),
        computed(P.E_NAME, made.root_domain),
        # Objects are found by the full path with a read, not with a condition (3.1.6.3).
        computed(P.Q_FULL_PATH, made.full_path),
        computed(
            P.Q_PATHNAME_DNS,
            made.qualified_queue_path,
            "mSMQQueueNameExt",
            computer="dNSHostName",
        ),
        computed(P.QM_FULL_PATH, made.full_path),
        computed(P.QM_PATHNAME_DNS, made.qualified_computer_name, computer="dNSHostName"),
        computed(P.S_FULL_NAME, made.full_path),
        computed(P.L_FULL_PATH, made.full_path),
    )
}
#: The names that Active Directory gives beside the path, of the object itself: not more than one
#: object can have such a name.
UNIQUE_NAMES = frozenset(
    {P.Q_FULL_PATH, P.Q_PATHNAME_DNS, P.QM_FULL_PATH, P.QM_PATHNAME_DNS, P.S_FULL_NAME}
    | {P.L_FULL_PATH}
)
#: Those, and the names of the objects that it refers to. A store of our own has one name for each
#: object (E-MQDS-08); a pass-through server shows these.
GIVEN_NAMES = UNIQUE_NAMES | {P.QM_OUTFRS_DN, P.QM_INFRS_DN, P.L_NEIGHBOR1_DN, P.L_NEIGHBOR2_DN}


def _attribute_row(row: PropertyRow) -> AttributeRow:
    place = row.ldap
    if row.id in _MADE:
        return _MADE[row.id]
    if not isinstance(place, Ldap):
        return constant(row.id, place.value if isinstance(place, Unkept) else None)
    attribute, uses = place.attribute, place.uses
    if place.syntax is AttributeSyntax.NAME:
        return referring(row.id, made.referred(attribute), attribute, uses)
    if place.syntax is AttributeSyntax.NAMES:
        return referring(row.id, made.referred_list(attribute), attribute, uses, many=True)
    if place.syntax is AttributeSyntax.DESCRIPTOR:
        codec = made.descriptor(row.object_type)
    else:
        codec = codecs.BY_SYNTAX[place.syntax]
    return stored(row.id, codec, attribute, place.absent, uses)


#: The properties that an object of a store keeps, that a pass-through server shows, or by which
#: entries are found, by their number.
ATTRIBUTE_ROWS: dict[int, AttributeRow] = {
    row.id: _attribute_row(row)
    for row in ROWS.values()
    if row.id in KEPT or row.id in _MADE or row.ldap is not None
}


@cache
def rows_of(object_type: ObjectType) -> tuple[AttributeRow, ...]:
    return tuple(row for row in ATTRIBUTE_ROWS.values() if row.object_type is object_type)
