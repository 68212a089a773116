"""A comparison as one HTML page: no script, nothing loaded, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.pages import pieces
from mqis.protocol.directory.directory_difference import ObjectFate
from mqis.texts import visible
from mqis.views.comparison.words import ChangedObject, DirectoryComparison

#: More objects of one type than this are folded.
_UNFOLDED = 50
_SIGNS = {
    ObjectFate.CREATED: "+",
    ObjectFate.DELETED: "\N{MINUS SIGN}",
    ObjectFate.CHANGED: "\N{ALMOST EQUAL TO}",
    ObjectFate.REPLACED: "\N{CLOCKWISE OPEN CIRCLE ARROW}",
}


def html_page(comparison: DirectoryComparison) -> Iterator[str]:
    """Yields the page in pieces, so that a large one is never in memory as a whole."""
    yield from pieces(
        "comparison.html",
        before=comparison.before,
        after=comparison.after,
        summary=summary(comparison),
        remarks=remarks(comparison),
        groups=((kind.label, members) for kind, members in comparison.groups()),
        most_unfolded=_UNFOLDED,
        changes=(ObjectFate.CHANGED, ObjectFate.REPLACED),
        signs=_SIGNS,
        visible=visible,
    )


def summary(comparison: DirectoryComparison) -> str:
    """One line: how many objects differ, and in which way."""
    if comparison.same:
        return "no differences"
    counted = comparison.counts().items()
    return ", ".join(f"{count:,} {fate.value}" for fate, count in counted if count)


def remarks(comparison: DirectoryComparison) -> Iterator[str]:
    """Yields what a reader has to know about the result."""
    yield from comparison.notes
    if comparison.not_compared:
        yield f"not compared, because a side does not tell it: {', '.join(comparison.not_compared)}"


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
