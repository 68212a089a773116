"""What is known of a store's condition: whether it answers, and whether it is damaged.

A store that does not answer is not asked again by everybody in turn, each waiting as long as the
one before: from the first timeout on, every use fails at once, until whoever watches the store has
an answer. A store that is damaged may still be read, as far as that goes, and is not written to
any more. Either is reported once, when it is found; the calls that it fails are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from mqis.protocol.errors import DamagedStore, StoreUnavailable

#: What to do about damage. A server that goes on is read alone, so there is time for it.
_REPAIR = f"nothing more is written to it. Stop the server; {DamagedStore.ADVICE}"


#: Why a store does not answer, where nothing more is known.
UNREACHABLE = "the database server cannot be reached"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a store cannot be used."""

    #: In words that anybody may read: no names of computers, databases or files.
    reason: str
    #: Seconds since the epoch.
    since: float = field(default_factory=time.time)
    #: Whether the store was asked again after the first call that had no answer.
    confirmed: bool = True


def _silent(_text: str) -> None: ...


class StoreCondition:
    """The troubles of one store. Any thread may tell and ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        #: Hears of each trouble once, and of its end; names of databases and files are in it.
        self.report: Callable[[str], None] = _silent
        self.outage: Trouble | None = None
        self.damage: Trouble | None = None
        #: Calls that failed at once because of a trouble that was known.
        self.refused = 0

    @property
    def trouble(self) -> str | None:
        """What is wrong, in words that anybody may read; None if nothing is."""
        if self.outage is not None:
            at = time.strftime("%H:%M:%S UTC", time.gmtime(self.outage.since))
            return f"the store does not answer since {at}: {self.outage.reason}"
        if self.damage is not None:
            at = time.strftime("%H:%M:%S UTC", time.gmtime(self.damage.since))
            return f"the store is damaged, as was found at {at}: {_REPAIR}"
        return None

    # --- asking -----------------------------------------------------------------------------------

    def admit_reader(self) -> None:
        """Raise ``StoreUnavailable`` while the store does not answer."""
        if self.outage is not None:
            self._refuse()

    def admit_writer(self) -> None:
        """Raise ``StoreUnavailable`` while the store does not answer, or once it is damaged."""
        if self.outage is not None or self.damage is not None:
            self._refuse()

    def _refuse(self) -> None:
        with self._lock:
            self.refused += 1
        raise StoreUnavailable(self.trouble or "the store could not be used a moment ago")

    # --- telling ----------------------------------------------------------------------------------

    def suspect(self, reason: str) -> None:
        """A call had no answer in time; calls that wait already may go on waiting."""
        with self._lock:
            if self.outage is None:
                self.outage = Trouble(reason, confirmed=False)

    def lost(self, reason: str, detail: str) -> None:
        """Tell that the store does not answer; ``detail`` goes to the report alone."""
        with self._lock:
            known = self.outage
            # A server that hangs takes no new connection either: that is the same outage.
            if known is not None and known.confirmed and reason in (known.reason, UNREACHABLE):
                return
            since = time.time() if known is None else known.since
            self.outage = Trouble(reason, since)
        self.report(f"the store does not answer, calls fail until it does: {detail}")

    def found(self) -> None:
        """Tell that the store answers."""
        with self._lock:
            outage, self.outage = self.outage, None
        if outage is None:
            return
        seconds = round(time.time() - outage.since, 1)
        if outage.confirmed:
            told = f"after {seconds} s; calls refused since the start: {self.refused}"
            self.report(f"the store answers again, {told}")
        else:
            self.report(f"the store was slow: {outage.reason}")

    def damaged(self, detail: str) -> None:
        """Tell that the store is damaged; ``detail`` goes to the report alone."""
        with self._lock:
            if self.damage is not None:
                return
            self.damage = Trouble("damaged")
        self.report(f"the store is damaged: {detail}; {_REPAIR}")
