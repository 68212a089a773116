"""Times and counts (3.2.2, 3.4.1, 3.4.2; product notes 8, 32 and 35)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults are those of Windows where a note gives them."""

    #: Session Setup timer: CmCancelRpcAfter / 2.
    setup_s: float = 6.0
    #: Session Teardown timer.
    teardown_s: float = 10.0
    #: RPC Call timer: CmCancelRpcAfter.
    call_s: float = 12.0
    #: Session Setup Retry Count: ((8 + 1) / 2) * 3 in integers.
    retries: int = 12
    #: Between a failed call and the next, twice as long each time. All retries fit into the setup
    #: timer; the specification names no pause.
    retry_s: float = 0.05
    longest_retry_s: float = 0.5
    #: Sessions at one time: strangers may ask for them.
    max_sessions: int = 4096
    #: Of those, that callers from one address asked for, and of these, that are being set up.
    max_sessions_per_address: int = 1024
    max_setups_per_address: int = 64
    #: Calls of one partner that wait until its session is active.
    max_held: int = 8

    def pause_s(self, failures: int) -> float:
        """How long to wait after so many failures."""
        return min(self.retry_s * (1 << min(failures - 1, 16)), self.longest_retry_s)
