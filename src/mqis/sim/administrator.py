"""The administrator of a simulated enterprise: joins, retires, resettles and promotes servers.

The work is what the commands do: ``mqis join``, ``mqis delete site``, ``mqis undelete site`` and
``mqis promote``. The administrator repeats what a server does not take at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Protocol

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject, Scope, name_key
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.server_identity import Role, Server
from mqis.protocol.replication.topology_changes import follow_psc
from mqis.protocol.undeletion.conflicts import bring_back
from mqis.protocol.undeletion.lost import LostObject
from mqis.sim import bootstrap
from mqis.sim.history import NumberHistory
from mqis.sim.keys import KeyVault
from mqis.sim.restored_authorities import Witnesses
from mqis.sim.run_trace import Violation
from mqis.sim.scenario import Scenario
from mqis.sim.simulated_server import ServerEntropy, SimServer, Surroundings
from mqis.sim.simulated_stores import Disk, MemoryDisk, SqliteDisk
from mqis.sim.workload import ClientOperation
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.keys import RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.layout import operation_in
from mqis.wire.mqdsrp.messages import (
    MessageOperation,
    SyncReply,
    SyncRequest,
    decode_message,
)
from mqis.wire.seqnum import SequenceNumber

#: The errors of a second attempt if the first one succeeded after all.
_EXISTS = (HResult.MQ_ERROR_QUEUE_EXISTS, HResult.MQ_ERROR_MACHINE_EXISTS)
#: The answers of an authority that decides nothing yet: it is restored, or stands in for another.
_LATER = (HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE, HResult.MQ_ERROR_DS_ERROR)
#: With SQLite, the first of so many servers has a file; the PEC is one of them.
_SQLITE_EVERY = 3
_ATTEMPTS, _PAUSE_S = 600, 30.0


class Administered(Surroundings, Protocol):
    """The part of ``World`` that the administrator works with."""

    now: float
    scenario: Scenario
    servers: dict[int, SimServer]
    history: NumberHistory
    witnesses: Witnesses
    directory: Path | None

    def run_until(self, time: float) -> None: ...

    def after(self, delay_s: float, action: Callable[[], None]) -> None: ...

    def start(self, server: SimServer) -> None: ...


class SimAdministrator:
    """Knows the identity of every server; ``gone`` are the servers that were switched off."""

    def __init__(self, world: Administered, vault: KeyVault) -> None:
        self._world = world
        self._vault = vault
        self._random = Random(f"{world.scenario.seed}/names")
        self.identities = self._make_identities()
        self.scopes = QueueScopes(self.identities)
        self.gone: list[SimServer] = []
        #: The number of identities that each server has had before.
        self._former: dict[int, int] = {}

    def _make_identities(self) -> list[Server]:
        random, plans = self._random, self._world.scenario.servers
        sites = [Guid(random.randbytes(16)) for _ in range(1 + max(p.site for p in plans))]
        ids = [Guid(random.randbytes(16)) for _ in plans]
        pscs = {p.site: index for index, p in enumerate(plans) if p.role is not Role.BSC}
        found = []
        for plan, id_ in zip(plans, ids, strict=True):
            psc = pscs[plan.site]
            seeds = {ids[0]: plans[0].name}
            if plan.role is Role.BSC:
                seeds[ids[psc]] = plans[psc].name
            name = plans[psc].name if plan.role is Role.BSC else ""
            seeds.pop(id_, None)
            found.append(
                Server(plan.name, id_, sites[plan.site], plan.role, plans[0].name, name, seeds)
            )
        return found

    def key(self, index: int) -> RsaPublicKey:
        return self._vault.public(self.identities[index].name)

    def psc_of(self, index: int) -> int:
        """The PSC of a server's site; the planned one if that has not joined yet."""
        site = self.identities[index].site
        here = [i for i, me in enumerate(self.identities) if me.site == site and me.is_psc]
        return next((i for i in here if i in self._world.servers), here[0])

    # --- joining ----------------------------------------------------------------------------------

    def new_server(self, index: int) -> SimServer:
        world, me, former = self._world, self.identities[index], self._former.get(index, 0)
        label = f"{me.name}-{former}" if former else me.name
        disk: Disk = MemoryDisk()
        if world.scenario.sqlite and world.directory is not None and index % _SQLITE_EVERY == 0:
            disk = SqliteDisk(world.directory, label)
        server = SimServer(world, me, disk, ServerEntropy(f"{world.scenario.seed}/{label}"))
        server.label = label
        world.servers[index] = server
        return server

    def join(self, index: int) -> None:
        """Creates site and machine, then starts the server."""
        me, plan = self.identities[index], self._world.scenario.servers[index]
        machine = bootstrap.machine_creator(me, self.key(index))
        if me.is_psc:
            self.insist(0, bootstrap.site_creator(me, plan.site))
            self.insist(0, machine)
        else:
            self.insist(self.psc_of(index), machine)
        self._world.note("join", me.name)
        self._world.start(self.new_server(index))

    def introduce_again(self) -> None:
        """Creates site and machine again for servers that a restored authority does not know.

        They joined after its backup was taken. It refuses their messages, and only an administrator
        can introduce them.
        """
        for index, server in sorted(self._world.servers.items()):
            me = server.me
            home = 0 if me.is_psc else self.psc_of(index)
            with self._world.servers[home].disk.store.read() as view:
                site = view.get(ObjectType.SITE, me.site)
                machine = view.find(ObjectType.MACHINE, me.name)
            if site is None and me.is_psc:
                self._world.note("introduced again", f"the site of {me.name}")
                plan = self._world.scenario.servers[index]
                self.insist(0, bootstrap.site_creator(me, plan.site))
            if machine is None:
                self._world.note("introduced again", me.name)
                self.insist(home, bootstrap.machine_creator(me, self.key(index)))

    def insist(self, index: int, client: ClientOperation) -> None:
        """Makes a change, with retries while the server is down.

        The object may exist at a retry: the server crashed after its commit, or got the object from
        another server.
        """
        server = self._world.servers[index]
        for attempt in range(_ATTEMPTS):
            if server.node is not None:
                try:
                    if server.change(client) is not None:
                        return
                except DirectoryError as error:
                    if attempt and error.hresult in _EXISTS:
                        return
                    if error.hresult not in _LATER:
                        raise
            self._world.run_until(self._world.now + _PAUSE_S)
        raise Violation("liveness", f"{server.name} takes no changes")

    # --- sites that go and come -------------------------------------------------------------------

    def retire(self, index: int) -> bool:
        """Switches a server off and deletes its site at the PEC; False if it is not there."""
        server = self._switch_off(index)
        if server is not None:
            self._world.note("fault retire", server.name)
            self.insist(0, bootstrap.site_remover(server.me))
        return server is not None

    def _switch_off(self, index: int) -> SimServer | None:
        server = self._world.servers.pop(index, None)
        if server is not None:
            server.stop()
            server.retired = True
            self.gone.append(server)
        return server

    def resettle(self, index: int) -> None:
        """Makes the site again: same names, other identifiers, and an empty store."""
        if not self.retire(index):
            return
        me = self.identities[index]
        self._world.note("fault resettle", me.name)
        self._former[index] = self._former.get(index, 0) + 1
        site, id_ = Guid(self._random.randbytes(16)), Guid(self._random.randbytes(16))
        self._identify(index, replace(me, site=site, id=id_))
        self._world.history.forget(me.name)
        self.join(index)

    def _identify(self, index: int, me: Server) -> None:
        self.identities[index] = me
        self.scopes.settle(me)

    def slip(self, index: int, for_s: float) -> None:
        """Deletes the site of a running server, and undeletes it after a while."""
        server = self._world.servers.get(index)
        pec = self._world.servers[0]
        if server is None:
            return
        with pec.disk.store.read() as view:
            site = view.get(ObjectType.SITE, server.me.site)
            machine = view.get(ObjectType.MACHINE, server.me.id)
        if site is None or machine is None:
            return
        self._world.note("fault slip", server.name)
        self.insist(0, bootstrap.site_remover(server.me))
        self._world.run_until(self._world.now + for_s)
        self._world.note("undelete", f"the site of {server.name}")
        self.insist(0, lambda events: _brought_back(events, site))
        self.insist(0, lambda events: _brought_back(events, machine))

    # --- promotions -------------------------------------------------------------------------------

    def promote(self, index: int, back_s: float | None = None) -> None:
        """Makes a BSC the PSC of its site; the old one is lost, and the others follow.

        The old one comes back after ``back_s``, as another BSC.
        """
        server, former = self._world.servers.get(index), self.psc_of(index)
        if server is None or not server.me.is_bsc:
            return
        lost = self._switch_off(former)
        if lost is None:
            return
        name, me = server.name, server.me
        self._world.note("fault promote", f"{name} in the place of {lost.name}")
        server.stop()
        self.insist(0, bootstrap.psc_setter(me))
        seeds = {self.identities[0].id: self.identities[0].name}
        self._follow(index, replace(me, role=Role.PSC, psc="", seeds=seeds))
        self._world.witnesses.record(server, [me.site], list(self._world.servers.values()))
        for other, it in sorted(self._world.servers.items()):
            if it.me.is_bsc and it.me.site == me.site:
                self._follow(other, replace(it.me, psc=name, seeds={**seeds, me.id: name}))
        self._publish(server)
        if back_s is not None:
            self._world.after(back_s, lambda: self._come_back(former, lost, seeds))

    def _come_back(self, index: int, server: SimServer, seeds: dict[Guid, str]) -> None:
        """Starts a former PSC again, as a BSC of the one that its site has now."""
        psc = self.identities[self.psc_of(index)]
        if psc.is_called(server.name):
            return
        self.gone.remove(server)
        server.retired = False
        self._world.servers[index] = server
        seeds = {**seeds, psc.id: psc.name}
        self._follow(index, replace(server.me, role=Role.BSC, psc=psc.name, seeds=seeds))

    def _follow(self, index: int, me: Server) -> None:
        """Starts a server again with another configuration."""
        server = self._world.servers[index]
        self._identify(index, me)
        server.stop()
        server.me = me
        with server.disk.store.write() as tx:
            site = tx.get(ObjectType.SITE, me.site)
            if me.is_bsc and site is not None:
                follow_psc(tx, site, me.psc)
                server.follows_from = self._enterprise_number()
        self._world.start(server)

    def _enterprise_number(self) -> SequenceNumber:
        with self._world.servers[0].disk.store.read() as view:
            state = view.partition(ENTERPRISE_PARTITION)
        assert state is not None
        return state.last_seq

    def _publish(self, server: SimServer) -> None:
        """Tries until the directory has the new roles, as a server does by itself."""
        if server.retired or not server.me.is_psc:
            return
        done = False
        with suppress(DirectoryError):
            done = server.change(bootstrap.role_setter(server.me)) is True
        if not done:
            self._world.after(_PAUSE_S, lambda: self._publish(server))


