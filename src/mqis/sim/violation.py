"""What a checker says when a rule does not hold."""

from __future__ import annotations


class Violation(Exception):
    """A rule is broken; ``rule`` names it, the text tells where."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail
