"""The world of one run with routed queues."""

from __future__ import annotations

from mqis.protocol.queueing.events import Arrived, Dropped, Nacked, Refused, Stranded
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import PrivateQueue, QueuedMessage
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.routing.keeper import RoutingTableKeeper
from mqis.protocol.routing.router import DirectoryRouter
from mqis.sim.queues.queue_checks import PostedMessage, QueueChecks
from mqis.sim.queues.queue_scenario import (
    LASTING_S,
    Halt,
    PostMessages,
    QueueScenario,
    QueueStep,
    RoutedMachine,
)
from mqis.sim.run_trace import SimTrace, Violation
from mqis.sim.scenario import CALM
from mqis.sim.simulated_clock import EventClock
from mqis.sim.steps import Cut, Isolate
from mqis.sim.streams import StreamNetwork

FAULTS: dict[str, str] = {
    "fault halt": "queue manager stopped",
    "fault cut": "line cut",
    "fault isolate": "machine isolated",
    "fault break": "connection broken",
}
DECISIONS: dict[str, str] = {
    "posted": "send a message",
    "arrived": "deliver a message",
    "connected": "open a connection",
    "stranded": "wait for a next hop",
    "duplicate": "drop a duplicate",
    "expired": "expire a message",
}
_EPOCH = 1_709_280_000
#: Private queues that all machines have: for messages, and for acknowledgements.
_QUEUE, _ADMIN = 20, 21
#: Time after the last fault in which all messages have to arrive.
LIVENESS_S = 1800.0


class QueueWorld(EventClock):
    """One run; ``run`` raises ``Violation`` if a rule does not hold."""

    def __init__(self, scenario: QueueScenario, trace: SimTrace) -> None:
        super().__init__()
        self.scenario = scenario
        self.trace = trace
        self.healed_s = 0.0
        self._limits = QueueingLimits(window=scenario.window)
        self.network = StreamNetwork(self, trace, scenario.seed, CALM, self._limits)
        self._snapshot = scenario.snapshot()
        self.checks = QueueChecks({canonical(m.name): m.guid for m in scenario.machines})
        self._managers: dict[str, QueueingMachine] = {}
        #: Numbers of messages are kept on disk: a restarted machine goes on with the next one.
        self._numbers = {machine.name: MessageIdCounter(0) for machine in scenario.machines}
        self._alarms: dict[str, float] = {}

    @property
    def messages(self) -> int:
        return len(self.checks.posted)

    def close(self) -> None:
        """Nothing is open: all of it is in memory."""

    def run(self) -> None:
        for machine in self.scenario.machines:
            self._start(machine)
        self.network.weather = self.scenario.weather
        for step in self.scenario.steps:
            self.run_until(step.at)
            self._perform(step)
        self.run_until(max(self.now, self.scenario.fault_s))
        self._heal()

    def _heal(self) -> None:
        self.trace.note(self.now, "heal", "")
        self.network.calm()
        for machine in self.scenario.machines:
            if machine.name not in self._managers:
                self._start(machine)
        began = self.now
        self.run_until(began + LIVENESS_S)
        self.healed_s = max(0.0, self._last_arrival - began) if self.checks.arrived else 0.0
        self.checks.finish()
        for name, manager in self._managers.items():
            if manager.depths():
                raise Violation("queues drain", f"{name} keeps {manager.depths()}")

    _last_arrival = 0.0

    # --- machines ---------------------------------------------------------------------------------

    def _start(self, machine: RoutedMachine) -> None:
        keeper = RoutingTableKeeper(machine.guid, lambda: self._snapshot, self.now)
        self._managers[machine.name] = self.network.attach(
            machine.name,
            machine.guid,
            lambda: self.wake(machine),
            None,
            router=DirectoryRouter(machine.guid, keeper, private_queues=(_QUEUE, _ADMIN)),
            message_ids=self._numbers[machine.name],
        )

    def wake(self, machine: RoutedMachine) -> None:
        """Does what the driver of a queue manager does: takes events, writes, sets the timer."""
        manager = self._managers.get(machine.name)
        if manager is None:
            return
        self._take_events(machine, manager)
        self.network.flush(machine.name)
        self._take_events(machine, manager)
        due = manager.next_timer()
        if due is None or self._alarms.get(machine.name) == due:
            return
        self._alarms[machine.name] = due

        def ring() -> None:
            if (
                self._managers.get(machine.name) is manager
                and self._alarms.get(machine.name) == due
            ):
                del self._alarms[machine.name]
                manager.handle_timer(self.now)
                self.wake(machine)

        self.after(max(0.0, due - self.now), ring)

    def _take_events(self, machine: RoutedMachine, manager: QueueingMachine) -> None:
        while (event := manager.next_event()) is not None:
            self.checks.reported(machine.guid, event, self.now)
            match event:
                case Arrived(identifier):
                    self._last_arrival = self.now
                    self._note("arrived", f"{machine.name} {identifier}")
                case Stranded(identifier, _, reason):
                    self._note("stranded", f"{machine.name} {identifier}: {reason}")
                case Refused(identifier, _, _, duplicate=True):
                    self._note("duplicate", f"{machine.name} {identifier}")
                case Nacked(identifier) | Dropped(identifier):
                    self._note("expired", f"{machine.name} {identifier}")

    def _note(self, kind: str, text: str) -> None:
        self.trace.note(self.now, kind, text)

    # --- steps ------------------------------------------------------------------------------------

    def _perform(self, step: QueueStep) -> None:
        machines = self.scenario.machines
        match step:
            case PostMessages():
                self._post(step)
            case Halt(_, server, down_s):
                self._halt(machines[server], down_s)
            case Cut(_, first, second, one_way, for_s):
                ends = machines[first].name, machines[second].name
                self._note("fault cut", " -> ".join(ends) if one_way else " - ".join(ends))
                self._block([ends] if one_way else [ends, ends[::-1]], for_s)
            case Isolate(_, server, for_s):
                name = machines[server].name
                self._note("fault isolate", name)
                others = [machine.name for machine in machines if machine.name != name]
                self._block([w for other in others for w in ((name, other), (other, name))], for_s)

    def _post(self, step: PostMessages) -> None:
        source, target = (self.scenario.machines[i] for i in (step.source, step.target))
        manager = self._managers.get(source.name)
        if manager is None:
            return
        for _ in range(step.count):
            number = len(self.checks.posted)
            body = f"message {number} {source.name} to {target.name}".encode()
            message = QueuedMessage(
                body,
                step.priority,
                step.lifetime_s,
                acknowledge=True,
                queue=PrivateQueue(target.guid, _QUEUE),
                admin=_ADMIN,
            )
            identifier = manager.send_routed(message, self.now, _EPOCH + int(self.now))
            lasting = step.lifetime_s == LASTING_S
            self.checks.post(PostedMessage(identifier, target.guid, body, step.priority, lasting))
            self._note("posted", f"{identifier} {body.decode()}")
        self.wake(source)

    def _halt(self, machine: RoutedMachine, down_s: float) -> None:
        if self._managers.pop(machine.name, None) is None:
            return
        self._note("fault halt", machine.name)
        self._alarms.pop(machine.name, None)
        self.checks.stopped(machine.guid)
        self.network.detach(machine.name)

        def start() -> None:
            if machine.name not in self._managers:
                self._start(machine)

        self.after(down_s, start)

    def _block(self, ways: list[tuple[str, str]], for_s: float) -> None:
        for way in ways:
            self.network.block(*way)

        def end() -> None:
            for way in ways:
                self.network.unblock(*way)

        self.after(for_s, end)
