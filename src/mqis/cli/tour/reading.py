"""What the tour reads of its own output: tables on the screen, the report, and the console.

Ticks compare it with what was done to the enterprise, so that a page which tells something else
ends the tour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_CELLS = re.compile(r" {2,}")
_COST = re.compile(r"cost (\d+)$")
_TITLE = re.compile(r"(?P<ends>.* to .*): (?P<hops>\d+) hops?, cost (?P<cost>\d+)")


def table_rows(lines: Sequence[str]) -> list[list[str]]:
    """The cells of a table as ``Guide.show`` printed it: the rows below the rule."""
    rule = next((n for n, line in enumerate(lines) if line.startswith("──")), len(lines))
    return [_CELLS.split(line.strip()) for line in lines[rule + 1 :] if line.strip()]


@dataclass(frozen=True, slots=True)
class ShownRoute:
    """A route as its lines tell it."""

    ends: str
    hops: int
    cost: int
    #: The steps: (from, to, how), where ``how`` is the link of a step between sites.
    steps: tuple[tuple[str, str, str], ...]

    @property
    def summed_cost(self) -> int:
        """The sum of the costs that the steps name."""
        found = (_COST.search(how) for _, _, how in self.steps)
        return sum(int(match[1]) for match in found if match is not None)

    @property
    def is_connected(self) -> bool:
        """Returns whether it leads from one end to the other, each step from where one ended."""
        start, _, end = self.ends.partition(" to ")
        stops = [start, *(to for _, to, _ in self.steps)]
        return stops[-1] == end and [begin for begin, _, _ in self.steps] == stops[:-1]


def shown_route(lines: Sequence[str]) -> ShownRoute | None:
    """The route in the lines of ``views.routes.route_text.summary``; None if they tell none."""
    title = _TITLE.fullmatch(lines[0].strip()) if lines else None
    if title is None:
        return None
    steps = []
    for line in lines[1:]:
        hop, _, how = line.strip().partition("  over ")
        begin, _, end = hop.partition(" -> ")
        steps.append((begin, end, how))
    return ShownRoute(title["ends"], int(title["hops"]), int(title["cost"]), tuple(steps))


# --- pages ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class ShownPage:
    """The texts of a page: its heading, what it says in short, its tiles and its tables."""

    heading: str = ""
    #: The verdict of a report, or the status line of the console.
    verdict: str = ""
    #: The classes of that element, which give it its colour.
    tone: str = ""
    sentences: list[str] = field(default_factory=list)
    #: Numbers with a name below, by name.
    tiles: dict[str, str] = field(default_factory=dict)
    #: The rows of each table by its caption, or else by the heading above it.
    tables: dict[str, list[dict[str, str]]] = field(default_factory=dict)


class _PageReader(HTMLParser):
    """Collects the texts of a page's elements."""

    def __init__(self) -> None:
        super().__init__()
        self.page = ShownPage()
        self._texts: list[str] = []
        self._name = ""
        self._in_head = False
        self._in_findings = False
        self._number = ""
        self._heads: list[str] = []
        self._cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        marks = (given.get("class") or "").split()
        match tag:
            case "thead":
                self._in_head, self._heads = True, []
            case "tbody":
                self._in_head = False
            case "tr":
                self._cells = []
            case "ol":
                self._in_findings = "findings" in marks
            case "p" if "verdict" in marks or given.get("role") == "status":
                self.page.tone = " ".join(m for m in marks if m not in ("verdict", "note"))
        if tag in _BLOCKS:
            self._texts.append("")

    def handle_data(self, data: str) -> None:
        if self._texts:
            self._texts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "ol":
            self._in_findings = False
        elif tag == "tr" and self._cells and not self._in_head:
            row = dict(zip(self._heads, self._cells, strict=False))
            self.page.tables.setdefault(self._name, []).append(row)
        if tag not in _BLOCKS or not self._texts:
            return
        text = " ".join(self._texts.pop().split())
        if tag not in _OWN_TEXT and self._texts:
            self._texts[-1] += text
        self._take(tag, text)

    def _take(self, tag: str, text: str) -> None:
        page = self.page
        if tag == "h1":
            page.heading = text
        elif tag in ("h2", "caption"):
            self._name = text
        elif tag == "p" and page.tone and not page.verdict:
            page.verdict = text
        elif tag == "p" and text == "None.":
            page.tables[self._name] = []
        elif tag == "b" and self._in_findings:
            page.sentences.append(text)
        elif tag == "b":
            self._number = text
        elif tag == "span" and self._number:
            page.tiles[text], self._number = self._number, ""
        elif tag in ("th", "td"):
            (self._heads if self._in_head else self._cells).append(text)


#: The elements whose texts count, and those of which the text does not belong to the one around.
_BLOCKS = ("h1", "h2", "caption", "small", "p", "b", "span", "th", "td")
_OWN_TEXT = ("h1", "h2", "caption", "small", "p", "th", "td")


def read_page(html: str) -> ShownPage:
    """Reads a report or a page of the console, as a person does."""
    reader = _PageReader()
    reader.feed(html)
    reader.close()
    return reader.page
