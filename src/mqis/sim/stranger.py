"""A stranger on the network without a key: records packets, replays them or alters them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from mqis.sim.run_trace import message_in, operation_of
from mqis.sim.steps import Trick
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Message,
    PartitionSeqNumbers,
    PscAck,
    SyncReply,
    SyncRequest,
    decode_message,
    encode_message,
)
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.seqnum import SequenceNumber

#: The number of packets kept of each kind of message, old and new alike.
_KEPT = 48
_BURST = 12
_FLIPS = 4


@dataclass(frozen=True, slots=True)
class Heard:
    """A recorded packet and its destination."""

    machine: str
    packet: bytes

    @property
    def message(self) -> UserMessage:
        message = message_in(self.packet)
        assert message is not None
        return message


class Recorder:
    """Recorded packets by kind of message: a uniform sample (reservoir sampling)."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"{seed}/recorder")
        self._kept: dict[str, list[Heard]] = {}
        self._passed: dict[str, int] = {}

    def hear(self, machine: str, packet: bytes, body: bytes) -> None:
        heard, kind = Heard(machine, packet), operation_of(body)
        kept = self._kept.setdefault(kind, [])
        passed = self._passed[kind] = self._passed.get(kind, 0) + 1
        if len(kept) < _KEPT:
            kept.append(heard)
        elif (place := self._random.randrange(passed)) < _KEPT:
            kept[place] = heard

    def any(self, random: Random) -> Heard | None:
        """A random packet; all kinds are equally likely, also rare ones."""
        if not self._kept:
            return None
        return random.choice(self._kept[random.choice(sorted(self._kept))])

    def kind(self, kind: str) -> list[Heard]:
        return self._kept.get(kind, [])


def play(
    trick: Trick, random: Random, recorder: Recorder, machines: list[str]
) -> list[tuple[str, bytes]]:
    """The packets that a stranger sends, with their destinations."""
    count = _BURST if trick is Trick.REORDER else 1
    heard = [found for _ in range(count) if (found := recorder.any(random)) is not None]
    return [(_addressee(trick, random, h, machines), _TRICKS[trick](random, h)) for h in heard]


def _addressee(trick: Trick, random: Random, heard: Heard, machines: list[str]) -> str:
    if trick is Trick.REDIRECT or random.random() < 0.1:
        return random.choice(machines)
    return heard.machine


# --- replayed -------------------------------------------------------------------------------------


def _again(random: Random, heard: Heard) -> bytes:
    """Replays a packet unchanged, or with another message number to evade duplicate detection.

    The number is not covered by the signature.
    """
    if random.random() < 0.5:
        return heard.packet
    return _renumbered(random, heard.message).to_bytes()


def _renumbered(random: Random, message: UserMessage) -> UserMessage:
    return replace(message, header=replace(message.header, message_id=random.getrandbits(32) | 1))


# --- altered --------------------------------------------------------------------------------------


def _flipped(random: Random, heard: Heard) -> bytes:
    """Flips some bits anywhere in the packet."""
    packet = bytearray(heard.packet)
    for _ in range(random.randint(1, _FLIPS)):
        packet[random.randrange(len(packet))] ^= 1 << random.randrange(8)
    return bytes(packet)


def _rewritten(random: Random, heard: Heard) -> bytes:
    """Replaces the body and keeps the old signature."""
    message = _renumbered(random, heard.message)
    body = message.properties.body
    return replace(
        message, properties=replace(message.properties, body=rewritten(random, body))
    ).to_bytes()


def _unsigned(random: Random, heard: Heard) -> bytes:
    """Removes the signature, and mostly replaces the body."""
    message = _renumbered(random, heard.message)
    assert message.security is not None
    body = message.properties.body
    if random.random() < 0.7:
        body = rewritten(random, body)
    bare = replace(message.security, signature=b"", default_provider=False)
    security = None if random.random() < 0.5 else bare
    properties = replace(message.properties, body=body)
    return replace(message, security=security, properties=properties).to_bytes()


_TRICKS: dict[Trick, Callable[[Random, Heard], bytes]] = {
    Trick.REPLAY: _again,
    Trick.REORDER: _again,
    Trick.REDIRECT: _again,
    Trick.FLIP: _flipped,
    Trick.REWRITE: _rewritten,
    Trick.UNSIGN: _unsigned,
}


# --- bodies ---------------------------------------------------------------------------------------


def rewritten(random: Random, body: bytes) -> bytes:
    """Returns a message of the same kind with other values."""
    try:
        message = decode_message(body)
    except WireError:
        return body
    return encode_message(_other(random, message))


def number(random: Random, seq: SequenceNumber) -> SequenceNumber:
    """Returns another number: near ``seq``, ahead of it, or far ahead."""
    ahead = random.choice((-3, -1, 1, 2, 50, 1 << 20, 1 << 31, 1 << 60))
    return SequenceNumber(min(max(0, seq.value + ahead), SequenceNumber.MAX.value))


def _other(random: Random, message: Message) -> Message:
    other = message
    match message:
        case ChangePropagation():
            other = _other_propagation(random, message)
        case SyncReply():
            other = replace(
                message,
                to_seq=number(random, message.to_seq),
                purged_seq=number(random, message.purged_seq),
                changes=_fewer(random, message.changes),
            )
        case SyncRequest():
            other = replace(message, from_seq=number(random, message.from_seq))
        case AlreadyPurged():
            other = replace(message, purged_seq=number(random, message.purged_seq))
        case PscAck():
            other = replace(message, seq=number(random, message.seq))
        case BscAck():
            other = replace(message, machine=Guid(random.randbytes(16)))
        case ChangeRequest():
            other = _other_request(random, message)
        case ChangeReply():
            other = replace(message, result=random.choice((0, 0xC00E0001)))
    return other


def _other_propagation(random: Random, message: ChangePropagation) -> ChangePropagation:
    numbers = tuple(_other_numbers(random, p) for p in message.heartbeat.partitions)
    changes = tuple(
        replace(c, seq=number(random, c.seq), purged_seq=number(random, c.purged_seq))
        for c in message.changes
    )
    heartbeat = replace(message.heartbeat, partitions=numbers)
    return replace(message, changes=changes, heartbeat=heartbeat)


def _other_numbers(random: Random, numbers: PartitionSeqNumbers) -> PartitionSeqNumbers:
    last = number(random, numbers.last_seq)
    return replace(numbers, last_seq=last, purged_seq=min(last, number(random, numbers.purged_seq)))


def _other_request(random: Random, request: ChangeRequest) -> ChangeRequest:
    """Changes the request's number, its requester or its partition."""
    kind = random.randrange(3)
    if kind == 0:
        return replace(request, request_id=random.getrandbits(32))
    if kind == 1:
        return replace(request, requester=f"{request.requester}x")
    partition = Guid.NULL
    return replace(
        request, partition=partition, change=replace(request.change, partition=partition)
    )


def _fewer(random: Random, changes: tuple[DirectoryChange, ...]) -> tuple[DirectoryChange, ...]:
    """Leaves out some changes."""
    return tuple(change for change in changes if random.random() < 0.7)
