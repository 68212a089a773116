"""The reasons for which replication refuses a message, or a change in one.

A refusal carries one of these and a text. Programs use the reason: it labels a metric and decides
how loud the log line is. The text is for people; it names servers and numbers that came over the
network, so no program may read anything out of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class RefusalReason(StrEnum):
    """The values are labels of ``mqis_replication_refusals_total``."""

    MALFORMED = "malformed"
    UNREACHABLE = "unreachable"
    IMPERSONATION = "impersonation"
    STRANGER = "stranger"
    REPLAYED = "replayed"
    CLOCK = "clock"
    OWN_PARTITION = "own_partition"
    WRONG_SOURCE = "wrong_source"
    UNKNOWN_PARTITION = "unknown_partition"
    UNSOLICITED = "unsolicited"
    INCONSISTENT = "inconsistent"
    OUTDATED = "outdated"
    #: The directory refused a change; the text is the directory's.
    NOT_APPLIED = "not_applied"


#: Reasons that also occur among well-behaved servers: messages cross each other, or come late.
HARMLESS = frozenset(
    {
        RefusalReason.UNSOLICITED,
        RefusalReason.OUTDATED,
        RefusalReason.UNKNOWN_PARTITION,
        RefusalReason.UNREACHABLE,
        RefusalReason.NOT_APPLIED,
    }
)


class Objection(NamedTuple):
    """The arguments of a refusal, from a function that only checks."""

    reason: RefusalReason
    text: str
