"""The words of the report: causes, kinds, advice and headings for people who run no server."""

from __future__ import annotations

import re

from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.transforms.causes import Cause
from mqis.protocol.replication.convergence import DifferenceKind
from mqis.wire.mqqb.properties import MessageClass

#: Causes as phrases that complete "the change was ...".
CAUSES: dict[str, str] = {
    Cause.NEVER_SENT: "never sent",
    Cause.QUEUED: "still waiting in the sender's queue",
    Cause.EXPIRED: "not delivered in time",
    Cause.LOST: "lost on the way",
    Cause.PENDING: "received, but an earlier change is missing",
    Cause.REFUSED: "refused by the receiver",
    Cause.CORRUPTED: "applied, and the copy was altered afterwards",
    Cause.AUTHORITY_CORRUPTED: "altered on the authority outside of its journal",
    Cause.EXPORT_OLDER: "made after one of the exports",
    Cause.EXPORT_DAMAGED: "in a damaged part of an export",
    Cause.FOREIGN: "never made by the authority",
    Cause.UNKNOWN: "not traceable: a journal is missing or damaged",
}
#: Causes that say more about the input than about the servers.
DOUBTFUL = frozenset({Cause.EXPORT_OLDER, Cause.EXPORT_DAMAGED, Cause.UNKNOWN})
_SEND_AGAIN = "set the values again on the authority ('mqis set'), which sends them once more"
_REACH = f"see that sender and receiver reach each other ('mqis doctor'), then {_SEND_AGAIN}"
_REBUILD = (
    "find out who can write to the server's store, and rebuild it from its authority ('mqis join' "
    "with an empty store)"
)
ADVICE: dict[str, str] = {
    Cause.NEVER_SENT: f"{_SEND_AGAIN}, and look for the sender's errors ('mqis logs')",
    Cause.QUEUED: "see that sender and receiver are up and reach each other ('mqis doctor')",
    Cause.EXPIRED: _REACH,
    Cause.LOST: _REACH,
    Cause.PENDING: "see that the receiver reaches its authority ('mqis doctor')",
    Cause.REFUSED: "read the receiver's reason in the table of differences",
    Cause.CORRUPTED: _REBUILD,
    Cause.AUTHORITY_CORRUPTED: "find out who can write to the authority's store, and restore it "
    "('mqis restore')",
    Cause.FOREIGN: _REBUILD,
    Cause.EXPORT_OLDER: "export all servers again at one time and repeat the report",
    Cause.EXPORT_DAMAGED: "export the servers again and repeat the report",
    Cause.UNKNOWN: "fetch the missing journals and repeat the report",
}
DIFFERENCES: dict[str, str] = {
    DifferenceKind.MISSING: "object is missing",
    DifferenceKind.DIFFERENT: "values differ",
    DifferenceKind.EXTRA: "object is left over",
}
CLOCKS = frozenset({EvidenceKind.CLOCK_AHEAD, EvidenceKind.CLOCK_BEHIND})
HEADINGS: dict[str, str] = {
    "acked_seq": "acknowledged up to",
    "certain": "certain",
    "changed": "pairs rerouted",
    "cut_off": "pairs cut off",
    "dearer_by": "added cost, all pairs",
    "worst": "added cost, worst pair",
    "first_seq": "first number",
    "last_seq": "last number",
    "advice": "what to do",
    "id": "identifier",
    "left_out": "findings left out",
    "max_ms": "longest, ms",
    "p50_ms": "half within, ms",
    "p95_ms": "95 % within, ms",
    "p99_ms": "99 % within, ms",
    "origin": "authority",
    "psc": "site controller",
    "purged_seq": "purged up to",
    "purge_state": "state",
    "sync_rounds": "synchronisations",
    "sync0_rounds": "full resynchronisations",
    "path": "name",
    "partition": "partition of",
    "messages_after": "messages after failure",
}
#: The tables at the end, and their headings.
TABLES = {
    "divergence": "All differences",
    "hygiene": "Objects that need attention",
    "hygiene_limits": "What these exports cannot show",
    "what_if": "Effects of single failures",
    "traffic": "Load of links and gates in numbers",
    "lag": "Delay by authority and server",
    "gaps": "Skipped and repeated changes",
    "margins": "Purged changes",
    "rounds": "Messages and synchronisations",
    "evidence": "Doubts about the input",
    "errors": "Read errors",
}
#: The plural of each object type in the inventory, in its order.
INVENTORY: dict[str, str] = {
    "site": "sites",
    "link": "links",
    "machine": "machines",
    "queue": "queues",
    "user": "users",
    "network": "networks",
}


_CLASS = re.compile(r"message class 0x([0-9A-Fa-f]{4})")
_CLASSES: dict[int, str] = {
    MessageClass.NACK_BAD_DST_Q: "the receiver has no such queue",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "not delivered in time",
    MessageClass.NACK_Q_EXCEED_QUOTA: "the receiver's queue is full",
    MessageClass.NACK_ACCESS_DENIED: "the receiver denied access",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "sent on too often",
    MessageClass.NACK_BAD_SIGNATURE: "the signature is wrong",
}


def heading(column: str) -> str:
    return HEADINGS.get(column, column.replace("_", " "))


def phrase(column: str, value: object) -> object:
    """The words for a value of a column, if it is a code."""
    if column == "cause":
        return CAUSES.get(str(value), value)
    if column == "difference":
        return DIFFERENCES.get(str(value), value)
    if column == "reason" and isinstance(value, str):
        return _CLASS.sub(_delivery, value)
    if column in ("kind", "check", "purge_state") and isinstance(value, str):
        return value.replace("_", " ")
    return value


def _delivery(match: re.Match[str]) -> str:
    return _CLASSES.get(int(match[1], 16), match[0])
