"""The built-in services: management on every server, and the endpoint mapper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService, same_answer
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.epmapper import EpmStatus
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.rpc.tower import Tower

_LISTENING = mgmt.Listening(0, 1)


class ManagementService(TypedService):
    """The methods rpc_mgmt_*. ``endpoint`` is a function, as the endpoint is made after this."""

    def __init__(self, endpoint: Callable[[], ServerEndpoint], principal: str = "") -> None:
        self._endpoint = endpoint
        self._principal = principal
        super().__init__(
            mgmt.MGMT,
            {
                mgmt.INQ_IF_IDS: self._inq_if_ids,
                mgmt.INQ_STATS: self._inq_stats,
                mgmt.IS_SERVER_LISTENING: lambda _call, _request: _LISTENING,
                # This server cannot be stopped by a client.
                mgmt.STOP_SERVER_LISTENING: lambda _call, _request: mgmt.Status(
                    FaultStatus.ACCESS_DENIED
                ),
                mgmt.INQ_PRINC_NAME: self._inq_princ_name,
            },
            sizes={mgmt.INQ_PRINC_NAME.opnum: lambda request: {"size": request.size}},
            shortcuts={
                mgmt.IS_SERVER_LISTENING.opnum: same_answer(mgmt.IS_SERVER_LISTENING, _LISTENING)
            },
        )

    def _inq_if_ids(self, _call: IncomingCall, _request: mgmt.Nothing) -> mgmt.InqIfIds:
        syntaxes = [interface.syntax for interface in self._endpoint().interfaces]
        ids = tuple(mgmt.InterfaceId(s.uuid, s.major, s.minor) for s in syntaxes)
        return mgmt.InqIfIds(mgmt.InterfaceIds(ids), 0)

    def _inq_stats(
        self, _call: IncomingCall, request: mgmt.StatisticsAsked
    ) -> mgmt.StatisticsGiven:
        counted = self._endpoint().statistics
        numbers = (
            counted.calls_in,
            counted.calls_out,
            counted.packets_in,
            counted.packets_out,
        )
        return mgmt.StatisticsGiven(tuple(n & 0xFFFF_FFFF for n in numbers)[: request.count], 0)

    def _inq_princ_name(self, _call: IncomingCall, request: mgmt.PrincipalAsked) -> mgmt.Principal:
        fits = len(self._principal) < request.size
        return mgmt.Principal(self._principal if fits else "", 0 if fits else 0x6F6)


@dataclass(slots=True)
class _Cursor:
    """The entries that a lookup has not returned yet."""

    rest: list[Registration]


class EndpointMapperService(TypedService):
    """ept_lookup, ept_map and the handles between their calls."""

    def __init__(self, registry: EndpointRegistry) -> None:
        self._registry = registry
        super().__init__(
            epmapper.EPMAPPER,
            {
                epmapper.EPT_LOOKUP: self._lookup,
                epmapper.EPT_MAP: self._map,
                epmapper.EPT_LOOKUP_HANDLE_FREE: self._free,
            },
            sizes={
                epmapper.EPT_LOOKUP.opnum: lambda request: {"max_entries": request.max_entries},
                epmapper.EPT_MAP.opnum: lambda request: {"max_towers": request.max_towers},
            },
        )

    def _lookup(self, call: IncomingCall, request: epmapper.LookupAsked) -> epmapper.LookupFound:
        wanted = request.interface
        interface = None if wanted is None else SyntaxId(wanted.uuid, wanted.major, wanted.minor)
        found = self._registry.lookup(
            request.inquiry, request.object or Guid.NULL, interface, request.version_option
        )
        handle, page = self._page(call, request.handle, list(found), request.max_entries)
        entries = tuple(
            epmapper.EndpointEntry(e.object, epmapper.TowerOctets(e.tower.to_bytes()), e.annotation)
            for e in page
        )
        status = EpmStatus.OK if entries else EpmStatus.NOT_REGISTERED
        return epmapper.LookupFound(handle, entries, status)

    def _map(self, call: IncomingCall, request: epmapper.MapAsked) -> epmapper.MapFound:
        try:
            tower = Tower.from_bytes(request.tower.octets if request.tower else b"")
        except WireError:
            return epmapper.MapFound(ContextHandle.NULL, (), EpmStatus.NOT_REGISTERED)
        found = list(self._registry.map(tower, request.object or Guid.NULL))
        handle, page = self._page(call, request.handle, found, request.max_towers)
        towers = tuple(epmapper.TowerOctets(e.tower.to_bytes()) for e in page)
        status = EpmStatus.OK if towers else EpmStatus.NOT_REGISTERED
        return epmapper.MapFound(handle, towers, status)

    def _page(
        self, call: IncomingCall, handle: ContextHandle, found: list[Registration], size: int
    ) -> tuple[ContextHandle, Sequence[Registration]]:
        """The handle for the rest, if any, and the next ``size`` registrations."""
        cursor = _Cursor(found)
        if handle:
            kept = call.group.handle(handle.uuid, call.interface)
            if not isinstance(kept, _Cursor):  # another interface of the group made it
                raise RpcFault(FaultStatus.CONTEXT_MISMATCH, f"handle {handle.uuid} is no lookup")
            cursor = kept
        elif not size:  # a client that takes no entries gets no handle either
            return ContextHandle.NULL, ()
        page, cursor.rest = cursor.rest[:size], cursor.rest[size:]
        if cursor.rest:
            if not handle:
                handle = ContextHandle(call.create_handle(cursor))
            return handle, page
        if handle:
            call.group.close_handle(handle.uuid, call.interface)
        return ContextHandle.NULL, page

    def _free(self, call: IncomingCall, request: epmapper.HandleAsked) -> epmapper.HandleFreed:
        """Frees a lookup. Handles of other interfaces must not be closed without rundown."""
        if request.handle:
            kept = call.group.handle(request.handle.uuid, call.interface)
            if not isinstance(kept, _Cursor):
                raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "the handle is no lookup")
            call.group.close_handle(request.handle.uuid, call.interface)
        return epmapper.HandleFreed(ContextHandle.NULL, 0)
