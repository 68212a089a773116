"""The dscomm interface: calls the directory's functions for decoded requests."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from mqis.protocol.authentication import AuthenticationError, AuthLevel, AuthType
from mqis.protocol.directory import read_methods, signature, write_methods
from mqis.protocol.directory.locate import Target, object_type_of
from mqis.protocol.directory.lookup_walk import LookupState
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.protocol.rpc.server_endpoint import SECURITY_CONTEXT_BYTES
from mqis.runtime.directory.challenge import Challenger
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.directory.readers import StoreReaders
from mqis.runtime.directory.results import answered, attempted, no_handle, no_properties, refused
from mqis.runtime.directory.shortcuts import DirectoryShortcuts, begin_at_once, walk_of
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import Shortcut, TypedService, call_back
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, is_failure
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.tokens import MAX_TOKEN

_OK = int(HResult.MQ_OK)
#: The most legs of a handshake; no mechanism needs half as many.
MAX_LEGS = 16
#: The memory of an auth handle without a security context.
AUTH_BYTES = 1024


class DscommService(TypedService):
    """The twenty methods of dscomm over one directory."""

    def __init__(self, directory: DirectoryContext) -> None:
        self._directory = directory
        self._challenger = Challenger(directory)
        super().__init__(
            dscomm.DSCOMM,
            {
                dscomm.CREATE_OBJECT: answered(self.create_object, _not_created),
                dscomm.DELETE_OBJECT: answered(self.delete_object, refused),
                dscomm.GET_PROPS: answered(self.get_props, no_properties),
                dscomm.SET_PROPS: answered(self.set_props, refused),
                dscomm.GET_OBJECT_SECURITY: answered(self.get_object_security, _no_security),
                dscomm.SET_OBJECT_SECURITY: answered(self.set_object_security, refused),
                dscomm.LOOKUP_BEGIN: answered(self.lookup_begin, no_handle),
                dscomm.LOOKUP_NEXT: answered(self.lookup_next, _no_rows),
                dscomm.LOOKUP_END: self.lookup_end,
                dscomm.DELETE_OBJECT_GUID: answered(self.delete_object_guid, refused),
                dscomm.GET_PROPS_GUID: answered(self.get_props_guid, no_properties),
                dscomm.SET_PROPS_GUID: answered(self.set_props_guid, refused),
                dscomm.GET_OBJECT_SECURITY_GUID: answered(
                    self.get_object_security_guid, _no_security
                ),
                dscomm.SET_OBJECT_SECURITY_GUID: answered(self.set_object_security_guid, refused),
                dscomm.QM_SET_MACHINE_PROPERTIES: answered(self.qm_set_machine_properties, refused),
                dscomm.CREATE_SERVERS_CACHE: answered(self.create_servers_cache, _no_servers),
                dscomm.QM_GET_OBJECT_SECURITY: answered(self.qm_get_object_security, _no_security),
                dscomm.VALIDATE_SERVER: answered(self.validate_server, no_handle),
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
            shortcuts=_shortcuts(directory),
        )

    # --- changes ----------------------------------------------------------------------------------

    async def create_object(
        self, call: IncomingCall, request: dscomm.CreateObject
    ) -> dscomm.Created:
        guard = self._directory.guard(call)
        settings = self._directory.settings
        target = write_methods.creatable(request.object_type, request.path)
        properties = write_methods.as_properties(request.ids, request.values)
        created = await self._directory.change(
            lambda events: write_methods.create_object(
                events,
                guard,
                target,
                properties,
                descriptor=request.descriptor,
                machine_policy=settings.machine_policy,
                unicode_names=settings.unicode_names,
            ),
            call,
        )
        return dscomm.Created(None if request.guid is None else created.id, _OK)

    async def delete_object(
        self, call: IncomingCall, request: dscomm.ByPath
    ) -> dscomm.DirectoryResult:
        return await self._delete(call, request.object_type, request.path, None)

    async def delete_object_guid(
        self, call: IncomingCall, request: dscomm.ByGuid
    ) -> dscomm.DirectoryResult:
        return await self._delete(call, request.object_type, None, request.guid)

    async def _delete(
        self, call: IncomingCall, number: int, path: str | None, guid: Guid | None
    ) -> dscomm.DirectoryResult:
        guard = self._directory.guard(call)
        target = Target.from_wire(number, path, guid)
        await self._directory.change(
            lambda events: write_methods.delete_object(events, guard, target),
            call,
        )
        return dscomm.DirectoryResult(_OK)

    async def set_props(
        self, call: IncomingCall, request: dscomm.SetProps
    ) -> dscomm.DirectoryResult:
        return await self._set(call, request.object_type, request.path, None, request)

    async def set_props_guid(
        self, call: IncomingCall, request: dscomm.SetPropsGuid
    ) -> dscomm.DirectoryResult:
        return await self._set(call, request.object_type, None, request.guid, request)

    async def _set(
        self,
        call: IncomingCall,
        number: int,
        path: str | None,
        guid: Guid | None,
        request: dscomm.SetProps | dscomm.SetPropsGuid | dscomm.SetMachineProperties,
    ) -> dscomm.DirectoryResult:
        guard = self._directory.guard(call)
        target = Target.from_wire(number, path, guid)
        properties = write_methods.as_properties(request.ids, request.values)
        await self._directory.change(
            lambda events: write_methods.set_properties(events, guard, target, properties),
            call,
        )
        return dscomm.DirectoryResult(_OK)

    async def qm_set_machine_properties(
        self, call: IncomingCall, request: dscomm.SetMachineProperties
    ) -> dscomm.DirectoryResult:
        if self._challenger.challenges:
            await self._challenger.before_set(call, request)
        return await self._set(call, ObjectType.MACHINE, request.path, None, request)

    async def set_object_security(
        self, call: IncomingCall, request: dscomm.SetSecurity
    ) -> dscomm.DirectoryResult:
        return await self._set_security(call, request, request.path, None)

    async def set_object_security_guid(
        self, call: IncomingCall, request: dscomm.SetSecurityGuid
    ) -> dscomm.DirectoryResult:
        return await self._set_security(call, request, None, request.guid)

    async def _set_security(
        self,
        call: IncomingCall,
        request: dscomm.SetSecurity | dscomm.SetSecurityGuid,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.DirectoryResult:
        guard = self._directory.guard(call)
        kind = object_type_of(request.object_type, HResult.MQDS_WRONG_OBJ_TYPE)
        target = Target(kind, path, guid)
        await self._directory.change(
            lambda events: write_methods.set_security(
                events, guard, target, request.information, request.descriptor
            ),
            call,
        )
        return dscomm.DirectoryResult(_OK)

    # --- reads ------------------------------------------------------------------------------------

    def get_props(
        self, call: IncomingCall, request: dscomm.GetProps
    ) -> dscomm.PropsGot | Awaitable[dscomm.PropsGot]:
        return self._get(call, request, request.path, None)

    def get_props_guid(
        self, call: IncomingCall, request: dscomm.GetPropsGuid
    ) -> dscomm.PropsGot | Awaitable[dscomm.PropsGot]:
        return self._get(call, request, None, request.guid)

    def _get(
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
            signature_of = _signed(auth, request.ids, values, request.signature_size)
            return dscomm.PropsGot(values, signature_of, _OK)

        ids, types = request.ids, request.types
        return self._directory.answer(
            call, lambda view: read_methods.get_properties(view, guard, target, ids, types), signed
        )

    def get_object_security(
        self, call: IncomingCall, request: dscomm.GetSecurity
    ) -> dscomm.SecurityGot | Awaitable[dscomm.SecurityGot]:
        return self._get_security(call, request, request.path, None)

    def get_object_security_guid(
        self, call: IncomingCall, request: dscomm.GetSecurityGuid
    ) -> dscomm.SecurityGot | Awaitable[dscomm.SecurityGot]:
        return self._get_security(call, request, None, request.guid)

    def qm_get_object_security(
        self, call: IncomingCall, request: dscomm.GetMachineSecurity
    ) -> dscomm.SecurityGot | Awaitable[dscomm.SecurityGot]:
        self._directory.server_auth(call, request.auth)
        if self._challenger.challenges:
            return self._get_challenged(call, request)
        return self._get_security(call, request, None, request.guid)

    async def _get_challenged(
        self, call: IncomingCall, request: dscomm.GetMachineSecurity
    ) -> dscomm.SecurityGot:
        await self._challenger.before_get(call, request)
        answer = self._get_security(call, request, None, request.guid)
        return answer if isinstance(answer, dscomm.SecurityGot) else await answer

    def _get_security(
        self,
        call: IncomingCall,
        request: dscomm.GetSecurity | dscomm.GetSecurityGuid | dscomm.GetMachineSecurity,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.SecurityGot | Awaitable[dscomm.SecurityGot]:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        target = Target.from_wire(request.object_type, path, guid)

        def signed(data: bytes) -> dscomm.SecurityGot:
            if len(data) > request.length:
                code = HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
                return _no_security(request, code, len(data))
            buffer = data.ljust(request.length, b"\0")
            made = auth.sign(signature.security_digest(buffer), request.signature_size)
            return dscomm.SecurityGot(buffer, len(data), made, _OK)

        information = request.information
        return self._directory.answer(
            call, lambda view: read_methods.get_security(view, guard, target, information), signed
        )

    def create_servers_cache(
        self, call: IncomingCall, request: dscomm.CreateServersCache
    ) -> dscomm.ServersCache | Awaitable[dscomm.ServersCache]:
        auth = self._directory.server_auth(call, request.auth)
        guard = self._directory.guard(call)
        walks, charge = self._directory.walks, self._directory.handles.memory(call)
        reads = self._directory.reads(call)

        def begin(view: View) -> Generator[int, None, str]:
            return read_methods.servers_of_site(view, guard, request.index)

        async def in_slices() -> dscomm.ServersCache:
            return _servers_cache(request, auth, await walks.in_slices(begin, charge, reads))

        done = walks.at_once(begin, charge)
        return in_slices() if done is None else _servers_cache(request, auth, done.value)

    def get_server_port(
        self, _call: IncomingCall, request: dscomm.GetServerPort
    ) -> dscomm.ServerPort:
        return dscomm.ServerPort(self._directory.settings.port if request.ip else 0)

    # --- lookups ----------------------------------------------------------------------------------

    def lookup_begin(
        self, call: IncomingCall, request: dscomm.LookupBegin
    ) -> dscomm.HandleGot | Awaitable[dscomm.HandleGot]:
        directory = self._directory
        directory.server_auth(call, request.auth)
        reads = directory.reads(call)
        plan = read_methods.plan_lookup(request.restriction, request.columns, request.sort)

        async def in_slices() -> dscomm.HandleGot:
            with directory.handles.lookup(call) as charges:
                begin = walk_of(directory, call, plan)
                state = await directory.walks.in_slices(begin, charges.memory, reads)
            return dscomm.HandleGot(directory.handles.open(call, state, charges), _OK)

        handle = None if call.tried_at_once else begin_at_once(directory, call, plan)
        return in_slices() if handle is None else dscomm.HandleGot(handle, _OK)

    def lookup_next(
        self, call: IncomingCall, request: dscomm.LookupNext
    ) -> dscomm.LookupGot | Awaitable[dscomm.LookupGot]:
        directory = self._directory
        auth = directory.server_auth(call, request.auth)
        state = directory.handles.find(call, request.handle, LookupState)
        size = request.size
        if state.admitted_by == directory.standing(call):
            return self._next_rows(call, request, auth, state, size)
        guard = directory.guard(call)

        def judge(view: View) -> int:
            return read_methods.judge_again(view, guard, state, size)

        if directory.readers is None:
            with directory.view() as view:
                return self._next_rows(call, request, auth, state, judge(view))
        if directory.memory is None:  # to ask a domain controller for each takes too long
            raise DirectoryError(
                HResult.MQ_ERROR_ACCESS_DENIED,
                "the caller's rights have changed since the lookup began; begin it again",
            )

        async def judged(readers: StoreReaders) -> dscomm.LookupGot:
            return self._next_rows(call, request, auth, state, await readers.ask(judge))

        return judged(directory.readers)

    def _next_rows(
        self,
        call: IncomingCall,
        request: dscomm.LookupNext,
        auth: ServerAuth,
        state: LookupState,
        size: int,
    ) -> dscomm.LookupGot:
        rows = state.page(size)
        values = tuple(chain.from_iterable(rows))
        signed = _signed(auth, state.columns * len(rows), values, request.signature_size)
        if call.question is not None and state.pages is not None:
            call.keep = partial(state.pages.keep, call.question, len(rows))
        state.position += len(rows)
        return dscomm.LookupGot(values, signed, _OK)

    def lookup_end(self, call: IncomingCall, request: dscomm.HandleGiven) -> dscomm.HandleGot:
        self._directory.handles.close(call, request.handle, LookupState)
        return dscomm.HandleGot(ContextHandle.NULL, _OK)

    # --- server authentication --------------------------------------------------------------------

    def validate_server(
        self, call: IncomingCall, request: dscomm.ValidateServer
    ) -> dscomm.HandleGot | Awaitable[dscomm.HandleGot]:
        """S_DSValidateServer (3.1.4.2): sets up the context that makes later signatures."""
        if request.token:
            return self._validate_by(call, request)
        handles = self._directory.handles
        charges = handles.charged(call, AUTH_BYTES)
        return dscomm.HandleGot(handles.open(call, ServerAuth(None), charges), _OK)

    async def _validate_by(
        self, call: IncomingCall, request: dscomm.ValidateServer
    ) -> dscomm.HandleGot:
        """Charges the context while its tokens still come: the client may take its time."""
        handles, size = self._directory.handles, SECURITY_CONTEXT_BYTES
        with handles.charged(call, size + min(len(request.token), MAX_TOKEN)) as charges:
            auth = await self._negotiate(call, request)
            charges.memory.change(size)
        return dscomm.HandleGot(handles.open(call, auth, charges), _OK)

    async def _negotiate(self, call: IncomingCall, request: dscomm.ValidateServer) -> ServerAuth:
        if self._directory.gss is None:
            raise DirectoryError(
                HResult.MQDS_E_CANT_INIT_SERVER_AUTH, "no credentials to authenticate with"
            )
        try:
            context = self._directory.gss.acceptor(
                AuthType.SPNEGO, AuthLevel.PRIVACY, call.addresses
            )
            token: bytes = request.token
            for _ in range(MAX_LEGS):
                answer = context.step(token)
                if context.complete:
                    if answer:  # the last token of the server, which ends the client's side
                        await self._leg(call, request, answer, final=True)
                    return ServerAuth(context)
                token = await self._leg(call, request, answer or b"")
        except AuthenticationError as error:
            call.group.failed_logons += 1  # after a few of them the association ends
            raise _failed(f"not authenticated: {error}") from error
        raise _failed(f"no end of the handshake after {MAX_LEGS} legs")

    async def _leg(
        self,
        call: IncomingCall,
        request: dscomm.ValidateServer,
        token: bytes,
        *,
        final: bool = False,
    ) -> bytes:
        """Calls S_InitSecCtx: sends the server's token, returns the client's next one."""
        callback = dscomm.InitSecCtx(request.context, token, MAX_TOKEN)
        given = {"buffer_size": MAX_TOKEN}
        try:
            answer = await call_back(call, dscomm.INIT_SEC_CTX, callback, given=given)
        except (RpcFault, RpcConnectionError, WireError) as error:
            raise _failed(f"S_InitSecCtx: {error}") from error
        wanted = (_OK,) if final else (_OK, HResult.SEC_I_CONTINUE_NEEDED)
        if answer.result in wanted:
            return answer.token
        gave_up = is_failure(answer.result)
        raise DirectoryError(
            answer.result if gave_up else HResult.MQ_ERROR_DS_ERROR,
            f"S_InitSecCtx returned 0x{answer.result:08x}",
        )

    def close_server_handle(
        self, call: IncomingCall, request: dscomm.HandleGiven
    ) -> dscomm.HandleGot:
        self._directory.handles.close(call, request.handle, ServerAuth)
        return dscomm.HandleGot(ContextHandle.NULL, _OK)


def _shortcuts(directory: DirectoryContext) -> dict[int, Shortcut]:
    if directory.memory is None:
        return {}
    short = DirectoryShortcuts(directory)
    shortcuts = {
        dscomm.GET_PROPS.opnum: short.get_props,
        dscomm.GET_PROPS_GUID.opnum: short.get_props,
        dscomm.LOOKUP_BEGIN.opnum: short.lookup_begin,
        dscomm.LOOKUP_NEXT.opnum: short.lookup_next,
        dscomm.LOOKUP_END.opnum: short.lookup_end,
    }
    return {opnum: attempted(shortcut) for opnum, shortcut in shortcuts.items()}


def _signed(
    auth: ServerAuth, ids: Sequence[int], values: Sequence[PropVariant], size: int
) -> bytes:
    """The signature of properties; zeros without a security context."""
    if auth.context is None:
        return bytes(size)
    return auth.sign(signature.properties_digest(ids, values), size)


def _servers_cache(
    request: dscomm.CreateServersCache, auth: ServerAuth, servers: str
) -> dscomm.ServersCache:
    digest = signature.servers_digest(request.index, servers)
    signed = auth.sign(digest, request.signature_size)
    return dscomm.ServersCache(request.index, dscomm.StringPointer(servers), signed, _OK)


# --- answers of calls that have failed ------------------------------------------------------------


def _not_created(request: dscomm.CreateObject, result: int) -> dscomm.Created:
    return dscomm.Created(request.guid, result)


def _no_rows(request: dscomm.LookupNext, result: int) -> dscomm.LookupGot:
    """No row is passed over: the client may ask again with a larger buffer."""
    return dscomm.LookupGot((), bytes(request.signature_size), result)


def _no_servers(request: dscomm.CreateServersCache, result: int) -> dscomm.ServersCache:
    return dscomm.ServersCache(request.index, None, bytes(request.signature_size), result)


def _failed(detail: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_DS_ERROR, detail)


def _no_security(request: Any, result: int, needed: int = 0) -> dscomm.SecurityGot:
    unsigned = bytes(request.signature_size)
    return dscomm.SecurityGot(bytes(request.length), needed, unsigned, int(result))


def _count(request: Any) -> Mapping[str, int]:
    return {"cp": len(request.ids)}


def _length(request: Any) -> Mapping[str, int]:
    return {"length": request.length}
