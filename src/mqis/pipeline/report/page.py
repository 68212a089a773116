"""The report's page: findings first, then inventory, pictures, and the rows behind them.

The page is one file without scripts. Names in it come from anywhere, so everything is escaped, and
its policy forbids scripts and all requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape

from mqis.findings import Finding, Gravity
from mqis.pipeline.report.content import ReportContent
from mqis.pipeline.report.findings import findings
from mqis.pipeline.report.htmltables import html_table
from mqis.pipeline.report.pictures import PICTURES
from mqis.pipeline.report.style import STYLE
from mqis.pipeline.report.wording import INVENTORY, TABLES
from mqis.texts import agreeing, duration, minute

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_VERDICTS = {
    Gravity.ERROR: ("bad", "Action needed"),
    Gravity.WARNING: ("warn", "Needs attention"),
    Gravity.OK: ("good", "In order"),
}


def html_page(content: ReportContent, *, unfolded: bool = False) -> str:
    """The page; ``unfolded`` opens all tables, for paper."""
    sections = [*_sections(content, unfolded)]
    links = "".join(_links([name for name, _ in sections]))
    body = "".join(
        f'<section id="{_anchor(name)}"{_mark(name)}><h2>{escape(name)}</h2>{text}</section>'
        for name, text in sections
    )
    title = escape(title_of(content))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<link rel=icon href='data:,'><style>{STYLE}</style>"
        f"<header><h1>{title}</h1><p class=note>{escape(_dates(content))}</p>"
        f"<nav>{links}</nav></header><main>{body}</main></html>\n"
    )


def title_of(content: ReportContent) -> str:
    return f"{content.enterprise or 'Enterprise'}: state of the directory"


def headings(content: ReportContent) -> list[str]:
    return [name for name, _ in _sections(content, False)]


def _dates(content: ReportContent) -> str:
    parts = [f"Report of {minute(content.written)}"]
    if content.began is not None and content.ended is not None:
        parts.append(f"period {minute(content.began)} to {minute(content.ended)}")
    return ", ".join(parts) + " (UTC)."


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _sections(content: ReportContent, unfolded: bool) -> Iterator[tuple[str, str]]:
    if sentences := findings(content):
        yield "In short", _findings(sentences)
    if cards := _cards(content):
        yield "Inventory", cards
    for name, draw in PICTURES:
        if picture := draw(content):
            yield name, picture
    for table, name in TABLES.items():
        if table in content.tables:
            rows, total = content.tables[table], content.count(table)
            yield name, html_table(table, rows, total, unfolded=unfolded)


def _mark(name: str) -> str:
    return " class=rows" if name in TABLES.values() else ""


def _links(names: list[str]) -> Iterator[str]:
    """Links to the sections; one for all tables."""
    tables = [name for name in names if name in TABLES.values()]
    for name in names:
        if name not in tables:
            yield f'<a href="#{_anchor(name)}">{escape(name)}</a>'
    if tables:
        yield f'<a href="#{_anchor(tables[0])}">Tables</a>'


def _findings(made: list[Finding]) -> str:
    mark, verdict = _VERDICTS[made[0].gravity]
    items = "".join(_finding(finding) for finding in made)
    return f"<p class='verdict {mark}'>{verdict}</p><ol class=findings>{items}</ol>"


def _finding(finding: Finding) -> str:
    mark, _ = _VERDICTS[finding.gravity]
    first = f"<br><span class=first>First: {escape(finding.todo)}.</span>" * bool(finding.todo)
    return f"<li class={mark}><b>{escape(finding.what)}</b>{first}</li>"


# --- numbers --------------------------------------------------------------------------------------


def _cards(content: ReportContent) -> str:
    cards = (
        f"<div class='card {mark}'><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value, mark in _numbers(content)
    )
    text = "".join(cards)
    return f"<div class=cards>{text}</div>" if text else ""


def _numbers(content: ReportContent) -> Iterator[tuple[str, str, str]]:
    """The numbers of the inventory and of what was found: (name, value, mark)."""
    if content.servers:
        yield "directory servers", f"{content.servers:,}", ""
    held: Counter[str] = Counter()
    for row in content.inventory:
        held[row["type"]] += row["count"]
    for kind, plural in INVENTORY.items():
        if held[kind]:
            yield agreeing(held[kind], kind, plural), f"{held[kind]:,}", ""
    if content.changes is not None:
        yield "changes", f"{content.changes:,}", ""
    if lag := content.tables.get("lag"):
        yield "longest delay (95 %)", duration(max(row["p95_ms"] for row in lag) / 1000), ""
    for table, name in (
        ("divergence", "differences"),
        ("hygiene", "objects to look at"),
        ("gaps", "skipped or repeated"),
        ("evidence", "doubts about the input"),
        ("errors", "read errors"),
    ):
        if table in content.tables:
            count = content.count(table)
            yield name, f"{count:,}", "bad" if count else "good"
