"""A ratchet for the coverage of ``wire`` and ``protocol``: it may rise and never fall.

Usage: coverage json -o .build/coverage.json; python tools/coverage_floor.py [--raise]

Compares the report with docs/coverage-floor.json and exits with 1 if a package fell below its
floor. ``--raise`` lifts the floor to what the report shows, rounded down to one decimal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mqis.wire.errors import MqisError

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / ".build" / "coverage.json"
FLOOR = ROOT / "docs" / "coverage-floor.json"

PACKAGES = ("wire", "protocol")
HINT_AT = 5
"""Tenths of a percent above the floor from which raising it is worth a commit."""
WORST = 5


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of lines and branches together, as coverage.py counts them."""

    covered: int = 0
    total: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.covered + other.covered, self.total + other.total)

    @property
    def missing(self) -> int:
        return self.total - self.covered

    @property
    def tenths(self) -> int:
        """Tenths of a percent, rounded down; 1000 if there is nothing to cover."""
        return self.covered * 1000 // self.total if self.total else 1000

    def __str__(self) -> str:
        return f"{self.tenths / 10:.1f}"


Files = dict[str, Coverage]


def read_report(report: Mapping[str, Any]) -> dict[str, Files]:
    """The coverage of each file, by package."""
    found: dict[str, Files] = {package: {} for package in PACKAGES}
    for name, entry in report["files"].items():
        for package in PACKAGES:
            if f"mqis/{package}/" in name.replace("\\", "/"):
                found[package][name] = _coverage(name, entry["summary"])
    for package, files in found.items():
        if not files:
            raise MqisError(f"the coverage report has no file of mqis/{package}")
    return found


def _coverage(name: str, summary: Mapping[str, int]) -> Coverage:
    if "num_branches" not in summary:
        raise MqisError(f"{name}: coverage was measured without branches; use --branch")
    return Coverage(
        summary["covered_lines"] + summary["covered_branches"],
        summary["num_statements"] + summary["num_branches"],
    )


def read_floor(floor: Mapping[str, float]) -> dict[str, int]:
    """The floor of each package in tenths of a percent."""
    if set(floor) != set(PACKAGES):
        raise MqisError(f"the floor is for {', '.join(floor)}, not {', '.join(PACKAGES)}")
    return {package: round(floor[package] * 10) for package in PACKAGES}


def worst_files(files: Files) -> list[tuple[str, Coverage]]:
    """The files with the most uncovered lines and branches."""
    missing = [(name, c) for name, c in files.items() if c.missing]
    return sorted(missing, key=lambda item: (-item[1].missing, item[0]))[:WORST]


def raised(floor: Mapping[str, int], totals: Mapping[str, Coverage]) -> dict[str, float]:
    """The new floor, never below the old one."""
    return {p: max(floor[p], totals[p].tenths) / 10 for p in PACKAGES}


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MqisError(f"{path}: {error}") from error


def _print_table(totals: Mapping[str, Coverage], floor: Mapping[str, int]) -> None:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("package")
    for title in ("covered %", "floor %", "missing"):
        table.add_column(title, justify="right")
    for package, total in totals.items():
        style = "red" if total.tenths < floor[package] else "green"
        cells = [str(total), f"{floor[package] / 10:.1f}", str(total.missing)]
        table.add_row(f"mqis/{package}", *cells, style=style)
    Console().print(table)


def check(report_path: Path, floor_path: Path, *, lift: bool) -> int:
    packages = read_report(_load(report_path))
    totals = {package: sum(files.values(), Coverage()) for package, files in packages.items()}
    floor = read_floor(_load(floor_path))
    _print_table(totals, floor)
    fallen = [p for p in PACKAGES if totals[p].tenths < floor[p]]
    for package in fallen:
        print(f"mqis/{package} fell below its floor. The files with the lowest coverage:")
        for name, coverage in worst_files(packages[package]):
            print(f"  {name}: {coverage} %, {coverage.missing} lines and branches missing")
    if lift:
        new = raised(floor, totals)
        floor_path.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
        print(f"the floor is now {', '.join(f'{p} {new[p]:.1f} %' for p in PACKAGES)}")
    elif any(totals[p].tenths >= floor[p] + HINT_AT for p in PACKAGES):
        print("coverage rose: run `python tools/coverage_floor.py --raise` and commit the floor")
    return 1 if fallen else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks that the coverage has not fallen.")
    parser.add_argument("--raise", dest="lift", action="store_true", help="lift the floor")
    parser.add_argument("--report", type=Path, default=REPORT, help="made by `coverage json`")
    parser.add_argument("--floor", type=Path, default=FLOOR)
    options = parser.parse_args(arguments)
    try:
        return check(options.report, options.floor, lift=options.lift)
    except MqisError as error:
        print(f"coverage floor: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
