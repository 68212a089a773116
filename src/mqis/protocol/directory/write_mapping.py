"""From supplied properties to stored ones: the write mappings (MS-MQDS 3.1.4.21.8).

All of it is pure. A call either gives the whole result or raises ``DirectoryError``, so a failing
create or update leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache, lru_cache

from mqis.protocol.directory.objects import NAME_PROPERTY, DirectoryObject
from mqis.protocol.directory.types.catalogue import (
    COMPUTED,
    DEFAULTS,
    ROWS,
    STORED_AS,
    by_type,
    ids_where,
)
from mqis.protocol.directory.types.property_row import Check, Store
from mqis.protocol.directory.types.row_columns import WriteRule
from mqis.protocol.directory.types.value_checks import check_of, refusal_of
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType

#: The names under which a create may supply each required property, its own first.
_REQUIRED: dict[ObjectType, tuple[tuple[PropId, ...], ...]] = {
    object_type: tuple(
        (propid, *(PropId(p) for p, stored in STORED_AS.items() if stored is propid))
        for propid in required
    )
    for object_type, required in by_type(lambda row: int(row.required)).items()
}
_CHECKS: dict[int, Check] = {
    row.id: check for row in ROWS.values() if (check := check_of(row)) is not None
}
_RESERVED = ids_where(lambda row: row.reserved)
_STORES: dict[int, Store] = {row.id: row.store for row in ROWS.values() if row.store is not None}
_EXCLUDES: dict[int, PropId] = {
    row.id: row.excludes for row in ROWS.values() if row.excludes is not None
}


def check_properties(object_type: ObjectType, properties: Properties) -> None:
    """Every identifier is one of the type, every value of its variant type (3.1.4.4)."""
    for propid, variant in properties.items():
        entry = PROPERTIES.get(propid)
        if entry is None or entry.object_type is not object_type:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_PROPID,
                f"property {propid} is not one of a {object_type.label}",
            )
        if variant.vt is not entry.vt:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"{entry.name} is {entry.vt}, not {variant.vt}",
            )


def check_required(object_type: ObjectType, properties: Container[int]) -> None:
    """Refuses a create without a required property, or with one under two names."""
    missing = []
    for accepted in _REQUIRED.get(object_type, ()):
        given = [propid for propid in accepted if propid in properties]
        if len(given) > 1:
            raise _excluded(given[0], given[1])
        if not given:
            missing.append(accepted[0])
    if missing:
        names = ", ".join(PROPERTIES[propid].name for propid in missing)
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, f"a {object_type.label} needs {names}"
        )


def client_create(object_type: ObjectType, properties: Properties) -> dict[int, PropVariant]:
    """Returns what S_DSCreateObject stores, without name and identifier (3.1.4.21.8.3)."""
    check_properties(object_type, properties)
    applied = _applied_at_create(object_type, tuple(properties))
    return _stored({p: properties[p] for p in applied}, _defaults(object_type))


@lru_cache(maxsize=1024)
def _applied_at_create(object_type: ObjectType, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the given properties that have an effect; programs send the same few lists."""
    check_required(object_type, ids)
    for propid in ids:
        if _EXCLUDES.get(propid) in ids:
            raise _excluded(propid, _EXCLUDES[propid])
    rules = {propid: on_create(propid) for propid in ids}
    for propid, rule in rules.items():
        if rule is WriteRule.INVALID:
            raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, propid, "at create")
    return tuple(propid for propid, rule in rules.items() if rule is WriteRule.APPLY)


def client_update(obj: DirectoryObject, properties: Properties) -> dict[int, PropVariant]:
    """The stored properties that S_DSSetProps changes (3.1.4.21.8.2)."""
    for propid in properties:
        if propid >= 1000:
            raise _refused(HResult.MQ_ERROR_ILLEGAL_PROPID, propid, "by a client")
    check_properties(obj.type, properties)
    applied: dict[int, PropVariant] = {}
    for propid, variant in properties.items():
        rule = on_update(propid)
        if rule in (WriteRule.INVALID, WriteRule.UNLISTED):
            raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, propid, "after create")
        if rule is WriteRule.APPLY:
            applied[propid] = variant
    return _stored(applied, {}, obj)


