"""The methods of dscomm2, in the same way as ``calls`` (MS-MQDS 3.3.4, 3.4)."""

from __future__ import annotations

from mqis.client.calls import ANY_TYPE, checked
from mqis.client.session import SIGNATURE_SIZE, ServerSession
from mqis.protocol.directory import signature
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.types.catalogue import EXTENDED
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.propid import PropId
from mqis.wire.ndr import ContextHandle


async def get_computer_sites(session: ServerSession, machine: str) -> dscomm2.ComputerSites:
    """S_DSGetComputerSites (3.3.4.1)."""
    request = dscomm2.GetComputerSites(machine, session.auth, SIGNATURE_SIZE)
    return await session.signed(
        dscomm2.GET_COMPUTER_SITES,
        request,
        lambda got: signature.blob_digest(b"".join(site.raw for site in got.sites or ())),
        interface=dscomm2.DSCOMM2,
    )


async def get_props_ex(session: ServerSession, target: Target, propid: PropId) -> dscomm.PropsGot:
    """S_DSGetPropsEx, S_DSGetPropsGuidEx (3.3.4.2, 3.3.4.3)."""
    checked(target)
    if EXTENDED.get(propid) is not target.object_type:
        raise ValueError(f"this call does not return {propid.name} of a {target.object_type.label}")
    kind, ids, given = target.object_type, (int(propid),), {"cp": 1}

    def digest(got: dscomm.PropsGot) -> bytes:
        return signature.properties_digest(ids, got.values)

    if target.path is not None:
        by_path = dscomm.GetProps(kind, target.path, ids, (ANY_TYPE,), session.auth, SIGNATURE_SIZE)
        return await session.signed(
            dscomm2.GET_PROPS_EX, by_path, digest, given, interface=dscomm2.DSCOMM2
        )
    guid = target.guid or Guid.NULL
    by_guid = dscomm.GetPropsGuid(kind, guid, ids, (ANY_TYPE,), session.auth, SIGNATURE_SIZE)
    return await session.signed(
        dscomm2.GET_PROPS_GUID_EX, by_guid, digest, given, interface=dscomm2.DSCOMM2
    )


async def begin_delete_notification(session: ServerSession, path: str) -> dscomm.HandleGot:
    """S_DSBeginDeleteNotification (3.3.4.4): a queue if the path has a backslash, or a machine."""
    request = dscomm2.BeginDeleteNotification(path, session.auth)
    return await session.call(dscomm2.BEGIN_DELETE_NOTIFICATION, request, interface=dscomm2.DSCOMM2)


async def notify_delete(session: ServerSession, handle: ContextHandle) -> dscomm.DirectoryResult:
    """S_DSNotifyDelete (3.3.4.5)."""
    request = dscomm.HandleGiven(handle)
    return await session.call(dscomm2.NOTIFY_DELETE, request, interface=dscomm2.DSCOMM2)


async def end_delete_notification(session: ServerSession, handle: ContextHandle) -> None:
    """S_DSEndDeleteNotification (3.3.4.6)."""
    request = dscomm.HandleGiven(handle)
    await session.call(dscomm2.END_DELETE_NOTIFICATION, request, interface=dscomm2.DSCOMM2)


async def is_server_gc(session: ServerSession) -> bool:
    """S_DSIsServerGC (3.3.4.7)."""
    request = dscomm2.NoParameters()
    got = await session.call(dscomm2.IS_SERVER_GC, request, interface=dscomm2.DSCOMM2)
    return bool(got.is_gc)


async def get_gc_list_in_domain(session: ServerSession, domain: str) -> dscomm2.GCList:
    """S_DSGetGCListInDomain (3.3.4.8)."""
    request = dscomm2.GetGCListInDomain(None, domain, session.auth, SIGNATURE_SIZE)

    def digest(got: dscomm2.GCList) -> bytes:
        return signature.blob_digest((got.servers or "").encode("utf-16-le", "surrogatepass"))

    return await session.signed(
        dscomm2.GET_GC_LIST_IN_DOMAIN, request, digest, interface=dscomm2.DSCOMM2
    )
