"""Runs all tests, in two parts side by side, and puts together what they recorded.

Usage: python tools/run_tests.py [--coverage]

The output of the first part comes as it is made, that of the second when it is done. Exit status:
0 if every test passed. With ``--coverage`` there is one set of coverage data for both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ledger import RESULTS, Results, load_results, results_of, save_results
from tools.parts import parts

ROOT = Path(__file__).resolve().parents[1]


def command(part: str, paths: list[Path], *, coverage: bool) -> list[str]:
    run = [sys.executable, "-m"]
    if coverage:
        run += ["coverage", "run", f"--data-file=.build/coverage.{part}", "-m"]
    return [*run, "pytest", "--part", part, *(str(path) for path in paths)]


def run_parts(root: Path, *, coverage: bool) -> bool:
    """Whether every test of every part passed."""
    build = root / ".build"
    build.mkdir(exist_ok=True)
    (first, paths), *others = parts(root).items()
    began = time.monotonic()
    logs = {}
    running = {}
    for part, directories in others:
        logs[part] = (build / f"tests-{part}.log").open("w+b")
        wanted = command(part, directories, coverage=coverage)
        running[part] = subprocess.Popen(
            wanted, cwd=root, stdout=logs[part], stderr=subprocess.STDOUT
        )
    codes = {first: subprocess.call(command(first, paths, coverage=coverage), cwd=root)}
    _say(f"{first}: {time.monotonic() - began:.0f} s")
    for part, process in running.items():
        codes[part] = process.wait()
        with logs[part] as log:
            log.seek(0)
            sys.stdout.buffer.write(log.read())
        _say(f"{part}: {time.monotonic() - began:.0f} s")
    return not any(codes.values())


def _say(text: str) -> None:
    print(text, flush=True)


def merge(found: Mapping[str, Results | None]) -> Results | None:
    """What all parts recorded as one; None if one is missing or of another tree."""
    known = [results for results in found.values() if results is not None]
    if len(known) < len(found) or len({(r.commit, r.dirty) for r in known}) != 1:
        return None
    tests = {nodeid: test for results in known for nodeid, test in results.tests.items()}
    return replace(known[0], full=True, tests=tests)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--coverage", action="store_true")
    arguments = parser.parse_args()
    names = list(parts(ROOT))
    for path in (ROOT / RESULTS, *(results_of(ROOT, part) for part in names)):
        path.unlink(missing_ok=True)
    passed = run_parts(ROOT, coverage=arguments.coverage)
    merged = merge({part: load_results(results_of(ROOT, part)) for part in names})
    if merged is not None:
        save_results(ROOT / RESULTS, merged)
    if arguments.coverage:
        files = [f".build/coverage.{part}" for part in names]
        subprocess.run(
            [sys.executable, "-m", "coverage", "combine", "--keep", "--quiet", *files],
            cwd=ROOT,
            check=True,
        )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
