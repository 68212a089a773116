"""Timeouts and limits (3.2.2, 3.4.1, 3.4.2; product notes 8, 32 and 35)."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.protocol.clock import pause_after


@dataclass(frozen=True, slots=True)
class CmpoSettings:
    """Timeouts and limits. The defaults are those of Windows where a note gives them."""

    #: Session Setup timer: CmCancelRpcAfter / 2.
    setup_s: float = 6.0
    #: Session Teardown timer.
    teardown_s: float = 10.0
    #: RPC Call timer: CmCancelRpcAfter.
    call_s: float = 12.0
    #: Session Setup Retry Count: ((8 + 1) / 2) * 3 in integers.
    retries: int = 12
    #: The back-off between retries, doubled each time. All retries fit into the setup timer; the
    #: specification defines no back-off.
    retry_s: float = 0.05
    longest_retry_s: float = 0.5
    #: Sessions at one time; anonymous callers may request them.
    max_sessions: int = 4096
    #: Sessions requested from one address, and those of them that are being set up.
    max_sessions_per_address: int = 1024
    max_setups_per_address: int = 64
    #: Calls of one partner that wait until its session is active.
    max_held: int = 8

    def pause_s(self, failures: int) -> float:
        """The back-off after this number of failures."""
        return pause_after(failures, self.retry_s, self.longest_retry_s)
