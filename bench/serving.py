"""A directory server as a process: ``python -m bench.serving STORE``, a file or PostgreSQL.

It prints its port, and ends when its input ends. With MQIS_BENCH_PROFILE=NAME the event loop's and
the writer's thread write their profiles to NAME.loop and NAME.writer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack, closing
from cProfile import Profile
from pathlib import Path

import uvloop

from bench.processes import Served, serve
from mqis.protocol.directory.guard import Allowance
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.directory.readers import SESSIONS, StoreReaders
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.database import DatabaseStore
from mqis.storage.postgres import PostgresStore
from mqis.storage.sqlite import SqliteStore

#: The default of ``store.timeout_s``.
TIMEOUT_S = 2.0
PROFILE = "MQIS_BENCH_PROFILE"
#: Raises the limits of one account, as anonymous clients create very many here.
SETTINGS = DirectorySettings(
    allowance=Allowance(
        max_owned=100_000_000, max_changes=1_000_000_000, max_written_bytes=1_000_000 << 20
    )
)


def start(store: Path | str, resources: ExitStack) -> Served:
    """``store``: a file, or how to connect to a PostgreSQL server."""
    return serve(resources, "bench.serving", str(store))


class _ProfiledWriter(GroupCommitWriter):
    def _work(self) -> None:
        profile = Profile()
        profile.runcall(super()._work)
        profile.dump_stats(f"{os.environ[PROFILE]}.writer")


def _opened(store: str) -> DatabaseStore:
    """As a server opens it."""
    if "host=" not in store:
        return SqliteStore(store, create=False)
    return PostgresStore(store, create=False, claim=True, timeout_s=TIMEOUT_S)


async def _serve(place: str) -> None:
    entropy = SystemEntropy()
    with closing(_opened(place)) as store, ExitStack() as stack:
        readers = StoreReaders(store, SESSIONS) if store.is_remote else None
        if readers is not None:
            stack.callback(readers.close)
        writer = _ProfiledWriter(store) if PROFILE in os.environ else GroupCommitWriter(store)
        services = [
            DscommService(DirectoryContext(store, writer, entropy, SETTINGS, readers=readers)),
            ManagementService(lambda: server.endpoint),
        ]
        server = RpcServer(services, entropy)
        async with server:
            print(await server.listen("127.0.0.1"), flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await writer.close()


def main() -> None:
    (place,) = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if PROFILE not in os.environ:
            runner.run(_serve(place))
            return
        profile = Profile()
        profile.runcall(runner.run, _serve(place))
        profile.dump_stats(f"{os.environ[PROFILE]}.loop")


if __name__ == "__main__":
    main()
