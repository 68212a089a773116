"""Runs all tests, six parts at a time, and merges their results.

Usage: python tools/run_tests.py [--coverage] [--reached] [--at-once 6]

Six on two cores, because tests of servers wait as much as they work.

The output of a part comes when it is done. Exit status: 0 if every test passed. Ctrl-C and SIGTERM
end the parts too, and whatever their tests have started.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.ledger import RESULTS, Results, load_results, results_of, save_results
from tools.mutation.reached import PLACE as REACHED
from tools.parts import LONGEST, Part, parts

ROOT = Path(__file__).resolve().parents[1]
#: In the environment of all that a run starts, so that nothing of it is left when it is ended.
RUN = "MQIS_TEST_RUN"


def command(name: str, part: Part, *, coverage: bool, reached: bool = False) -> list[str]:
    run = [sys.executable, "-m"]
    if coverage and part.traced:
        run += ["coverage", "run", f"--data-file={_data(name)}", "-m"]
    options = ["--durations=15", "--durations-min=2", "--part", name]
    if reached:
        options += ["--reached", str(REACHED / f"{name}.db")]
    return [*run, "pytest", *options, *(str(path) for path in part.paths)]


def _data(name: str) -> str:
    return f".build/coverage.{name}"


def run_parts(root: Path, *, coverage: bool, reached: bool, at_once: int) -> bool:
    """Runs the parts; returns whether every test passed."""
    (root / ".build").mkdir(exist_ok=True)
    began = time.monotonic()
    passed = True
    with ThreadPoolExecutor(at_once) as pool:
        running = {
            pool.submit(
                _run, root, name, command(name, part, coverage=coverage, reached=reached)
            ): name
            for name, part in parts(root).items()
            if part.paths
        }
        for done in as_completed(running):
            code, cpu_s, log = done.result()
            passed &= code == 0
            sys.stdout.buffer.write(log.read_bytes())
            elapsed_s = time.monotonic() - began
            told = f"ended after {elapsed_s:.0f} s, used {cpu_s:.0f} s of processor"
            print(f"{running[done]}: {told}", flush=True)
    return passed


def _run(root: Path, name: str, words: list[str]) -> tuple[int, float, Path]:
    """Runs a part; returns its exit status, the processor time that it took, and its log."""
    sys.stdout.write(f"{name}: begins\n")
    log = root / ".build" / f"tests-{name}.log"
    if name != LONGEST:  # which decides when all are done, so it goes first on a busy machine
        words = ["nice", "-n", "5", *words]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=root, env=environment(root), stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, log


def environment(root: Path) -> dict[str, str]:
    """The environment of a part. Tests start hundreds of processes, so bytecode is always kept."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    own = {"PYTHONPYCACHEPREFIX": str(root / ".build" / "pycache"), RUN: str(os.getpid())}
    return kept | own


def end_all(number: int, _frame: object) -> None:
    """Ends what this run has started, also what has detached itself, and then this process."""
    mark = f"{RUN}={os.getpid()}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to somebody else
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
    os._exit(128 + number)


def merge(found: Mapping[str, Results | None]) -> Results | None:
    """Merges the results of all parts; None if one is missing or of another tree."""
    known = [results for results in found.values() if results is not None]
    if len(known) < len(found) or len({(r.commit, r.dirty) for r in known}) != 1:
        return None
    tests = {nodeid: test for results in known for nodeid, test in results.tests.items()}
    return replace(known[0], full=True, tests=tests)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--reached", action="store_true", help="record the lines of each test")
    parser.add_argument("--at-once", type=int, default=6, help="processes")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_all)
    known = parts(ROOT)
    for path in (ROOT / RESULTS, *(results_of(ROOT, name) for name in known)):
        path.unlink(missing_ok=True)
    passed = run_parts(
        ROOT,
        coverage=arguments.coverage,
        reached=arguments.reached,
        at_once=arguments.at_once,
    )
    merged = merge({name: load_results(results_of(ROOT, name)) for name in known})
    if merged is not None:
        save_results(ROOT / RESULTS, merged)
    if arguments.coverage:
        files = [_data(name) for name, part in known.items() if part.traced]
        subprocess.run(
            [sys.executable, "-m", "coverage", "combine", "--keep", "--quiet", *files],
            cwd=ROOT,
            check=True,
        )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
