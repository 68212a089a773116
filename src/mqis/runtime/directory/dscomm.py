"""dscomm answered: stubs in, the directory's functions, stubs out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.protocol.directory import changes, reads, signature
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.directory.challenge import Challenger
from mqis.runtime.directory.context import DirectoryContext, result_of
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService, call_back
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant

_OK = int(HResult.MQ_OK)
_REFUSALS = (DirectoryError, StorageError, WireError)


class DscommService(TypedService):
    """The twenty methods of dscomm over one directory."""

    def __init__(self, directory: DirectoryContext) -> None:
        self._directory = directory
        self._challenger = Challenger(directory)
        super().__init__(
            dscomm.DSCOMM,
            {
                dscomm.CREATE_OBJECT: self.create_object,
                dscomm.DELETE_OBJECT: self.delete_object,
                dscomm.GET_PROPS: self.get_props,
                dscomm.SET_PROPS: self.set_props,
                dscomm.GET_OBJECT_SECURITY: self.get_object_security,
                dscomm.SET_OBJECT_SECURITY: self.set_object_security,
                dscomm.LOOKUP_BEGIN: self.lookup_begin,
                dscomm.LOOKUP_NEXT: self.lookup_next,
                dscomm.LOOKUP_END: self.lookup_end,
                dscomm.DELETE_OBJECT_GUID: self.delete_object_guid,
                dscomm.GET_PROPS_GUID: self.get_props_guid,
                dscomm.SET_PROPS_GUID: self.set_props_guid,
                dscomm.GET_OBJECT_SECURITY_GUID: self.get_object_security_guid,
                dscomm.SET_OBJECT_SECURITY_GUID: self.set_object_security_guid,
                dscomm.QM_SET_MACHINE_PROPERTIES: self.qm_set_machine_properties,
                dscomm.CREATE_SERVERS_CACHE: self.create_servers_cache,
                dscomm.QM_GET_OBJECT_SECURITY: self.qm_get_object_security,
                dscomm.VALIDATE_SERVER: self.validate_server,
                dscomm.CLOSE_SERVER_HANDLE: self.close_server_handle,
                dscomm.GET_SERVER_PORT: self.get_server_port,
            },
            sizes={
                dscomm.GET_PROPS.opnum: _count,
                dscomm.GET_PROPS_GUID.opnum: _count,
                dscomm.GET_OBJECT_SECURITY.opnum: _length,
                dscomm.GET_OBJECT_SECURITY_GUID.opnum: _length,
                dscomm.QM_GET_OBJECT_SECURITY.opnum: _length,
                dscomm.LOOKUP_NEXT.opnum: lambda request: {"size": request.size},
            },
        )

    # --- changes ----------------------------------------------------------------------------------

    async def create_object(
        self, call: IncomingCall, request: dscomm.CreateObject
    ) -> dscomm.Created:
        guard = self._directory.guard(call)
        policy = self._directory.settings.machine_policy
        try:
            target = _creatable(request)
            properties = changes.as_properties(request.ids, request.values)
            created = await self._directory.change(
                lambda events: changes.create_object(
                    events,
                    guard,
                    target,
                    properties,
                    descriptor=request.descriptor,
                    machine_policy=policy,
                )
            )
        except _REFUSALS as error:
            return dscomm.Created(request.guid, result_of(error))
        return dscomm.Created(None if request.guid is None else created.id, _OK)

    async def delete_object(self, call: IncomingCall, request: dscomm.ByPath) -> dscomm.Result:
        return await self._delete(call, request.object_type, request.path, None)

    async def delete_object_guid(self, call: IncomingCall, request: dscomm.ByGuid) -> dscomm.Result:
        return await self._delete(call, request.object_type, None, request.guid)

    async def _delete(
        self, call: IncomingCall, number: int, path: str | None, guid: Guid | None
    ) -> dscomm.Result:
        guard = self._directory.guard(call)
        try:
            target = Target.from_wire(number, path, guid)
            await self._directory.change(
                lambda events: changes.delete_object(events, guard, target)
            )
        except _REFUSALS as error:
            return dscomm.Result(result_of(error))
        return dscomm.Result(_OK)

    async def set_props(self, call: IncomingCall, request: dscomm.SetProps) -> dscomm.Result:
        return await self._set(call, request.object_type, request.path, None, request)

    async def set_props_guid(
        self, call: IncomingCall, request: dscomm.SetPropsGuid
    ) -> dscomm.Result:
        return await self._set(call, request.object_type, None, request.guid, request)

    async def _set(
        self,
        call: IncomingCall,
        number: int,
        path: str | None,
        guid: Guid | None,
        request: dscomm.SetProps | dscomm.SetPropsGuid | dscomm.SetMachineProperties,
    ) -> dscomm.Result:
        guard = self._directory.guard(call)
        try:
            target = Target.from_wire(number, path, guid)
            properties = changes.as_properties(request.ids, request.values)
            await self._directory.change(
                lambda events: changes.set_properties(events, guard, target, properties)
            )
        except _REFUSALS as error:
            return dscomm.Result(result_of(error))
        return dscomm.Result(_OK)

    async def qm_set_machine_properties(
        self, call: IncomingCall, request: dscomm.SetMachineProperties
    ) -> dscomm.Result:
        try:
            await self._challenger.before_set(call, request)
        except _REFUSALS as error:
            return dscomm.Result(result_of(error))
        return await self._set(call, ObjectType.MACHINE, request.path, None, request)

    async def set_object_security(
        self, call: IncomingCall, request: dscomm.SetSecurity
    ) -> dscomm.Result:
        return await self._set_security(call, request, request.path, None)

    async def set_object_security_guid(
        self, call: IncomingCall, request: dscomm.SetSecurityGuid
    ) -> dscomm.Result:
        return await self._set_security(call, request, None, request.guid)

    async def _set_security(
        self,
        call: IncomingCall,
        request: dscomm.SetSecurity | dscomm.SetSecurityGuid,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.Result:
        guard = self._directory.guard(call)
        try:
            target = Target.from_wire(request.object_type, path, guid)
            await self._directory.change(
                lambda events: changes.set_security(
                    events, guard, target, request.information, request.descriptor
                )
            )
        except _REFUSALS as error:
            return dscomm.Result(result_of(error))
        return dscomm.Result(_OK)

    # --- reads ------------------------------------------------------------------------------------

    def get_props(self, call: IncomingCall, request: dscomm.GetProps) -> dscomm.PropsGot:
        return self._get(call, request, request.path, None)

    def get_props_guid(self, call: IncomingCall, request: dscomm.GetPropsGuid) -> dscomm.PropsGot:
        return self._get(call, request, None, request.guid)

    def _get(
        self,
        call: IncomingCall,
        request: dscomm.GetProps | dscomm.GetPropsGuid,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.PropsGot:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        try:
            target = Target.from_wire(request.object_type, path, guid)
            with self._directory.view() as view:
                values = reads.get_properties(view, guard, target, request.ids, request.values)
            signed = auth.sign(
                signature.properties_digest(request.ids, values), request.signature_size
            )
        except _REFUSALS as error:
            return dscomm.PropsGot(request.values, bytes(request.signature_size), result_of(error))
        return dscomm.PropsGot(values, signed, _OK)

    def get_object_security(
        self, call: IncomingCall, request: dscomm.GetSecurity
    ) -> dscomm.SecurityGot:
        return self._get_security(call, request, request.path, None)

    def get_object_security_guid(
        self, call: IncomingCall, request: dscomm.GetSecurityGuid
    ) -> dscomm.SecurityGot:
        return self._get_security(call, request, None, request.guid)

    async def qm_get_object_security(
        self, call: IncomingCall, request: dscomm.GetMachineSecurity
    ) -> dscomm.SecurityGot:
        try:
            await self._challenger.before_get(call, request)
        except _REFUSALS as error:
            return _no_security(request, result_of(error))
        return self._get_security(call, request, None, request.guid)

    def _get_security(
        self,
        call: IncomingCall,
        request: dscomm.GetSecurity | dscomm.GetSecurityGuid | dscomm.GetMachineSecurity,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.SecurityGot:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        try:
            target = Target.from_wire(request.object_type, path, guid)
            with self._directory.view() as view:
                data = reads.get_security(view, guard, target, request.information)
            if len(data) > request.length:
                code = HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
                return _no_security(request, code, len(data))
            buffer = data.ljust(request.length, b"\0")
            signed = auth.sign(signature.security_digest(buffer), request.signature_size)
        except _REFUSALS as error:
            return _no_security(request, result_of(error))
        return dscomm.SecurityGot(buffer, len(data), signed, _OK)

    def create_servers_cache(
        self, call: IncomingCall, request: dscomm.CreateServersCache
    ) -> dscomm.ServersCache:
        auth = self._directory.server_auth(call, request.auth)
        try:
            with self._directory.view() as view:
                servers = reads.servers_of_site(view, request.index)
            digest = signature.servers_digest(request.index, servers)
            signed = auth.sign(digest, request.signature_size)
        except _REFUSALS as error:
            unsigned = bytes(request.signature_size)
            return dscomm.ServersCache(request.index, None, unsigned, result_of(error))
        pointer = dscomm.StringPointer(servers)
        return dscomm.ServersCache(request.index, pointer, signed, _OK)

    def get_server_port(
        self, _call: IncomingCall, request: dscomm.GetServerPort
    ) -> dscomm.ServerPort:
        return dscomm.ServerPort(self._directory.settings.port if request.ip else 0)

    # --- lookups ----------------------------------------------------------------------------------

    def lookup_begin(self, call: IncomingCall, request: dscomm.LookupBegin) -> dscomm.HandleGot:
        self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        try:
            self._check_lookups(call)
            with self._directory.view() as view:
                state = reads.begin_lookup(
                    view, guard, request.restriction, request.columns, request.sort
                )
        except _REFUSALS as error:
            return dscomm.HandleGot(ContextHandle.NULL, result_of(error))
        handle = call.group.create_handle(state, call.interface)
        return dscomm.HandleGot(ContextHandle(handle), _OK)

    def _check_lookups(self, call: IncomingCall) -> None:
        open_now = sum(
            isinstance(handle.value, reads.LookupState) for handle in call.group.handles.values()
        )
        if open_now >= self._directory.settings.max_lookups:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"{open_now} lookups are open already"
            )

    def lookup_next(self, call: IncomingCall, request: dscomm.LookupNext) -> dscomm.LookupGot:
        auth = self._directory.server_auth(call, request.auth)
        state = call.group.handle(request.handle.uuid, call.interface)
        if not isinstance(state, reads.LookupState):
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "not a lookup handle")
        rows = state.page(request.size)
        values: tuple[PropVariant, ...] = tuple(value for row in rows for value in row)
        try:
            digest = signature.properties_digest(state.columns * len(rows), values)
            signed = auth.sign(digest, request.signature_size)
        except DirectoryError as error:  # the client asks again with a larger buffer
            return dscomm.LookupGot((), bytes(request.signature_size), error.hresult)
        state.position += len(rows)
        return dscomm.LookupGot(values, signed, _OK)

    def lookup_end(self, call: IncomingCall, request: dscomm.HandleGiven) -> dscomm.HandleGot:
        if not isinstance(
            call.group.handle(request.handle.uuid, call.interface), reads.LookupState
        ):
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "not a lookup handle")
        call.group.close_handle(request.handle.uuid, call.interface)
        return dscomm.HandleGot(ContextHandle.NULL, _OK)

    # --- server authentication --------------------------------------------------------------------

    async def validate_server(
        self, call: IncomingCall, request: dscomm.ValidateServer
    ) -> dscomm.HandleGot:
        """S_DSValidateServer (3.1.4.2): the context that later signatures are made with."""
        if not request.token:
            auth = ServerAuth(None)
        else:
            try:
                auth = await self._negotiate(call, request)
            except DirectoryError as error:
                return dscomm.HandleGot(ContextHandle.NULL, error.hresult)
        handle = call.group.create_handle(auth, call.interface)
        return dscomm.HandleGot(ContextHandle(handle), _OK)

    async def _negotiate(self, call: IncomingCall, request: dscomm.ValidateServer) -> ServerAuth:
        if self._directory.gss is None:
            raise DirectoryError(
                HResult.MQDS_E_CANT_INIT_SERVER_AUTH, "no credentials to authenticate with"
            )
        try:
            context = self._directory.gss.acceptor(AuthType.SPNEGO, AuthLevel.PRIVACY)
            token: bytes = request.token
            while True:
                answer = context.step(token)
                if context.complete and not answer:
                    break
                token = await self._leg(call, request, answer or b"")
                if context.complete:
                    break
        except AuthenticationError as error:
            raise DirectoryError(
                HResult.MQ_ERROR_DS_ERROR, f"not authenticated: {error}"
            ) from error
        return ServerAuth(context)

    async def _leg(self, call: IncomingCall, request: dscomm.ValidateServer, token: bytes) -> bytes:
        """One S_InitSecCtx: the server's token for the client's next one."""
        size = min(max(request.buffer_size, len(request.token)), dscomm.MAX_BUFFER)
        asked = dscomm.InitSecCtx(request.context, token, size)
        try:
            answer = await call_back(call, dscomm.INIT_SEC_CTX, asked, given={"buffer_size": size})
        except (RpcFault, RpcConnectionError, WireError) as error:
            raise DirectoryError(HResult.MQ_ERROR_DS_ERROR, f"S_InitSecCtx: {error}") from error
        if answer.result not in (_OK, HResult.SEC_I_CONTINUE_NEEDED):
            raise DirectoryError(answer.result, "the client gave up")
        return answer.token

    def close_server_handle(
        self, call: IncomingCall, request: dscomm.HandleGiven
    ) -> dscomm.HandleGot:
        self._directory.server_auth(call, request.handle)
        call.group.close_handle(request.handle.uuid, call.interface)
        return dscomm.HandleGot(ContextHandle.NULL, _OK)


def _creatable(request: dscomm.CreateObject) -> Target:
    if request.object_type == ObjectType.ENTERPRISE:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION, "an enterprise cannot be created"
        )
    return Target.from_wire(request.object_type, request.path)


def _no_security(request: Any, result: int, needed: int = 0) -> dscomm.SecurityGot:
    unsigned = bytes(request.signature_size)
    return dscomm.SecurityGot(bytes(request.length), needed, unsigned, int(result))


def _count(request: Any) -> Mapping[str, int]:
    return {"cp": len(request.ids)}


def _length(request: Any) -> Mapping[str, int]:
    return {"length": request.length}
