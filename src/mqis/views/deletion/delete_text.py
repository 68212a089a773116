"""The plan of a delete in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mqis.texts import and_more, counted
from mqis.views.deletion.plan import DeletePlan, Dependent, counts

#: The most names in a sentence, and in the list of a page.
MOST_NAMES = 10


def amounts(dependents: Sequence[Dependent]) -> str:
    """The numbers of objects in words: "3 machines, 12 queues"."""
    return ", ".join(counted(number, label) for label, number in counts(dependents).items())


def names(dependents: Sequence[Dependent], most: int = MOST_NAMES) -> list[str]:
    """A line for each of the first dependents, and one for the rest."""
    lines = [_line(dependent) for dependent in dependents[:most]]
    rest = len(dependents) - most
    return [*lines, and_more(rest)] if rest > 0 else lines


def _line(dependent: Dependent) -> str:
    text = f"{dependent.type.label} {dependent.name}"
    return f"{text} ({', '.join(dependent.names_it_by)})" if dependent.names_it_by else text


def sections(plan: DeletePlan) -> Iterator[tuple[str, list[str]]]:
    """Each group of dependents: a sentence with the numbers, then the names."""
    if plan.first:
        yield (
            f"{amounts(plan.first)} would be orphaned and will be deleted first",
            names(plan.first),
        )
    if plan.along:
        yield f"{amounts(plan.along)} will go with it at every server", names(plan.along)
    if plan.servers:
        number = counted(len(plan.servers), "directory server")
        yield f"{number} will be expelled", list(plan.servers)
    if plan.left:
        yield f"{amounts(plan.left)} will stay without it", names(plan.left)


def plan_to_json(plan: DeletePlan) -> dict[str, object]:
    return {
        "type": plan.target.type.label,
        "id": str(plan.target.id),
        "path": plan.target.path,
        "counts": {
            "first": counts(plan.first),
            "along": counts(plan.along),
            "left": counts(plan.left),
        },
        "first": [_as_json(one) for one in plan.first],
        "along": [_as_json(one) for one in plan.along],
        "left": [_as_json(one) for one in plan.left],
        "servers": list(plan.servers),
        "danger": plan.danger,
    }


def _as_json(one: Dependent) -> dict[str, object]:
    return {"type": one.type.label, "id": str(one.id), "path": one.path}
