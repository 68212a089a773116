"""The control socket of a supervisor: commands are JSON objects, one per line.

The Unix socket is in the run directory, or in a temporary directory if that path is too long; only
its owner can open it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mqis.config.errors import NodesError
from mqis.config.processlocks import holder
from mqis.enterprise.exchanging import let_follow
from mqis.enterprise.states import load_states
from mqis.enterprise.supervisor import Supervisor
from mqis.files import system_reason
from mqis.texts import duration
from mqis.wire.errors import MqisError

LOCK = "lock"
_SOCKET = "control"
#: sun_path has 104 bytes on macOS, 108 on Linux.
_LONGEST = 100
#: Longer than the grace of a server, after which it is killed; and as long as 'mqis up' waits.
_TIMEOUT_S, _START_TIMEOUT_S = 60.0, 180.0
#: A plan may add many servers.
_PATIENCE_S = {"start": _START_TIMEOUT_S, "follow": _START_TIMEOUT_S, "apply": 1800.0}


#: Carries out a changed plan; returns what servers have refused, and those that do not run.
Apply = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


class ControlServer:
    """Accepts commands for a supervisor between ``open`` and ``close``."""

    def __init__(self, run: Path, down: Callable[[], None], apply: Apply) -> None:
        """``down`` and ``apply`` are called by the commands of these names."""
        path = run.absolute() / _SOCKET
        self._made: str | None = None
        if len(os.fsencode(path)) > _LONGEST:
            self._made = tempfile.mkdtemp(prefix="mqis-")
            path = Path(self._made) / _SOCKET
        self.path = path
        self.supervisor: Supervisor | None = None
        self._down = down
        self._apply = apply
        self._server: asyncio.Server | None = None
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def open(self) -> None:
        self.path.unlink(missing_ok=True)  # left by a supervisor that was killed: we hold its lock
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path)
        except OSError as error:
            raise NodesError(f"{self.path}: cannot listen: {system_reason(error)}") from error
        finally:
            os.umask(before)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.path.unlink(missing_ok=True)
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._answer(await reader.readline())
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, asyncio.LimitOverrunError, ValueError):
            pass  # the client has gone
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            return {"ok": True, **await self._do(request["do"], request.get("server", ""), request)}
        except MqisError as error:
            return {"ok": False, "error": str(error)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"ok": False, "error": f"the command was not understood: {error}"}

    async def _do(self, what: str, server: str, request: dict[str, Any]) -> dict[str, Any]:
        if what == "down":
            self._down()
            return {}
        supervisor = self.supervisor
        if supervisor is None:
            raise NodesError("the servers are not set up yet; try again in a moment")
        if what == "apply":
            return await self._apply(request)
        child = supervisor.child(server)
        name = child.place.name
        async with self._turns[name]:
            if what == "stop":
                await supervisor.stop(name)
            elif what == "start":
                supervisor.start(name)
                await supervisor.ready([name], patient=False)
            elif what == "follow":
                await let_follow(supervisor, [name], str(request["psc"]))
            elif what == "kill":
                return {"pid": await supervisor.kill(name, stay=bool(request.get("stay")))}
            else:
                raise ValueError(what)
        return {"pid": child.place.pid}


def ask(run: Path, what: str, server: str = "", **more: object) -> dict[str, Any]:
    """Sends a command to the supervisor of a run directory; raises ``NodesError`` if it fails."""
    known = load_states(run)
    if known is None or holder(run / LOCK) is None:
        raise NodesError(f"{run}: no enterprise is running there; 'mqis up' starts it")
    with socket.socket(socket.AF_UNIX) as made:
        patience_s = _PATIENCE_S.get(what, _TIMEOUT_S)
        made.settimeout(patience_s)
        try:
            made.connect(known.control)
            made.sendall(json.dumps({"do": what, "server": server, **more}).encode() + b"\n")
            with made.makefile("rb") as file:
                line = file.readline()
        except TimeoutError:
            raise NodesError(
                f"{what} {server}: not done after {duration(patience_s)}; the supervisor goes on "
                "with it, and 'mqis status' shows it"
            ) from None
        except OSError as error:
            raise NodesError(f"{known.control}: the supervisor does not answer: {error}") from error
    answer: dict[str, Any] = {}
    with suppress(ValueError):
        answer = json.loads(line)
    if not answer.get("ok"):
        raise NodesError(str(answer.get("error", "the supervisor ended before it answered")))
    return answer
