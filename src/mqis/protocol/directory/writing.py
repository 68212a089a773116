"""From supplied properties to stored ones: the create and update tables at work.

All of it is pure. A call either gives the whole result or raises ``DirectoryError``, so a failing
create or update leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache, lru_cache

from mqis.protocol.directory.objects import NAME_PROPERTY, DirectoryObject
from mqis.protocol.directory.reading import COMPUTED
from mqis.protocol.directory.rules import (
    REQUIRED,
    RESERVED,
    STORED_AS,
    Profile,
    on_create,
    on_update,
)
from mqis.protocol.directory.service import Service
from mqis.protocol.directory.values import stored_value
from mqis.protocol.errors import DirectoryError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.property import WriteRule
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, VarType

_COSTS = (PropId.L_COST, PropId.L_ACTUAL_COST)


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
    missing = [p for p in REQUIRED.get(object_type, ()) if p not in properties]
    if object_type is ObjectType.ROUTINGLINK:
        given = [p for p in _COSTS if p in properties]
        if len(given) > 1:
            raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, PropId.L_COST, "beside 812")
        if not given:
            missing.append(PropId.L_ACTUAL_COST)
    if missing:
        names = ", ".join(PROPERTIES[propid].name for propid in missing)
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, f"a {object_type.label} needs {names}"
        )


def client_create(
    object_type: ObjectType, properties: Properties, profile: Profile = Profile.OWN_STORE
) -> dict[int, PropVariant]:
    """What S_DSCreateObject stores, without name and identifier (3.1.4.21.8.3)."""
    check_properties(object_type, properties)
    applied = _applied_at_create(object_type, tuple(properties), profile)
    return _stored({p: properties[p] for p in applied}, _defaults(object_type))


@lru_cache(maxsize=1024)
def _applied_at_create(
    object_type: ObjectType, ids: tuple[int, ...], profile: Profile
) -> tuple[int, ...]:
    """Those of the given properties that have an effect; programs send the same few lists."""
    check_required(object_type, ids)
    if PropId.QM_SITE_ID in ids and PropId.QM_SITE_IDS in ids:
        raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, PropId.QM_SITE_IDS, "beside 201")
    rules = {propid: on_create(PROPERTIES[propid].id, profile) for propid in ids}
    for propid, rule in rules.items():
        if rule is WriteRule.INVALID:
            raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, propid, "at create")
    return tuple(propid for propid, rule in rules.items() if rule is WriteRule.APPLY)


def client_update(
    obj: DirectoryObject, properties: Properties, profile: Profile = Profile.OWN_STORE
) -> dict[int, PropVariant]:
    """The stored properties that S_DSSetProps changes (3.1.4.21.8.2)."""
    for propid in properties:
        if propid >= 1000:
            raise _refused(HResult.MQ_ERROR_ILLEGAL_PROPID, propid, "by a client")
    check_properties(obj.type, properties)
    applied: dict[int, PropVariant] = {}
    for propid, variant in properties.items():
        rule = on_update(PROPERTIES[propid].id, profile)
        if rule in (WriteRule.INVALID, WriteRule.UNLISTED):
            raise _refused(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, propid, "after create")
        if rule is WriteRule.APPLY:
            applied[propid] = variant
    return _stored(applied, {}, obj)


def event_create(object_type: ObjectType, properties: Properties) -> dict[int, PropVariant]:
    """What the Create Directory Object event stores, name included (3.1.6.3)."""
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
    """What a new object of this type has where nothing is supplied."""
    defaults = {
        propid: entry.default
        for propid, entry in PROPERTIES.items()
        if entry.object_type is object_type
        and entry.default is not None
        and propid not in STORED_AS
    }
    return _stored(defaults, {})


def _stored(
    applied: Properties, base: Properties, obj: DirectoryObject | None = None
) -> dict[int, PropVariant]:
    """``base`` changed by each applied property, under the identifier that is stored."""
    result = dict(base)
    service: Service | None = None
    for number in sorted(applied):
        propid = PROPERTIES[number].id
        variant = stored_value(propid, applied[propid])
        if propid is PropId.QM_SITE_ID:
            result[PropId.QM_SITE_IDS] = _with_first_site(variant, obj)
        elif propid in _SERVICE:
            service = service or (Service() if obj is None else Service.of(obj))
            service = _with_service(service, propid, variant, PropId.QM_SERVICE in applied)
            result.update(service.as_properties())
        elif propid in STORED_AS:
            result[STORED_AS[propid]] = variant
        elif propid not in COMPUTED and propid not in RESERVED:
            result[propid] = variant
    return result


_SERVICE = {PropId.QM_SERVICE, PropId.QM_SERVICE_ROUTING, PropId.QM_SERVICE_DSSERVER}


def _with_service(
    service: Service, propid: PropId, variant: PropVariant, role_given: bool
) -> Service:
    number = variant.value
    assert isinstance(number, int)
    if propid is PropId.QM_SERVICE:
        return Service.from_bits(number)
    if propid is PropId.QM_SERVICE_ROUTING:
        return service.with_routing(number == 1)
    if number == 1 and role_given and service.role is not None:
        return service  # clients send both (3.2.6.1.1): 210 says which kind of directory server
    return service.with_directory_server(number == 1)


def _with_first_site(site: PropVariant, obj: DirectoryObject | None) -> PropVariant:
    """201 is the first element of 222; the others stay."""
    sites = () if obj is None else obj.value(PropId.QM_SITE_IDS)
    first = site.value
    assert isinstance(first, Guid)
    others = sites[1:] if isinstance(sites, tuple) else ()
    return PropVariant(VarType.VECTOR_CLSID, (first, *(s for s in others if s != first)))


def named(object_type: ObjectType, path: str) -> dict[int, PropVariant]:
    """The name property of a type that has one."""
    return {NAME_PROPERTY[object_type]: PropVariant(VarType.LPWSTR, path)}


def _refused(code: HResult, propid: int, when: str) -> DirectoryError:
    entry = PROPERTIES.get(propid)
    name = f"property {propid}" if entry is None else entry.name
    return DirectoryError(code, f"{name} cannot be set {when}")
