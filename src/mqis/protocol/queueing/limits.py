"""The timers of MS-MQQB, and limits on the resources of peers and the application."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.mqqb.baseheader import MAX_PACKET
from mqis.wire.mqqb.internal import DEFAULT_WINDOW

#: The TCP port of queue managers, and the UDP port at which they answer pings.
PORT, PING_PORT = 1801, 3527


@dataclass(frozen=True, slots=True)
class QueueingLimits:
    """The limits of a queue manager, on every resource that an attacker could exhaust."""

    # --- timers (MS-MQQB 3.1.2) -------------------------------------------------------------------
    connect_timeout_s: float = 60.0
    #: Seconds from the TCP connection to the end of session set-up.
    init_timeout_s: float = 60.0
    #: Seconds from an incoming TCP connection to its first packet.
    silence_timeout_s: float = 10.0
    retry_s: float = 5.0
    retry_max_s: float = 60.0
    #: AckTimeout that an initiator proposes, and the range that both sides keep to.
    ack_timeout_ms: int = 20_000
    min_ack_timeout_ms: int = 20_000
    max_ack_timeout_ms: int = 120_000
    min_recoverable_ack_timeout_ms: int = 500
    #: Seconds without a user message in either direction.
    idle_timeout_s: float = 300.0
    #: Seconds from the first byte of a packet to its last.
    packet_timeout_s: float = 300.0

    # --- sessions ---------------------------------------------------------------------------------
    window: int = DEFAULT_WINDOW
    #: Bytes in flight on one session; one message is always allowed.
    max_unacked_bytes: int = 16 * 1024 * 1024
    #: Received bytes after which an acknowledgement is sent at once.
    ack_bytes: int = 1024 * 1024
    max_packet: int = MAX_PACKET
    #: Accepted sessions; one more gets a refusal, and beyond ``max_connections`` is closed
    #: unread, unless a connection of an address that holds more is evicted (``guests``).
    max_sessions: int = 256
    max_connections: int = 512
    #: Accepted connections of one address, and those of them without a first packet.
    max_connections_per_address: int = 128
    max_waiting_per_address: int = 16
    #: Incomplete packets of all sessions together.
    max_buffered: int = 64 * 1024 * 1024

    # --- queues -----------------------------------------------------------------------------------
    max_destinations: int = 1024
    #: Messages of one destination, those in flight included.
    max_queued_messages: int = 20_000
    max_queued_bytes: int = 64 * 1024 * 1024
    #: Events that the application has not taken yet; beyond it no more data is read.
    max_events: int = 20_000
    max_event_bytes: int = 64 * 1024 * 1024

    # --- tables -----------------------------------------------------------------------------------
    duplicate_entries: int = 10_000
    duplicate_s: float = 1800.0
    #: Own messages that may still get a negative acknowledgement.
    sent_entries: int = 4096
    sent_bytes: int = 16 * 1024 * 1024
    #: Seconds after its lifetime that such a message is remembered.
    sent_grace_s: float = 300.0
