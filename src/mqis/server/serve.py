"""The process of ``mqis serve``: one directory server and its signals.

SIGTERM and SIGINT end it gracefully, a second one at once; SIGHUP rereads the configuration.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from mqis.config import logs
from mqis.config.errors import ConfigError
from mqis.config.logs import details
from mqis.config.sections import Config
from mqis.server.directory_server import DirectoryServer, Ready
from mqis.wire.errors import MqisError

log = logging.getLogger(__name__)

#: Files that a server opens besides its connections.
_OTHER_FILES = 128


def serve(
    read: Callable[[], Config],
    on_ready: Callable[[Ready], None],
    *,
    restored: bool = False,
    config_file: Path | None = None,
) -> None:
    """Serves until a signal. ``read`` reads the configuration, again at each SIGHUP."""
    config = read()
    logs.configure(config.log)
    raise_file_limit(config.rpc.max_connections)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            server = DirectoryServer(config, restored=restored, config_file=config_file)
            runner.run(_Process(server, read, on_ready).run())
        except asyncio.CancelledError:
            raise ConfigError(
                "stopped at once by a second signal: running calls may not have been answered"
            ) from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of uvloop if that is installed: it is twice as fast."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Process:
    def __init__(
        self,
        server: DirectoryServer,
        read: Callable[[], Config],
        on_ready: Callable[[Ready], None],
    ) -> None:
        self._read = read
        self._on_ready = on_ready
        self._server = server
        self._serving = False
        self._stop = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number, task)
        loop.add_signal_handler(signal.SIGHUP, self._reread)
        if not await self._started():
            log.info("stopped")
            return
        async with self._server as server:
            self._serving = True
            ready = server.ready
            log.info(
                "serving",
                extra=details(
                    enterprise=ready.enterprise,
                    server=ready.server,
                    site=ready.site,
                    address=ready.address,
                    port=ready.port,
                    mapper_port=ready.mapper_port,
                ),
            )
            self._on_ready(ready)
            await self._stop.wait()
            self._serving = False
        log.info("stopped")

    async def _started(self) -> bool:
        """Starts the server; returns False if a signal stopped it before it was ready."""
        starting = asyncio.ensure_future(self._server.start())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
            await starting
        except asyncio.CancelledError:
            if not self._stop.is_set() or not starting.cancelled():
                starting.cancel()
                raise
            return False
        finally:
            stopping.cancel()
        return True

    def _end(self, number: signal.Signals, task: asyncio.Task[None]) -> None:
        if self._stop.is_set():
            task.cancel()
            return
        log.info("stopping", extra=details(signal=number.name))
        self._stop.set()

    def _reread(self) -> None:
        if not self._serving:
            return
        try:
            result = self._server.reread(self._read())
        except MqisError as error:
            log.error("the new configuration is refused, the old one stays in effect: %s", error)
            return
        logs.configure(result.config.log)
        log.info("configuration reread", extra=details(applied=result.applied))
        if result.waiting:
            log.warning(
                "these keys take effect after a restart", extra=details(keys=result.waiting)
            )


def raise_file_limit(connections: int) -> None:
    """Raises the limit of open files: each connection needs one, and 1024 is a usual limit."""
    wanted = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        text = (
            "fewer connections than rpc.max_connections are possible: raise the limit of open files"
        )
        log.warning(text, extra=details(files=most, wanted=wanted))
