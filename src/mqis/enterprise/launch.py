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
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqis.admin.promote.rebuilding import SEED
from mqis.config.errors import NodesError
from mqis.config.logs import details
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.processlocks import ProcessLock, holder
from mqis.enterprise.configs import is_member, write_config
from mqis.enterprise.control import LOCK, ControlServer
from mqis.enterprise.difference import Step, compare, leaving_sites, removed_servers
from mqis.enterprise.exchanging import Exchange, follow
from mqis.enterprise.filling import Filling
from mqis.enterprise.first_server import found_pec
from mqis.enterprise.kept_plan import PLAN, carried_out, forget, keep
from mqis.enterprise.left_running import recover
from mqis.enterprise.lost_servers import fault_of, lost_key, why_not_started
from mqis.enterprise.placing import place_servers
from mqis.enterprise.plan import (
    EntryKind,
    Options,
    RunPlan,
    ServerPlan,
    ServerRole,
    load_plan,
)
from mqis.enterprise.present_plan import read_present
from mqis.enterprise.roles import replaced_by
from mqis.enterprise.rotating import make_known
from mqis.enterprise.setup import (
    Administrator,
    Connect,
    administrator,
    change_accounts,
    join_server,
    make_accounts,
)
from mqis.enterprise.supervisor import Child, Patience, Supervisor
from mqis.files import make_private_directory, system_reason
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import DirectoryError
from mqis.texts import file_stamp
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult

log = logging.getLogger(__name__)

