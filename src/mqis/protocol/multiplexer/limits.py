"""Periods and sizes that MS-CMP leaves to implementations, and what strangers may drive up."""

from __future__ import annotations

from dataclasses import dataclass

#: What a message costs besides its data: what Python keeps around it.
QUEUED_OVERHEAD = 128
UNREAD_OVERHEAD = 512

#: NegotiateResources takes requests below 1000 (MS-CMPO 3.4.6.4).
MAX_REQUEST = 999


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one session. What all sessions of a process share is a ``Budget``."""

    # --- timers -----------------------------------------------------------------------------------
    #: Silence after which a PING goes out.
    ping_interval_s: float = 60.0
    #: 3.1.6.1: a session without connections ends after so many intervals (E-CMP-19).
    idle_intervals: int = 5
    #: Without PINGs the death of an idle partner is noticed by the next message only.
    pings: bool = True

    # --- slots for connections --------------------------------------------------------------------
    #: How many a request asks for, unless more connections are waiting already.
    request_slots: int = 64
    #: With fewer free ones more are asked for, before a connection has to wait.
    slots_ahead: int = 8
    #: What the partner gets: at once, and altogether.
    max_grant: int = 1000
    max_incoming: int = 32_768
    #: Answers that wait to be sent. A partner that waits for answers before it uses an id again has
    #: two for each slot at most, and may have those; one that does not has these.
    max_unsent_answers: int = 8192

    # --- waiting to be sent -----------------------------------------------------------------------
    connection_queued_bytes: int = 1024 * 1024
    session_queued_bytes: int = 8 * 1024 * 1024

    # --- waiting to be read: beyond it the partner's call does not return -------------------------
    connection_unread_bytes: int = 1024 * 1024
    session_unread_bytes: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.ping_interval_s <= 0 or self.idle_intervals < 1:
            raise ValueError("the idle period has to be longer than nothing")
        if not 1 <= self.request_slots <= MAX_REQUEST:
            raise ValueError(f"request_slots has to lie in 1..{MAX_REQUEST}")

    @property
    def idle_s(self) -> float:
        return self.ping_interval_s * self.idle_intervals
