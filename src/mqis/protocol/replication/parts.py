"""Sync replies in parts: a message holds so many changes and bytes, the rest follows (E54)."""

from __future__ import annotations

from collections.abc import Iterable

from mqis.protocol.ports import Change
from mqis.protocol.replication.changes import synchronized
from mqis.protocol.replication.work import Work
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.seqnum import SequenceNumber


def fitting(
    work: Work, changes: Iterable[Change], previous: SequenceNumber, purged_seq: SequenceNumber
) -> tuple[list[DirectoryChange], bool]:
    """Returns the first changes, as many as one message holds, and whether these are all.

    Each of them names the number before it; the first one names ``previous``.
    """
    settings = work.settings
    chosen: list[DirectoryChange] = []
    size = 0
    for found in changes:
        change = synchronized(found, previous, purged_seq)
        size += len(change.encoded)
        if chosen and (len(chosen) >= settings.max_changes or size > settings.max_bytes):
            return chosen, False
        chosen.append(change)
        previous = change.seq
    return chosen, True
