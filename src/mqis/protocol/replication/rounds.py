"""Synchronisation in parts: a copy is incomplete until the last part is here (E73).

A reply holds each object under its last number. So a copy that has reached a number by some parts
of a reply lacks the objects that were changed once more behind it. Until the last part has come it
applies no single changes, announces no numbers and answers no requests, as in a full
synchronisation. The mark is in the store: a crash between two parts must not make it complete.
"""

from __future__ import annotations

from mqis.protocol.ports import View
from mqis.protocol.replication.work import Work
from mqis.wire.guid import Guid

FAMILY = "round"
_OPEN = b"open"


def begin(work: Work, partition: Guid) -> None:
    progress = work.memory.progress(partition)
    if not progress.incomplete:
        progress.incomplete = True
        work.tx.put_state(FAMILY, partition.raw, _OPEN)


def end(work: Work, partition: Guid) -> None:
    progress = work.memory.progress(partition)
    if progress.incomplete:
        progress.incomplete = False
        work.tx.drop_state(FAMILY, partition.raw)


def load(work: Work) -> None:
    for key, _ in work.tx.states(FAMILY):
        work.memory.progress(Guid(key)).incomplete = True


def is_open(view: View, partition: Guid) -> bool:
    """Returns whether parts of a reply are still to come, by the store alone."""
    return view.state(FAMILY, partition.raw) is not None
