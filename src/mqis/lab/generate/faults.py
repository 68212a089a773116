"""The planted faults, and the differences that an audit has to find."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from mqis.protocol.directory.objects import DirectoryObject
from mqis.storage.journal.files import segments
from mqis.wire.journal import Whole, segment_header, walk

#: Faults of one message and so of one change; only ``corrupted`` is a fault of the replica: the
#: message arrives, and the replica holds something else.
MISHAPS = ("lost", "never_sent", "refused", "expired", "corrupted")
#: The differences that a missed change can cause.
DIFFERENCES = ("different", "missing", "extra")
#: Somewhere in the header of a record, behind its checksum.
_WITHIN = 60
_UNFINISHED = 90


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """One difference of one server that an audit has to find."""

    server: str
    #: ``missing``, ``extra`` or ``different``, as in ``protocol.replication.convergence``.
    difference: str
    cause: str
    type: str
    id: str
    partition: str
    #: The number of the change that the server missed; None if there is no such change.
    seq: int | None
    #: The step at which it failed.
    source: str | None
    target: str | None
    properties: tuple[int, ...] = ()
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A change that a server applied twice, which makes no difference but is a bad sign."""

    server: str
    partition: str
    seq: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Numbers that a server never applied although it has later ones."""

    server: str
    partition: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class JournalDamage:
    server: str
    file: str
    offset: int
    kind: str


@dataclass(slots=True)
class PlantedState:
    """The wrong object that a replica holds; None if it holds none."""

    obj: DirectoryObject | None


def damage_journal(directory: Path, server: str) -> list[JournalDamage]:
    """Changes a record of the last segment, and adds one whose write did not finish."""
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
