"""The methods by which clients read the directory (MS-MQDS 3.1.4, 3.3.4).

Functions over a view and the caller's guard. They return plain values or raise ``DirectoryError``;
stubs, handles and signatures are the server's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from mqis.protocol.directory.descriptors import descriptor_of
from mqis.protocol.directory.guard import Access, Guard
from mqis.protocol.directory.locate import Target, locate
from mqis.protocol.directory.lookup_query import Order, Query, SortKey
from mqis.protocol.directory.lookup_walk import LookupState, Walk, finish_walk, walk_directory
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject, name_key
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.read_mapping import (
    Read,
    ReadPacked,
    check_readable,
    is_own,
    packed_reader_of,
    read_property,
    reader_of,
)
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.catalogue import EXTENDED, ids_where
from mqis.protocol.directory.types.machine_values import sites_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.security.information import SecurityInformation, extract
from mqis.texts import counted
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES, Property
from mqis.wire.mqds.keys import KeyAlgorithm, PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import ColumnSet, RestrictionSet, SortSet
from mqis.wire.mqds.serverlist import ServerList, ServerSpec
from mqis.wire.ndr.packed import Packed
from mqis.wire.propvariant import PropVariant, Value, VarType

#: Types whose permissions can be read (MQDS-3.1.4.11-04).
SECURED = frozenset(SECURITY_PROPERTY)
#: Other names of a descriptor, readable as properties.
_PERMISSIONS = ids_where(lambda row: row.alias_of in SECURITY_PROPERTY.values())


def get_properties(
    view: View,
    guard: Guard,
    target: Target,
    ids: Sequence[int],
    types: Sequence[VarType],
) -> tuple[PropVariant, ...]:
    """S_DSGetProps, S_DSGetPropsGuid (3.1.4.7, 3.1.4.8)."""
    plan = plan_read(target.object_type, ids, types)
    obj = _locate_read(view, target)
    for access in plan.access:
        guard.check(obj, access, view)
    values = [read(obj, view) for read in plan.reads]
    if not all(values):
        raise _no_value(obj, plan.properties[values.index(None)])
    return tuple(values)  # type: ignore[arg-type]


def find_readable(
    view: View, guard: Guard, target: Target, plan: ReadPlan
) -> DirectoryObject | None:
    """The object that a read of these properties is about; None: ``get_properties`` refuses."""
    try:
        obj = _locate_read(view, target)
    except DirectoryError:
        return None
    for access in plan.access:
        if not guard.allows(obj, access, view):
            return None
    return obj


def _locate_read(view: View, target: Target) -> DirectoryObject:
    if target.object_type is ObjectType.USER and target.path is not None:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "users have no path name")
    return locate(view, target)


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """The list of one read, checked."""

    properties: tuple[Property, ...]
    reads: tuple[Read, ...]
    access: tuple[Access, ...]
    #: True if an object alone determines what they show.
    is_own: bool
    read_packed: ReadPacked

    def packed(self, obj: DirectoryObject, view: View) -> list[Packed] | None:
        """The values as they are stored; None if one is missing."""
        found = self.read_packed(obj, view)
        return None if None in found else found  # type: ignore[return-value]


def plan_read(object_type: ObjectType, ids: Sequence[int], types: Sequence[VarType]) -> ReadPlan:
    """Checks the list of a read, and the types that its caller expects."""
    plan = _checked_list(object_type, tuple(ids))
    _check_types(plan.properties, types)
    return plan


@lru_cache(maxsize=1024)
def _checked_list(object_type: ObjectType, ids: tuple[int, ...]) -> ReadPlan:
    """Programs ask for the same few lists all the time; one that is refused is not remembered."""
    wanted = [check_readable(object_type, propid) for propid in ids]
    return ReadPlan(
        tuple(PROPERTIES[propid] for propid in wanted),
        tuple(map(reader_of, wanted)),
        _access_for(wanted),
        all(map(is_own, wanted)),
        packed_reader_of(tuple(map(int, wanted))),
    )


def _check_types(properties: Sequence[Property], types: Sequence[VarType]) -> None:
    for entry, vt in zip(properties, types, strict=True):
        if vt is not VarType.NULL and vt is not entry.vt:
            raise DirectoryError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT, f"{entry.name} is asked for as {vt}"
            )


def _access_for(ids: Iterable[PropId]) -> tuple[Access, ...]:
    """Permissions are readable as a property too (234), but not with less than READ_CONTROL."""
    shows_permissions = not _PERMISSIONS.isdisjoint(ids)
    return (Access.READ, Access.READ_SECURITY) if shows_permissions else (Access.READ,)


def _value(obj: DirectoryObject, propid: PropId, view: View) -> PropVariant:
    found = read_property(obj, propid, view)
    if found is None:
        raise _no_value(obj, PROPERTIES[propid])
    return found


def _no_value(obj: DirectoryObject, entry: Property) -> DirectoryError:
    return DirectoryError(
        HResult.E_ADS_PROPERTY_NOT_FOUND,
        f"{obj.type.label} {obj.path or obj.id} has no {entry.name}",
    )


def get_property_ex(
    view: View,
    guard: Guard,
    target: Target,
    ids: Sequence[int],
) -> tuple[PropVariant, ...]:
    """S_DSGetPropsEx, S_DSGetPropsGuidEx (3.3.4.2, 3.3.4.3): one of four properties."""
    if len(ids) != 1:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, "exactly one property is given")
    entry = PROPERTIES.get(ids[0])
    if entry is None or EXTENDED.get(entry.id) is not target.object_type:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER,
            f"property {ids[0]} of a {target.object_type.label} is not given by this call",
        )
    obj = locate(view, target)
    security = entry.id in _PERMISSIONS
    guard.check(obj, Access.READ_SECURITY if security else Access.READ, view)
    if security:
        return (PropVariant(VarType.BLOB, descriptor_of(obj).to_bytes()),)
    return (_value(obj, entry.id, view),)


# --- lookups ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LookupPlan:
    """A lookup, checked."""

    query: Query
    needed: tuple[Access, ...]

    def walk(self, view: View, guard: Guard) -> Walk:
        """S_DSLookupBegin (3.1.4.17). Objects that the caller may not read are not there."""
        needed = self.needed
        return walk_directory(view, self.query, lambda obj: _may(guard, obj, needed, view), needed)

    def with_constant(self, value: Value) -> LookupPlan:
        """The lookup whose only restriction compares with another value of the same type."""
        query = self.query
        [old] = query.restrictions
        constant = PropVariant(old.constant.vt, value)
        restrictions = (Restriction(old.relation, old.propid, constant),)
        return LookupPlan(
            Query(query.object_type, query.columns, restrictions, query.sort), self.needed
        )


def plan_lookup(
    restriction: RestrictionSet | None, columns: ColumnSet, sort: SortSet | None
) -> LookupPlan:
    """Checks what a lookup asks for."""
    wire_restrictions = (restriction.restrictions or ()) if restriction is not None else ()
    restrictions = [
        Restriction(Relation.from_wire(r.rel), _known(r.prop), r.prval) for r in wire_restrictions
    ]
    keys = [
        SortKey(_sortable(k.column), Order.from_wire(k.order))
        for k in ((sort.keys or ()) if sort is not None else ())
    ]
    query = Query.make(columns.columns or (), restrictions, keys)
    propids = {*query.columns, *(r.propid for r in restrictions), *(k.propid for k in keys)}
    return LookupPlan(query, _access_for(propids))


def judge_again(view: View, guard: Guard, state: LookupState, size: int) -> int:
    """Leaves out of the next page of a lookup what its caller may not read any more.

    An object that was deleted meanwhile stays: nobody has taken the right to it away. Returns
    the size of the page that is judged.
    """

    def admit(id: Guid) -> bool:  # noqa: A002
        obj = view.get(state.object_type, id)
        return obj is None or _may(guard, obj, state.needed, view)

    return state.judge_again(admit, size)


def _may(guard: Guard, obj: DirectoryObject, needed: Sequence[Access], view: View) -> bool:
    return all(guard.allows(obj, access, view) for access in needed)


def _known(propid: int) -> PropId:
    entry = PROPERTIES.get(propid)
    if entry is None:
        raise DirectoryError(HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID, f"no property {propid}")
    return entry.id


def _sortable(propid: int) -> PropId:
    entry = PROPERTIES.get(propid)
    if entry is None:
        raise DirectoryError(HResult.MQ_ERROR_ILLEGAL_SORT_PROPID, f"no property {propid}")
    return entry.id


# --- security ---------------------------------------------------------------------------------


def check_information(number: int) -> SecurityInformation:
    try:
        return SecurityInformation.from_wire(number)
    except ValueError as error:
        raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, str(error)) from None


def check_secured(obj_type: ObjectType, information: SecurityInformation) -> None:
    """Refuses parts that the type does not have (MQDS-3.1.4.11-05 to -10), the type first."""
    if obj_type in (ObjectType.USER, ObjectType.ROUTINGLINK):
        raise DirectoryError(
            HResult.MQDS_WRONG_OBJ_TYPE, f"a {obj_type.label} has no permissions of its own"
        )
    allowed = {
        SecurityInformation.KEYX_PUBLIC_KEY: {ObjectType.MACHINE},
        SecurityInformation.SIGN_PUBLIC_KEY: {ObjectType.MACHINE, ObjectType.SITE},
    }.get(information, SECURED)
    if obj_type not in allowed:
        raise DirectoryError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"a {obj_type.label} has no such key"
        )


def get_security(
    view: View,
    guard: Guard,
    target: Target,
    information: int,
) -> bytes:
    """S_DSGetObjectSecurity and its kin: parts of a descriptor, or a public key."""
    parts = check_information(information)
    check_secured(target.object_type, parts)
    obj = locate(view, target)
    if parts is SecurityInformation.KEYX_PUBLIC_KEY:
        guard.check(obj, Access.READ, view)
        return _public_key(obj, PropId.QM_ENCRYPT_PKS, KeyAlgorithm.CALG_RSA_KEYX)
    if parts is SecurityInformation.SIGN_PUBLIC_KEY:
        guard.check(obj, Access.READ, view)
        machine = target.object_type is ObjectType.MACHINE
        propid = PropId.QM_SIGN_PKS if machine else PropId.S_PSC_SIGNPK
        return _public_key(obj, propid, KeyAlgorithm.CALG_RSA_SIGN)
    if parts & ~SecurityInformation.SACL:
        guard.check(obj, Access.READ_SECURITY, view)
    if parts & SecurityInformation.SACL:
        guard.check(obj, Access.SYSTEM_SECURITY, view)
    return extract(descriptor_of(obj), parts).to_bytes()


def _public_key(obj: DirectoryObject, propid: PropId, algorithm: KeyAlgorithm) -> bytes:
    """The first key of a list, under a header that says what it is for."""
    data = obj.value(propid)
    keys = PublicKeys.from_bytes(data).keys if isinstance(data, bytes) and data else ()
    if not keys:
        raise DirectoryError(
            HResult.MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST,
            f"{obj.type.label} {obj.path} has no public key",
        )
    key = keys[0].rsa()
    return type(key)(algorithm, key.exponent, key.modulus, key.bit_length).to_bytes()


# --- servers and sites ------------------------------------------------------------------------


def servers_of_site(view: View, guard: Guard, index: int) -> Generator[int, None, str]:
    """S_DSCreateServersCache (3.1.4.20): the site of that index, its PSC first, then its BSCs.

    Sites are counted by name, so that every server of an enterprise gives the same answer. The
    list is one of the enterprise's, so it is the enterprise that has to be readable. A name that
    the list cannot spell (a comma in a server's) is left out. One step for each site, and for each
    machine of the one that is asked for.
    """
    root = enterprise(view)
    if root is not None:
        guard.check(root, Access.READ, view)
    sites = []
    for site in view.objects(ObjectType.SITE):
        if _servers(site, ()) is not None:
            sites.append(site)
        yield 0
    if index >= len(sites):
        raise DirectoryError(
            HResult.MQDS_E_NO_MORE_DATA, f"index {index} of {counted(len(sites), 'site')}"
        )
    sites.sort(key=lambda site: name_key(site.path or ""))
    names = yield from _walk_controllers(view, sites[index])
    return str(_servers(sites[index], names))


def controllers_of(view: View, site: DirectoryObject) -> list[str]:
    """The PSC, which the site names, and the other directory servers in it, by name."""
    return finish_walk(_walk_controllers(view, site))


def _walk_controllers(view: View, site: DirectoryObject) -> Generator[int, None, list[str]]:
    primary = str(site.value(PropId.S_PSC) or "")
    rest: dict[str, str] = {}
    for machine in view.owned_by(ObjectType.MACHINE, site.id):
        if ServiceAttributes.of(machine).role is not None:
            rest[name_key(machine.path or "")] = machine.path or ""
        yield 0
    rest.pop(name_key(primary), None)
    return [primary, *(rest[key] for key in sorted(rest))]


def _servers(site: DirectoryObject, names: Iterable[str]) -> ServerList | None:
    specs = []
    for name in names:
        with suppress(ValueError):
            specs.append(ServerSpec(name))
    try:
        return ServerList(site.path or "", tuple(specs))
    except ValueError:
        return None


def computer_sites(view: View, guard: Guard, path: str | None) -> tuple[Guid, ...]:
    """S_DSGetComputerSites (3.3.4.1)."""
    machine = locate(view, Target(ObjectType.MACHINE, path))
    guard.check(machine, Access.READ, view)
    return sites_of(machine)
