"""The process that the scenario ``directory`` loads and kills: a directory server on SQLite.

Usage: python -m tools.harness.directoryserver STORE

It prints ``listening PORT`` on stdout, then answers each line of stdin with its counters as one
line of JSON, and ends at the end of stdin.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from mqis.lab.demo import operations
from mqis.protocol.directory.lookup_walk import LookupState
from mqis.protocol.directory.serverauth import ServerAuth
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.dscomm2 import Dscomm2Service
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sid import ANONYMOUS, Sid

HOST = "127.0.0.1"
DOMAIN, USER, PASSWORD = "SOAK", "soaker", "soaked"
SOAKER = Account(DOMAIN, USER, Sid.parse("S-1-5-21-18-1-35-1000"), nt_hash(PASSWORD))
MAX_CLIENTS = 4096


class SoakServer:
    """A server that allows everything to everyone: the soak tests load, not rights."""

    def __init__(self, store: SqliteStore) -> None:
        self._writer = GroupCommitWriter(store)
        administrators = frozenset({ANONYMOUS, SOAKER.sid})
        settings = DirectorySettings(administrators=administrators)
        self.context = DirectoryContext(store, self._writer, SystemEntropy(), settings)
        self.rpc = RpcServer(
            [DscommService(self.context), Dscomm2Service(self.context)],
            SystemEntropy(),
            authenticator=PyspnegoAuthenticator(MemoryAccounts([SOAKER]), "SOAKED", DOMAIN),
            max_connections=MAX_CLIENTS,
            max_connections_per_peer=MAX_CLIENTS,
        )

    async def fill(self) -> None:
        """Fills a new store with the demonstration enterprise."""
        with self.context.view() as view:
            if view.count(ObjectType.ENTERPRISE):
                return
        await asyncio.gather(*(self._writer.submit(step) for step in operations()))

    def counters(self) -> dict[str, int]:
        handles, groups = self.context.handles, self.rpc.endpoint.groups
        return {
            "connections": self.rpc.connections,
            "association groups": len(groups),
            "context handles": groups.budget.used,
            "authentications": handles.count(ServerAuth),
            "lookups": handles.count(LookupState),
            "memory": self.context.budgets.memory.used,
        }

    async def close(self) -> None:
        await self.rpc.close(1.0)
        await self._writer.close()


async def serve(path: Path) -> None:
    store = SqliteStore(path)
    server = SoakServer(store)
    await server.fill()
    port = await server.rpc.listen(HOST, 0)
    print(f"listening {port}", flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps(server.counters()), flush=True)
    await server.close()
    store.close()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
