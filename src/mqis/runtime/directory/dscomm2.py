"""The dscomm2 interface: calls the directory's functions for decoded requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mqis.protocol.directory import read_methods, signature
from mqis.protocol.directory.guard import Access
from mqis.protocol.directory.locate import Target, locate
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.directory.ownership import machine_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.directory.results import answered, no_handle, no_properties, refused
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.serverlist import format_server_specs
from mqis.wire.ndr import ContextHandle
from mqis.wire.propertybag import encode_properties
from mqis.wire.propvariant import PropVariant

_OK = int(HResult.MQ_OK)


@dataclass(frozen=True, slots=True)
class PendingDelete:
    """A delete notification (3.3.1.1): the object, recorded before it is deleted."""

    object_type: ObjectType
    path: str
    site: Guid
    machine: Guid | None = None
    foreign: bool = False
    #: The queue before its deletion.
    queue: DirectoryObject | None = field(default=None, compare=False)


#: Notifies the owner of a deleted object.
DeleteListener = Callable[[PendingDelete], None]


class Dscomm2Service(TypedService):
    """The eight methods of dscomm2."""

    def __init__(
        self, directory: DirectoryContext, on_delete: DeleteListener | None = None
    ) -> None:
        self._directory = directory
        self._on_delete = self._notify_owner if on_delete is None else on_delete
        super().__init__(
            dscomm2.DSCOMM2,
            {
                dscomm2.GET_COMPUTER_SITES: answered(self.get_computer_sites, _no_sites),
                dscomm2.GET_PROPS_EX: answered(self.get_props_ex, no_properties),
                dscomm2.GET_PROPS_GUID_EX: answered(self.get_props_guid_ex, no_properties),
                dscomm2.BEGIN_DELETE_NOTIFICATION: answered(
                    self.begin_delete_notification, no_handle
                ),
                dscomm2.NOTIFY_DELETE: answered(self.notify_delete, refused),
                dscomm2.END_DELETE_NOTIFICATION: self.end_delete_notification,
                dscomm2.IS_SERVER_GC: lambda _call, _request: dscomm2.IsServerGC(0),
                dscomm2.GET_GC_LIST_IN_DOMAIN: answered(self.get_gc_list_in_domain, _no_catalogs),
            },
            sizes={
                dscomm2.GET_PROPS_EX.opnum: lambda request: {"cp": len(request.ids)},
                dscomm2.GET_PROPS_GUID_EX.opnum: lambda request: {"cp": len(request.ids)},
            },
        )

    def get_computer_sites(
        self, call: IncomingCall, request: dscomm2.GetComputerSites
    ) -> dscomm2.ComputerSites | Awaitable[dscomm2.ComputerSites]:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)

        def signed(sites: tuple[Guid, ...]) -> dscomm2.ComputerSites:
            digest = signature.blob_digest(b"".join(site.raw for site in sites))
            made = auth.sign(digest, request.signature_size)
            return dscomm2.ComputerSites(sites, made, _OK)

        return self._directory.answer(
            call, lambda view: read_methods.computer_sites(view, guard, request.path), signed
        )

    def get_props_ex(
        self, call: IncomingCall, request: dscomm.GetProps
    ) -> dscomm.PropsGot | Awaitable[dscomm.PropsGot]:
        return self._get_ex(call, request, request.path, None)

    def get_props_guid_ex(
        self, call: IncomingCall, request: dscomm.GetPropsGuid
    ) -> dscomm.PropsGot | Awaitable[dscomm.PropsGot]:
        return self._get_ex(call, request, None, request.guid)

    def _get_ex(
        self,
        call: IncomingCall,
        request: dscomm.GetProps | dscomm.GetPropsGuid,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.PropsGot | Awaitable[dscomm.PropsGot]:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        target = Target.from_wire(request.object_type, path, guid)

        def signed(values: tuple[PropVariant, ...]) -> dscomm.PropsGot:
            digest = signature.properties_digest(request.ids, values)
            made = auth.sign(digest, request.signature_size)
            return dscomm.PropsGot(values, made, _OK)

        return self._directory.answer(
            call,
            lambda view: read_methods.get_property_ex(view, guard, target, request.ids),
            signed,
        )

    # --- delete notification ----------------------------------------------------------------------

    def begin_delete_notification(
        self, call: IncomingCall, request: dscomm2.BeginDeleteNotification
    ) -> dscomm.HandleGot | Awaitable[dscomm.HandleGot]:
        self._directory.server_auth(call, request.auth)
        guard, handles = self._directory.guard(call), self._directory.handles

        def recorded(view: View) -> tuple[DirectoryObject, PendingDelete]:
            obj, pending = _pending(view, request.path)
            # Its queue manager will be notified that the object is deleted, and act on it.
            guard.check(obj, Access.DELETE, view)
            return obj, pending

        def opened(found: tuple[DirectoryObject, PendingDelete]) -> dscomm.HandleGot:
            charges = handles.charged(call, _size_of(found[0]))
            return dscomm.HandleGot(handles.open(call, found[1], charges), _OK)

        return self._directory.answer(call, recorded, opened)

    def notify_delete(
        self, call: IncomingCall, request: dscomm.HandleGiven
    ) -> dscomm.DirectoryResult:
        pending = self._directory.handles.find(call, request.handle, PendingDelete)
        if pending.object_type is ObjectType.QUEUE and not pending.foreign:
            self._on_delete(pending)
        return dscomm.DirectoryResult(_OK)

    def _notify_owner(self, pending: PendingDelete) -> None:
        """Sends a change notification to the queue manager (MS-MQCN)."""
        if pending.queue is not None:
            self._directory.deleted(pending.queue)

    def end_delete_notification(
        self, call: IncomingCall, request: dscomm.HandleGiven
    ) -> dscomm2.HandleReturned:
        self._directory.handles.close(call, request.handle, PendingDelete)
        return dscomm2.HandleReturned(ContextHandle.NULL)

    # --- global catalogs --------------------------------------------------------------------------

    def get_gc_list_in_domain(
        self, call: IncomingCall, request: dscomm2.GetGCListInDomain
    ) -> dscomm2.GCList:
        """S_DSGetGCListInDomain (3.3.4.8): the global catalogs of the configuration."""
        auth = self._directory.server_auth(call, request.auth)
        servers = self._global_catalogs(request)
        digest = signature.blob_digest(servers.encode("utf-16-le"))
        signed = auth.sign(digest, request.signature_size)
        return dscomm2.GCList(servers, signed, _OK)

    def _global_catalogs(self, request: dscomm2.GetGCListInDomain) -> str:
        if request.computer_name is not None:
            detail = "the computer name must be null"
            raise DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, detail)
        domain = name_key(request.domain_name or "")
        for name, servers in self._directory.settings.global_catalogs.items():
            if name_key(name) == domain and servers:
                return format_server_specs(servers)
        raise DirectoryError(
            HResult.MQ_ERROR_NO_GC_IN_DOMAIN, f"no global catalog in {request.domain_name!r}"
        )


def _no_sites(request: dscomm2.GetComputerSites, result: int) -> dscomm2.ComputerSites:
    return dscomm2.ComputerSites(None, bytes(request.signature_size), result)


def _no_catalogs(request: dscomm2.GetGCListInDomain, result: int) -> dscomm2.GCList:
    return dscomm2.GCList(None, bytes(request.signature_size), result)


def _size_of(obj: DirectoryObject) -> int:
    """The memory of a handle that keeps ``obj``."""
    return 1024 + 2 * len(encode_properties(obj.properties))


def _pending(view: View, path: str) -> tuple[DirectoryObject, PendingDelete]:
    """The object of a path: a queue's if it has a backslash, else a machine's (note <157>)."""
    if "\\" not in path:
        machine = locate(view, Target(ObjectType.MACHINE, path))
        return machine, PendingDelete(ObjectType.MACHINE, path, machine.partition)
    queue = locate(view, Target(ObjectType.QUEUE, path))
    host = machine_of(path, view)
    foreign = host.value(PropId.QM_FOREIGN) == 1
    pending = PendingDelete(ObjectType.QUEUE, path, host.partition, host.id, foreign, queue)
    return queue, pending
