"""Judges exports: whose they are, and from when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mqis.pipeline.evidence.findings import EvidenceFinding, EvidenceKind
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """One partition in the first line of an export."""

    server: str
    file: str
    partition: bytes
    owner: str
    last_seq: int


#: The numbers that journals reached, by server and partition.
Reached = Mapping[tuple[str, bytes], int]


def misnamed(
    states: Iterable[ExportedPartition],
    own: Collection[tuple[str, bytes]],
    made: Collection[tuple[str, bytes]],
) -> Iterator[EvidenceFinding]:
    """The exports of other servers than their file names say.

    ``own`` are the (file, partition) whose objects have properties that only the authority stores,
    ``made`` the (server, partition) of which the server's journal has changes of its own: a former
    authority keeps such properties.
    """
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for state in states:
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
            yield EvidenceFinding(EvidenceKind.MISNAMED_EXPORT, server, text, file)


def older(states: Collection[ExportedPartition], reached: Reached) -> Iterator[EvidenceFinding]:
    """The exports that were made before others: their servers' journals have later changes."""
    newest: dict[bytes, int] = defaultdict(int)
    for state in states:
        newest[state.partition] = max(newest[state.partition], state.last_seq)
    reported: set[str] = set()
    for state in sorted(states, key=lambda s: (s.server, s.partition)):
        had = reached.get((state.server, state.partition), 0)
        if state.server not in reported and state.last_seq < min(had, newest[state.partition]):
            reported.add(state.server)
            text = (
                f"the export ends at change {state.last_seq:,} of partition "
                f"{Guid(state.partition)}; other exports and the server's journal have later ones"
            )
            yield EvidenceFinding(EvidenceKind.OLDER_EXPORT, state.server, text, state.file)


def stranger(server: str, file: str, what: str) -> EvidenceFinding:
    text = f"no directory knows the server of this {what}, {server}; it is not used"
    return EvidenceFinding(EvidenceKind.STRANGER, server, text, file)
