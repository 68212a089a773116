"""Servers for the client to talk to, on loopback sockets: a real one, and one that says its lines.

``Scripted`` runs on the real RPC server. It remembers what it was asked, and answers from a table;
what is not in the table succeeds with nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mqis.client import (
    ClientEvents,
    DirectoryClient,
    DirectoryConnection,
    KnownServers,
    ServerAddress,
)
from mqis.client.session import SessionSettings
from mqis.lab.demo import build
from mqis.protocol.authentication import Authenticator
from mqis.protocol.ports import Store
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.dscomm2 import Dscomm2Service
from mqis.runtime.directory.results import no_properties
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.incoming import IncomingCall, Service
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.security.sid import EVERYONE
from tests.waiting import DEADLINE_S

T = TypeVar("T")

OK = 0
AUTH = ContextHandle(Guid(b"auth" * 4))
QUERY = ContextHandle(Guid(b"look" * 4))
NOTICE = ContextHandle(Guid(b"gone" * 4))
NEW = Guid(b"new!" * 4)
NOTHING = ContextHandle.NULL
HOST = "127.0.0.1"

#: What an operation is answered with, or a function of the request (and call) that makes it.
Line = Any
Operations = Operation[Any, Any]


def run(work: Coroutine[Any, Any, T]) -> T:
    async def in_time() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(in_time())


# --- a directory server ---------------------------------------------------------------------------


def demo_store() -> MemoryStore:
    store = MemoryStore()
    build(store)
    return store


@dataclass(frozen=True, slots=True)
class Served:
    """A real directory server."""

    port: int
    context: DirectoryContext
    rpc: RpcServer

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(HOST, self.port)


@asynccontextmanager
async def served(
    store: Store,
    settings: DirectorySettings | None = None,
    *,
    gss: Authenticator | None = None,
    authenticator: Authenticator | None = None,
) -> AsyncIterator[Served]:
    """``store`` behind dscomm and dscomm2. Unless told otherwise, everybody administers it."""
    writer = GroupCommitWriter(store)
    settings = settings or DirectorySettings(administrators=frozenset({EVERYONE}))
    context = DirectoryContext(store, writer, SystemEntropy(), settings, gss=gss)
    rpc = RpcServer(
        [DscommService(context), Dscomm2Service(context)],
        SystemEntropy(),
        authenticator=authenticator,
    )
    try:
        yield Served(await rpc.listen(HOST), context, rpc)
    finally:
        await rpc.close(0.2)
        await writer.close()


# --- a scripted one -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that came in."""

    operation: Operations
    request: Any
    stub: bytes

    @property
    def name(self) -> str:
        return self.operation.name


_SIZES: dict[str, Callable[[Any], Mapping[str, int]]] = {
    "S_DSGetProps": lambda request: {"cp": len(request.ids)},
    "S_DSGetObjectSecurity": lambda request: {"length": request.length},
    "S_DSQMGetObjectSecurity": lambda request: {"length": request.length},
    "S_DSLookupNext": lambda request: {"size": request.size},
}


def _sizes(description: InterfaceDescription) -> dict[int, Callable[[Any], Mapping[str, int]]]:
    names = {name: size for stem, size in _SIZES.items() for name in _family(stem, size)}
    return {o.opnum: names[o.name] for o in description.operations if o.name in names}


def _family(stem: str, _size: object) -> tuple[str, ...]:
    return stem, f"{stem}Guid", f"{stem}Ex", f"{stem}GuidEx"


def unsigned(size: int) -> bytes:
    return bytes(size)