def event_create(object_type: ObjectType, properties: Properties) -> dict[int, PropVariant]:
    """Returns what the Create Directory Object event stores, name included (3.1.6.3)."""
    known = _known(object_type, properties)
    check_required(object_type, known)
    return _stored(known, _defaults(object_type))


def event_update(obj: DirectoryObject, properties: Properties) -> dict[int, PropVariant]:
    """The stored properties that the Update Directory Object event changes (3.1.6.4)."""
    return _stored(_known(obj.type, properties), {}, obj)


def _known(object_type: ObjectType, properties: Properties) -> dict[int, PropVariant]:
    """Identifiers of other types, or of none, are skipped, not refused."""
    return {
        propid: variant
        for propid, variant in properties.items()
        if propid in PROPERTIES and PROPERTIES[propid].object_type is object_type
    }


@cache
def _defaults(object_type: ObjectType) -> Properties:
    """Returns the properties of a new object of this type where nothing is supplied."""
    defaults = {
        propid: default
        for propid, default in DEFAULTS.items()
        if ROWS[propid].object_type is object_type and propid not in STORED_AS
    }
    return _stored(defaults, {})


def _stored(
    applied: Properties, base: Properties, obj: DirectoryObject | None = None
) -> dict[int, PropVariant]:
    """``base`` changed by each applied property, under the identifier that is stored."""
    result = dict(base)
    for number in sorted(applied):
        propid = PROPERTIES[number].id
        variant = stored_value(propid, applied[propid])
        store = _STORES.get(propid)
        if store is not None:
            before = result if obj is None else {**obj.properties, **result}
            result.update(store(variant.value, before, applied))
        elif propid in STORED_AS:
            result[STORED_AS[propid]] = variant
        elif propid not in COMPUTED and propid not in _RESERVED:
            result[propid] = variant
    return result


def stored_value(propid: PropId, variant: PropVariant) -> PropVariant:
    """Returns the value to store for a supplied one, or raises ``DirectoryError``."""
    entry = PROPERTIES[propid]
    if variant.vt is not entry.vt:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
            f"{entry.name} is {entry.vt}, not {variant.vt}",
        )
    check = _CHECKS.get(propid)
    if check is None:
        return variant
    try:
        checked = check(variant.value)
        return variant if checked is variant.value else PropVariant(variant.vt, checked)
    except (ValueError, WireError) as error:
        raise DirectoryError(refusal_of(ROWS[propid]), f"{entry.name}: {error}") from error


def named(object_type: ObjectType, path: str) -> dict[int, PropVariant]:
    """The name property of a type that has one."""
    return {NAME_PROPERTY[object_type]: PropVariant(VarType.LPWSTR, path)}


def _excluded(one: int, other: int) -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_PROPERTY_NOTALLOWED,
        f"{PROPERTIES[one].name} and {PROPERTIES[other].name} cannot be set in one call",
    )


def _refused(code: HResult, propid: int, when: str) -> DirectoryError:
    entry = PROPERTIES.get(propid)
    name = f"property {propid}" if entry is None else entry.name
    return DirectoryError(code, f"{name} cannot be set {when}")


# --- The create and update tables of MS-MQDS 3.1.4.21.8.2 and 8.3 ---------------------------------
# A client's create and update follow the tables. An event of replication or import (3.1.6.3,
# 3.1.6.4) carries what another authority decided: it may set every stored property, and what this
# server does not know is skipped.
#
# The text's tables are those of a server over Active Directory. This server has a store of its own:
# what the text leaves to Active Directory it takes from the caller.


def on_update(propid: int) -> WriteRule:
    """Returns the effect of a client's update on the property."""
    return ROWS[propid].update


def on_create(propid: int) -> WriteRule:
    """Returns the effect of a client's create on the property."""
    return ROWS[propid].create
