"""Routing links between sites (MS-MQMQ 2.3.7)."""

from __future__ import annotations

from mqis.protocol.directory.types.computing import given_name
from mqis.protocol.directory.types.ldap import ALL, FIND, KEEP, AttributeSyntax, Ldap
from mqis.protocol.directory.types.property_row import (
    Compute,
    ObjectLookup,
    PropertyRow,
    StoredObject,
)
from mqis.protocol.directory.types.row_columns import (
    APPLY,
    IGNORE,
    INVALID,
    UNLISTED,
    PropertyRole,
    Takes,
    ValueMeaning,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value

#: Costs of routing links (812); reading 803 adds the same number per foreign end.
MAX_LINK_COST = 999_999


def _check_cost(value: Value) -> Value:
    if not isinstance(value, int) or not 1 <= value <= MAX_LINK_COST:
        raise ValueError(f"a link costs 1 to {MAX_LINK_COST}, not {value!r}")
    return value


def _cost(obj: StoredObject, view: ObjectLookup) -> Value:
    """Returns the actual cost, and 999,999 more for each end that is a foreign site."""
    cost = obj.value(P.L_ACTUAL_COST)
    if not isinstance(cost, int):
        return None
    ends = (_site(obj, end, view) for end in (P.L_NEIGHBOR1, P.L_NEIGHBOR2))
    foreign = sum(1 for site in ends if site is not None and site.value(P.S_FOREIGN) == 1)
    return cost + MAX_LINK_COST * foreign


def _link_path(obj: StoredObject, _view: ObjectLookup) -> Value:
    """Both sites' GUIDs as 64 hexadecimal digits, the name clients give (3.2.6.1.4)."""
    ends = [obj.value(end) for end in (P.L_NEIGHBOR1, P.L_NEIGHBOR2)]
    return "".join(end.big_endian.hex().upper() for end in ends if isinstance(end, Guid))


def _site_name(propid: P) -> Compute:
    def compute(obj: StoredObject, view: ObjectLookup) -> Value:
        site = _site(obj, propid, view)
        return None if site is None else site.path

    return compute


def _site(obj: StoredObject, propid: P, view: ObjectLookup) -> StoredObject | None:
    id = obj.value(propid)  # noqa: A001
    return view.get(ObjectType.SITE, id) if isinstance(id, Guid) else None


# property, effect of a client's create, of its update, right that it takes, other columns
# fmt: off
ROWS: tuple[PropertyRow, ...] = (
    PropertyRow(P.L_NEIGHBOR1, APPLY, INVALID, Takes.ENTERPRISE,
        required=True, refers_to=ObjectType.SITE, indexed=True, replicated=2,
        ldap=Ldap("mSMQSite1", AttributeSyntax.NAME, ALL)),
    PropertyRow(P.L_NEIGHBOR2, APPLY, INVALID, Takes.ENTERPRISE,
        required=True, refers_to=ObjectType.SITE, indexed=True, replicated=3,
        ldap=Ldap("mSMQSite2", AttributeSyntax.NAME, ALL)),
    PropertyRow(P.L_COST, APPLY, APPLY, Takes.ENTERPRISE,
        alias_of=P.L_ACTUAL_COST, computed=_cost, check=_check_cost, replicated=1),
    PropertyRow(P.L_PARTITIONID, IGNORE, UNLISTED, Takes.NOTHING,
        role=PropertyRole.PARTITION, readable=False),
    PropertyRow(P.L_SEQNUM, IGNORE, IGNORE, Takes.NOTHING,
        role=PropertyRole.SEQUENCE, readable=False, meaning=ValueMeaning.SEQUENCE),
    PropertyRow(P.L_ID, APPLY, INVALID, Takes.NOTHING, role=PropertyRole.IDENTIFIER,
        ldap=Ldap("objectGUID", AttributeSyntax.GUID, FIND)),
    PropertyRow(P.L_GATES_DN, IGNORE, UNLISTED, Takes.NOTHING, readable=False, reserved=True),
    PropertyRow(P.L_NEIGHBOR1_DN, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.L_NEIGHBOR1_DN, _site_name(P.L_NEIGHBOR1)),
        ldap=Ldap("mSMQSite1", AttributeSyntax.DN, FIND)),
    PropertyRow(P.L_NEIGHBOR2_DN, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.L_NEIGHBOR2_DN, _site_name(P.L_NEIGHBOR2)),
        ldap=Ldap("mSMQSite2", AttributeSyntax.DN, FIND)),
    PropertyRow(P.L_DESCRIPTION, APPLY, APPLY, Takes.NOTHING, default="",
        ldap=Ldap("description", AttributeSyntax.TEXT, ALL, "")),
    PropertyRow(P.L_FULL_PATH, IGNORE, UNLISTED, Takes.NOTHING,
        computed=given_name(P.L_FULL_PATH, _link_path)),
    # A create needs this or 803.
    PropertyRow(P.L_ACTUAL_COST, APPLY, APPLY, Takes.ENTERPRISE, required=True, check=_check_cost,
        ldap=Ldap("mSMQCost", AttributeSyntax.UNSIGNED, ALL)),
    PropertyRow(P.L_GATES, APPLY, APPLY, Takes.ENTERPRISE,
        default=(), refers_to=ObjectType.MACHINE,
        ldap=Ldap("mSMQSiteGates", AttributeSyntax.NAMES, KEEP)),
)
# fmt: on
