"""The position of a replica beside its authority, and the words for it.

A replica is behind by as many numbers as the authority of its partition has given out after the
replica's last one. Where no authority is known, the replica that is farthest gives a lower bound
for the others, and its own lag is unknown. Not every number is a change: an authority that was
restored or promoted skips many (``Distance``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from mqis.protocol.replication.convergence import Contents
from mqis.protocol.replication.settings import DEFAULTS
from mqis.texts import agreeing, counted, duration, joined

#: The decimal digits of a number that are shown.
_DIGITS = 9

#: (server, partition) -> when the replica was first seen behind; (server, "") -> first silent.
Since = dict[tuple[str, str], float]


def sequence_text(digits: str) -> str:
    """A sequence number, of hexadecimal digits, as people read it; of a long one, its end.

    Those of an authority that began by its clock have fifteen decimal digits.
    """
    text = f"{int(digits, 16):,}"
    kept = _DIGITS + _DIGITS // 3 - 1
    return text if len(text) <= kept else f"...{text[-kept:]}"


class Lag(StrEnum):
    """The position of a replica relative to its authority."""

    AUTHORITY = "authority"
    IN_STEP = "in-step"
    BEHIND = "behind"
    AHEAD = "ahead"
    #: It has the authority's last number, and has not finished a full resynchronisation.
    RESYNC = "resync"
    #: It has the authority's last number, and other contents.
    DIFFERS = "differs"
    UNKNOWN = "unknown"


#: The words for what a replica waits for, by ``PartitionStatus.state``.
WAITING_WORDS = {
    "sync": "changes requested",
    "restoring": "recovering",
    "start_sync0": "full resync requested",
    "sync0": "full resync",
    "complete_sync0": "full resync ending",
}


def waiting_text(state: str) -> str:
    return WAITING_WORDS.get(state, state.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Distance:
    """The numbers between two positions, divided into changes and skipped numbers."""

    changes: int
    jumps: int = 0
    skipped: int = 0

    @classmethod
    def between(cls, low: int, high: int, jumps: Iterable[tuple[int, int]] = ()) -> Distance:
        """``jumps``: the ranges of numbers that the authority skipped, as (before, after).

        An authority of an earlier version does not tell its jumps. A distance that only a jump
        explains is then taken for one of the usual length.
        """
        inside = [min(after, high) - max(before, low) for before, after in jumps]
        skipped = [length for length in inside if length > 0]
        if not skipped and high - low >= DEFAULTS.restore_jump:
            skipped = [DEFAULTS.restore_jump]
        return cls(high - low - sum(skipped), len(skipped), sum(skipped))

    def __add__(self, other: Distance) -> Distance:
        return Distance(
            self.changes + other.changes, self.jumps + other.jumps, self.skipped + other.skipped
        )

    @property
    def numbers(self) -> int:
        return self.changes + self.skipped

    @property
    def text(self) -> str:
        """3 changes; 3 changes and a jump of 1,048,576 numbers."""
        parts = []
        if self.changes or not self.jumps:
            parts.append(counted(self.changes, "change"))
        if self.jumps:
            word = agreeing(self.jumps, "a jump", f"{self.jumps} jumps")
            parts.append(f"{word} of {counted(self.skipped, 'number')}")
        return joined(parts)


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One partition at one server."""

    id: str
    name: str
    owner: str
    authority: bool
    #: normal, sync, restoring, start_sync0, sync0 or complete_sync0.
    state: str
    last_seq: str
    purged_seq: str
    #: Changes that this server knows to be missing.
    missing: int
    #: Numbers that the authority has and this server lacks; None: there is nothing to compare with.
    behind: int | None
    #: Seconds since it was first observed to be behind.
    behind_s: float | None = None
    #: Numbers that it has and the authority lacks.
    ahead: int = 0
    #: No authority is in sight, and ``behind`` is only what another replica has more.
    at_least: bool = False
    #: The skipped numbers among those that it lacks.
    skipped: int = 0
    jumps: int = 0
    contents: Contents = Contents.UNKNOWN
    #: The servers that ``content_watch`` was compared with and found different.
    differs_from: tuple[str, ...] = ()

    @property
    def is_resyncing(self) -> bool:
        """True during a full resynchronisation or recovery; a request for changes is routine."""
        return self.state not in ("normal", "sync")

    @property
    def distance(self) -> Distance:
        return Distance((self.behind or 0) - self.skipped, self.jumps, self.skipped)

    @property
    def lag(self) -> Lag:
        if self.behind:
            return Lag.BEHIND
        if self.ahead:
            return Lag.AHEAD
        if self.is_resyncing:
            return Lag.RESYNC
        if self.contents is Contents.DIFFERENT:
            return Lag.DIFFERS
        if self.authority:
            return Lag.AUTHORITY
        return Lag.UNKNOWN if self.behind is None else Lag.IN_STEP

    @property
    def text(self) -> str:
        """The position and the wait in words."""
        if self.state == "normal":
            return self._position
        return f"{self._position}, {waiting_text(self.state)}"

    @property
    def _position(self) -> str:
        if self.lag is Lag.DIFFERS:
            return "contents differ"
        if self.authority and not self.behind:
            return "authority"
        if self.behind is None:
            return "authority not in sight"
        if self.ahead:
            return f"{self.ahead:,} ahead"
        if not self.behind:
            return "equal" if self.contents is Contents.EQUAL else "in step"
        since = self.behind_s or 0.0
        least = "at least " if self.at_least else ""
        amount = self.distance.text if self.jumps else f"{self.behind:,}"
        return f"{least}{amount} behind" + (f" for {duration(since)}" if since >= 1 else "")
