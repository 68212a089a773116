"""Sends hostile messages in a run: a stranger's, and those of a hostile backup controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Protocol

from mqis.protocol.ports import Store, Transaction
from mqis.protocol.queueing.events import Delivered, Event, Refused
from mqis.protocol.queueing.message import QueuedMessage, build_packet
from mqis.protocol.replication.server import Server
from mqis.sim.describe import describe, operation_of
from mqis.sim.keys import Keyring, KeyVault
from mqis.sim.ledger import Ledger
from mqis.sim.lies import Situation, make_lie
from mqis.sim.packets import message_in
from mqis.sim.server import ServerEntropy, SimServer
from mqis.sim.steps import Lie, Stranger
from mqis.sim.stranger import Recorder, play
from mqis.sim.trace import SimTrace
from mqis.wire.mqdsrp.messages import encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier


class PacketSink(Protocol):
    """The part of a network that injects packets."""

    def inject(self, machine: str, packet: bytes) -> Event | None: ...


class _Undone(Exception):
    """Raised to roll a transaction back."""


class Hostility:
    """The hostile parties of a run: what they have recorded, and what they send."""

    def __init__(
        self, seed: int, network: PacketSink, trace: SimTrace, vault: KeyVault, ledger: Ledger
    ) -> None:
        self.recorder = Recorder(seed)
        self._seed = seed
        self._network = network
        self._trace = trace
        self._vault = vault
        self._ledger = ledger
        self._numbers = Random(f"{seed}/hostile")

    def trick(self, step: Stranger, machines: list[str], now: float) -> None:
        """Lets a stranger send a message that he has recorded, unchanged or altered."""
        random = Random(step.salt)
        for machine, packet in play(step.trick, random, self.recorder, machines):
            kind = f"fault {step.trick}"
            self._trace.note(now, kind, machine, packet, shown=f"{machine}: {_shown(packet)}")
            self._deliver(machine, packet, now)

    def lie(self, step: Lie, liar: SimServer, servers: list[Server], now: float, unix: int) -> None:
        """Lets a backup controller send messages that it has made up, signed with its own key."""
        key = self._vault.public(f"{liar.name} as somebody else")
        entropy = ServerEntropy(f"{self._seed}/{step.salt}")
        with _discarded(liar.disk.store) as tx:
            situation = Situation(
                Random(step.salt), liar.me, tx, entropy, servers, key, self.recorder, unix
            )
            make_lie(step.falsehood, situation)
        for request in situation.honest:
            self._ledger.asked(request, now)
        keyring = Keyring(self._vault, liar.me, liar.disk)
        for machine, message in situation.said:
            identifier = MessageIdentifier(liar.me.id, self._numbers.getrandbits(32) | 1)
            body = encode_message(message)
            packet = build_packet(QueuedMessage(body), identifier, machine, unix, keyring)
            kind = f"lie {step.falsehood}"
            text = f"{liar.name} -> {machine} {operation_of(body)}"
            self._trace.note(now, kind, text, body, shown=f"{text}: {describe(body)}")
            self._deliver(machine, packet, now)

    def _deliver(self, machine: str, packet: bytes, now: float) -> None:
        event = self._network.inject(machine, packet)
        match event:
            case Refused(_, _, reason):
                self._trace.count(f"refused: {reason}")
                self._trace.note(now, "not delivered", f"{machine}: {reason}")
            case Delivered():
                self._trace.count("hostile message delivered")


@contextmanager
def _discarded(store: Store) -> Iterator[Transaction]:
    """A transaction that is always rolled back."""
    try:
        with store.write() as tx:
            yield tx
            raise _Undone
    except _Undone:
        pass


def _shown(packet: bytes) -> str:
    message = message_in(packet)
    if message is None:
        return "damaged"
    header = message.header
    return f"{header.source} {header.message_id} {describe(message.properties.body)}"
