"""The counters of a multiplexer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MultiplexerStatistics:
    """Counts since the start of the session."""

    boxcars_sent: int = 0
    messages_sent: int = 0
    boxcars_received: int = 0
    messages_received: int = 0
    #: Boxcars whose header was wrong.
    refused: int = 0
    #: Messages with an unknown tag or past the end, and all that follow in the boxcar.
    discarded: int = 0
    #: Messages that had no connection in the right state.
    ignored: int = 0
    #: Requests beyond the granted slots, for which the opener waits for ever (E-CMP-13).
    over_allocated: int = 0
