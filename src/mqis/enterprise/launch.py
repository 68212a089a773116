"""Runs an enterprise from its plan to its end, for ``mqis up``.

    await launch(Launch(plan, run, connect, text), on_ready)

The run directory holds all files: ``nodes.json`` (the servers' addresses), ``supervisor.json``
(their states), ``enterprise.toml`` (the plan that was carried out), ``accounts.toml``,
``passwords/``, and ``servers/NAME`` with configuration, key, store, journal and log of each.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mqis.config.file import ConfigError, read
from mqis.config.logs import details
from mqis.config.nodes import FILE, NodePlace, Nodes, NodesError, load_nodes
from mqis.config.processlocks import ProcessLock, holder
from mqis.enterprise.addresses import Assigned, Ports, ServerPorts, assign
from mqis.enterprise.configs import is_member, write_config
from mqis.enterprise.control import LOCK, ControlServer
from mqis.enterprise.filling import fill
from mqis.enterprise.first import found_pec
from mqis.enterprise.loss import fault_of
from mqis.enterprise.plan import RunPlan, ServerPlan, ServerRole, load_plan
from mqis.enterprise.recovery import recover
from mqis.enterprise.setup import (
    Administrator,
    Connect,
    administrator,
    join_server,
    make_accounts,
)
from mqis.enterprise.supervisor import Patience, Supervisor
from mqis.files import make_private_directory, write_whole
from mqis.wire.errors import MqisError

log = logging.getLogger(__name__)

PLAN = "enterprise.toml"
SERVERS = "servers"


@dataclass(frozen=True, slots=True)
class Launch:
    """The plan to bring up, and its run directory."""

    plan: RunPlan
    run: Path
    connect: Connect
    #: The plan as text, which is kept; file names in it are relative to ``base``.
    text: str
    base: Path = field(default_factory=Path.cwd)
    #: The name of the plan's file in messages.
    source: str = PLAN
    #: True if each server gets its own address; None: if the system supports that.
    own_addresses: bool | None = None
    patience: Patience = field(default_factory=Patience)


class RunningEnterprise:
    """A run directory that this process has locked, and its servers.

        async with RunningEnterprise(launch, report) as enterprise:
            await enterprise.bring_up()
            await enterprise.ended.wait()

    At the end of the block the servers are stopped.
    """

    supervisor: Supervisor

    def __init__(self, launch: Launch, report: Callable[[str], None] = lambda _text: None) -> None:
        self.launch = launch
        self.run = launch.run.absolute()
        self._report = report
        self._lock = ProcessLock(self.run / LOCK)
        self.ended = asyncio.Event()
        self._control = ControlServer(self.run, self.ended.set)

    async def __aenter__(self) -> RunningEnterprise:
        make_run_directory(self.run)
        if not self._lock.take():
            raise NodesError(
                f"{self.run}: this enterprise is up already, under process "
                f"{holder(self._lock.path)}; "
                "'mqis status' shows it, 'mqis down' ends it"
            )
        try:
            self._lock.name(os.getpid())
            for text in await asyncio.to_thread(recover, self.run):
                self._report(text)
            await self._control.open()
            self.supervisor = self._control.supervisor = self._supervise()
        except BaseException:
            await self._control.close()
            self._lock.let_go()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        try:
            await self.supervisor.close()
        finally:
            await self._control.close()
            self._lock.let_go()

    @property
    def nodes(self) -> Nodes:
        return self.supervisor.nodes

    def _supervise(self) -> Supervisor:
        assigned = self._addresses()
        for note in assigned.notes:
            self._report(note)
        plan = self.launch.plan
        roles = _roles(self.run, plan)
        for number, server in enumerate(plan.servers, 1):
            if roles[server.name] is not server.role:
                self._report(
                    f"{self.launch.source}: server[{number}].role: {server.name} is now "
                    f'"{roles[server.name]}", after a promotion; replace "{server.role}" by it'
                )
        at = (
            _node(self.run, server, roles[server.name], assigned.places[server.name])
            for server in plan.servers
        )
        nodes = Nodes(plan.enterprise.name, tuple(at))
        return Supervisor(
            self.run,
            nodes,
            self._report,
            patience=self.launch.patience,
            control=str(self._control.path),
            fault_of=fault_of,
        )

    def _addresses(self) -> Assigned:
        known: dict[str, ServerPorts] = {}
        names = [server.name for server in self.launch.plan.servers]
        if (self.run / FILE).exists():
            before = load_nodes(self.run)
            known = {node.name: _place_of(node) for node in before}
            gone = [name for name in known if name not in names]
            if gone and (self.run / SERVERS).exists():
                raise NodesError(
                    f"{self.run}: the server {gone[0]} exists here but is not in the plan; put it "
                    "back into the plan: a server is removed from an enterprise by its directory"
                )
        return assign(self.run, names, known, own=self.launch.own_addresses)

    # --- up ---------------------------------------------------------------------------------------

    async def bring_up(self) -> None:
        """Returns when every server is ready and the directory holds all objects of the plan.

        A server that cannot start is given up, and stops no other one.
        """
        plan, run = self.launch.plan, self.run
        kept = run / PLAN
        before = _set_up_before(kept)
        done = kept.exists() and kept.read_text(encoding="utf-8") == self.launch.text
        await asyncio.to_thread(make_accounts, run, plan, self.launch.base)
        if done and all(is_member(node) or _is_lost(node, before) for node in self.nodes):
            await self._start(self.nodes)
        elif await self._set_up(administrator(run, plan, self.launch.base), before):
            write_whole(kept, self.launch.text)
        self.supervisor.completed()

    async def _start(self, nodes: Iterable[NodePlace]) -> None:
        """Starts servers that were set up; returns when each of them is ready or given up."""
        names = []
        for node in nodes:
            if fault_of(node) is None:
                write_config(self.launch.plan, self.nodes, node)
            self.supervisor.start(node.name)  # which reports the fault
            names.append(node.name)
        await self.supervisor.settled(names)

    async def _set_up(self, account: Administrator, before: Set[str]) -> bool:
        """Sets up new servers and starts all; returns whether the whole plan is carried out."""
        plan, nodes = self.launch.plan, self.nodes
        pec = next(node for node in nodes if node.role == ServerRole.PEC)
        if pec.name not in before:
            await asyncio.to_thread(found_pec, plan, nodes)
        await self._start([pec])
        if pec.name in self.supervisor.failed and not before:
            raise NodesError(f"{pec.name} did not start: {self.supervisor.failed[pec.name]}")
        for role in (ServerRole.PSC, ServerRole.BSC):
            await self._set_up_role(role, pec, account, before)
        if pec.name in self.supervisor.failed:
            return False
        try:
            await asyncio.to_thread(fill, plan, nodes, account, self.launch.connect)
        except (MqisError, OSError) as error:
            if not self.supervisor.failed:
                raise
            self._report(f"not all objects of {self.launch.source} could be created: {error}")
        return not self.supervisor.failed

    async def _set_up_role(
        self, role: ServerRole, pec: NodePlace, account: Administrator, before: Set[str]
    ) -> None:
        """Lets the new servers of a role join, and starts all servers of the role."""
        of_role = {node.name: node for node in self.nodes if node.role == role}
        new = [s for s in self.launch.plan.servers if s.name in of_role]
        new = [s for s in new if not is_member(of_role[s.name])]
        for server in new:
            if _is_lost(of_role[server.name], before):
                continue
            try:
                if pec.name in self.supervisor.failed:
                    raise NodesError(f"the PEC {pec.name} is down, so {server.name} cannot join")
                await asyncio.to_thread(self._join, server, pec, account)
            except (MqisError, OSError) as error:
                if not before:
                    raise
                self.supervisor.give_up(server.name, self._refused(server, error))
                del of_role[server.name]
        await self._start(of_role.values())

    def _refused(self, server: ServerPlan, error: Exception) -> str:
        number = self.launch.plan.servers.index(server) + 1
        values = f'name = "{server.name}", site = "{server.site}", role = "{server.role}"'
        return f"{self.launch.source}: server[{number}] ({values}): {error}"

    def _join(self, server: ServerPlan, pec: NodePlace, account: Administrator) -> None:
        with self.launch.connect(pec, account) as directory:
            join_server(self.launch.plan, self.nodes, server, directory)

    # --- down -------------------------------------------------------------------------------------

    def on_signal(self, number: signal.Signals) -> None:
        """Ends the enterprise: in order at the first signal, at once at the second."""
        if self.ended.is_set():
            log.warning("ending at once", extra=details(signal=number.name))
            self.supervisor.hasten()
            return
        self.ended.set()


async def launch(
    what: Launch,
    on_ready: Callable[[Nodes], None] = lambda _nodes: None,
    report: Callable[[str], None] = lambda _text: None,
) -> None:
    """Brings an enterprise up, supervises it, and ends it at a signal or 'mqis down'."""
    loop = asyncio.get_running_loop()
    async with RunningEnterprise(what, report) as enterprise:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, enterprise.on_signal, number)
        ending = asyncio.create_task(enterprise.ended.wait())
        coming = asyncio.create_task(enterprise.bring_up())
        try:
            await asyncio.wait({ending, coming}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                coming.result()
                on_ready(enterprise.nodes)
                await ending
            report("stopping: backup controllers, primary controllers, the PEC")
        finally:
            ending.cancel()
            coming.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await coming


def make_run_directory(run: Path) -> None:
    """Makes the run directory; raises ``NodesError`` if others can write in an existing one."""
    try:
        make_private_directory(run)
        found = run.stat()
    except OSError as error:
        raise NodesError(f"{run}: cannot be made: {error.strerror}") from error
    if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
        raise NodesError(
            f"{run}: others can write in this directory, and could replace keys, passwords and "
            "configurations in it; name another one with --run, or correct its owner and mode"
        )


def _set_up_before(kept: Path) -> frozenset[str]:
    """The servers of the plan that was carried out; none before the first one was."""
    if not kept.exists():
        return frozenset()
    return frozenset(server.name for server in load_plan(kept).servers)


def _is_lost(node: NodePlace, before: Set[str]) -> bool:
    """True for an authority that had a directory; a backup without one just joins again."""
    return node.name in before and node.role != ServerRole.BSC and not is_member(node)


def _roles(run: Path, plan: RunPlan) -> dict[str, ServerRole]:
    """The present roles: a server may have been promoted since the plan was written."""
    present: dict[str, ServerRole] = {}
    for server in plan.servers:
        with suppress(ConfigError, ValueError):  # reported when the server starts
            present[server.name] = ServerRole(read(_config_of(run, server)).server.role.value)
    led = {s.site for s in plan.servers if present.get(s.name) is ServerRole.PSC}

    def role_of(server: ServerPlan) -> ServerRole:
        if server.name in present:
            return present[server.name]
        replaced = server.role is ServerRole.PSC and server.site in led
        return ServerRole.BSC if replaced else server.role

    return {server.name: role_of(server) for server in plan.servers}


def _config_of(run: Path, server: ServerPlan) -> Path:
    return run / SERVERS / server.name / "mqis.toml"


def _node(run: Path, server: ServerPlan, role: ServerRole, place: ServerPorts) -> NodePlace:
    config, ports = _config_of(run, server), place.ports
    home = config.parent
    return NodePlace(
        name=server.name,
        role=role.value,
        site=server.site,
        address=place.address,
        rpc_port=ports.rpc,
        mapper_port=ports.mapper,
        queue_port=ports.queue,
        discovery_port=ports.discovery,
        monitor_port=ports.monitor,
        home=str(home),
        config=str(config),
        store=str(home / "directory.db"),
        journal=str(home / "journal"),
        log=str(home / "log"),
    )


def _place_of(node: NodePlace) -> ServerPorts:
    return ServerPorts(
        node.address,
        Ports(
            node.rpc_port, node.mapper_port, node.queue_port, node.discovery_port, node.monitor_port
        ),
    )
