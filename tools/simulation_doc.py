"""Writes the table of mutations in docs/simulation.md: how many seeds find each of them.

Usage: python -m tools.simulation_doc [NAME ...]

Runs seeds from 0 on with each mutation until a rule breaks, at most ``MOST`` of them, as ``mqis sim
--mutate all`` and ``python -m tests.sim.mirror --mutate all`` do. With names it measures these
only, and keeps the other rows.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import chain
from pathlib import Path
from statistics import median

from mqis.sim import runner
from mqis.sim.mutations import MUTATIONS
from mqis.sim.runner import SeedCount
from tests.sim.mirror import runs as mirror
from tests.sim.mirror.mutations import BUGS

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "simulation.md"
BEGIN, END = "<!-- begin: tools/simulation_doc.py -->", "<!-- end -->"
MOST = 100
_ROW = re.compile(r"^\| (\w+) \| .* \| (\d+|none of \d+) \| (.*) \|$", re.MULTILINE)


def known(text: str) -> dict[str, SeedCount]:
    """The numbers that a document lists."""
    found = {}
    for name, shown, rule in _ROW.findall(text):
        number = int(shown.rpartition(" ")[2])
        found[name] = SeedCount(name, number if shown.isdigit() else None, rule, number)
    return found


def table(findings: dict[str, SeedCount]) -> str:
    lines = [
        "| name | the rule that is disabled, or the bug | seeds | what breaks |",
        "|---|---|---|---|",
    ]
    for name, (text, _) in (MUTATIONS | BUGS).items():
        finding = findings.get(name, SeedCount(name, None, "not measured"))
        lines.append(f"| {name} | {text} | {finding.shown} | {finding.rule} |")
    middle = median(MOST + 1 if f.seeds is None else f.seeds for f in findings.values())
    return "\n".join([*lines, "", f"The median is {middle:g} seeds."])


def written(document: str, findings: dict[str, SeedCount]) -> str:
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(findings)}\n{END}{after}"


def main(names: list[str]) -> None:
    seeds, jobs = range(MOST), os.cpu_count() or 1
    found = ((mirror if name in BUGS else runner).seeds_until_found(name, seeds) for name in names)
    everything = chain(runner.find_all(seeds, jobs=jobs), mirror.find_all(seeds, jobs))
    for finding in found if names else everything:
        text = DOCUMENT.read_text("utf-8")
        DOCUMENT.write_text(written(text, known(text) | {finding.name: finding}), "utf-8")
        print(f"{finding.name}: {finding.shown} {finding.rule}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
