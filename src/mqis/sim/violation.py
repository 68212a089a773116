"""The exception that checkers raise."""

from __future__ import annotations


class Violation(Exception):
    """A rule does not hold; ``rule`` names it, ``detail`` says where it failed."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail

    def __reduce__(self) -> tuple[type[Violation], tuple[str, str]]:
        return type(self), (self.rule, self.detail)