#: The longest time that an authority is restored, and the pauses between two attempts to join.
_RESTORING_S, _PAUSE_S = 180, 3


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
    #: Delete what the plan has no more.
    remove: bool = False


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
        self._refused: list[str] = []
        #: Keys of configurations that the plan has no more, and that are to go.
        self._dropped: Options = {}
        self._applying = asyncio.Lock()
        self._control = ControlServer(self.run, self.ended.set, self._apply_file)

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
        before = carried_out(self.run)
        return Supervisor(
            self.run,
            self._placed(before),
            self._report,
            patience=self.launch.patience,
            control=str(self._control.path),
            fault_of=lambda place: why_not_started(place, self.nodes),
        )

    def _placed(self, before: RunPlan | None, running: Set[str] = frozenset()) -> Nodes:
        own = self.launch.own_addresses
        nodes, notes = place_servers(
            self.run, self.launch.plan, before, own_addresses=own, running=running
        )
        for note in notes:
            self._report(note)
        return nodes

    # --- up ---------------------------------------------------------------------------------------

    async def bring_up(self) -> None:
        """Returns when every server is ready and the directory is as the plan has it.

        A server that cannot start is given up, and stops no other one; neither does an object that
        a server refuses.
        """
        before = carried_out(self.run)
        kept = self.run / PLAN
        done = kept.exists() and kept.read_text(encoding="utf-8") == self.launch.text
        members = all(is_member(node) or _is_lost(node, _names(before)) for node in self.nodes)
        if before is not None and done and members and not self.launch.remove:
            await asyncio.to_thread(make_accounts, self.run, self.launch.plan, self.launch.base)
            await self._start(self.nodes)
            self.supervisor.completed()
        else:
            await self._carry_out(before)

    async def apply(self, what: Launch) -> None:
        """Carries out a changed plan while the servers run; raises ``MqisError`` if it cannot be.

        Only servers whose address or configuration changes are restarted, one after the other.
        """
        async with self._applying:
            before, old = carried_out(self.run), self.launch
            self.launch = what
            try:
                nodes = self._placed(before, {c.place.name for c in self._running})
            except MqisError:
                self.launch = old
                raise
            self.supervisor.use(nodes)
            await self._carry_out(before)

    @property
    def _running(self) -> list[Child]:
        return [child for child in self.supervisor.children.values() if child.running]

    async def _carry_out(self, before: RunPlan | None) -> None:
        plan, run = self.launch.plan, self.run
        self._refused = []
        for entry in plan.left_out:
            self._refused.append(entry)
            self._report(f"{self.launch.source}: {entry}; it is left out")
        self._dropped = _dropped(plan, before) if before and self.launch.remove else {}
        await asyncio.to_thread(make_accounts, run, plan, self.launch.base)
        account = administrator(run, plan, self.launch.base)
        steps = await self._set_up(account, before)
        if steps is not None and not self._refused:
            keep(run, self.launch.text, plan, before, steps)
        self.supervisor.completed(self._refused)

    async def _start(self, nodes: Iterable[NodePlace]) -> None:
        """Starts servers that were set up; returns when each of them is ready or given up.

        One that runs takes what has changed in its configuration, by a restart if it must.
        """
        names = []
        for node in nodes:
            changed = None
            await self._introduce(node)
            if fault_of(node) is None:
                if not await self._follows(node):
                    continue
                changed = write_config(self.launch.plan, self.nodes, node, dropped=self._dropped)
            if not self.supervisor.child(node.name).running or changed is None:
                self.supervisor.start(node.name)  # which reports the fault
                names.append(node.name)
            elif changed.waiting:
                self._report(f"{node.name} is restarted: {', '.join(changed.waiting)}")
                await self.supervisor.restart(node.name)
            elif changed.applied:
                self.supervisor.reread(node.name)
        await self.supervisor.settled(names)

    async def _introduce(self, node: NodePlace) -> None:
        """Makes the key of a server known that was rebuilt without its old one, or has lost it."""
        seed = Path(node.home) / SEED
        if self.supervisor.child(node.name).running or not is_member(node):
            return
        with suppress(MqisError):  # its start tells that
            if not seed.exists() and lost_key(node) is None:
                return
            taught = await asyncio.to_thread(make_known, node, self.nodes)
            seed.unlink(missing_ok=True)
            for name in taught:
                self.supervisor.reread(name)
            if taught:
                self._report(f"{node.name} has a new key: {', '.join(taught)} trust it now")

    async def _follows(self, node: NodePlace) -> bool:
        """Makes a PSC that was replaced while it was down a backup of the new one.

        Returns False if that cannot be done; the server is given up then.
        """
        psc = await asyncio.to_thread(replaced_by, node, self.nodes)
        if psc is None:
            return True
        self._report(f"{node.name} becomes a backup: {psc.name} is the PSC of {node.site} now")
        await self.supervisor.stop(node.name)
        try:
            await asyncio.to_thread(follow, node, psc.name)
        except MqisError as error:
            self.supervisor.give_up(node.name, str(error))
            return False
        return True

    async def _set_up(
        self, account: Administrator, before: RunPlan | None
    ) -> tuple[Step, ...] | None:
        """Sets up new servers and starts all; returns the steps, None if not all could be done."""
        plan, nodes = self.launch.plan, self.nodes
        names = _names(before)
        pec = next(node for node in nodes if node.role == ServerRole.PEC)
        if pec.name not in names:
            await asyncio.to_thread(found_pec, plan, nodes)
        await self._start([pec])
        if pec.name in self.supervisor.failed and not names:
            raise NodesError(f"{pec.name} did not start: {self.supervisor.failed[pec.name]}")
        steps = await self._steps(pec, account, before)
        for role in (ServerRole.PSC, ServerRole.BSC):
            await self._set_up_role(role, pec, account, names, removed_servers(steps))
        if pec.name in self.supervisor.failed:
            return None
        try:
            await self._change(steps, account, before)
        except (MqisError, OSError) as error:
            if not self.supervisor.failed and not names:
                raise
            self._refuse(self.launch.source, error)
        return None if self.supervisor.failed else steps

    async def _steps(
        self, pec: NodePlace, account: Administrator, before: RunPlan | None
    ) -> tuple[Step, ...]:
        """The changes and removals to carry out; those of a first plan are only additions."""
        if before is None or pec.name in self.supervisor.failed:
            return ()
        plan, remove = self.launch.plan, self.launch.remove
        nodes = [node for node in self.nodes if node.name in _names(before)]

        def compared() -> tuple[Step, ...]:
            with self.launch.connect(pec, account) as directory:
                there = replace(self.nodes, nodes=tuple(nodes))
                present = read_present(plan, before, there, self.run, directory)
            return compare(plan, before, present, remove=remove).steps

        return await asyncio.to_thread(compared)

    async def _change(
        self, steps: Sequence[Step], account: Administrator, before: RunPlan | None
    ) -> None:
        """Brings the objects of the plan into the directory, and carries out the other steps."""
        launch = self.launch
        filling = Filling(launch.plan, self.nodes, account, launch.connect, self._refuse)
        leaving = leaving_sites(launch.plan, steps)
        sites = [step for step in steps if step.kind is EntryKind.SITE]
        others = [step for step in steps if step.kind is not EntryKind.SITE]
        await asyncio.to_thread(filling.fill, steps)
        await asyncio.to_thread(filling.carry_out, others, leaving)
        change_accounts(self.run, steps)
        if exchange := Exchange.among(steps, self.nodes):
            await exchange.carry_out(self.supervisor, account, launch.connect)
            self.supervisor.use(self._placed(before, {c.place.name for c in self._running}))
        removed = removed_servers(steps)
        of_sites = [s for s in removed if name_key(self.nodes.named(s).site) in leaving]
        for server in of_sites:
            await self.supervisor.stop(server)
        refused = len(self._refused)
        await asyncio.to_thread(filling.carry_out, sites)
        if len(self._refused) > refused:  # the site is still there, and so are its servers
            for server in of_sites:
                self.supervisor.start(server)
            removed = removed.difference(of_sites)
        for server in sorted(removed):
            await self._remove(server)
        if removed:
            self._tell_others()

    async def _remove(self, server: str) -> None:
        """Takes a server out whose machine the directory has no more; its files are kept."""
        place = self.nodes.named(server)
        await self.supervisor.stop(place.name)
        home = Path(place.home)
        removed = f"{home.name}.removed-{file_stamp(time.time())}"
        with suppress(FileNotFoundError):  # its disk was lost
            home.rename(home.with_name(removed))
        forget(self.run, place.name)
        left = tuple(node for node in self.nodes if node.name != place.name)
        self.supervisor.use(replace(self.nodes, nodes=left))

    def _tell_others(self) -> None:
        """Takes servers that are gone out of the configurations of the others."""
        for child in self._running:
            changed = write_config(self.launch.plan, self.nodes, child.place)
            if changed is not None and changed.applied:
                self.supervisor.reread(child.place.name)

    def _refuse(self, name: str, error: Exception) -> None:
        self._refused.append(f"{name}: {error}")
        self._report(f"{self.launch.source}: {name} is refused: {error}")

    async def _set_up_role(
        self,
        role: ServerRole,
        pec: NodePlace,
        account: Administrator,
        before: Set[str],
        leaving: Set[str],
    ) -> None:
        """Lets the new servers of a role join, and starts all that do not leave."""
        staying = [node for node in self.nodes if node.name not in leaving]
        of_role = {node.name: node for node in staying if node.role == role}
        new = [s for s in self.launch.plan.servers if s.name in of_role]
        new = [s for s in new if not is_member(of_role[s.name])]
        for server in new:
            if _is_lost(of_role[server.name], before):
                continue
            try:
                if pec.name in self.supervisor.failed:
                    raise NodesError(f"the PEC {pec.name} is down, so {server.name} cannot join")
                await self._let_join(server, pec, account)
            except (MqisError, OSError) as error:
                if not before:
                    raise
                self.supervisor.give_up(server.name, self._why_not(server, error))
                del of_role[server.name]
        await self._start(of_role.values())

    def _why_not(self, server: ServerPlan, error: Exception) -> str:
        number = self.launch.plan.servers.index(server) + 1
        values = f'name = "{server.name}", site = "{server.site}", role = "{server.role}"'
        return f"{self.launch.source}: server[{number}] ({values}): {error}"

    async def _let_join(self, server: ServerPlan, pec: NodePlace, account: Administrator) -> None:
        """Lets a server join; waits while the authority of its site is being restored."""
        patience = _RESTORING_S
        while True:
            try:
                return await asyncio.to_thread(self._join, server, pec, account)
            except DirectoryError as error:
                if error.hresult != HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE or patience <= 0:
                    raise
                if patience == _RESTORING_S:
                    self._report(f"{server.name} joins when {server.site} is restored: {error}")
            patience -= _PAUSE_S
            await asyncio.sleep(_PAUSE_S)

    def _join(self, server: ServerPlan, pec: NodePlace, account: Administrator) -> None:
        with self.launch.connect(pec, account) as directory:
            join_server(self.launch.plan, self.nodes, server, directory)

    async def _apply_file(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Applies the plan that a command names; returns what servers have refused, and the
        reasons of those that do not run.

        The digest is that of the plan that somebody has seen and agreed to.
        """
        path = Path(request["file"])
        text = path.read_text(encoding="utf-8-sig")
        if sha256(text.encode()).hexdigest() != request["digest"]:
            raise NodesError(f"{path}: the file has changed meanwhile; run 'mqis up' again")
        plan = load_plan(path)
        await self.apply(
            replace(
                self.launch,
                plan=plan,
                text=text,
                base=path.parent,
                source=str(request["source"]),
                remove=bool(request["remove"]),
            )
        )
        return {"refused": self._refused, "failed": self.supervisor.failed}

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
        raise NodesError(f"{run}: cannot be made: {system_reason(error)}") from error
    if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
        raise NodesError(
            f"{run}: others can write in this directory, and could replace keys, passwords and "
            "configurations in it; name another one with --run, or correct its owner and mode"
        )


def _dropped(plan: RunPlan, before: RunPlan) -> Options:
    return {
        section: {k: v for k, v in keys.items() if k not in plan.options.get(section, {})}
        for section, keys in before.options.items()
    }


def _names(plan: RunPlan | None) -> frozenset[str]:
    return frozenset() if plan is None else frozenset(server.name for server in plan.servers)


def _is_lost(node: NodePlace, before: Set[str]) -> bool:
    """True for an authority that had a directory; a backup without one just joins again."""
    return node.name in before and node.role != ServerRole.BSC and not is_member(node)
