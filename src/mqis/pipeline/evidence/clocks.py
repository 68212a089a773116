"""Clocks of servers, judged by messages: none is received before it was sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from statistics import median_high, median_low

from mqis.pipeline.evidence.findings import EvidenceFinding, EvidenceKind

#: Clocks that differ less are considered equal.
TOLERANCE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class SentAndReceived:
    """One message, with the times of both servers' journals."""

    sender: str
    receiver: str
    sent_us: int
    received_us: int


def wrong_clocks(messages: Iterable[SentAndReceived]) -> Iterator[EvidenceFinding]:
    """The servers whose clocks are ahead of those of most others, or behind.

    A message that was received before it was sent shows by how much the sender's clock is ahead of
    the receiver's, at least. The server that most others disagree with is the wrong one; then the
    rest is judged without it.
    """
    leads: dict[str, dict[str, int]] = defaultdict(dict)
    for message in messages:
        lead = message.sent_us - message.received_us
        known = leads[message.sender].get(message.receiver, 0)
        leads[message.sender][message.receiver] = max(known, lead)
    offsets = _offsets(leads)
    while wrong := {server: o for server in offsets if (o := _offset(offsets[server]))}:
        worst = max(wrong, key=lambda server: (_disagreeing(offsets[server]), wrong[server] > 0))
        yield _finding(worst, wrong[worst], len(offsets[worst]))
        del offsets[worst]
        for by_peer in offsets.values():
            by_peer.pop(worst, None)


def _offsets(leads: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """By server and peer: how far the server's clock is ahead of the peer's, 0 if it seems not."""
    offsets: dict[str, dict[str, int]] = defaultdict(dict)
    for sender, by_receiver in sorted(leads.items()):
        for receiver, lead in sorted(by_receiver.items()):
            ahead = lead if lead > TOLERANCE_US else 0
            for server, peer, offset in ((sender, receiver, ahead), (receiver, sender, -ahead)):
                known = offsets[server].get(peer, 0)
                offsets[server][peer] = offset if abs(offset) > abs(known) else known
    return offsets


def _offset(by_peer: Mapping[str, int]) -> int:
    """The offset from most peers; of two middle ones, the smaller: half of them are not most."""
    if not by_peer:
        return 0
    return min(median_low(by_peer.values()), median_high(by_peer.values()), key=abs)


def _disagreeing(by_peer: Mapping[str, int]) -> int:
    return sum(offset != 0 for offset in by_peer.values())


def _finding(server: str, offset_us: int, peers: int) -> EvidenceFinding:
    kind = EvidenceKind.CLOCK_AHEAD if offset_us > 0 else EvidenceKind.CLOCK_BEHIND
    way = "ahead of" if offset_us > 0 else "behind"
    span = timedelta(seconds=abs(offset_us) // 1_000_000)
    text = f"its clock is {span} {way} most of its {peers} peers, at least"
    return EvidenceFinding(kind, server, text)
