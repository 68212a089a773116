"""The findings about a journal: faults, and facts that are normal and worth knowing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChainState(StrEnum):
    """The state of one part of a journal."""

    #: The end of the last segment is an unfinished write, as a crash leaves it.
    TORN = "torn"
    #: A record or a header is damaged.
    CORRUPT = "corrupt"
    #: A segment is not the one that the server sealed: its digest or its signature is wrong.
    TAMPERED = "tampered"
    #: The newest segments are signed with a key that is not the server's.
    FOREIGN = "foreign"
    #: A segment, some records or a snapshot are not there.
    MISSING = "missing"
    #: History begins at a snapshot: retention has deleted what lies before. Normal.
    PRUNED = "pruned"
    #: No signature: format version 1, or a server without a key. Normal.
    UNSIGNED = "unsigned"
    #: There is a signature, but no key to check it with: none is given, or the server has replaced
    #: it and a later signature covers the segment.
    UNCHECKED = "unchecked"

    @property
    def is_fault(self) -> bool:
        return self not in (ChainState.PRUNED, ChainState.UNSIGNED, ChainState.UNCHECKED)


@dataclass(frozen=True, slots=True)
class ChainFinding:
    """A fault or a fact about segments ``first`` to ``last``, which are numbers of segments."""

    state: ChainState
    #: The file that it was found in.
    source: str
    first: int
    last: int
    text: str

    @property
    def is_fault(self) -> bool:
        return self.state.is_fault

    def __str__(self) -> str:
        return f"{self.source}: {self.text}"

    def as_json(self) -> dict[str, object]:
        return {
            "state": self.state.value,
            "fault": self.is_fault,
            "file": self.source,
            "segments": [self.first, self.last],
            "text": self.text,
        }
