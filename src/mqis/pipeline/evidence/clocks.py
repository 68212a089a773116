"""Clocks of servers, judged by messages: none is received before it was sent.

A message from A to B shows by how much A's clock is ahead of B's, at least; one from B to A, at
most. So each server's clock lies in an interval. The time that most intervals contain is taken for
the right one, as clients of NTP choose among servers (Marzullo's algorithm, RFC 5905 11.2.1).

Three wrong clocks of five may agree with each other by chance or by one mistake. A server is called
wrong only if at least twice as many agree against it; otherwise the finding names all of them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from mqis.findings import Finding
from mqis.pipeline.evidence.findings import EvidenceKind, evidence
from mqis.texts import duration, joined

#: Clocks that differ less are considered equal.
TOLERANCE_US = 60_000_000
#: An explanation names so many servers of a group.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class SentAndReceived:
    """One message, with the times of both servers' journals."""

    sender: str
    receiver: str
    sent_us: int
    received_us: int


@dataclass(frozen=True, slots=True)
class Interval:
    """How far a clock is ahead of another one, at least and at most."""

    low: float = -inf
    high: float = inf

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    @property
    def widened(self) -> Interval:
        return Interval(self.low - TOLERANCE_US / 2, self.high + TOLERANCE_US / 2)


@dataclass(frozen=True, slots=True)
class Group:
    """Servers whose clocks can agree, and where: their intervals have this part in common."""

    servers: tuple[str, ...]
    common: Interval

    def ahead_of(self, other: Group) -> float:
        """By how much this group's clocks are ahead of the other's, at least; negative: behind."""
        if self.common.low > other.common.high:
            return self.common.low - other.common.high + TOLERANCE_US
        return self.common.high - other.common.low - TOLERANCE_US


def wrong_clocks(messages: Iterable[SentAndReceived]) -> Iterator[Finding]:
    """The servers whose clocks are wrong, or those that disagree if too few agree to tell."""
    known = _intervals(messages)
    left = set(known)
    while left:
        root = max(sorted(left), key=lambda server: len(known[server]))
        clocks = _relative(known, root)
        left -= clocks.keys()
        yield from _judged(_groups(clocks))


def _intervals(messages: Iterable[SentAndReceived]) -> dict[str, dict[str, Interval]]:
    """By server and peer: how far the server's clock is ahead of the peer's."""
    leads: dict[tuple[str, str], int] = {}
    for message in messages:
        pair, lead = (message.sender, message.receiver), message.sent_us - message.received_us
        leads[pair] = max(leads.get(pair, lead), lead)
    found: dict[str, dict[str, Interval]] = defaultdict(dict)
    for one, other in chain(leads, [(b, a) for a, b in leads]):
        least = leads.get((one, other), -inf)
        most = -leads.get((other, one), -inf)
        # A clock that was set between two messages contradicts itself.
        found[one][other] = Interval(min(least, most), max(least, most))
    return found


def _relative(known: Mapping[str, Mapping[str, Interval]], root: str) -> dict[str, Interval]:
    """The clocks of all servers that have to do with ``root``, against its clock."""
    found = {root: Interval(0, 0)}
    waiting = deque([root])
    while waiting:
        server = waiting.popleft()
        for peer in sorted(known[server]):
            if peer not in found:
                found[peer] = known[peer][server] + found[server]
                waiting.append(peer)
    return found


def _groups(clocks: Mapping[str, Interval]) -> list[Group]:
    """Divides the servers into groups that can agree, the largest first."""
    left = {server: interval.widened for server, interval in clocks.items()}
    found: list[Group] = []
    while left:
        common = _most_common(left.values())
        names = sorted(s for s, i in left.items() if i.low <= common.low and common.high <= i.high)
        found.append(Group(tuple(names), common))
        for name in names:
            del left[name]
    return found


def _most_common(intervals: Collection[Interval]) -> Interval:
    """The part that most of the intervals have in common."""
    edges = [(i.low, 0) for i in intervals] + [(i.high, 1) for i in intervals]
    edges.sort()
    depth = deepest = 0
    best = Interval()
    for (at, is_end), (until, _) in zip(edges, [*edges[1:], (inf, 1)], strict=True):
        depth += -1 if is_end else 1
        if not is_end and depth > deepest:
            deepest, best = depth, Interval(at, until)
    return best


def _judged(groups: Sequence[Group]) -> Iterator[Finding]:
    most, *others = groups
    count = sum(len(group.servers) for group in groups)
    if 3 * len(most.servers) >= 2 * count:
        wrong = {server: group for group in others for server in group.servers}
        for server, group in sorted(wrong.items()):
            yield _wrong(server, group.ahead_of(most), len(most.servers))
        return
    by_server = {server: group for group in groups for server in group.servers}
    for server, group in sorted(by_server.items()):
        yield _disagreeing(server, group, groups, count)


def _wrong(server: str, offset_us: float, against: int) -> Finding:
    kind = EvidenceKind.CLOCK_AHEAD if offset_us > 0 else EvidenceKind.CLOCK_BEHIND
    text = f"its clock is {_distance(offset_us)} those of {against} servers that agree, at least"
    return evidence(kind, server, text)


def _disagreeing(server: str, own: Group, groups: Iterable[Group], count: int) -> Finding:
    others = [group for group in groups if group is not own]
    parts = [f"{_distance(own.ahead_of(g))} {joined(g.servers, _NAMED)}" for g in others]
    alike = [name for name in own.servers if name != server]
    text = f"its clock is {', '.join(parts)}, at least"
    text += f", and agrees with {joined(alike, _NAMED)}" if alike else ", and agrees with nobody's"
    text += f"; fewer than two thirds of {count} servers agree, so none of them is called wrong"
    return evidence(EvidenceKind.CLOCKS_DISAGREE, server, text)


def _distance(offset_us: float) -> str:
    span = duration(abs(offset_us) / 1_000_000)
    return f"{span} {'ahead of' if offset_us > 0 else 'behind'}"
