"""The findings about a journal: faults, and facts that are normal and worth knowing."""

from __future__ import annotations

from enum import StrEnum

from mqis.findings import Finding, Gravity


class ChainState(StrEnum):
    """The state of one part of a journal, which is the check of a finding about it."""

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


def chain_finding(state: ChainState, source: str, first: int, last: int, text: str) -> Finding:
    """A fault or a fact about segments ``first`` to ``last``, found in the file ``source``."""
    gravity = Gravity.ERROR if state.is_fault else Gravity.NOTE
    return Finding(state, gravity, text, where=source, first=first, last=last)
