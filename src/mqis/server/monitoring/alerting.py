"""The alerts that operators act on, from ``alerts.toml``.

``tools/alerts_doc.py`` writes the rules for Prometheus and their page from the same file.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("alerts.toml")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#]*)[^)]*\)")


@dataclass(frozen=True, slots=True)
class AlertRule:
    name: str
    #: The group of its rule, and the heading of its section in docs/alerts.md.
    group: str
    title: str
    #: critical: clients fail, or data is in danger. warning: act within the day.
    severity: str
    #: The condition, in the language of Prometheus.
    expr: str
    summary: str
    description: str
    #: What it means and what to do, in Markdown.
    meaning: str
    #: The time for which the condition has to hold, as Prometheus writes it.
    held: str = ""

    @property
    def held_s(self) -> float:
        return float(self.held[:-1]) * _SECONDS[self.held[-1]] if self.held else 0.0

    @property
    def anchor(self) -> str:
        """The place in the documentation that says what to do."""
        return f"docs/alerts.md#{self.name.lower()}"

    @property
    def text(self) -> str:
        """The meaning without the marks of code; a link to a page names it."""
        return "".join(text for text, _ in self.spans)

    @property
    def spans(self) -> tuple[tuple[str, bool], ...]:
        """The parts of ``text``, each with whether it is code."""
        plain = " ".join(_LINK.sub(_named, self.meaning).split())
        return tuple((part, bool(turn % 2)) for turn, part in enumerate(plain.split("`")))


def _named(link: re.Match[str]) -> str:
    """A link in words: a reader of text cannot follow it. One within the page names an alert."""
    words, page = link.groups()
    if not page:
        return words
    return f"`docs/{page}`" if words == page else f"{words} (`docs/{page}`)"


@cache
def alert_rules() -> dict[str, AlertRule]:
    """All rules by name, in the order of the file."""
    content = tomllib.loads(FILE.read_text("utf-8"))
    rules = [_rule(each) for each in content["alert"]]
    return {rule.name: rule for rule in rules}


def _rule(content: dict[str, str]) -> AlertRule:
    values = {key: value.strip("\n") for key, value in content.items() if key != "for"}
    return AlertRule(**values, held=content.get("for", ""))
