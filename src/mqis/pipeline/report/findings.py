"""The report's three sentences: the most serious findings first, each with the first thing to do.

Each rule looks at the content and yields a finding, or none if it has nothing to say. A rule that
finds nothing wrong says so: three sentences are always possible if there is any table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from mqis.findings import Finding, Gravity
from mqis.pipeline.evidence.findings import FORGED
from mqis.pipeline.report.content import ReportContent, Rows
from mqis.pipeline.report.wording import ADVICE, CAUSES, DOUBTFUL
from mqis.texts import MOST_NAMES, agreeing, counted, duration, joined

_SENTENCES = 3
#: A lag that people notice.
_LONG_MS = 60_000


Found = Iterator[Finding]
_Value = TypeVar("_Value")


def findings(content: ReportContent) -> list[Finding]:
    """At most three findings. Among equally urgent ones, the order of the rules decides."""
    made = (finding for rule in _RULES for finding in rule(content))
    return sorted(made, key=lambda finding: -finding.gravity)[:_SENTENCES]


# --- the rules ------------------------------------------------------------------------------------


def _forgery(content: ReportContent) -> Found:
    if rows := [row for row in content.tables.get("evidence", ()) if row["kind"] in FORGED]:
        names = joined(sorted({row["server"] for row in rows}), MOST_NAMES)
        yield Finding(
            "evidence",
            Gravity.ERROR,
            f"The journal of {names} is not what the server wrote: somebody may have changed it.",
            "keep the files as they are, find out who can write to them, and look at the table of "
            "evidence for the segments",
        )


def _divergence(content: ReportContent) -> Found:
    rows = content.tables.get("divergence")
    if rows is None:
        return
    if real := [row for row in rows if row["cause"] not in DOUBTFUL]:
        yield _differing(real, content.count("divergence"))
    elif rows:
        doubtful = counted(content.count("divergence"), "difference")
        cause = _most(row["cause"] for row in rows)
        text = f"{doubtful} between servers cannot be judged: the change is {CAUSES[cause]}."
        yield Finding("divergence", Gravity.WARNING, text, ADVICE[cause])
    else:
        text = f"All {counted(content.servers, 'server')} hold the same directory."
        yield Finding("divergence", Gravity.OK, text)


def _differing(rows: Rows, total: int) -> Finding:
    """The finding about ``total`` differences; ``rows`` are those that the input explains."""
    told = f"{counted(total, 'difference')} between servers"
    told += f"; the input explains {len(rows):,}" if len(rows) < total else ""
    server, on_it = Counter(row["server"] for row in rows).most_common(1)[0]
    cause = _most(row["cause"] for row in rows)
    text = f"{told}, {on_it:,} of them on {server}; most often the change was {CAUSES[cause]}."
    # The pair of servers between which most changes of this cause failed.
    source, target = _most((r["source"], r["target"]) for r in rows if r["cause"] == cause)
    way = f"between {source} and {target}: " if source and target else ""
    return Finding("divergence", Gravity.ERROR, text, f"{way}{ADVICE[cause]}")


def _unreachable(content: ReportContent) -> Found:
    if content.cut_pairs:
        pairs = counted(content.cut_pairs, "pair")
        yield Finding(
            "routes",
            Gravity.ERROR,
            f"{pairs} of sites, out of {content.pairs:,}, cannot send messages to each other.",
            "name a gate for each site and join the sites by links; 'mqis route' explains a pair",
        )


def _hygiene(content: ReportContent) -> Found:
    rows = content.tables.get("hygiene")
    if rows is None:
        return
    if not rows:
        known = ", as far as the exports show" if content.tables.get("hygiene_limits") else ""
        text = f"The directory has no orphans, duplicates or queues open to everyone{known}."
        yield Finding("hygiene", Gravity.OK, text)
        return
    check, count = Counter(row["check"] for row in rows).most_common(1)[0]
    example = next(row for row in rows if row["check"] == check)
    total = counted(content.count("hygiene"), "object needs", "objects need")
    name = example["path"] or f"{example['type']} {example['id']}"
    text = f"{total} attention; most often ({count:,}) {example['explanation']}."
    yield Finding("hygiene", Gravity.WARNING, text, f"start with {example['type']} {name}")


_SECOND = {
    "link": "add a second link for the sites of link {name}",
    "gate": "give the site of gate {name} a second gate",
}


def _single_failures(content: ReportContent) -> Found:
    rows = content.tables.get("what_if")
    if not rows:
        return
    cutting = [row for row in rows if row["cut_off"]]
    if not cutting:
        yield Finding("what_if", Gravity.OK, "No failure of a single link or gate cuts a site off.")
        return
    worst = cutting[0]
    more = len(cutting) - 1
    others = f"; {counted(more, 'other failure')} would do the same" if more else ""
    yield Finding(
        "what_if",
        Gravity.WARNING,
        f"If {worst['kind']} {worst['name']} fails, {counted(worst['cut_off'], 'pair')} of sites "
        f"{agreeing(worst['cut_off'], 'is', 'are')} cut off{others}.",
        _SECOND.get(worst["kind"], _SECOND["link"]).format(name=worst["name"]),
    )


def _gaps(content: ReportContent) -> Found:
    rows = (row for row in content.tables.get("gaps", ()) if row["kind"] == "gap")
    if certain := [row for row in rows if row["certain"]]:
        server = _most(row["server"] for row in certain)
        places = counted(len(certain), "place")
        yield Finding(
            "gaps",
            Gravity.WARNING,
            f"Replicas skipped changes in {places}, most often {server}.",
            f"see that {server} reaches its authority ('mqis doctor'), and repeat the report",
        )


def _margins(content: ReportContent) -> Found:
    if rows := [row for row in content.tables.get("margins", ()) if row["margin"] < 0]:
        names = joined(sorted({row["psc"] for row in rows}), MOST_NAMES)
        text = "missed changes that the authority has purged, and has to copy everything again."
        action = f"see that {names} can reach {rows[0]['authority']}"
        yield Finding("margins", Gravity.WARNING, f"{names} {text}", action)


def _healed(content: ReportContent) -> Found:
    """Servers that were away for too long, and have copied a partition as a whole since."""
    rows = content.tables.get("rounds", ())
    told = {(row["peer"], row["server"]) for row in rows if row["already_purged"]}
    copied = {(row["server"], row["peer"]): row["sync0_rounds"] for row in rows}
    for server, source in sorted(told):
        if count := copied.get((server, source)):
            yield Finding(
                "rounds",
                Gravity.OK,
                f"{server} missed changes that {source} had purged, and has copied everything "
                f"since ({counted(count, 'full synchronisation')}).",
            )


def _lag(content: ReportContent) -> Found:
    rows = content.tables.get("lag")
    if not rows:
        return
    slowest = max(rows, key=lambda row: row["p95_ms"])
    way = f"from {slowest['origin']} to {slowest['server']}"
    text = duration(slowest["p95_ms"] / 1000)
    if slowest["p95_ms"] < _LONG_MS:
        fine = f"95 of 100 changes reach every server within {text} (longest: {way})."
        yield Finding("lag", Gravity.OK, fine)
        return
    yield Finding(
        "lag",
        Gravity.WARNING,
        f"Changes take up to {text} {way}, in 95 of 100 cases.",
        f"look at the connection {way}, and at the queues of both ('mqis status')",
    )


def _input(content: ReportContent) -> Found:
    doubts = [row for row in content.tables.get("evidence", ()) if row["kind"] not in FORGED]
    unread = content.count("errors")
    parts = [counted(unread, "place") + " could not be read"] if unread else []
    if doubts:
        kind = _most(row["kind"] for row in doubts).replace("_", " ")
        parts.append(
            f"{counted(len(doubts), 'journal or export', 'journals or exports')} are "
            f"not complete or not in order (most often: {kind})"
        )
    if parts:
        yield Finding(
            "evidence",
            Gravity.WARNING,
            f"The report does not see everything: {joined(parts)}.",
            "fetch what the tables of evidence and read errors name, and repeat the report",
        )


_RULES: tuple[Callable[[ReportContent], Found], ...] = (
    _forgery,
    _divergence,
    _healed,
    _unreachable,
    _margins,
    _single_failures,
    _hygiene,
    _gaps,
    _lag,
    _input,
)


def _most(values: Iterator[_Value]) -> _Value:
    return Counter(values).most_common(1)[0][0]
