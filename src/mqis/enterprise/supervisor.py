"""Supervises the processes of an enterprise: starts, watches, restarts and stops them.

    supervisor = Supervisor(run, nodes, report)
    supervisor.start("ams-dir1")
    await supervisor.ready(["ams-dir1"])
    await supervisor.close()

A server that exits is restarted, with a back-off that doubles each time it exits soon after its
start. After too many such exits the server is given up, and a message says so. A server whose
files are missing is given up at once. No server that cannot start stops another one. Each server is
its own process session, so that Ctrl-C reaches only the supervisor.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from mqis.config.errors import NodesError
from mqis.config.logs import details
from mqis.config.nodes import NodePlace, Nodes, save_nodes
from mqis.config.processlocks import ProcessLock
from mqis.enterprise.states import ProcessState, Supervised, Supervision, save_states
from mqis.files import open_log
from mqis.protocol.clock import pause_after
from mqis.texts import duration

log = logging.getLogger(__name__)

#: An exit within this many seconds after the start is a quick exit.
QUICK_S = 10.0
#: The back-off after a quick exit, doubled each time up to the longest; and the quick exits in a
#: row after which a server is given up.
PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
GIVE_UP_AFTER = 6
#: Seconds that a server has to stop before it is killed.
GRACE_S = 20.0
#: A longer log is renamed when its server starts.
MAX_LOG_BYTES = 16 << 20

#: The command that starts a server, without its configuration.
SERVE = (sys.executable, "-m", "mqis.cli.main", "serve", "--json", "--config")
#: The order of stopping: authorities last.
_ORDER = ("bsc", "psc", "pec")
_SETTLED = (ProcessState.READY, ProcessState.FAILED, ProcessState.STOPPED)


@dataclass(frozen=True, slots=True)
class Patience:
    """Restart back-off for a server that keeps exiting, and the grace for stopping."""

    quick_s: float = QUICK_S
    pause_s: float = PAUSE_S
    longest_s: float = LONGEST_PAUSE_S
    give_up_after: int = GIVE_UP_AFTER
    grace_s: float = GRACE_S

    def pause(self, deaths: int) -> float:
        return pause_after(deaths, self.pause_s, self.longest_s)


@dataclass(slots=True)
class Child:
    """One supervised server, over all its processes."""

    place: NodePlace
    state: ProcessState = ProcessState.WAITING
    since: float = field(default_factory=time.time)
    reason: str = ""
    wanted: bool = False
    #: Quick exits in a row.
    deaths: int = 0
    #: True if the next exit was requested, so that it does not count.
    forgiven: bool = False
    process: asyncio.subprocess.Process | None = None
    task: asyncio.Task[None] | None = None
    #: Set to end a pause.
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lock(self) -> Path:
        return lock_of(self.place)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None


def lock_of(place: NodePlace) -> Path:
    return Path(place.home) / "lock"


class Supervisor:
    """Owns the processes of a run directory, whose lock the caller holds."""

    def __init__(
        self,
        run: Path,
        nodes: Nodes,
        report: Callable[[str], None] = lambda _text: None,
        *,
        patience: Patience = Patience(),  # noqa: B008 -- frozen
        control: str = "",
        command: Sequence[str] = SERVE,
        fault_of: Callable[[NodePlace], str | None] = lambda _place: None,
    ) -> None:
        """``report`` gets messages for the operator; ``command`` is followed by a configuration.

        ``fault_of`` returns the reason for which a server cannot start, None if nothing is known.
        """
        self._fault_of = fault_of
        self._run = run
        self._report = report
        self._patience = patience
        self._control = control
        self._command = command
        self._complete = False
        self._refused: tuple[str, ...] = ()
        self._enterprise = nodes.enterprise
        self.children = {node.name: Child(replace(node, pid=None, restarts=0)) for node in nodes}
        self._news = asyncio.Condition()
        self._waking: set[asyncio.Task[None]] = set()
        self._hasty = self._closing = False
        self._save()

    # --- state ------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        return Nodes(self._enterprise, tuple(c.place for c in self.children.values()), os.getpid())

    @property
    def supervision(self) -> Supervision:
        return Supervision(
            self._control,
            self._complete,
            {
                name: Supervised(child.state, child.since, child.reason)
                for name, child in self.children.items()
            },
            self._refused,
        )

    def child(self, name: str) -> Child:
        return self.children[self.nodes.named(name).name]

    def completed(self, refused: Sequence[str] = ()) -> None:
        """Notes that the plan is carried out, but for what servers have refused."""
        self._complete = True
        self._refused = tuple(refused)
        self._save()

    def use(self, nodes: Nodes) -> None:
        """Takes new servers and new addresses of known ones; those that are gone must be stopped.

        A server that runs keeps its process, and needs a restart to take a new address.
        """
        known = self.children
        self.children = {}
        for node in nodes:
            child = known.get(node.name)
            if child is None:
                child = Child(replace(node, pid=None, restarts=0))
            else:
                before = child.place
                child.place = replace(node, pid=before.pid, restarts=before.restarts)
            self.children[node.name] = child
        self._complete = False
        self._save()

    # --- commands ---------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Starts a server, unless it runs; ends its back-off."""
        child = self.child(name)
        if self._closing:
            raise NodesError(f"{child.place.name}: the enterprise is being stopped")
        child.wanted = True
        if child.task is not None and not child.task.done():
            child.hurry.set()
            return
        child.deaths = 0
        self._enter(child, ProcessState.STARTING)
        child.task = asyncio.create_task(self._keep(child))

    async def stop(self, name: str) -> None:
        """Stops a server gracefully; it stays down until ``start``."""
        child = self.child(name)
        child.wanted = False
        child.hurry.set()
        task = child.task
        if child.running:
            self._enter(child, ProcessState.STOPPING)
            assert child.process is not None
            _signal(child.process, signal.SIGTERM)
        if task is not None:
            done, _ = await asyncio.wait({task}, timeout=self._patience.grace_s)
            if not done and child.process is not None:
                log.warning(
                    "the server does not stop in time and is killed", extra=details(server=name)
                )
                _signal(child.process, signal.SIGKILL)
            await task
        self._enter(child, ProcessState.STOPPED)

    async def restart(self, name: str) -> None:
        """Stops a server that runs and starts it again; returns when it is ready or given up."""
        await self.stop(name)
        self.start(name)
        await self.settled([name])

    def reread(self, name: str) -> None:
        """Lets a server that runs take the live keys of its configuration."""
        process = self.child(name).process
        if process is not None:
            _signal(process, signal.SIGHUP)

    async def kill(self, name: str, *, stay: bool = False) -> int:
        """Kills a server; it is restarted unless ``stay``. Returns its process number."""
        child = self.child(name)
        process = child.process
        if process is None or process.returncode is not None:
            raise NodesError(
                f"{child.place.name}: this server is not running, it is {child.state.value}"
            )
        child.forgiven = True
        if stay:
            child.wanted = False
        _signal(process, signal.SIGKILL)
        await process.wait()
        if stay and child.task is not None:
            await child.task
            self._enter(child, ProcessState.STOPPED, "it was killed")
        elif child.state is ProcessState.READY:
            self._enter(child, ProcessState.PAUSING, "it was killed")  # its task is about to notice
        return process.pid

    def give_up(self, name: str, reason: str) -> None:
        """Gives up a server that does not run, until the next ``start``."""
        child = self.child(name)
        child.wanted = False
        self._enter(child, ProcessState.FAILED, reason)
        self._say(f"{child.place.name} cannot start: {reason}", logging.ERROR)

    async def settled(self, names: Iterable[str]) -> None:
        """Waits until each of these servers is ready, given up or stopped."""
        wanted = [self.child(name) for name in names]
        async with self._news:
            await self._news.wait_for(lambda: all(child.state in _SETTLED for child in wanted))

    @property
    def failed(self) -> dict[str, str]:
        """The reasons of the servers that were given up, by name."""
        found = self.children.items()
        return {name: c.reason for name, c in found if c.state is ProcessState.FAILED}

    async def ready(
        self, names: Iterable[str], timeout_s: float | None = None, *, patient: bool = True
    ) -> None:
        """Waits until servers are ready; raises ``NodesError`` if one fails, or not in time.

        Unless ``patient``, the second exit counts, although the supervisor tries again.
        """
        wanted = [self.child(name) for name in names]
        before = [child.place.restarts for child in wanted]

        def settled() -> bool:
            for child, restarts in zip(wanted, before, strict=True):
                ended = not patient and child.place.restarts > restarts + 1
                if ended or child.state in (ProcessState.FAILED, ProcessState.STOPPED):
                    raise NodesError(_not_started(child))
            return all(child.state is ProcessState.READY for child in wanted)

        async with self._news:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait_for(settled)
            except TimeoutError:
                late = [c.place.name for c in wanted if c.state is not ProcessState.READY]
                waited = duration(timeout_s or 0.0)
                raise NodesError(f"not ready after {waited}: {', '.join(late)}") from None

    async def close(self) -> None:
        """Stops backups, then primary controllers, then the PEC; no server can start any more."""
        self._closing = True
        for role in _ORDER:
            names = [c.place.name for c in self.children.values() if c.place.role == role]
            await asyncio.gather(*(self.stop(name) for name in names))
        self._save(ended=True)

    def hasten(self) -> None:
        """Kills all servers at once."""
        self._hasty = True
        for child in self.children.values():
            child.wanted = False
            child.hurry.set()
            if child.process is not None:
                _signal(child.process, signal.SIGKILL)

    # --- one server -------------------------------------------------------------------------------

    async def _keep(self, child: Child) -> None:
        """Runs and restarts a server until it is stopped or given up."""
        patience = self._patience
        while child.wanted and not self._hasty:
            fault = await asyncio.to_thread(self._fault_of, child.place)
            if fault is not None:
                self.give_up(child.place.name, fault)
                return
            began = time.monotonic()
            code, last = await self._run_once(child)
            if not child.wanted:
                break
            quick = time.monotonic() - began < patience.quick_s
            child.deaths = child.deaths + 1 if quick and not child.forgiven else 0
            ending = f"{child.place.name} ended ({_ending(code)})"
            reason = f"{_ending(code)}{f': {last}' if last else ''}"
            if child.deaths >= patience.give_up_after:
                child.wanted = False
                self._enter(child, ProcessState.FAILED, reason)
                self._say(
                    f"{ending} {child.deaths} times in a row soon after its start and is given up: "
                    f"{last or 'no reason given'}; see {child.place.log}, then 'mqis start "
                    f"{child.place.name}'",
                    logging.ERROR,
                )
                return
            child.place = replace(child.place, restarts=child.place.restarts + 1)
            pause = 0.0 if child.forgiven else patience.pause(child.deaths)
            child.forgiven = False
            self._enter(child, ProcessState.PAUSING, reason)
            self._say(f"{ending}; starting it again{f' in {duration(pause)}' if pause else ''}")
            child.hurry.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await child.hurry.wait()
        self._enter(child, ProcessState.STOPPED)

    async def _run_once(self, child: Child) -> tuple[int, str]:
        """Runs one process until it exits; returns its exit code and the last line of its log."""
        try:
            process = await self._spawn(child)
        except (OSError, NodesError) as error:
            return 1, str(error)
        child.process = process
        child.place = replace(child.place, pid=process.pid)
        self._enter(child, ProcessState.STARTING)
        if not child.wanted or self._hasty:  # it was stopped meanwhile
            _signal(process, signal.SIGKILL if self._hasty else signal.SIGTERM)
        watching = asyncio.create_task(self._watch(child, process))
        code = await process.wait()
        watching.cancel()
        child.process = None
        child.place = replace(child.place, pid=None)
        # A process that was killed has not logged why.
        return code, _last_line(Path(child.place.log)) if code > 0 else ""

    async def _spawn(self, child: Child) -> asyncio.subprocess.Process:
        place = child.place
        lock = ProcessLock(child.lock)
        if not lock.take():
            raise NodesError(f"{lock.path}: another server process uses this directory")
        log_path = Path(place.log)
        if log_path.exists() and log_path.stat().st_size > MAX_LOG_BYTES:
            log_path.replace(log_path.with_name(f"{log_path.name}.1"))
        try:
            with open_log(log_path) as sink:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    place.config,
                    cwd=place.home,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=sink,
                    env={k: v for k, v in os.environ.items() if not k.startswith("MQIS_")},
                    pass_fds=(lock.fd,),
                    start_new_session=True,
                )
            lock.name(process.pid)
        finally:
            lock.let_go()
        return process

    async def _watch(self, child: Child, process: asyncio.subprocess.Process) -> None:
        """Reads the output of a process until its ready line, and on."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            with suppress(ValueError):
                if json.loads(line).get("event") == "ready" and child.process is process:
                    self._enter(child, ProcessState.READY)

    # --- notifications ----------------------------------------------------------------------------

    def _enter(self, child: Child, state: ProcessState, reason: str = "") -> None:
        if child.state is state and not reason:
            self._save()  # the process number may have changed
            return
        child.state, child.since = state, time.time()
        if state is not ProcessState.STARTING or reason:
            child.reason = reason
        self._save()
        log.info("server", extra=details(server=child.place.name, state=state.value, reason=reason))
        task = asyncio.create_task(self._wake())
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def _wake(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _say(self, text: str, level: int = logging.WARNING) -> None:
        log.log(level, text)
        self._report(text)

    def _save(self, *, ended: bool = False) -> None:
        save_nodes(self._run, replace(self.nodes, supervisor=None) if ended else self.nodes)
        save_states(self._run, self.supervision)


def _not_started(child: Child) -> str:
    log_file = Path(child.place.log)
    see = f"; see {log_file}" if log_file.exists() else ""
    reason = child.reason or child.state.value
    trying = "" if child.state in _SETTLED else "; the supervisor tries again"
    return f"{child.place.name} did not start: {reason}{see}{trying}"


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _ending(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_line(path: Path) -> str:
    """The last line of a server's log, usually the reason of its exit."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:500] if lines else ""