def _brought_back(events: DirectoryEvents, obj: DirectoryObject) -> object:
    there = events.transaction.get(obj.type, obj.id)
    return there or bring_back(events, LostObject(obj.type, obj.id, obj.partition, 0, 0, obj=obj))


# --------------------------------------------------------------------------------------------------
# Checks that queues which one site alone knows are not synchronised to other sites (E58).


class QueueScopes:
    """The sync requests that asked for everything, and a check of all replies.

    A server may get the queues of its own site from anyone, however it asks. It gets those of
    another site only in reply to a request that replication made, not a hostile party: a backup
    controller's to its PSC, or that of an authority that is being restored.
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._sites = {name_key(server.name): server.site for server in servers}
        #: The requester, the server that it asked, and the partition: for all of its queues.
        self._entitled: set[tuple[str, str, Guid]] = set()

    def settle(self, server: Server) -> None:
        """Records that a server belongs to another site now."""
        self._sites[name_key(server.name)] = server.site

    def sent(self, sender: str, machine: str, body: bytes) -> None:
        operation = operation_in(body)
        if operation == MessageOperation.SYNC_REQUEST:
            request = decode_message(body)
            assert isinstance(request, SyncRequest)
            if request.scope == Scope.SITE:
                self._entitled.add((name_key(sender), name_key(machine), request.partition))
        elif operation == MessageOperation.SYNC_REPLY:
            reply = decode_message(body)
            assert isinstance(reply, SyncReply)
            self._check(sender, machine, reply)

    def _check(self, sender: str, machine: str, reply: SyncReply) -> None:
        if (name_key(machine), name_key(sender), reply.partition) in self._entitled:
            return
        if self._sites.get(name_key(machine)) == reply.partition:
            return
        for change in reply.changes:
            if _is_site_only(change):
                raise Violation(
                    "site-only queues stay in their site",
                    f"{sender} sends {change.guid} of {change.partition} to {machine}",
                )


def _is_site_only(change: DirectoryChange) -> bool:
    if change.command is not Command.SYNC:
        return False
    scope = dict(change.properties).get(PropId.Q_SCOPE)
    return scope is not None and scope.value == Scope.SITE
