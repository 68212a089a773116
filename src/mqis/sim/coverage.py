"""Coverage of runs: every kind of fault and every kind of decision should occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mqis.sim.steps import Falsehood, Trick

#: By the name under which the trace counts it: the label that a summary shows.
FAULTS: dict[str, str] = {
    "fault loss": "message lost",
    "fault duplicate": "message duplicated",
    "fault reorder": "messages reordered",
    "fault delay": "message delayed",
    "expired": "message expired",
    "fault cut one way": "line cut one way",
    "fault cut both ways": "line cut both ways",
    "fault isolate": "server isolated",
    "fault clog": "line stalled",
    "fault break": "connection broken",
    "fault crash before commit": "crash before commit",
    "fault crash after commit": "crash after commit",
    "fault crash amid effects": "crash during effects",
    "fault crash idle": "crash while idle",
    "fault commit": "commit failed",
    "fault restore replica": "replica restored",
    "fault restore authority": "authority restored",
    "late join": "server joins late",
    "fault restore again": "one backup restored twice",
    "fault retire": "site deleted with its server",
    "fault resettle": "site made again",
    "fault slip": "site deleted and undeleted",
    "fault promote": "BSC promoted",
    **{f"fault {trick}": f"stranger: {trick}" for trick in Trick},
    **{f"lie {falsehood}": f"lie: {falsehood}" for falsehood in Falsehood},
}
DECISIONS: dict[str, str] = {
    "undeleted": "undelete an object",
    "sent change_propagation": "propagate changes",
    "sent sync_request": "request synchronisation",
    "asked again": "repeat a request",
    "sent sync_reply": "reply with changes",
    "partial reply": "reply in parts",
    "sent already_purged": "reply already purged",
    "sync0": "full synchronisation",
    "sync0 complete": "full synchronisation done",
    "purge": "purge tombstones",
    "sent psc_ack": "acknowledge as PSC",
    "sent bsc_ack": "acknowledge as BSC",
    "sent change_request": "forward a change",
    "sent change_reply": "answer a forwarded change",
    "set aside": "quarantine an object",
    "refused": "refuse a message or change",
    "refused: the signature is wrong": "refuse a wrong signature",
    "refused: not signed": "refuse an unsigned message",
    "refused: duplicate": "drop a duplicate",
    "recovered": "authority recovered",
    "recovered with silence": "recovered, some silent",
}


def missing(counts: Counter[str], kinds: Mapping[str, str] = FAULTS | DECISIONS) -> list[str]:
    """The labels of faults and decisions that never occurred."""
    return [words for kind, words in kinds.items() if not counts[kind]]
