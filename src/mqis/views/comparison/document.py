"""A comparison as plain values, for JSON."""

from __future__ import annotations

from mqis.views.comparison.words import ChangedObject, DirectoryComparison


def as_json(comparison: DirectoryComparison) -> dict[str, object]:
    """The whole comparison; values are those of ``mqis get --json``, texts those of ``get``."""
    return {
        "before": comparison.before,
        "after": comparison.after,
        "same": comparison.same,
        "counts": {fate.value: count for fate, count in comparison.counts().items()},
        "not_compared": list(comparison.not_compared),
        "notes": list(comparison.notes),
        "objects": [_object(one) for _, members in comparison.groups() for one in members],
    }


def _object(one: ChangedObject) -> dict[str, object]:
    return {
        "type": one.type.label,
        "change": one.fate.value,
        "name": one.name,
        "id": str(one.id),
        "former_id": None if one.former_id is None else str(one.former_id),
        "properties": [
            {
                "name": each.word,
                "before": each.raw_before,
                "after": each.raw_after,
                "before_text": each.before,
                "after_text": each.after,
            }
            for each in one.properties
        ],
    }
