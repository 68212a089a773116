"""The colours of states: green, amber and red, by one rule for all pages.

Amber: it takes care of itself, or somebody wanted it so; look again soon. Red: somebody has to do
something. Blue marks the authority, and what is neither good nor bad has no colour.
"""

from __future__ import annotations

from enum import StrEnum

from mqis.enterprise.status import (
    Lag,
    MatrixCell,
    MemberState,
    MemberStatus,
    ReplicaStatus,
)
from mqis.findings import Gravity
from mqis.server.monitoring.status import NeighbourStatus
from mqis.server.monitoring.verdict import HealthVerdict

#: A replica that has been behind for so long does not catch up by itself.
LONG_S = 300.0


class Tone(StrEnum):
    """A colour, as the style sheet calls it."""

    PLAIN = ""
    INFO = "info"
    GOOD = "good"
    LATE = "late"
    BAD = "bad"


_SERVERS = {
    MemberState.READY: Tone.GOOD,
    MemberState.STORED: Tone.PLAIN,
    MemberState.UNASKED: Tone.PLAIN,
    MemberState.FAILED: Tone.BAD,
    MemberState.DOWN: Tone.BAD,
    MemberState.UNREADABLE: Tone.BAD,
}
_LAGS = {
    Lag.AUTHORITY: Tone.INFO,
    Lag.IN_STEP: Tone.GOOD,
    Lag.BEHIND: Tone.LATE,
    Lag.RESYNC: Tone.LATE,
    #: It has changes that its authority never made, or has lost.
    Lag.AHEAD: Tone.BAD,
    Lag.DIFFERS: Tone.BAD,
    Lag.UNKNOWN: Tone.LATE,
}
_GRAVITIES = {Gravity.WARNING: Tone.LATE, Gravity.ERROR: Tone.BAD}
#: Counters that stay at 0 while all is well; the first two mean that something was lost.
_LOSSES = frozenset({"commit_failures", "messages_undelivered"})
_TROUBLES = frozenset(
    {
        "access_denied",
        "archive_failures",
        "faults",
        "forward_timeouts",
        "logon_failures",
        "messages_refused",
        "refusals",
        "refused_connections",
        "discovery_limited",
    }
)


def tone_of_server(server: MemberStatus) -> Tone:
    return _SERVERS.get(server.state, Tone.LATE)


def tone_of_lag(lag: Lag) -> Tone:
    return _LAGS[lag]


def tone_of_member(server: MemberStatus) -> Tone:
    """The gravest colour of a server and its replicas.

    That the authority of a partition is not in sight is no fault of the server.
    """
    known = (each for each in server.replicas if each.lag is not Lag.UNKNOWN)
    found = {tone_of_server(server), *(tone_of_replica(each) for each in known)}
    return next((tone for tone in (Tone.BAD, Tone.LATE) if tone in found), Tone.GOOD)


def tone_of_replica(replica: ReplicaStatus) -> Tone:
    if replica.lag is Lag.BEHIND and (replica.behind_s or 0.0) >= LONG_S:
        return Tone.BAD
    return _LAGS[replica.lag]


def tone_of_cell(cell: MatrixCell) -> Tone:
    """The colour of a partition at a server; amber if the server has no replica of it yet."""
    if cell.replica is not None:
        return tone_of_replica(cell.replica)
    return tone_of_server(cell.server) if cell.server.partitions is None else Tone.LATE


def tone_of_neighbour(neighbour: NeighbourStatus) -> Tone:
    """Amber if messages wait for a server without a session; sessions without traffic end."""
    return Tone.LATE if neighbour.queued and not neighbour.connected else Tone.PLAIN


def tone_of_counter(name: str, value: float) -> Tone:
    if not value:
        return Tone.PLAIN
    if name in _LOSSES:
        return Tone.BAD
    return Tone.LATE if name in _TROUBLES else Tone.PLAIN


def tone_of_verdict(verdict: HealthVerdict) -> Tone:
    """The colour of the sentence about the enterprise."""
    return _GRAVITIES.get(verdict.gravity, Tone.GOOD)
