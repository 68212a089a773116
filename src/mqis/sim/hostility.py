"""Sends hostile messages in a run: a stranger's, and those of hostile servers."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Protocol

from mqis.protocol.queueing.events import Delivered, Event, Refused
from mqis.protocol.queueing.queued_message import QueuedMessage, build_packet
from mqis.protocol.replication import number_recovery
from mqis.protocol.replication.server_identity import Server
from mqis.sim.history import NumberHistory
from mqis.sim.keys import Keyring, KeyVault
from mqis.sim.ledger import Ledger
from mqis.sim.lies import Situation, make_lie
from mqis.sim.run_trace import SimTrace, describe, message_in, operation_of
from mqis.sim.simulated_server import ServerEntropy, SimServer
from mqis.sim.simulated_stores import discarded
from mqis.sim.steps import Lie, Stranger
from mqis.sim.stranger import Recorder, play
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier


class PacketSink(Protocol):
    """The part of a network that injects packets."""

    def inject(self, machine: str, packet: bytes) -> Event | None: ...


class Hostility:
    """The hostile parties of a run: what they have recorded, and what they send."""

    def __init__(
        self,
        seed: int,
        network: PacketSink,
        trace: SimTrace,
        vault: KeyVault,
        books: tuple[Ledger, NumberHistory],
    ) -> None:
        self.recorder = Recorder(seed)
        self._seed = seed
        self._network = network
        self._trace = trace
        self._vault = vault
        self._ledger, self._history = books
        self._numbers = Random(f"{seed}/hostile")

    def trick(self, step: Stranger, machines: list[str], now: float) -> None:
        """Lets a stranger send a message that he has recorded, unchanged or altered."""
        random = Random(step.salt)
        for machine, packet in play(step.trick, random, self.recorder, machines):
            kind = f"fault {step.trick}"
            self._trace.note(now, kind, machine, packet, shown=f"{machine}: {_shown(packet)}")
            self._deliver(machine, packet, now)

    def lie(self, step: Lie, liar: SimServer, servers: list[Server], now: float, unix: int) -> None:
        """Lets a server send messages that it has made up, signed with its own key."""
        key = self._vault.public(f"{liar.name} as somebody else")
        entropy = ServerEntropy(f"{self._seed}/{step.salt}")
        with discarded(liar.disk.store) as tx:
            about = Random(step.salt), liar.me, tx, entropy, servers, key, self.recorder, unix
            in_office = not liar.from_backup and number_recovery.is_serving(tx, liar.me.site)
            situation = Situation(*about, gives_numbers=in_office)
            make_lie(step.falsehood, situation)
        for request in situation.honest:
            self._ledger.asked(request, now)
        for change in situation.numbered:
            self._use_up(liar, change)
        keyring = Keyring(self._vault, liar.me, liar.disk)
        for machine, message in situation.said:
            identifier = MessageIdentifier(liar.me.id, self._numbers.getrandbits(32) | 1)
            body = encode_message(message)
            packet = build_packet(QueuedMessage(body), identifier, machine, unix, keyring)
            kind = f"lie {step.falsehood}"
            text = f"{liar.name} -> {machine} {operation_of(body)}"
            self._trace.note(now, kind, text, body, shown=f"{text}: {describe(body)}")
            self._deliver(machine, packet, now)

    def _use_up(self, liar: SimServer, change: DirectoryChange) -> None:
        """Gives out the number of a false change: the liar's next true one follows it."""
        with liar.disk.store.write() as tx:
            state = tx.partition(change.partition)
            assert state is not None
            tx.put_partition(replace(state, last_seq=change.seq))
        if change.command is Command.DELETE:
            self._history.lied(change)

    def _deliver(self, machine: str, packet: bytes, now: float) -> None:
        event = self._network.inject(machine, packet)
        match event:
            case Refused(_, _, reason):
                self._trace.count(f"refused: {reason}")
                self._trace.note(now, "not delivered", f"{machine}: {reason}")
            case Delivered():
                self._trace.count("hostile message delivered")


def _shown(packet: bytes) -> str:
    message = message_in(packet)
    if message is None:
        return "damaged"
    header = message.header
    return f"{header.source} {header.message_id} {describe(message.properties.body)}"
