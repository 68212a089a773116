"""Damages the files of a journal: alters a record, and adds an unfinished write."""

from __future__ import annotations

from pathlib import Path

from mqis.lab.generate.faults import JournalDamage
from mqis.storage.journal.files import segments
from mqis.wire.journal import Whole, segment_header, walk

#: An offset in the header of a record, after its checksum.
_WITHIN = 60
_UNFINISHED = 90


def damage_journal(directory: Path, server: str) -> list[JournalDamage]:
    """Damages the last segment in both ways; returns the places."""
    path = list(segments(directory).values())[-1]
    data = bytearray(path.read_bytes())
    _, start = segment_header(bytes(data))
    found = [entry for entry in walk(bytes(data), start) if isinstance(entry, Whole)]
    victim, last = found[len(found) // 2], found[-1]
    data[victim.offset + _WITHIN] ^= 0xFF
    end = len(data)
    data += data[last.offset : last.offset + _UNFINISHED]
    path.write_bytes(data)
    return [
        JournalDamage(server, str(path), victim.offset, "corrupt"),
        JournalDamage(server, str(path), end, "torn"),
    ]
