"""The findings about the input, which are the rows of the table ``evidence``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from mqis.findings import Finding, Gravity, Subject

#: A header may have any number of 64 bits; a column has one with a sign.
_MAX_NUMBER: Final = (1 << 63) - 1


class EvidenceKind(StrEnum):
    """The ways in which journals and exports fall short as evidence."""

    #: Records of a journal are missing and nothing is damaged there: a segment was removed.
    MISSING_RECORDS = "missing_records"
    #: The server's export has later changes than its journal.
    MISSING_END = "missing_end"
    #: Changes of the server are in no record, and no record is missing: made around the journal.
    MISSING_CHANGES = "missing_changes"
    #: A segment that is there twice; it is read once.
    DUPLICATE_SEGMENT = "duplicate_segment"
    #: Two different records of a server have the same number; one of them is not used.
    CONFLICTING_RECORDS = "conflicting_records"
    #: A segment is not what the server sealed, or its signature is wrong.
    TAMPERED = "tampered"
    #: The newest segments are signed with a key that is not the server's.
    FOREIGN = "foreign"
    #: Segments of the chain are not there.
    MISSING_SEGMENTS = "missing_segments"
    #: A sealed segment has other content than when an earlier run read it.
    CHANGED_SEGMENT = "changed_segment"
    #: Segments that an earlier run read are not there, and retention does not explain it.
    VANISHED_SEGMENTS = "vanished_segments"
    #: A journal or an export of a server that no directory knows; it is not used.
    STRANGER = "stranger"
    #: A segment file is not named after its number; it is read all the same.
    MISNAMED_SEGMENT = "misnamed_segment"
    #: The export of another server than its file name says; it is not used.
    MISNAMED_EXPORT = "misnamed_export"
    #: A second export of a server; it is not used.
    DUPLICATE_EXPORT = "duplicate_export"
    #: The lines of an export do not match its digest.
    EDITED_EXPORT = "edited_export"
    #: Lines of an export stand there twice; the first of them are used.
    DOUBLED_LINES = "doubled_lines"
    #: An export that was made before the others.
    OLDER_EXPORT = "older_export"
    #: The clock of a server was ahead of those of at least two thirds of the servers.
    CLOCK_AHEAD = "clock_ahead"
    #: The clock of a server was behind.
    CLOCK_BEHIND = "clock_behind"
    #: The clock of a server differs from others, and too few agree to tell who is right.
    CLOCKS_DISAGREE = "clocks_disagree"


#: Signs that somebody changed a journal.
FORGED = frozenset({EvidenceKind.TAMPERED, EvidenceKind.FOREIGN, EvidenceKind.CONFLICTING_RECORDS})


def evidence(
    kind: EvidenceKind,
    server: str,
    explanation: str,
    file: str | None = None,
    *,
    partition: str | None = None,
    first: int | None = None,
    last: int | None = None,
) -> Finding:
    """A finding about the input; the parameters are the columns of ``schemas.EVIDENCE``."""
    gravity = Gravity.ERROR if kind in FORGED else Gravity.WARNING
    about = [Subject("server", server)]
    if partition is not None:
        about.append(Subject("partition", None, partition))
    where, objects = file or "", tuple(about)
    return Finding(kind, gravity, explanation, where=where, objects=objects, first=first, last=last)


def evidence_row(finding: Finding) -> dict[str, Any]:
    """The row of ``schemas.EVIDENCE``, from which ``evidence`` makes the finding again."""
    server, *partition = finding.objects
    return {
        "kind": str(finding.check),
        "server": server.name,
        "explanation": finding.what,
        "file": finding.where or None,
        "partition": partition[0].id if partition else None,
        "first": _number(finding.first),
        "last": _number(finding.last),
    }


def _number(number: int | None) -> int | None:
    return None if number is None else min(number, _MAX_NUMBER)
