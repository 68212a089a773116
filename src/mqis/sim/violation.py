"""What a checker says when a rule does not hold."""

from __future__ import annotations


class Violation(Exception):
    """A rule is broken; ``rule`` names it, ``detail`` tells where."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail

    def __reduce__(self) -> tuple[type[Violation], tuple[str, str]]:
        return type(self), (self.rule, self.detail)
