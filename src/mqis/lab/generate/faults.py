"""Faults that are planted, and what whoever audits the enterprise is to find of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mqis.protocol.directory.objects import DirectoryObject

#: What goes wrong with one message, and so with one change; ``corrupted`` is not the message's
#: fault: everything arrives, and the replica holds something else.
MISHAPS = ("lost", "never_sent", "refused", "expired", "corrupted")
#: The ways in which a change can be missed.
DIFFERENCES = ("different", "missing", "extra")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to be found, at one server."""

    server: str
    #: ``missing``, ``extra`` or ``different``, as ``protocol.replication.convergence`` says.
    difference: str
    cause: str
    type: str
    id: str
    partition: str
    #: The change that did not get there; None where there is none.
    seq: int | None
    #: Where it went wrong.
    source: str | None
    target: str | None
    properties: tuple[int, ...] = ()
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A change that a server applied twice: no difference, but no good sign either."""

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
class Held:
    """What a replica holds in the place of what it should: None is nothing."""

    obj: DirectoryObject | None
