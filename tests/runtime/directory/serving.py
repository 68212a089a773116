"""A directory server on a socket, and callers of it, for the tests of its methods.

Every server ends with a look at its counters: no connection, association group, context handle or
lookup may be left when the callers are gone.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import pytest

from mqis.client.authentication import Callbacks, ServerProof
from mqis.protocol.authentication import Authenticator, AuthLevel, AuthType
from mqis.protocol.directory.lookup_walk import LookupState
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.protocol.ports import Store
from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.dscomm2 import DeleteListener, Dscomm2Service, PendingDelete
from mqis.runtime.directory.readers import StoreReaders
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.rpc_client import CallbackHandler, Credentials, RpcClient
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import invoke
from mqis.runtime.writer import GroupCommitWriter
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation, SyntaxId
from mqis.wire.security.sid import ADMINISTRATORS, Sid
from tests.protocol.directory.world import World
from tests.waiting import DEADLINE_S, in_time, until

P = ParamSpec("P")
T = TypeVar("T")
Q = TypeVar("Q")
R = TypeVar("R")

OK = int(HResult.MQ_OK)
#: Room for any signature.
SIGNATURE_SIZE = 256
NOW = 2000
HOST = "127.0.0.1"


def account(name: str, number: int, *groups: Sid) -> Account:
    sid = Sid.parse(f"S-1-5-21-1-2-3-{number}")
    return Account("LAB", name, sid, nt_hash(name), frozenset(groups))


ADMIN = account("admin", 500, ADMINISTRATORS)
ALICE = account("alice", 1001)
BOB = account("bob", 1002)
AUTHENTICATOR = PyspnegoAuthenticator(MemoryAccounts([ADMIN, ALICE, BOB]), "SRV1", "LAB")
SETTINGS = DirectorySettings(administrators=frozenset({ADMINISTRATORS}), clock=lambda: NOW)


def scenario(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(in_time(test(*args, **kwargs)))

    return run


def initiator(who: Account) -> PyspnegoInitiator:
    return PyspnegoInitiator(Secret(who.name, who.domain, nt_hash=who.nt_hash))


@dataclass
class Served:
    """A running directory server."""

    world: World
    context: DirectoryContext
    rpc: RpcServer
    port: int

    def configure(self, **settings: Any) -> None:
        self.context.reconfigure(replace(self.context.settings, **settings))

    @asynccontextmanager
    async def caller(
        self,
        who: Account | None = None,
        *,
        level: int = AuthLevel.INTEGRITY,
        transfers: Sequence[SyntaxId] = (NDR20, NDR64),
        callbacks: CallbackHandler | None = None,
        group_id: int = 0,
    ) -> AsyncIterator[Caller]:
        """A caller with an auth handle of the empty context."""
        credentials = None
        if who is not None:
            credentials = Credentials(initiator(who), AuthType.NTLM, level, HOST)
        async with await RpcClient.connect(
            HOST,
            self.port,
            [dscomm.SYNTAX, dscomm2.SYNTAX],
            transfers=transfers,
            credentials=credentials,
            callbacks=callbacks,
            group_id=group_id,
        ) as rpc:
            caller = Caller(rpc)
            if not group_id:
                caller.auth = (await caller.validate()).handle
            yield caller

    def counters(self) -> dict[str, int]:
        handles = self.context.handles
        return {
            "connections": self.rpc.connections,
            "groups": len(self.rpc.endpoint.groups),
            "handles": self.rpc.endpoint.groups.budget.used,
            "authentications": handles.count(ServerAuth),
            "lookups": handles.count(LookupState),
            "memory": self.context.budgets.memory.used,
            "lookups begun": self.context.budgets.lookups.used,
            "walks": self.context.budgets.walks.used,
            "deletes": handles.count(PendingDelete),
        }

    async def emptied(self) -> dict[str, int]:
        """The counters once the server has noticed that its callers are gone."""
        await until(lambda: not any(self.counters().values()))
        return self.counters()


@asynccontextmanager
async def serving(
    world: World | None = None,
    *,
    store: Store | None = None,
    settings: DirectorySettings = SETTINGS,
    gss: Authenticator | None = None,
    on_delete: DeleteListener | None = None,
    readers: StoreReaders | None = None,
) -> AsyncIterator[Served]:
    world = world or World()
    store = store or world.store
    writer = GroupCommitWriter(store)
    context = DirectoryContext(store, writer, SystemEntropy(), settings, gss, readers=readers)
    listeners = () if on_delete is None else (on_delete,)
    services = [DscommService(context), Dscomm2Service(context, *listeners)]
    server = RpcServer(services, SystemEntropy(), authenticator=AUTHENTICATOR)
    served = Served(world, context, server, await server.listen(HOST, 0))
    try:
        yield served
        assert set((await served.emptied()).values()) == {0}, served.counters()
    finally:
        await server.close(0.1)
        await writer.close()


class Caller:
    """One client's side, down to the parameters: nothing is checked, nothing is hidden."""

    def __init__(self, rpc: RpcClient) -> None:
        self.rpc = rpc
        self.auth = ContextHandle.NULL

    async def call(self, operation: Operation[Q, R], request: Q) -> R:
        description = dscomm.DSCOMM
        if operation in dscomm2.DSCOMM2.operations:
            description = dscomm2.DSCOMM2
        given = {
            name: getattr(request, name) for name in ("length", "size") if hasattr(request, name)
        }
        given["cp"] = len(getattr(request, "ids", ()))
        return await invoke(
            self.rpc, description, operation, request, given=given, timeout_s=DEADLINE_S
        )

    @asynccontextmanager
    async def proven(self, gss: SharedSecret, callbacks: Callbacks) -> AsyncIterator[ServerProof]:
        """Another auth handle, of a context that ``gss`` and the server agree on."""
        context = gss.initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
        callbacks.pending[99] = context
        got = await self.validate(context.step(None) or b"", 99)
        assert got.result == OK
        before, self.auth = self.auth, got.handle
        yield ServerProof(context)
        await self.call(dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(self.auth))
        self.auth = before

    async def validate(self, token: bytes = b"", context: int = 1) -> dscomm.HandleGot:
        request = dscomm.ValidateServer(Guid.NULL, 0, context, max(len(token), 1), token)
        return await self.call(dscomm.VALIDATE_SERVER, request)


async def fault_of(call: Awaitable[Any]) -> int:
    """The status of the fault that a call ends in."""
    with pytest.raises(RpcFault) as caught:
        await call
    return caught.value.status
