"""The world of one run: a simulated clock, servers, a network, and the steps of the scenario.

First the enterprise is built without faults. Then the steps of the scenario are performed. Then all
faults end, and within ``LIVENESS_S`` every replica has to equal its authority.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from mqis.protocol.clock import Instant
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.directory.ownchange import ChangeKind, NotAuthority, OwnChange
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.replication.effects import (
    ChangeApplied,
    Changed,
    Recovered,
    Refusal,
    RefusalReason,
    RequestAnswered,
)
from mqis.sim import bootstrap, checkers, steps
from mqis.sim.administrator import SimAdministrator
from mqis.sim.complete_replicas import CompletenessCheck
from mqis.sim.equal_digests import DigestCheck, check_digests
from mqis.sim.history import NumberHistory
from mqis.sim.hostility import Hostility
from mqis.sim.keys import Keyring, KeyVault
from mqis.sim.ledger import Ledger
from mqis.sim.memories import check_cached, check_memory
from mqis.sim.network import MessageNetwork
from mqis.sim.restored_authorities import Witnesses
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.scenario import CALM, Scenario
from mqis.sim.simulated_clock import MAX_EVENTS, EventClock
from mqis.sim.simulated_server import SimServer
from mqis.sim.steps import Change
from mqis.sim.streams import StreamNetwork
from mqis.sim.sync_traffic import SyncTraffic
from mqis.sim.waits import circular_waits, describe_circle
from mqis.sim.workload import ClientOperation, operation, roamer
from mqis.storage.journal.appender import Appender
from mqis.storage.journal.journal import Journal
from mqis.texts import some
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.layout import is_partial_reply
from mqis.wire.mqdsrp.messages import ChangeRequest

#: 2024-03-01T08:00:00Z
EPOCH = 1_709_280_000.0
#: Time to agree after the last fault: two lifetimes of a message, and a restored authority's wait.
LIVENESS_S = 7200.0
#: Time to agree for a new enterprise, without faults.
_JOIN_S = 600.0
#: Events per server and second beyond the clock's limit.
_EVENTS_PER_SERVER_S = 1.0
#: The times at which an administrator introduces unknown servers again.
_ADMINISTRATED = (300.0, 1200.0)
_CHECKS_S = (5.0, 30.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0, LIVENESS_S)


class World(EventClock):
    """One run; ``run`` raises ``Violation`` if a rule does not hold."""

    def __init__(
        self,
        scenario: Scenario,
        trace: SimTrace,
        directory: Path | None = None,
        journal: Path | None = None,
    ) -> None:
        super().__init__()
        self.scenario = scenario
        self.trace = trace
        self.settings = scenario.settings
        self.journaled = scenario.journaled
        self.batched = False
        self.history = NumberHistory(trace.count)
        self.traffic = SyncTraffic(trace.count)
        self.network: MessageNetwork | StreamNetwork
        about = self, trace, scenario.seed, CALM, QueueingLimits(duplicate_s=scenario.duplicate_s)
        self.network = (StreamNetwork if scenario.streams else MessageNetwork)(*about)
        self.network.watch = self._watch
        self.ledger = Ledger()
        self._vault = KeyVault(scenario.seed)
        self._hostility = Hostility(
            scenario.seed, self.network, trace, self._vault, (self.ledger, self.history)
        )
        self._completeness = CompletenessCheck(self.history)
        self._digests = DigestCheck(trace.count)
        #: The running transaction has changed the state of a partition.
        self._has_moved = False
        if scenario.is_attacked:
            self.network.tap = self._hostility.recorder.hear
            self.network.keeps_order = False
        self.servers: dict[int, SimServer] = {}
        #: Simulated seconds from the last fault to agreement.
        self.healed_s = 0.0
        self.directory = directory
        self._journal = journal
        self._alarms: dict[str, float] = {}
        self._backups: dict[int, Callable[[], None]] = {}
        #: The servers whose last backup was restored.
        self._restored: set[int] = set()
        self._requests: dict[int, OwnChange] = {}
        self._forwarded: dict[int, ChangeRequest] = {}
        #: The objects that clients deleted, as they were then.
        self._deleted: list[DirectoryObject] = []
        self._last_request = 0
        self._accounting = False
        self.witnesses = Witnesses()
        self._administrator = SimAdministrator(self, self._vault)
        #: The partitions in which each server was being restored after its last operation.
        self._recovering: dict[str, frozenset[Guid]] = {}

    # --- the clock --------------------------------------------------------------------------------

    def max_events(self) -> float:
        return MAX_EVENTS + _EVENTS_PER_SERVER_S * self.now * len(self.servers)

    def instant(self, server: SimServer) -> Instant:
        spread = self.scenario.skew_s
        skew = spread * (len(server.name) * 7 % 5 - 2) / 2 if spread else 0.0
        return Instant(self.now, EPOCH + self.now + skew)

    def _set_alarm(self, server: SimServer) -> None:
        """Schedules the next timer of the server's node."""
        wake = None if server.node is None else server.node.next_timer()
        if wake is None or self._alarms.get(server.name) == wake:
            return
        self._alarms[server.name] = wake

        def fire() -> None:
            if self._alarms.get(server.name) == wake:
                del self._alarms[server.name]
                if server.node is not None:
                    server.node.handle_timer(self.now)
                self.wake(server)

        self.after(max(0.0, wake - self.now), fire)

    def wake(self, server: SimServer) -> None:
        server.turn()
        self._set_alarm(server)

    # --- ``Surroundings`` of servers --------------------------------------------------------------

    def attach(self, server: SimServer) -> Any:
        server.keyring = None
        if self.scenario.signed:
            server.keyring = Keyring(self._vault, server.me, server.disk)
        wake = lambda: self.wake(server)  # noqa: E731
        return self.network.attach(server.name, server.me.id, wake, server.keyring)

    def detach(self, server: SimServer) -> None:
        self.network.detach(server.name)

    def flush(self, server: SimServer) -> None:
        self.network.flush(server.name)
        self._set_alarm(server)

    def observe(self, server: SimServer, tx: Transaction) -> None:
        if self.history.observe(tx, server.me):
            self._has_moved = True
            self._account(server)
            self._completeness.check(tx, server)
            self.traffic.progressed(server.name)
            self._count_quarantine(server)
        assert server.node is not None
        self._recovering[server.name] = frozenset(server.node.replication.memory.recoveries)

    def _account(self, server: SimServer) -> None:
        """Passes new changes to the ledger, unless a client made them or the set-up is running."""
        made, self.history.fresh = self.history.fresh, []
        if made and self._accounting and not server.serves_client:
            recovered = self._recovering.get(server.name, frozenset())
            self.ledger.made(server.name, made, self.now, recovered)

    def _count_quarantine(self, server: SimServer) -> None:
        assert server.node is not None
        partitions = server.node.replication.memory.partitions.values()
        if any(progress.quarantine for progress in partitions):
            self.trace.count("set aside")

    def committed(self, server: SimServer) -> None:
        if self._has_moved:
            self._digests.committed(server)
            self._has_moved = False
        self.history.keep()
        self.ledger.keep()

    def rolled_back(self, server: SimServer) -> None:
        self._has_moved = False
        self.history.drop()
        self.ledger.drop()

    def note(self, kind: str, text: str) -> None:
        self.trace.note(self.now, kind, text)

    def _watch(self, sender: str, machine: str, body: bytes) -> None:
        self.traffic.sent(sender, machine, body, self.now)
        self.ledger.sent(sender, body, self.now)
        self._administrator.scopes.sent(sender, machine, body)
        if is_partial_reply(body):
            self.trace.count("partial reply")

    def crashed(self, server: SimServer) -> None:
        self._alarms.pop(server.name, None)

    def started_again(self, server: SimServer) -> None:
        check_memory(server, self.settings, self.instant(server))

    def outcome(self, server: SimServer, outcome: object) -> None:
        match outcome:
            case RequestAnswered(request, result):
                self._answered(request, result)
            case ChangeApplied(_, partition, seq):
                checkers.check_announced(self.history, server.name, partition, seq)
                check_cached(server)
            case Refusal(sender, reason, text):
                self.note("refused", f"{server.name}: from {sender}: {text}")
                if reason is RefusalReason.NOT_APPLIED:
                    checkers.check_nothing_ahead(server)
            case Recovered(partition, unique, asked, silent):
                self.note(
                    "recovered",
                    f"{server.name} {partition[:8]}: asked {', '.join(asked) or 'nobody'}; "
                    f"silent {', '.join(silent) or 'nobody'}; {len(unique)} of its own",
                )
                if silent:
                    self.trace.count("recovered with silence")
                answered = set(asked) - set(silent)
                self.witnesses.check(server, Guid.parse(partition), answered, self.history)
            case Changed(object_types):
                if server.keyring is not None:
                    server.keyring.changed(object_types)

    # --- the enterprise ---------------------------------------------------------------------------

    def _build_enterprise(self) -> None:
        """Starts all servers one after the other, except those that join late."""
        late = {step.server for step in self.scenario.steps if isinstance(step, steps.Join)}
        pec = self._administrator.new_server(0)
        with pec.disk.store.write() as tx:
            bootstrap.found(tx, pec.me, self._administrator.key(0), pec.entropy, int(EPOCH))
        self.start(pec)
        for index in range(1, len(self.scenario.servers)):
            if index not in late:
                self._administrator.join(index)
                self.run_until(self.now + 5.0)
        self._require_agreement(_JOIN_S, "a new enterprise")

    def start(self, server: SimServer) -> None:
        if server.from_backup and server.me.is_psc:
            owned = [server.me.site, *([ENTERPRISE_PARTITION] if server.me.is_pec else [])]
            self.witnesses.record(server, owned, list(self.servers.values()))
        server.start()
        self._set_alarm(server)

    # --- clients ----------------------------------------------------------------------------------

    def _operate(self, step: steps.Operate) -> None:
        server = self.servers.get(step.server)
        if server is None or server.node is None:
            return
        if step.change is Change.RECREATE_MACHINE and not self._may_recreate(server, step.salt):
            return
        self.note("client", f"{server.name}: {step.change} {step.salt:08x}")
        try:
            client = self._recorded(operation(step.change, step.salt, self._deleted))
            if server.change(client) is not None and step.change is Change.UNDELETE:
                self.trace.count("undeleted")
        except NotAuthority as elsewhere:
            self._record(elsewhere.change)
            self._last_request += 1
            self._requests[self._last_request] = elsewhere.change
            self.trace.count("client forwarded")
            server.request(elsewhere.change, self._last_request)
            self._note_request(server, self._last_request)
        except DirectoryError as error:
            self.note("client refused", f"{server.name}: {error.detail}")
        self._set_alarm(server)

    def _recorded(self, client: ClientOperation) -> ClientOperation:
        """The operation, with a note of what it deletes."""

        def run(events: DirectoryEvents) -> object:
            observe = events.observe

            def noting(change: OwnChange) -> None:
                self._record(change)
                if observe is not None:
                    observe(change)

            return client(replace(events, observe=noting))

        return run

    def _record(self, change: OwnChange) -> None:
        if change.kind is ChangeKind.DELETE:
            self._deleted.append(change.obj)

    def _note_request(self, server: SimServer, local: int) -> None:
        if server.node is not None:
            for waiting in server.node.replication.memory.waiting.values():
                if waiting.local == local:
                    self._forwarded[local] = waiting.request

    def _may_recreate(self, server: SimServer, salt: int) -> bool:
        """True if the operation deletes the machine, or creates one that no authority has."""
        name = roamer(Random(salt))
        with server.disk.store.read() as view:
            here = view.find(ObjectType.MACHINE, name) is not None
        return here or not self.history.alive(ObjectType.MACHINE, name)

    def _answered(self, request: int, result: int) -> None:
        change = self._requests.pop(request)
        name = f"0x{result:08x}"
        self.note("answered", f"{change.kind.name.lower()} {change.obj.id} {name}")
        if request in self._forwarded:
            self.ledger.answered(self._forwarded.pop(request), result)
        if result == HResult.MQ_OK:
            self.trace.count("client answered ok")
            checkers.check_answered(self.history, change)

    # --- steps ------------------------------------------------------------------------------------

    def _perform(self, step: steps.Step) -> None:
        match step:
            case steps.Operate():
                self._operate(step)
            case steps.Join() | steps.Retire() | steps.Resettle() | steps.Slip() | steps.Promote():
                self._administrate(step)
            case steps.Cut(_, first, second, one_way, for_s):
                self._cut(first, second, one_way, for_s)
            case steps.Isolate(_, index, for_s):
                self._isolate(index, for_s)
            case steps.Clog(_, first, second, for_s):
                self._clog(first, second, for_s)
            case steps.Stranger():
                names = [server.name for _, server in sorted(self.servers.items())]
                self._hostility.trick(step, names, self.now)
            case _:
                server = self.servers.get(step.server)
                if server is not None:
                    self._disturb(step, server)

    def _administrate(self, step: steps.Administration) -> None:
        match step:
            case steps.Join(_, index):
                if index not in self.servers:
                    self.trace.count("late join")
                    self._administrator.join(index)
            case steps.Retire(_, index):
                self._administrator.retire(index)
            case steps.Slip(_, index, for_s):
                self._administrator.slip(index, for_s)
            case steps.Resettle(_, index):
                self._backups.pop(index, None)  # those of another server of this name
                self._administrator.resettle(index)
            case steps.Promote(_, index, back_s):
                self._backups.pop(index, None)  # those of a BSC
                self._administrator.promote(index, back_s)

    def _disturb(self, step: steps.Step, server: SimServer) -> None:
        match step:
            case steps.Crash(_, _, point, down_s):
                server.crash_point = point
                self.after(2.0, lambda: self._stop(server, server.lives))
                self.after(2.0 + down_s, lambda: self._restart(server))
            case steps.Lie():
                present = [s.me for _, s in sorted(self.servers.items())]
                unix = int(self.instant(server).unix)
                self._hostility.lie(step, server, present, self.now, unix)
            case steps.FailCommit():
                server.fail_commit = server.node is not None
            case steps.Backup(_, index):
                if server.node is not None and not server.node.replication.memory.recoveries:
                    self.note("backup", server.name)
                    self._backups[index] = server.disk.backup()
                    self._restored.discard(index)
            case steps.Restore(_, index, down_s):
                if index in self._backups:
                    if index in self._restored:
                        self.trace.count("fault restore again")
                    self._restored.add(index)
                    self._restore(server, self._backups[index], down_s)

    def _stop(self, server: SimServer, life: int) -> None:
        if server.node is not None and server.lives == life and server.crash_point:
            self.note("fault crash idle", server.name)
            server.stop()

    def _restart(self, server: SimServer) -> None:
        if server.node is None and not server.retired:
            self.start(server)

    def _restore(self, server: SimServer, put_back: Callable[[], None], down_s: float) -> None:
        kind = "replica" if server.me.is_bsc else "authority"
        self.note(f"fault restore {kind}", server.name)
        server.stop()
        self._write_journal(server)
        put_back()
        server.from_backup = True
        server.restores += 1
        self.history.forget(server.name)
        self.ledger.restored(server.name, self.now)
        self.after(down_s, lambda: self._restart(server))

    def _name(self, index: int) -> str:
        return self.scenario.servers[index].name

    def _cut(self, first: int, second: int, one_way: bool, for_s: float) -> None:
        a, b = self._name(first), self._name(second)
        self.note(f"fault cut {'one way' if one_way else 'both ways'}", f"{a} {b} {for_s:.0f} s")
        self._block([(a, b)] if one_way else [(a, b), (b, a)], for_s)

    def _isolate(self, server: int, for_s: float) -> None:
        name = self._name(server)
        others = [plan.name for plan in self.scenario.servers if plan.name != name]
        self.note("fault isolate", f"{name} {for_s:.0f} s")
        self._block([p for other in others for p in ((name, other), (other, name))], for_s)

    def _clog(self, first: int, second: int, for_s: float) -> None:
        a, b = self._name(first), self._name(second)
        self.note("fault clog", f"{a} {b} {for_s:.0f} s")
        self._block([(a, b)], for_s, shuffled=True)

    def _block(self, ways: list[tuple[str, str]], for_s: float, *, shuffled: bool = False) -> None:
        def unblock() -> None:
            for source, target in ways:
                self.network.unblock(source, target, shuffled=shuffled)

        for source, target in ways:
            self.network.block(source, target)
        self.after(for_s, unblock)

    # --- the run ----------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """The number of messages that were sent."""
        return self.traffic.messages

    def run(self) -> None:
        self._build_enterprise()
        self._run_fault_phase()
        self._run_healing_phase()

    def close(self) -> None:
        for server in (*self.servers.values(), *self._administrator.gone):
            self._write_journal(server)
            server.disk.close()

    def _write_journal(self, server: SimServer) -> None:
        """Writes the outbox to the server's journal; a restored server begins a new journal."""
        if self._journal is not None:
            suffix = f"-restored{server.restores}" if server.restores else ""
            journal = Journal(self._journal / f"{server.label}{suffix}", server.name, server.me.id)
            with closing(journal):
                Appender(server.disk.store, journal).flush()

    def _run_fault_phase(self) -> None:
        self.network.weather = self.scenario.weather
        self.batched = self.scenario.batched
        self._accounting = True
        start = self.now
        for step in self.scenario.steps:
            self.run_until(max(self.now, start + step.at))
            self._perform(step)
        self.run_until(max(self.now, start + self.scenario.fault_s))

    def _run_healing_phase(self) -> None:
        """Ends all faults, starts all servers and checks that they agree."""
        self.note("heal", "")
        self.network.calm()
        for _, server in sorted(self.servers.items()):
            server.crash_point, server.fail_commit = None, False
            if server.node is None:
                self.start(server)
        self._require_agreement(LIVENESS_S, "after all faults")
        checkers.check_nothing_lost(self)
        checkers.check_tombstones(self)
        check_digests(self.servers.values())

    def _require_agreement(self, within_s: float, when: str) -> None:
        start = self.now
        for wait_s in _CHECKS_S:
            if wait_s > within_s:
                break
            self.run_until(start + wait_s)
            found = checkers.disagreements(self)
            if not found:
                self.healed_s = wait_s
                return
            if wait_s in _ADMINISTRATED:
                self._administrator.introduce_again()
        circles = circular_waits(server for _, server in sorted(self.servers.items()))
        if circles:
            raise Violation("no circular wait", "; ".join(map(describe_circle, circles)))
        raise Violation("liveness", f"{when}, {within_s:.0f} s later: {some(found, 5, '; ')}")
