"""What runs are to have met: every kind of fault, and what machines decide under them."""

from __future__ import annotations

from collections import Counter

from mqis.sim.steps import Falsehood, Trick

#: By what the trace counts it as.
FAULTS: dict[str, str] = {
    "fault loss": "message lost",
    "fault duplicate": "message twice",
    "fault reorder": "message overtaken",
    "fault delay": "message late",
    "expired": "message expired",
    "fault cut one way": "line cut one way",
    "fault cut both ways": "line cut both ways",
    "fault isolate": "server cut off",
    "fault clog": "line clogged",
    "fault break": "connection broken",
    "fault crash before commit": "crash before commit",
    "fault crash after commit": "crash after commit",
    "fault crash amid effects": "crash amid effects",
    "fault crash idle": "crash at rest",
    "fault commit": "commit refused",
    "fault restore replica": "replica from a backup",
    "fault restore authority": "authority from a backup",
    "late join": "server joins amid faults",
    **{f"fault {trick}": f"stranger: {trick}" for trick in Trick},
    **{f"lie {falsehood}": f"lie: {falsehood}" for falsehood in Falsehood},
}
DECISIONS: dict[str, str] = {
    "sent change_propagation": "propagate changes",
    "sent sync_request": "ask for what is missing",
    "asked again": "ask again",
    "sent sync_reply": "answer with changes",
    "partial reply": "answer in parts",
    "sent already_purged": "answer that it is purged",
    "sync0": "full synchronisation",
    "sync0 complete": "full synchronisation done",
    "purge": "forget tombstones",
    "sent psc_ack": "acknowledge as PSC",
    "sent bsc_ack": "acknowledge as BSC",
    "sent change_request": "forward a change",
    "sent change_reply": "answer a forwarded change",
    "set aside": "set an object aside",
    "refused": "refuse a message or change",
    "refused: the signature is wrong": "refuse a wrong signature",
    "refused: not signed": "refuse what is not signed",
    "refused: duplicate": "drop a repetition",
    "recovered": "authority back in service",
    "recovered with silence": "the same, some silent",
}


def missing(counts: Counter[str]) -> list[str]:
    """What was never met."""
    return [words for kind, words in (FAULTS | DECISIONS).items() if not counts[kind]]
