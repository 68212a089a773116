"""Two queue managers over connections that break: at least once by wire, exactly once delivered."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mqis.protocol.queueing.events import Acknowledged, Delivered, Refused, SessionClosed
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.mqqb.baseheader import INFINITE
from tests.protocol.queueing.wires import PSC1, PSC2, Wires, manager

MACHINES = ("psc1", "psc2")


class LossyLink(RuleBasedStateMachine):
    """Messages both ways, bytes in any portions, cuts at any time; then everything heals."""

    def __init__(self) -> None:
        super().__init__()
        self.wires = Wires(
            manager(PSC1, "PSC1", QueueingLimits(window=4)),
            manager(PSC2, "PSC2", QueueingLimits(window=8)),
        )
        self.sent: dict[str, list[tuple[bytes, int]]] = {name: [] for name in MACHINES}

    @rule(to=st.sampled_from(MACHINES), priority=st.integers(0, 7), size=st.integers(0, 300))
    def send(self, to: str, priority: int, size: int) -> None:
        body = f"{to} {len(self.sent[to])} ".encode() + bytes(size)
        self.sent[to].append((body, priority))
        source = MACHINES[1 - MACHINES.index(to)]
        self.wires.send(source, to, QueuedMessage(body, priority, INFINITE))

    @rule(steps=st.integers(1, 12), limit=st.sampled_from([1, 7, 100, 600, 1 << 20]))
    def carry(self, steps: int, limit: int) -> None:
        for _ in range(steps):
            self.wires.act()
            self.wires.carry(limit)

    @rule()
    def settle(self) -> None:
        self.wires.run()

    @rule()
    def cut(self) -> None:
        self.wires.cut()

    @rule(seconds=st.sampled_from([0.5, 5.0, 11.0, 70.0]))
    def wait(self, seconds: float) -> None:
        self.wires.advance(seconds)

    @rule(machine=st.sampled_from(MACHINES))
    def down(self, machine: str) -> None:
        self.wires.down.add(machine)

    @rule()
    def up(self) -> None:
        self.wires.down.clear()

    @invariant()
    def delivered_at_most_once(self) -> None:
        for name in MACHINES:
            counts = Counter(event.body for event in self.wires.of(name, Delivered))
            assert not counts or max(counts.values()) == 1

    @invariant()
    def in_order_within_session_and_priority(self) -> None:
        for name in MACHINES:
            place = {body: index for index, (body, _) in enumerate(self.sent[name])}
            last: dict[tuple[int, int], int] = defaultdict(lambda: -1)
            for event in self.wires.of(name, Delivered):
                key = event.session, event.priority
                assert place[event.body] > last[key]
                last[key] = place[event.body]

    def teardown(self) -> None:
        wires = self.wires
        wires.down.clear()
        for _ in range(20):
            if not any(
                m.queued(o) for m, o in zip(wires.managers.values(), ("psc2", "psc1"), strict=True)
            ):
                break
            wires.advance(20)
        for name in MACHINES:
            delivered = [event.body for event in wires.of(name, Delivered)]
            assert sorted(delivered) == sorted(body for body, _ in self.sent[name])
            other = MACHINES[1 - MACHINES.index(name)]
            assert wires.managers[other].queued(name) == 0
            acknowledged = [i for e in wires.of(other, Acknowledged) for i in e.identifiers]
            assert len(acknowledged) == len(set(acknowledged)) == len(delivered)
            refused = {event.reason for event in wires.of(name, Refused)}
            assert refused <= {"duplicate"}
            reasons = {event.reason for event in wires.of(name, SessionClosed)}
            assert not any(reason.startswith("malformed") for reason in reasons)


LossyLink.TestCase.settings = settings(stateful_step_count=40, deadline=None)
TestLossyLink = LossyLink.TestCase


@given(st.integers(1, 300), st.integers(0, 4000))
@settings(deadline=None)
@pytest.mark.untraced
def test_a_cut_at_any_byte(messages: int, at: int) -> None:
    """Exactly so many bytes arrive each way, then the connection breaks."""
    wires = Wires(manager(PSC1, "PSC1"), manager(PSC2, "PSC2"))
    for n in range(messages):
        wires.send("psc1", "PSC2", QueuedMessage(b"%d" % n))
    carried = 0
    while carried < at and (wires.act() or carried == 0):
        step = min(97, at - carried)
        if not wires.carry(step):
            break
        carried += step
    wires.cut()
    wires.advance(40)
    bodies = [event.body for event in wires.of("psc2", Delivered)]
    assert bodies == [b"%d" % n for n in range(messages)]
    assert wires.managers["psc1"].queued("PSC2") == 0
