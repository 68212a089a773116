"""The planted faults, and the differences that an audit has to find."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mqis.protocol.directory.objects import DirectoryObject

#: Faults of one message and so of one change; only ``corrupted`` is a fault of the replica: the
#: message arrives, and the replica holds something else.
MISHAPS = ("lost", "never_sent", "refused", "expired", "corrupted")
#: The differences that a missed change can cause.
DIFFERENCES = ("different", "missing", "extra")


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
    """A place in a journal or an export that cannot be read."""

    server: str
    file: str
    offset: int
    kind: str


@dataclass(frozen=True, slots=True)
class PlantedEvidence:
    """A fault of the journals and exports themselves, as the table ``evidence`` has to show it."""

    kind: str
    server: str
    file: str | None = None
    partition: str | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class PlantedHygiene:
    """A fault of the directory itself, as ``mqis check`` has to show it."""

    check: str
    type: str
    id: str


@dataclass(slots=True)
class PlantedState:
    """The wrong object that a replica holds; None if it holds none."""

    obj: DirectoryObject | None
