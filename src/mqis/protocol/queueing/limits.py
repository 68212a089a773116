"""Timers of MS-MQQB, and what peers and the application may take."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.mqqb.baseheader import MAX_PACKET
from mqis.wire.mqqb.internal import DEFAULT_WINDOW


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of a queue manager. Every number that a stranger could drive up stands here."""

    # --- timers (MS-MQQB 3.1.2) -------------------------------------------------------------------
    connect_timeout_s: float = 60.0
    #: From the TCP connection to the end of session set-up.
    init_timeout_s: float = 60.0
    #: From the TCP connection to the first packet of somebody who connected.
    silence_timeout_s: float = 10.0
    retry_s: float = 5.0
    retry_max_s: float = 60.0
    #: AckTimeout that an initiator proposes, and the range that both sides keep to.
    ack_timeout_ms: int = 20_000
    min_ack_timeout_ms: int = 20_000
    max_ack_timeout_ms: int = 120_000
    min_recoverable_ack_timeout_ms: int = 500
    #: Without a user message either way.
    idle_timeout_s: float = 300.0
    #: From the first byte of a packet to its last.
    packet_timeout_s: float = 300.0

    # --- sessions ---------------------------------------------------------------------------------
    window: int = DEFAULT_WINDOW
    #: In flight on one session; one message may always be.
    max_unacked_bytes: int = 16 * 1024 * 1024
    #: Received bytes after which an acknowledgement goes out at once.
    ack_bytes: int = 1024 * 1024
    max_packet: int = MAX_PACKET
    #: Accepted sessions; one more is refused in words, and from ``max_connections`` on unread,
    #: unless an address that holds more gives way (``guests``).
    max_sessions: int = 256
    max_connections: int = 512
    #: Accepted connections of one address, and those of them without a first packet.
    max_connections_per_address: int = 128
    max_waiting_per_address: int = 16
    #: Incomplete packets of all sessions together.
    max_buffered: int = 64 * 1024 * 1024

    # --- queues -----------------------------------------------------------------------------------
    max_destinations: int = 1024
    #: Of one destination, those in flight included.
    max_queued_messages: int = 20_000
    max_queued_bytes: int = 64 * 1024 * 1024
    #: What the application has not taken yet; beyond it nothing more is read.
    max_events: int = 20_000
    max_event_bytes: int = 64 * 1024 * 1024

    # --- tables -----------------------------------------------------------------------------------
    duplicate_entries: int = 10_000
    duplicate_s: float = 1800.0
    #: Own messages that a negative acknowledgement may still come for.
    sent_entries: int = 4096
    sent_bytes: int = 16 * 1024 * 1024
    #: How long after its lifetime such a message is remembered.
    sent_grace_s: float = 300.0
