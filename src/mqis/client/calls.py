"""The methods of dscomm, one function each; they return the server's answer with its HRESULT.

Nothing is combined, retried or reacted to here (MS-MQDS 3, 3.2.4). Signatures are checked: a wrong
one raises ``SignatureError``. Requests that clients must not make are refused without a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from mqis.client.session import SIGNATURE_SIZE, ServerSession
from mqis.protocol.directory import signature
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.objects import NAME_PROPERTY, without_path_name
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.query_stubs import (
    MAX_ENTRIES,
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType

#: The type of a property whose own type the server is to fill in (3.1.4.7).
ANY_TYPE = VarType.NULL

Properties = Mapping[int, PropVariant]


def checked(target: Target, *, creating: bool = False) -> Target:
    """Returns ``target`` if clients may name such an object in this way (2.2.9, 3.1.4.21.1)."""
    kind = target.object_type
    if kind is ObjectType.DELETEDOBJECT:
        raise _refused("clients cannot access tombstones")
    # That a new link does have a name is the more specific rule (3.2.6.1.4).
    has_path = kind in NAME_PROPERTY or (creating and kind is ObjectType.ROUTINGLINK)
    if target.path is not None and not has_path:
        raise _refused(without_path_name(kind))
    return target


def _refused(detail: str) -> DirectoryError:
    """The error with the code that a server would answer."""
    return DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, detail)


def _checked_count(ids: Sequence[int]) -> tuple[int, ...]:
    if not 1 <= len(ids) <= MAX_ENTRIES:
        raise ValueError(f"a call carries 1 to {MAX_ENTRIES} properties, not {len(ids)}")
    return tuple(ids)


def _guid(target: Target) -> Guid:
    if target.guid is None and target.object_type is ObjectType.ENTERPRISE:
        return Guid.NULL  # there is only one
    if target.guid is None:
        raise _refused(f"a {target.object_type.label} needs a path or a GUID")
    return target.guid


# --- changes --------------------------------------------------------------------------------------


async def create_object(
    session: ServerSession, target: Target, properties: Properties, descriptor: bytes | None = None
) -> dscomm.Created:
    """S_DSCreateObject (3.1.4.4). It asks for the GUID, which a server need not return."""
    checked(target, creating=True)
    ids, values = _checked_count(tuple(properties)), tuple(properties.values())
    request = dscomm.CreateObject(
        target.object_type, target.path, descriptor, ids, values, Guid.NULL
    )
    return await session.call(dscomm.CREATE_OBJECT, request)


async def delete_object(session: ServerSession, target: Target) -> dscomm.DirectoryResult:
    """S_DSDeleteObject, S_DSDeleteObjectGuid (3.1.4.5, 3.1.4.6)."""
    checked(target)
    if target.path is not None:
        by_path = dscomm.ByPath(target.object_type, target.path)
        return await session.call(dscomm.DELETE_OBJECT, by_path)
    by_guid = dscomm.ByGuid(target.object_type, _guid(target))
    return await session.call(dscomm.DELETE_OBJECT_GUID, by_guid)


async def set_props(
    session: ServerSession, target: Target, properties: Properties
) -> dscomm.DirectoryResult:
    """S_DSSetProps, S_DSSetPropsGuid (3.1.4.9, 3.1.4.10)."""
    checked(target)
    ids, values = _checked_count(tuple(properties)), tuple(properties.values())
    if target.path is not None:
        by_path = dscomm.SetProps(target.object_type, target.path, ids, values)
        return await session.call(dscomm.SET_PROPS, by_path)
    by_guid = dscomm.SetPropsGuid(target.object_type, _guid(target), ids, values)
    return await session.call(dscomm.SET_PROPS_GUID, by_guid)


async def set_machine_properties(
    session: ServerSession, path: str, properties: Properties
) -> dscomm.DirectoryResult:
    """S_DSQMSetMachineProperties (3.1.4.16); the server may require a signature."""
    ids, values = _checked_count(tuple(properties)), tuple(properties.values())
    number = session.new_context()
    request = dscomm.SetMachineProperties(path, ids, values, number)
    with session.callbacks.expecting(
        dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC,
        number,
        lambda challenge: signature.machine_properties_digest(challenge, ids, values),
    ):
        return await session.call(dscomm.QM_SET_MACHINE_PROPERTIES, request)


async def set_security(
    session: ServerSession, target: Target, information: int, data: bytes
) -> dscomm.DirectoryResult:
    """S_DSSetObjectSecurity, S_DSSetObjectSecurityGuid (3.1.4.13, 3.1.4.14)."""
    checked(target)
    if target.path is not None:
        by_path = dscomm.SetSecurity(target.object_type, target.path, information, data)
        return await session.call(dscomm.SET_OBJECT_SECURITY, by_path)
    by_guid = dscomm.SetSecurityGuid(target.object_type, _guid(target), information, data)
    return await session.call(dscomm.SET_OBJECT_SECURITY_GUID, by_guid)


# --- reads ----------------------------------------------------------------------------------------


async def get_props(session: ServerSession, target: Target, ids: Sequence[int]) -> dscomm.PropsGot:
    """S_DSGetProps, S_DSGetPropsGuid (3.1.4.7, 3.1.4.8)."""
    checked(target)
    propids, blank = _checked_count(ids), (ANY_TYPE,) * len(ids)
    given = {"cp": len(propids)}

    def digest(got: dscomm.PropsGot) -> bytes:
        return signature.properties_digest(propids, got.values)

    if target.path is not None:
        by_path = dscomm.GetProps(
            target.object_type, target.path, propids, blank, session.auth, SIGNATURE_SIZE
        )
        return await session.signed(dscomm.GET_PROPS, by_path, digest, given)
    by_guid = dscomm.GetPropsGuid(
        target.object_type, _guid(target), propids, blank, session.auth, SIGNATURE_SIZE
    )
    return await session.signed(dscomm.GET_PROPS_GUID, by_guid, digest, given)


def _security_digest(got: dscomm.SecurityGot) -> bytes:
    return signature.security_digest(got.descriptor)


async def get_security(
    session: ServerSession, target: Target, information: int, length: int
) -> dscomm.SecurityGot:
    """S_DSGetObjectSecurity, S_DSGetObjectSecurityGuid (3.1.4.11, 3.1.4.12)."""
    checked(target)
    given, kind = {"length": length}, target.object_type
    if target.path is not None:
        by_path = dscomm.GetSecurity(
            kind, target.path, information, length, session.auth, SIGNATURE_SIZE
        )
        return await session.signed(dscomm.GET_OBJECT_SECURITY, by_path, _security_digest, given)
    by_guid = dscomm.GetSecurityGuid(
        kind, _guid(target), information, length, session.auth, SIGNATURE_SIZE
    )
    return await session.signed(dscomm.GET_OBJECT_SECURITY_GUID, by_guid, _security_digest, given)


async def get_machine_security(
    session: ServerSession, target: Target, information: int, length: int
) -> dscomm.SecurityGot:
    """S_DSQMGetObjectSecurity (3.1.4.15): the server may challenge the machine that asks."""
    checked(target)
    number = session.new_context()
    request = dscomm.GetMachineSecurity(
        target.object_type,
        _guid(target),
        information,
        length,
        number,
        session.auth,
        SIGNATURE_SIZE,
    )
    with session.callbacks.expecting(
        dscomm.GET_OBJECT_SECURITY_CHALLENGE, number, signature.challenge_digest
    ):
        return await session.signed(
            dscomm.QM_GET_OBJECT_SECURITY, request, _security_digest, {"length": length}
        )


async def create_servers_cache(session: ServerSession, index: int) -> dscomm.ServersCache:
    """S_DSCreateServersCache (3.1.4.20): the servers of the site with this number."""
    pointer = dscomm.StringPointer(None)
    request = dscomm.CreateServersCache(index, pointer, session.auth, SIGNATURE_SIZE)
    return await session.signed(
        dscomm.CREATE_SERVERS_CACHE,
        request,
        lambda got: signature.servers_digest(index, servers_text(got)),
    )


def servers_text(got: dscomm.ServersCache) -> str:
    return (got.servers.text if got.servers else None) or ""


async def get_server_port(session: ServerSession) -> int:
    """S_DSGetServerPort (3.1.4.1) for TCP; 0 if the server does not say."""
    return (await session.call(dscomm.GET_SERVER_PORT, dscomm.GetServerPort(1))).port


# --- lookups --------------------------------------------------------------------------------------


async def lookup_begin(
    session: ServerSession,
    columns: Sequence[int],
    restrictions: Sequence[PropertyRestriction] = (),
    sort: Sequence[SortColumn] = (),
) -> dscomm.HandleGot:
    """S_DSLookupBegin (3.1.4.17). Empty sets are not sent: no restriction selects every object."""
    request = dscomm.LookupBegin(
        None,
        RestrictionSet(tuple(restrictions)) if restrictions else None,
        ColumnSet(tuple(columns)),
        SortSet(tuple(sort)) if sort else None,
        session.auth,
    )
    return await session.call(dscomm.LOOKUP_BEGIN, request)


async def lookup_next(
    session: ServerSession, handle: ContextHandle, columns: Sequence[int], size: int
) -> dscomm.LookupGot:
    """S_DSLookupNext (3.1.4.18): up to ``size`` values, whole objects only.

    The signature covers the columns once for each object. An incomplete object at the end, which no
    server may send, is hashed too; the caller refuses it.
    """
    request = dscomm.LookupNext(handle, size, session.auth, SIGNATURE_SIZE)

    def digest(got: dscomm.LookupGot) -> bytes:
        count = len(got.values)
        ids = (tuple(columns) * (count // len(columns) + 1))[:count]
        return signature.properties_digest(ids, got.values)

    return await session.signed(dscomm.LOOKUP_NEXT, request, digest, {"size": size})


async def lookup_end(session: ServerSession, handle: ContextHandle) -> dscomm.HandleGot:
    """S_DSLookupEnd (3.1.4.19)."""
    return await session.call(dscomm.LOOKUP_END, dscomm.HandleGiven(handle))


async def abandon(session: ServerSession, handle: ContextHandle) -> None:
    """Ends a lookup whose result no longer matters; ignores errors."""
    if session.usable:
        with suppress(MqisError):
            await lookup_end(session, handle)
