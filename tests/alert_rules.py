"""The alert rules in deploy/prometheus, for the tests of the rules and of their page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RULES = Path(__file__).resolve().parents[1] / "deploy" / "prometheus" / "alerts.yml"


@dataclass(frozen=True)
class Alert:
    name: str
    #: The text of the rule.
    text: str

    @property
    def severity(self) -> str:
        (found,) = re.findall(r"labels: \{severity: (\w+)\}", self.text)
        return str(found)

    def annotation(self, name: str) -> str:
        (found,) = re.findall(rf"^ +{name}: (.+)$", self.text, re.M)
        return str(found).strip('"')

    @property
    def labels(self) -> set[str]:
        """The labels that its texts name."""
        return set(re.findall(r"\$labels\.(\w+)", self.text))

    @property
    def metrics(self) -> set[str]:
        """The metrics that its expression asks for."""
        expression = self.text.partition("expr:")[2].partition("labels: {")[0]
        return set(re.findall(r"\b(?:mqis|process)_\w+", expression))


def alerts() -> list[Alert]:
    """All alerts, in the order of the file."""
    _, *rules = re.split(r"^ +- alert: ", RULES.read_text("utf-8"), flags=re.M)
    return [Alert(*rule.split("\n", 1)) for rule in rules]
