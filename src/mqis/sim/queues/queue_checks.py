"""Checks of routed queues, from what queue managers report: they look into no queue.

A message is *held* by the machine that sent it and then by each one that acknowledged it. A machine
that stops loses what it holds: express messages are in memory. Everything else has to arrive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.queueing.events import (
    Acknowledged,
    Arrived,
    Dropped,
    Event,
    Nacked,
    Relayed,
    SessionClosed,
    Written,
)
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.sim.run_trace import Violation
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier

#: A next hop counts as out for no longer than this after the last failure.
_QUIET_S = 2 * QueueingLimits().retry_max_s
#: A next hop that failed is not tried again for this time.
_DETOUR_S = QueueingLimits().retry_s


@dataclass(frozen=True, slots=True)
class PostedMessage:
    identifier: MessageIdentifier
    target: Guid
    body: bytes
    priority: int
    #: True if it outlives all faults.
    lasting: bool

    @property
    def stream(self) -> tuple[Guid, Guid, int]:
        """Messages of one stream are sent in order."""
        return self.identifier.source, self.target, self.priority


@dataclass(slots=True)
class _Detour:
    """The messages that a next hop had not acknowledged when it failed, in order."""

    since: float
    left: list[MessageIdentifier]


@dataclass(slots=True)
class _Machine:
    """What one queue manager has reported since it started."""

    held: set[MessageIdentifier] = field(default_factory=set)
    arrived: set[MessageIdentifier] = field(default_factory=set)
    #: Messages that were written at least once, with the time of the first.
    written: dict[MessageIdentifier, float] = field(default_factory=dict)
    #: Messages that were written and not acknowledged, by next hop, in order.
    in_flight: dict[str, list[MessageIdentifier]] = field(default_factory=dict)
    detours: dict[tuple[Guid, Guid, int], _Detour] = field(default_factory=dict)
    failed: float = -_QUIET_S


class QueueChecks:
    """The messages of a run, and where they are."""

    def __init__(self, names: dict[str, Guid]) -> None:
        """``names`` are the machines by their names in lower case."""
        self._names = names
        self._machines = {guid: _Machine() for guid in names.values()}
        self.posted: dict[MessageIdentifier, PostedMessage] = {}
        self.arrived: set[MessageIdentifier] = set()
        self._lost: set[MessageIdentifier] = set()

    def post(self, message: PostedMessage) -> None:
        self.posted[message.identifier] = message
        self._machines[message.identifier.source].held.add(message.identifier)

    def stopped(self, machine: Guid) -> None:
        """A machine has lost its memory, and with it the messages that it held."""
        self._lost |= self._machines[machine].held
        self._machines[machine] = _Machine()

    def reported(self, machine: Guid, event: Event, now: float) -> None:
        here = self._machines[machine]
        match event:
            case Arrived():
                self._arrive(machine, here, event)
            case Written(identifier, hop, _, _) | Relayed(identifier, _, _, _, hop, _, _):
                if identifier in self.posted:
                    self._write(here, self.posted[identifier], hop.lower(), now)
            case Acknowledged(identifiers, hop):
                for identifier in identifiers:
                    self._acknowledge(here, identifier, hop.lower())
            case SessionClosed(_, _, str(hop), _, _, _):
                self._fail(here, hop.lower(), now)
            case Nacked(identifier) | Dropped(identifier):
                self._end(here, identifier)

    def _arrive(self, machine: Guid, here: _Machine, event: Arrived) -> None:
        message = self.posted.get(event.identifier)
        if message is None:
            return  # an acknowledgement
        if message.target != machine or message.body != event.body:
            raise Violation("unchanged, at its queue", f"{_shown(message)} arrives at {machine}")
        if event.identifier in here.arrived:
            raise Violation("arrives once", f"{_shown(message)} arrives twice")
        here.arrived.add(event.identifier)
        self.arrived.add(event.identifier)

    def _write(self, here: _Machine, message: PostedMessage, hop: str, now: float) -> None:
        identifier = message.identifier
        detour = here.detours.get(message.stream)
        if detour is not None:
            if now - detour.since >= _DETOUR_S:
                del here.detours[message.stream]
            elif identifier in detour.left:
                detour.left.remove(identifier)
            elif identifier not in here.written and detour.left:
                first = self.posted[detour.left[0]]
                raise Violation(
                    "a detour keeps the order", f"{_shown(message)} overtakes {_shown(first)}"
                )
        here.written.setdefault(identifier, now)
        here.in_flight.setdefault(hop, []).append(identifier)

    def _acknowledge(self, here: _Machine, identifier: MessageIdentifier, hop: str) -> None:
        here.held.discard(identifier)
        flight = here.in_flight.get(hop, [])
        if identifier in flight:
            flight.remove(identifier)
        if identifier in self.posted and identifier not in self.arrived:
            self._machines[self._names[hop]].held.add(identifier)

    def _fail(self, here: _Machine, hop: str, now: float) -> None:
        """Notes what has to be written again, if all of it was meant for the first next hop."""
        left: dict[tuple[Guid, Guid, int], list[MessageIdentifier]] = {}
        for identifier in here.in_flight.pop(hop, []):
            left.setdefault(self.posted[identifier].stream, []).append(identifier)
        for stream, identifiers in left.items():
            quiet = all(here.written[i] - here.failed > _QUIET_S for i in identifiers)
            if quiet:
                here.detours[stream] = _Detour(now, identifiers)
        here.failed = now

    def _end(self, here: _Machine, identifier: MessageIdentifier) -> None:
        here.held.discard(identifier)
        for detour in here.detours.values():
            if identifier in detour.left:
                detour.left.remove(identifier)

    def finish(self) -> None:
        """Every lasting message has arrived, unless a machine that held it has stopped."""
        for message in self.posted.values():
            if message.lasting and message.identifier not in self.arrived | self._lost:
                held = ", ".join(self._holders(message.identifier)) or "nobody"
                raise Violation("every message arrives", f"{_shown(message)} is held by {held}")

    def _holders(self, identifier: MessageIdentifier) -> list[str]:
        names = self._names.items()
        return [name for name, guid in names if identifier in self._machines[guid].held]


def _shown(message: PostedMessage) -> str:
    return message.body.decode()
