"""What a discovering client asks of its driver, and what it tells who waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.mqsd.reply import TopologyServerReply

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Send ``data`` once, to everybody on the network of this local address."""

    network: str
    data: bytes


# --- for who waits --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A request goes out on the network; its turn lasts until ``Passed`` or the end."""

    network: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply that counts. ``source`` is where it came from."""

    network: str
    source: str
    reply: TopologyServerReply


@dataclass(frozen=True, slots=True)
class Discarded:
    """A packet that does not count, and why."""

    network: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Nobody (else) answered on the network in time, or the request could not be sent."""

    network: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Get Directory Server List is complete.

    ``skipped``: an earlier run's result still stands, so no packet was sent. ``reason`` says why
    a run failed.
    """

    success: bool
    skipped: bool = False
    reason: str = ""


Event = Asked | Answered | Discarded | Passed | Finished
