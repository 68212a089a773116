"""Writes the table of mutations in docs/simulation.md: how many seeds find each of them.

Usage: python tools/simulation_doc.py [NAME ...]

Runs seeds from 0 on with each mutation until a rule breaks, at most ``MOST`` of them. With names it
measures these only, and keeps the other rows.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import Options, run_seed

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "simulation.md"
BEGIN, END = "<!-- begin: tools/simulation_doc.py -->", "<!-- end -->"
MOST = 100
_ROW = re.compile(r"^\| (\w+) \| .* \| (\d+|none of \d+) \| (.*) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SeedCount:
    """The number of seeds until a mutation was found, and the rule that broke."""

    seeds: int | None
    rule: str
    #: The number of seeds that were run.
    tried: int = MOST

    @property
    def shown(self) -> str:
        return f"none of {self.tried}" if self.seeds is None else str(self.seeds)


def known(text: str) -> dict[str, SeedCount]:
    """The numbers that a document lists."""
    found = {}
    for name, shown, rule in _ROW.findall(text):
        number = int(shown.rpartition(" ")[2])
        found[name] = SeedCount(number if shown.isdigit() else None, rule, number)
    return found


def measure(name: str) -> SeedCount:
    for seed in range(MOST):
        violation = run_seed(seed, Options(mutation=name)).violation
        if violation is not None:
            return SeedCount(seed + 1, violation.rule)
    return SeedCount(None, "")


def table(findings: dict[str, SeedCount]) -> str:
    lines = [
        "| name | the rule that is disabled, or the bug | seeds | what breaks |",
        "|---|---|---|---|",
    ]
    for name, (text, _) in MUTATIONS.items():
        finding = findings.get(name, SeedCount(None, "not measured", 0))
        lines.append(f"| {name} | {text} | {finding.shown} | {finding.rule} |")
    return "\n".join(lines)


def written(document: str, findings: dict[str, SeedCount]) -> str:
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(findings)}\n{END}{after}"


def main(names: list[str]) -> None:
    for name in names or list(MUTATIONS):
        finding = measure(name)
        text = DOCUMENT.read_text("utf-8")
        DOCUMENT.write_text(written(text, known(text) | {name: finding}), "utf-8")
        print(f"{name}: {finding.shown} {finding.rule}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
