"""The condition of a store: whether it answers, and whether it is damaged.

Callers do not wait one after the other for a store that does not answer. From the first timeout on
every use fails at once, until the thread that watches the store gets an answer. A damaged store may
still be read, as far as possible, but is not written any more. Both are reported once, when found;
the calls that fail because of them are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from mqis.protocol.errors import DamagedStore, StoreUnavailable
from mqis.texts import clock, duration

#: The advice about damage. The server goes on read-only, so there is time for it.
_REPAIR = f"nothing more is written to it. Stop the server; {DamagedStore.ADVICE}"


#: The reason for an outage of which no details are known.
UNREACHABLE = "the database server cannot be reached"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a store cannot be used."""

    #: A text that anybody may read: without names of computers, databases or files.
    reason: str
    #: Seconds since the epoch.
    since: float = field(default_factory=time.time)
    #: False until the watching thread has confirmed the first call's timeout.
    confirmed: bool = True


def _silent(_text: str) -> None: ...


class StoreCondition:
    """The outage and the damage of one store. All methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        #: Called once for each trouble and its end; the text names databases and files.
        self.report: Callable[[str], None] = _silent
        self.outage: Trouble | None = None
        self.damage: Trouble | None = None
        #: The number of calls that failed at once because of a known trouble.
        self.refused = 0

    @property
    def trouble(self) -> str | None:
        """The trouble in words that anybody may read; None if there is none."""
        if self.outage is not None:
            at = clock(self.outage.since)
            return f"the store does not answer since {at}: {self.outage.reason}"
        if self.damage is not None:
            at = clock(self.damage.since)
            return f"the store is {self.damage.reason} (found at {at}): {_REPAIR}"
        return None

    # --- admitting calls --------------------------------------------------------------------------

    def admit_reader(self) -> None:
        """Raises ``StoreUnavailable`` while the store does not answer."""
        if self.outage is not None:
            self._refuse()

    def admit_writer(self) -> None:
        """Raises ``StoreUnavailable`` while the store does not answer, or once it is damaged."""
        if self.outage is not None or self.damage is not None:
            self._refuse()

    def _refuse(self) -> None:
        with self._lock:
            self.refused += 1
        raise StoreUnavailable(self.trouble or "the store was unavailable a moment ago; retry")

    # --- reporting --------------------------------------------------------------------------------

    def suspect_outage(self, reason: str) -> None:
        """Records that a call timed out; calls that are already waiting may go on waiting."""
        with self._lock:
            if self.outage is None:
                self.outage = Trouble(reason, confirmed=False)

    def report_outage(self, reason: str, detail: str) -> None:
        """Records that the store does not answer; only the report contains ``detail``."""
        with self._lock:
            known = self.outage
            # A server that hangs accepts no new connection either: that is the same outage.
            if known is not None and known.confirmed and reason in (known.reason, UNREACHABLE):
                return
            since = time.time() if known is None else known.since
            self.outage = Trouble(reason, since)
        self.report(f"the store does not answer, calls fail until it does: {detail}")

    def report_recovery(self) -> None:
        """Records that the store answers."""
        with self._lock:
            outage, self.outage = self.outage, None
        if outage is None:
            return
        lasted = duration(time.time() - outage.since)
        if outage.confirmed:
            detail = f"after {lasted}; calls refused since the start: {self.refused}"
            self.report(f"the store answers again, {detail}")
        else:
            self.report(f"the store was slow: {outage.reason}")

    def report_damage(self, detail: str, reason: str = "damaged") -> None:
        """Records that the store is damaged, or gone; only the report contains ``detail``."""
        with self._lock:
            if self.damage is not None:
                return
            self.damage = Trouble(reason)
        self.report(f"the store is {reason}: {detail}; {_REPAIR}")
