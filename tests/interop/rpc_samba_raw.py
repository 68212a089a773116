"""Runs under the system's Python: Samba's raw protocol tests, several at a time.

Most of their time is waiting for answers that must not come, so more processes than cores pay.
Prints a line per test, "ok NAME", "failed NAME reason" or "skipped NAME", and nothing else.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import unittest
from typing import Any

from samba.tests.dcerpc import raw_protocol

PROCESSES = 6
#: 800 fragments with a wait after each: these four take 8 s, all others together 6 s.
SLOW = tuple(f"test_fragmented_requests0{number}" for number in (1, 2, 3, 5))


def run(name: str) -> str:
    outcome = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromName(name, raw_protocol).run(outcome)
    short = name.rpartition(".")[2]
    problems: list[tuple[Any, str]] = [*outcome.failures, *outcome.errors]
    if problems:
        return f"failed {short} {problems[0][1].strip().splitlines()[-1]}"
    return f"skipped {short}" if outcome.skipped else f"ok {short}"


def all_names() -> list[str]:
    case = raw_protocol.TestDCERPC_BIND
    names = unittest.defaultTestLoader.getTestCaseNames(case)
    return [f"{case.__name__}.{name}" for name in names]


def main() -> None:
    wanted = sys.argv[1:]
    names = [name for name in all_names() if not wanted or name.rpartition(".")[2] in wanted]
    names.sort(key=lambda name: not name.endswith(SLOW))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # the tests tell every time-out that they expect
    with multiprocessing.Pool(PROCESSES) as pool:
        for line in pool.imap_unordered(run, names):
            print(line, flush=True)


if __name__ == "__main__":
    main()
