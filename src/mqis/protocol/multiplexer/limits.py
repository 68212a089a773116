"""Periods and sizes that MS-CMP leaves to implementations, and limits against abuse."""

from __future__ import annotations

from dataclasses import dataclass

#: The cost of a message besides its data: Python's objects for it.
QUEUED_OVERHEAD = 128
UNREAD_OVERHEAD = 512

#: NegotiateResources takes requests below 1000 (MS-CMPO 3.4.6.4).
MAX_REQUEST = 999


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of one session; ``Budget`` has those that all sessions of a process share."""

    # --- timers -----------------------------------------------------------------------------------
    #: Seconds without traffic after which a PING is sent.
    ping_interval_s: float = 60.0
    #: 3.1.6.1: a session without connections ends after this many intervals (E-CMP-19).
    idle_intervals: int = 5
    #: Without PINGs, only the next message shows that an idle partner is gone.
    pings: bool = True

    # --- slots for connections --------------------------------------------------------------------
    #: Slots that a request asks for, unless more connections are waiting already.
    request_slots: int = 64
    #: With fewer free slots, more are requested in advance.
    slots_ahead: int = 8
    #: Slots that the partner gets: per request, and in total.
    max_grant: int = 1000
    max_incoming: int = 32_768
    #: Answers that wait to be sent. A partner that waits for an answer before it reuses an id never
    #: causes more than two for each slot, which are always allowed; others get this many.
    max_unsent_answers: int = 8192

    # --- waiting to be sent -----------------------------------------------------------------------
    connection_queued_bytes: int = 1024 * 1024
    session_queued_bytes: int = 8 * 1024 * 1024

    # --- waiting to be read: beyond it the partner's call does not return -------------------------
    connection_unread_bytes: int = 1024 * 1024
    session_unread_bytes: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.ping_interval_s <= 0 or self.idle_intervals < 1:
            raise ValueError("ping_interval_s and idle_intervals have to be positive")
        if not 1 <= self.request_slots <= MAX_REQUEST:
            raise ValueError(f"request_slots has to lie in 1..{MAX_REQUEST}")

    @property
    def idle_s(self) -> float:
        return self.ping_interval_s * self.idle_intervals
