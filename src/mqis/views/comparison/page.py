"""A comparison as one HTML page: no script, nothing loaded, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.pages import pieces
from mqis.protocol.directory.directory_difference import ObjectFate
from mqis.views.comparison.words import DirectoryComparison
from mqis.views.presentation.visible import visible

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
