"""A comparison as one HTML page: no script, nothing loaded, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from mqis.protocol.directory.directory_difference import ObjectFate
from mqis.views.comparison.words import ChangedObject, ChangedProperty, DirectoryComparison
from mqis.views.presentation.visible import visible

#: More objects of one type than this are folded.
_UNFOLDED = 50
_SIGNS = {
    ObjectFate.CREATED: "+",
    ObjectFate.DELETED: "\N{MINUS SIGN}",
    ObjectFate.CHANGED: "\N{ALMOST EQUAL TO}",
    ObjectFate.REPLACED: "\N{CLOCKWISE OPEN CIRCLE ARROW}",
}
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --new: #1a7f37; --old: #b42318; --mid: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --new: #4ac26b; --old: #ff8a7a; --mid: #d4a72c } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin-top: 2rem }
p, td, th, summary { overflow-wrap: anywhere }
summary { cursor: pointer; padding: .25rem 0; border-bottom: 1px solid var(--line) }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; table-layout: fixed }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-bottom: 1px solid var(--line) }
th:first-child { width: 25% }
.sign { display: inline-block; width: 1.5em; font-weight: bold }
.created .sign, td.after { color: var(--new) }
.deleted .sign, td.before { color: var(--old) }
.changed .sign, .replaced .sign { color: var(--mid) }
.id { opacity: .75; font-size: .85em }
"""
_HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
)


def html_page(comparison: DirectoryComparison) -> Iterator[str]:
    """Yields the page in pieces, so that a large one is never in memory as a whole."""
    yield f"{_HEAD}<title>Differences of two directories</title><style>{_STYLE}</style></head>\n"
    yield "<body><main><h1>Differences of two directories</h1>\n"
    yield f"<p>from <strong>{_text(comparison.before)}</strong> "
    yield f"to <strong>{_text(comparison.after)}</strong></p>\n"
    yield f"<p>{_text(summary(comparison))}</p>\n"
    for remark in remarks(comparison):
        yield f"<p>{_text(remark)}</p>\n"
    for object_type, members in comparison.groups():
        yield f"<h2>{_text(object_type.label)}: {len(members):,}</h2>\n"
        is_open = len(members) <= _UNFOLDED
        for one in members:
            yield from _object(one, is_open=is_open)
    yield "</main></body></html>\n"


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


def _object(one: ChangedObject, *, is_open: bool) -> Iterator[str]:
    opened = " open" if is_open and one.fate in (ObjectFate.CHANGED, ObjectFate.REPLACED) else ""
    yield f'<details class="{one.fate.value}"{opened}><summary>'
    yield f'<span class="sign" aria-hidden="true">{_SIGNS[one.fate]}</span>'
    yield f"{_text(one.name)} ({one.fate.value})</summary>\n"
    former = "" if one.former_id is None else f", before {one.former_id}"
    yield f'<p class="id">identifier {one.id}{former}</p>\n'
    yield "<table><thead><tr><th>property</th><th>before</th><th>after</th></tr></thead><tbody>\n"
    yield from map(_row, one.properties)
    yield "</tbody></table></details>\n"


def _row(each: ChangedProperty) -> str:
    before, after = _text(each.before or ""), _text(each.after or "")
    word = _text(each.word)
    cells = f'<td class="before">{before}</td><td class="after">{after}</td>'
    return f'<tr><th scope="row">{word}</th>{cells}</tr>\n'


def _text(text: str) -> str:
    return escape(visible(text))
