"""Judges exports: whose they are, and from when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mqis.findings import Finding
from mqis.pipeline.evidence.findings import EvidenceKind, evidence
from mqis.texts import counted
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """One partition in the first line of an export."""

    server: str
    file: str
    partition: bytes
    owner: str
    last_seq: int
    #: The server that the first line names; None: it names none.
    exporter: str | None = None

    @property
    def is_misnamed(self) -> bool:
        return self.exporter is not None and self.exporter.lower() != self.server.lower()


@dataclass(frozen=True, slots=True)
class ExportFile:
    """An export as one file; ``changes`` is the sum of its partitions' last numbers."""

    server: str
    file: str
    changes: int


#: The numbers that journals reached, by server and partition.
Reached = Mapping[tuple[str, bytes], int]


def misnamed(
    states: Iterable[ExportedPartition],
    own: Collection[tuple[str, bytes]],
    made: Collection[tuple[str, bytes]],
) -> Iterator[Finding]:
    """The exports of other servers than their file names say.

    An export says whose it is in its first line. One of version 1 does not. For it, ``own`` are the
    (file, partition) whose objects have properties that only the authority stores, ``made`` the
    (server, partition) of which the server's journal has changes of its own: a former authority
    keeps such properties.
    """
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    told: set[str] = set()
    for state in states:
        if state.exporter is not None:
            if state.is_misnamed and state.file not in told:
                told.add(state.file)
                text = (
                    f"the file is named after {state.server}, but its first line says that it is "
                    f"an export of {state.exporter}"
                )
                yield evidence(EvidenceKind.MISNAMED_EXPORT, state.server, text, state.file)
            continue
        is_own = (state.file, state.partition) in own
        if is_own and (state.server, state.partition) not in made and state.owner:
            owners[state.server, state.file].add(state.owner)
    for (server, file), named in sorted(owners.items()):
        if server.lower() not in {owner.lower() for owner in named}:
            whose = " or ".join(sorted(named))
            text = (
                f"the file is named after {server}, but it is an export of {whose}: it has "
                "properties that only that server stores"
            )
            yield evidence(EvidenceKind.MISNAMED_EXPORT, server, text, file)


def duplicates(exports: Iterable[ExportFile]) -> Iterator[Finding]:
    """The second exports of servers; the one with the later changes is used."""
    files: dict[str, dict[str, int]] = defaultdict(dict)
    for export in exports:
        files[export.server][export.file] = export.changes
    for server, numbers in sorted(files.items()):
        kept, *others = sorted(numbers, key=lambda file: (-numbers[file], file))
        for file in others:
            text = f"{kept} is an export of the same server; this one is not used"
            yield evidence(EvidenceKind.DUPLICATE_EXPORT, server, text, file)


def edited(server: str, file: str, reason: str) -> Finding:
    return evidence(EvidenceKind.EDITED_EXPORT, server, reason, file)


@dataclass(frozen=True, slots=True)
class DoubledLines:
    """The lines of an export that stand there twice; ``first`` and ``last`` are offsets."""

    server: str
    file: str
    count: int
    first: int
    last: int
    #: The identifier of the object in the first of them.
    id: bytes

    @property
    def finding(self) -> Finding:
        lines = counted(self.count, "line stands", "lines stand")
        text = (
            f"{lines} there twice, the first at byte {self.first:,}, with the identifier "
            f"{Guid(self.id)}; the file was edited, and what comes first is used"
        )
        kind, first, last = EvidenceKind.DOUBLED_LINES, self.first, self.last
        return evidence(kind, self.server, text, self.file, first=first, last=last)


def older(
    states: Collection[ExportedPartition], reached: Reached, newest: Mapping[bytes, int]
) -> Iterator[Finding]:
    """The exports that were made before others: their servers' journals have later changes.

    ``newest`` has the last number of each partition in all exports together.
    """
    reported: set[str] = set()
    for state in sorted(states, key=lambda s: (s.server, s.partition)):
        had = reached.get((state.server, state.partition), 0)
        if state.server not in reported and state.last_seq < min(had, newest[state.partition]):
            reported.add(state.server)
            text = (
                f"the export ends at change {state.last_seq:,} of partition "
                f"{Guid(state.partition)}; other exports and the server's journal have later ones"
            )
            yield evidence(EvidenceKind.OLDER_EXPORT, state.server, text, state.file)


def stranger(server: str, file: str, what: str) -> Finding:
    text = f"no directory knows the server of this {what}, {server}; it is not used"
    return evidence(EvidenceKind.STRANGER, server, text, file)