def blank(operation: Operations, request: Any) -> Any:
    """Success with nothing to tell."""
    zeros = bytes(getattr(request, "signature_size", 0))
    name = operation.name
    if name == "S_DSCreateObject":
        return dscomm.Created(NEW, OK)
    if name.startswith("S_DSGetProps"):
        return no_properties(request, OK)
    if "ObjectSecurity" in name and "Set" not in name:
        return dscomm.SecurityGot(bytes(request.length), 0, zeros, OK)
    made = {
        "S_DSLookupBegin": dscomm.HandleGot(QUERY, OK),
        "S_DSLookupNext": dscomm.LookupGot((), zeros, OK),
        "S_DSLookupEnd": dscomm.HandleGot(NOTHING, OK),
        "S_DSValidateServer": dscomm.HandleGot(AUTH, OK),
        "S_DSCloseServerHandle": dscomm.HandleGot(NOTHING, OK),
        "S_DSGetServerPort": dscomm.ServerPort(0),
        "S_DSCreateServersCache": dscomm.ServersCache(0, None, zeros, 0xC00E0523),
        "S_DSGetComputerSites": dscomm2.ComputerSites((), zeros, OK),
        "S_DSBeginDeleteNotification": dscomm.HandleGot(NOTICE, OK),
        "S_DSEndDeleteNotification": dscomm2.HandleReturned(NOTHING),
        "S_DSIsServerGC": dscomm2.IsServerGC(0),
        "S_DSGetGCListInDomain": dscomm2.GCList(None, zeros, OK),
    }
    return made.get(name, dscomm.DirectoryResult(OK))


class _Actor(TypedService):
    def __init__(self, peer: Scripted, description: InterfaceDescription) -> None:
        self._peer = peer
        handlers = {o: peer.handler(o) for o in description.operations}
        super().__init__(description, handlers, _sizes(description))

    def dispatch(self, incoming: IncomingCall) -> Any:
        self._peer.stubs.append(incoming.call.stub)
        return super().dispatch(incoming)


class Scripted:
    """Remembers and answers. ``lines`` may be changed while it runs."""

    def __init__(
        self,
        lines: Mapping[Any, Line] | None = None,
        transfers: tuple[SyntaxId, ...] | None = None,
    ) -> None:
        self.lines: dict[Any, Line] = dict(lines or {})
        self.asked: list[Asked] = []
        self.stubs: list[bytes] = []
        descriptions = [dscomm.DSCOMM, dscomm2.DSCOMM2]
        if transfers is not None:
            descriptions = [replace(d, transfer_syntaxes=transfers) for d in descriptions]
        self.services: list[Service] = [_Actor(self, d) for d in descriptions]
        self.rpc: RpcServer | None = None
        self.port = 0

    def handler(self, operation: Operations) -> Callable[[IncomingCall, Any], Any]:
        def answer(call: IncomingCall, request: Any) -> Any:
            self.asked.append(Asked(operation, request, self.stubs[-1]))
            line = self.lines.get(operation)
            if line is None:
                return blank(operation, request)
            return line(call, request) if callable(line) else line

        return answer

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(HOST, self.port)

    @property
    def names(self) -> list[str]:
        """The calls in their order, without those that open and close a session."""
        frame = ("S_DSValidateServer", "S_DSCloseServerHandle")
        return [asked.name for asked in self.asked if asked.name not in frame]

    def only(self, operation: Operations) -> Any:
        """The one request of this kind."""
        found = [asked.request for asked in self.asked if asked.operation is operation]
        assert len(found) == 1, f"{len(found)} calls of {operation.name}"
        return found[0]

    async def __aenter__(self) -> Scripted:
        self.rpc = RpcServer(self.services, SystemEntropy())
        self.port = await self.rpc.listen(HOST)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self.rpc is not None
        await self.rpc.close(0.2)


@asynccontextmanager
async def connected(*addresses: ServerAddress, **settings: Any) -> AsyncIterator[DirectoryClient]:
    client = await DirectoryClient.connect(addresses, **settings)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def events_at(
    known: KnownServers | ServerAddress, **settings: Any
) -> AsyncIterator[ClientEvents]:
    """The events over a connection that is not made yet."""
    servers = known if isinstance(known, KnownServers) else KnownServers.of([known])
    connection = DirectoryConnection(servers, SessionSettings(**settings))
    try:
        yield ClientEvents(connection)
    finally:
        await connection.close()


async def scripted_event(
    event: Callable[[ClientEvents], Coroutine[Any, Any, T]],
    lines: Mapping[Any, Line] | None = None,
) -> tuple[T, Scripted]:
    """Raise one event against a scripted server: what it returned, and what was asked."""
    async with Scripted(lines) as peer, events_at(peer.address) as events:
        return await event(events), peer


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


def guid_of(value: Guid) -> PropVariant:
    return PropVariant(VarType.CLSID, value)
