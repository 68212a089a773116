"""The effects of a discovery client for its driver, and its events for the application."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.mqsd.discovery_packet import TopologyServerReply

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tells the driver to broadcast ``data`` once on the network of this local address."""

    network: str
    data: bytes


# --- for the application --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestBroadcast:
    """A request is sent on the network; its turn lasts until ``Passed`` or the end."""

    network: str


@dataclass(frozen=True, slots=True)
class ServerAnswered:
    """A valid reply; ``source`` is the address of its sender."""

    network: str
    source: str
    reply: TopologyServerReply


@dataclass(frozen=True, slots=True)
class Discarded:
    """A packet that was ignored, and the reason."""

    network: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passed:
    """No (further) server answered on the network in time, or the request could not be sent."""

    network: str
    reason: str


@dataclass(frozen=True, slots=True)
class ServerListComplete:
    """Get Directory Server List is complete.

    ``skipped``: an earlier run's result is still valid, so no packet was sent. ``reason``: the
    reason that a run failed.
    """

    success: bool
    skipped: bool = False
    reason: str = ""


Event = RequestBroadcast | ServerAnswered | Discarded | Passed | ServerListComplete
