"""Routes and their explanations as text lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from mqis.protocol.routing.breakage import Breakage
from mqis.protocol.routing.explain import (
    Alternative,
    Contest,
    ExplainStep,
    Explanation,
    ObjectNames,
)
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import counted
from mqis.wire.guid import Guid

#: A text, and its style if it has one.
Line = tuple[str] | tuple[str, str]


def _hops(found: Explanation) -> int:
    return sum(step.next is not None for step in found.steps)


def title(found: Explanation, names: ObjectNames) -> str:
    """The title of a route: its ends, hops and cost."""
    ends = f"{names.machine(found.source)} to {names.machine(found.destination)}"
    hops = _hops(found)
    text = f"{ends}: {counted(hops, 'hop')}, cost {found.cost}"
    return text if found.breakage is None else f"{ends}: no route"


def _crossing_text(step: ExplainStep, names: ObjectNames) -> str:
    crossing = step.crossing
    if crossing is None:
        return ""
    ends = f"{names.site(crossing.from_site)} - {names.site(crossing.to_site)}"
    described = names.link_description(crossing.link)
    return f"  over {ends}{f', {described}' if described else ''}, cost {crossing.cost}"


def summary(found: Explanation, names: ObjectNames) -> Iterator[Line]:
    """Yields a title and one line per hop."""
    yield title(found, names), "bold"
    for step in found.steps:
        if step.next is not None:
            hop = f"{names.machine(step.machine)} -> {names.machine(step.next)}"
            yield (f"  {hop}{_crossing_text(step, names)}",)


def explained(found: Explanation, names: ObjectNames) -> Iterator[Line]:
    """Yields every step: its questions, rule and link, and the rejected alternatives."""
    yield title(found, names), "bold"
    for number, step in enumerate(found.steps, 1):
        yield f"{number}. {heading(step, names)}", "cyan"
        for kind, text in reasons(step, names):
            before, style = _PREFIXES[kind]
            yield (f"{before}{text}",) if style is None else (f"{before}{text}", style)


class LineReason(Enum):
    """The kinds of lines about a step."""

    YES = "yes"
    NO = "no"
    NEXT = "next"
    COST = "cost"
    LOST = "lost"


_PREFIXES: dict[LineReason, tuple[str, str | None]] = {
    LineReason.YES: ("   yes ", "dim"),
    LineReason.NO: ("   no  ", "dim"),
    LineReason.NEXT: ("   -> ", None),
    LineReason.COST: ("      ", None),
    LineReason.LOST: ("      not ", "dim"),
}


def heading(step: ExplainStep, names: ObjectNames) -> str:
    """The machine that decides, and its rule."""
    return f"{names.machine(step.machine)} {step.decision.rule.value}"


def reasons(step: ExplainStep, names: ObjectNames) -> Iterator[tuple[LineReason, str]]:
    """Yields questions with answers, the next hop, the cost, and the rejected alternatives."""
    for question, answer in step.decision.answers:
        yield LineReason.YES if answer else LineReason.NO, question.value
    if step.next is not None:
        yield LineReason.NEXT, f"{names.machine(step.next)}{_crossing_text(step, names)}"
    if step.decision.row is not None:
        row = step.decision.row
        ends = names.site(row.destination), names.site(row.next_hop)
        yield LineReason.COST, f"{row.distance} to {ends[0]} by way of {ends[1]}"
    for alternative in step.alternatives:
        yield LineReason.LOST, _rejection(alternative, names)


def _rejection(alternative: Alternative, names: ObjectNames) -> str:
    subject = _subject(alternative, names)
    if alternative.contest is Contest.MACHINE:
        return f"{subject}: it comes later in the list, and is tried next"
    cost = f"cost {alternative.cost}"
    if alternative.tied:
        return f"{subject}: {cost}, a tie that the smaller GUID wins"
    return f"{subject}: {cost}, {alternative.lost_by} more"


def _subject(alternative: Alternative, names: ObjectNames) -> str:
    if alternative.contest is Contest.LINK:
        return f"link {names.link(alternative.subject)}"
    if alternative.contest is Contest.MACHINE:
        return f"machine {names.machine(alternative.subject)}"
    if alternative.contest is Contest.SITE:
        return f"its other site {names.site(alternative.subject)}"
    return "by way of " + " - ".join(names.site(site) for site in alternative.path)


def blame(found: Explanation, names: ObjectNames) -> Iterator[Line]:
    """Yields the reason why there is no route, and its causes."""
    if found.breakage is not None:
        yield f"no further: {names.sentence(found.breakage)}", "red"
        for cause in found.breakage.causes:
            yield (f"  {names.sentence(cause)}",)


# --- JSON -----------------------------------------------------------------------------------------


def as_json(
    found: Explanation, snapshot: Snapshot, before: Explanation | None, removed: Sequence[Guid]
) -> dict[str, object]:
    """A route as plain values; ``before`` is the route with the removed links."""
    parts = _JsonParts(snapshot)
    return {
        "source": parts.machine(found.source),
        "destination": parts.machine(found.destination),
        "reachable": found.breakage is None,
        "cost": found.cost,
        "hops": _hops(found),
        "steps": [parts.step(step) for step in found.steps],
        "breakage": None if found.breakage is None else parts.breakage(found.breakage),
        "without": [str(link) for link in removed],
        "before": None
        if before is None
        else {
            "reachable": before.breakage is None,
            "cost": before.cost,
            "machines": [parts.machine(machine) for machine in before.machines],
        },
    }


class _JsonParts:
    def __init__(self, snapshot: Snapshot) -> None:
        self._names = ObjectNames(snapshot)

    def machine(self, guid: Guid) -> dict[str, str]:
        return {"id": str(guid), "name": self._names.machine(guid)}

    def site(self, guid: Guid) -> dict[str, str]:
        return {"id": str(guid), "name": self._names.site(guid)}

    def step(self, step: ExplainStep) -> dict[str, object]:
        decision, crossing = step.decision, step.crossing
        return {
            "machine": self.machine(step.machine),
            "rule": decision.rule.name.lower(),
            "answers": {question.name.lower(): answer for question, answer in decision.answers},
            "candidates": [self.machine(hop) for hop in decision.hops],
            "next": None if step.next is None else self.machine(step.next),
            "distance": None if decision.row is None else decision.row.distance,
            "crossing": None
            if crossing is None
            else {
                "from": self.site(crossing.from_site),
                "to": self.site(crossing.to_site),
                "link": {"id": str(crossing.link), "name": self._names.link(crossing.link)},
                "cost": crossing.cost,
            },
            "alternatives": [self.alternative(each) for each in step.alternatives],
        }

    def alternative(self, each: Alternative) -> dict[str, object]:
        return {
            "contest": each.contest.name.lower(),
            "id": str(each.subject),
            "cost": each.cost,
            "lost_by": each.lost_by,
            "tied": each.tied,
            "path": [self.site(site) for site in each.path],
        }

    def breakage(self, breakage: Breakage) -> dict[str, object]:
        return {
            "fault": breakage.fault.name.lower(),
            "kind": breakage.kind.value,
            "id": str(breakage.subject),
            "text": self._names.sentence(breakage),
            "causes": [self.breakage(cause) for cause in breakage.causes],
        }
