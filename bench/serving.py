"""A directory server as a process: ``python -m bench.serving STORE``.

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
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.sqlite import SqliteStore

PROFILE = "MQIS_BENCH_PROFILE"
#: Raises the limits of one account, as anonymous clients create very many here.
SETTINGS = DirectorySettings(
    allowance=Allowance(
        max_owned=100_000_000, max_changes=1_000_000_000, max_written_bytes=1_000_000 << 20
    )
)


def start(store: Path, resources: ExitStack) -> Served:
    return serve(resources, "bench.serving", str(store))


class _ProfiledWriter(GroupCommitWriter):
    def _work(self) -> None:
        profile = Profile()
        profile.runcall(super()._work)
        profile.dump_stats(f"{os.environ[PROFILE]}.writer")


async def _serve(path: str) -> None:
    entropy = SystemEntropy()
    with closing(SqliteStore(path, create=False)) as store:
        writer = _ProfiledWriter(store) if PROFILE in os.environ else GroupCommitWriter(store)
        services = [
            DscommService(DirectoryContext(store, writer, entropy, SETTINGS)),
            ManagementService(lambda: server.endpoint),
        ]
        server = RpcServer(services, entropy)
        async with server:
            print(await server.listen("127.0.0.1"), flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await writer.close()


def main() -> None:
    (path,) = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if PROFILE not in os.environ:
            runner.run(_serve(path))
            return
        profile = Profile()
        profile.runcall(runner.run, _serve(path))
        profile.dump_stats(f"{os.environ[PROFILE]}.loop")


if __name__ == "__main__":
    main()
