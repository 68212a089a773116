"""The report's three sentences: the most serious findings first, each with the first thing to do.

Each rule looks at the content and returns a finding, or None if it has nothing to say. A rule that
finds nothing wrong says so: three sentences are always possible if there is any table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from mqis.pipeline.report.content import ReportContent, Rows
from mqis.pipeline.report.wording import ADVICE, CAUSES, DOUBTFUL, FORGED, duration, number_of

_SENTENCES = 3
#: A lag that people notice.
_LONG_MS = 60_000


class Urgency(IntEnum):
    """The most urgent first."""

    ACT = 0
    LOOK = 1
    FINE = 2


@dataclass(frozen=True, slots=True)
class ReportFinding:
    urgency: Urgency
    #: One sentence.
    sentence: str
    #: The first thing to do; empty if nothing is to be done.
    action: str = ""


Rule = Callable[[ReportContent], ReportFinding | None]


def findings(content: ReportContent) -> list[ReportFinding]:
    """At most three findings. Among equally urgent ones, the order of the rules decides."""
    made = sorted(_all(content), key=lambda finding: finding.urgency)
    return made[:_SENTENCES]


def _all(content: ReportContent) -> Iterator[ReportFinding]:
    for rule in _RULES:
        if (finding := rule(content)) is not None:
            yield finding


# --- the rules ------------------------------------------------------------------------------------


def _forgery(content: ReportContent) -> ReportFinding | None:
    rows = [row for row in content.tables.get("evidence", ()) if row["kind"] in FORGED]
    if not rows:
        return None
    names = _names(row["server"] for row in rows)
    return ReportFinding(
        Urgency.ACT,
        f"The journal of {names} is not what the server wrote: somebody may have changed it.",
        "keep the files as they are, find out who can write to them, and look at the table of "
        "evidence for the segments",
    )


def _divergence(content: ReportContent) -> ReportFinding | None:
    rows = content.tables.get("divergence")
    if rows is None:
        return None
    real = [row for row in rows if row["cause"] not in DOUBTFUL]
    if real:
        return _differing(content, real)
    if rows:
        doubtful = number_of(len(rows), "difference")
        cause = _most(row["cause"] for row in rows)
        text = f"{doubtful} between servers cannot be judged: the change is {CAUSES[cause]}."
        return ReportFinding(Urgency.LOOK, text, ADVICE[cause])
    return ReportFinding(
        Urgency.FINE, f"All {number_of(content.servers, 'server')} hold the same directory."
    )


def _differing(content: ReportContent, rows: Rows) -> ReportFinding:
    total = number_of(len(rows), "difference")
    server, on_it = Counter(row["server"] for row in rows).most_common(1)[0]
    cause = _most(row["cause"] for row in rows)
    text = (
        f"{total} between servers, {on_it:,} of them on {server}; most often the change was "
        f"{CAUSES[cause]}."
    )
    source, target = _way(rows, cause)
    way = f"between {source} and {target}: " if source and target else ""
    return ReportFinding(Urgency.ACT, text, f"{way}{ADVICE[cause]}")


def _way(rows: Rows, cause: str) -> tuple[str, str]:
    """The pair of servers between which most changes of this cause failed."""
    ways = Counter((row["source"] or "", row["target"] or "") for row in rows if _is(row, cause))
    return ways.most_common(1)[0][0]


def _is(row: object, cause: str) -> bool:
    return row["cause"] == cause  # type: ignore[index,no-any-return]


def _unreachable(content: ReportContent) -> ReportFinding | None:
    if not content.cut_pairs:
        return None
    pairs = number_of(content.cut_pairs, "pair")
    return ReportFinding(
        Urgency.ACT,
        f"{pairs} of sites, out of {content.pairs:,}, cannot send messages to each other.",
        "name a gate for each site and join the sites by links; 'mqis route' explains a pair",
    )


def _hygiene(content: ReportContent) -> ReportFinding | None:
    rows = content.tables.get("hygiene")
    if rows is None:
        return None
    if not rows:
        known = ", as far as the exports show" if content.tables.get("hygiene_limits") else ""
        text = f"The directory has no orphans, duplicates or queues open to everyone{known}."
        return ReportFinding(Urgency.FINE, text)
    check, count = Counter(row["check"] for row in rows).most_common(1)[0]
    example = next(row for row in rows if row["check"] == check)
    total = number_of(content.count("hygiene"), "object needs", "objects need")
    name = example["path"] or f"{example['type']} {example['id']}"
    text = f"{total} attention; most often ({count:,}) {example['explanation']}."
    return ReportFinding(Urgency.LOOK, text, f"start with {example['type']} {name}")


_SECOND = {
    "link": "add a second link for the sites of link {name}",
    "gate": "give the site of gate {name} a second gate",
}


def _single_failures(content: ReportContent) -> ReportFinding | None:
    rows = content.tables.get("what_if")
    if not rows:
        return None
    cutting = [row for row in rows if row["cut_off"]]
    if not cutting:
        return ReportFinding(Urgency.FINE, "No failure of a single link or gate cuts a site off.")
    worst = cutting[0]
    more = len(cutting) - 1
    others = f"; {number_of(more, 'other failure')} would do the same" if more else ""
    return ReportFinding(
        Urgency.LOOK,
        f"If {worst['kind']} {worst['name']} fails, {number_of(worst['cut_off'], 'pair')} of sites "
        f"{'is' if worst['cut_off'] == 1 else 'are'} cut off{others}.",
        _SECOND.get(worst["kind"], _SECOND["link"]).format(name=worst["name"]),
    )


def _gaps(content: ReportContent) -> ReportFinding | None:
    rows = [row for row in content.tables.get("gaps", ()) if row["kind"] == "gap"]
    certain = [row for row in rows if row["certain"]]
    if not certain:
        return None
    server = _most(row["server"] for row in certain)
    return ReportFinding(
        Urgency.LOOK,
        f"Replicas skipped changes in {number_of(len(certain), 'place')}, most often {server}.",
        f"see that {server} reaches its authority ('mqis doctor'), and repeat the report",
    )


def _margins(content: ReportContent) -> ReportFinding | None:
    rows = [row for row in content.tables.get("margins", ()) if row["margin"] < 0]
    if not rows:
        return None
    names = _names(row["psc"] for row in rows)
    return ReportFinding(
        Urgency.LOOK,
        f"{names} missed changes that the authority has purged, and has to copy everything again.",
        f"see that {names} can reach {rows[0]['authority']}",
    )


def _lag(content: ReportContent) -> ReportFinding | None:
    rows = content.tables.get("lag")
    if not rows:
        return None
    slowest = max(rows, key=lambda row: row["p95_ms"])
    way = f"from {slowest['origin']} to {slowest['server']}"
    text = duration(slowest["p95_ms"])
    if slowest["p95_ms"] < _LONG_MS:
        return ReportFinding(
            Urgency.FINE, f"95 of 100 changes reach every server within {text} (longest: {way})."
        )
    return ReportFinding(
        Urgency.LOOK,
        f"Changes take up to {text} {way}, in 95 of 100 cases.",
        f"look at the connection {way}, and at the queues of both ('mqis status')",
    )


def _input(content: ReportContent) -> ReportFinding | None:
    doubts = [row for row in content.tables.get("evidence", ()) if row["kind"] not in FORGED]
    unread = content.count("errors")
    if not (doubts or unread):
        return None
    parts = [number_of(unread, "place") + " could not be read"] if unread else []
    if doubts:
        kind = _most(row["kind"] for row in doubts).replace("_", " ")
        parts.append(
            f"{number_of(len(doubts), 'journal or export', 'journals or exports')} are "
            f"not complete or not in order (most often: {kind})"
        )
    return ReportFinding(
        Urgency.LOOK,
        f"The report does not see everything: {' and '.join(parts)}.",
        "fetch what the tables of evidence and read errors name, and repeat the report",
    )


_RULES: tuple[Rule, ...] = (
    _forgery,
    _divergence,
    _unreachable,
    _margins,
    _single_failures,
    _hygiene,
    _gaps,
    _lag,
    _input,
)


def _most(values: Iterator[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def _names(values: Iterator[str]) -> str:
    """Names in words: ``a``, ``a and b``, ``a, b and 3 others``."""
    names = sorted(set(values))
    if len(names) <= 2:
        return " and ".join(names)
    if len(names) == 3:
        return f"{names[0]}, {names[1]} and {names[2]}"
    return f"{names[0]}, {names[1]} and {len(names) - 2:,} others"
