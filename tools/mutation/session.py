"""One pytest session over the tests that claim certain rows, run in a child process.

A *label* is a row, or the node id of a test, or ``any`` for all tests together. The session runs
the tests of its labels, quick ones first; the first test of a label that fails settles the label,
and it stops when all are settled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import pytest
from hypothesis import Phase, settings

By = Literal["row", "test", "any"]
Send = Callable[[dict[str, Any]], None]

#: Marks of tests that do not count: they are skipped on some machines, or take long.
LEFT_OUT = ("interop", "slow")
#: Marks that name rows: the test proves the row, or that mqis departs from it.
CLAIMS = ("req", "departs")
#: Seconds that a test is thought to take until it has been measured, by its directory.
_GUESSES = {"wire": 0.01, "protocol": 0.05, "config": 0.05, "storage": 0.1, "pipeline": 20.0}
_GUESS = 0.5
_GUESS_POSTGRES = 10.0
_ARGUMENTS = ("-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header", "--tb=short")


def run_session(plugin: LabelledTests, tests: Iterable[str], scratch: str) -> None:
    """Runs the tests that the plugin picks from the files of these tests."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    ended = pytest.main([*_ARGUMENTS, f"--basetemp={scratch}", *files], plugins=[plugin])
    if ended in {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR}:
        # A plugin or conftest.py could not be imported, or a fixture of it failed: no test ran.
        plugin.broken(f"pytest ended with {pytest.ExitCode(ended).name}")


class LabelledTests:
    """The plugin that picks, orders and reports tests; their starts and ends go to ``send``."""

    def __init__(
        self,
        labels: set[str],
        by: By,
        seconds: Mapping[str, float],
        send: Send,
        tests: Iterable[str] = (),
    ) -> None:
        self._open = labels
        self._by = by
        self._tests = frozenset(tests)
        self._seconds = seconds
        self._send = send
        self._labels: dict[str, frozenset[str]] = {}
        self._began = 0.0

    def pytest_configure(self) -> None:
        # The same examples every time, none remembered, and no time spent on small ones.
        settings.register_profile(
            "mutants",
            parent=settings.get_profile("mqis") if _known("mqis") else None,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("mutants")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken(f"{report.nodeid}: {_reason(report)}")

    def broken(self, detail: str) -> None:
        """Reports that the tests cannot run."""
        self._send({"event": "broken", "detail": detail})

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self._labels[item.nodeid] = self._of(item) & self._open
        items[:] = [item for item in items if self._labels[item.nodeid]]
        items.sort(key=lambda item: self._seconds.get(item.nodeid, guess(item.nodeid)))

    def _of(self, item: pytest.Item) -> frozenset[str]:
        """The labels of a test."""
        if self._by == "row":
            return _rows(item)
        if item.nodeid not in self._tests:
            return frozenset()
        return frozenset({item.nodeid if self._by == "test" else "any"})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not self._labels[item.nodeid] & self._open:
            pytest.skip("settled")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        labels = sorted(self._labels[nodeid] & self._open)
        self._began = time.monotonic()
        if labels:
            self._send({"event": "start", "test": nodeid, "labels": labels})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        settled = self._labels[report.nodeid] & self._open
        if report.failed and settled:
            self._open -= settled
            self._send(
                {
                    "event": "failed",
                    "test": report.nodeid,
                    "labels": sorted(settled),
                    "detail": _reason(report),
                }
            )

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        took = time.monotonic() - self._began
        self._send({"event": "end", "test": nodeid, "seconds": round(took, 3)})

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if not self._open:
            item.session.shouldstop = "every label is settled"


def guess(nodeid: str) -> float:
    """Returns the seconds that a test that was never measured may take."""
    if "postgres" in nodeid:
        return _GUESS_POSTGRES
    parts = nodeid.split("/")
    return _GUESSES.get(parts[1], _GUESS) if len(parts) > 1 else _GUESS


def _rows(item: pytest.Item) -> frozenset[str]:
    if any(item.get_closest_marker(mark) for mark in LEFT_OUT):
        return frozenset()
    marks = [mark for name in CLAIMS for mark in item.iter_markers(name)]
    return frozenset(str(id_) for mark in marks for id_ in mark.args)


def _known(profile: str) -> bool:
    try:
        settings.get_profile(profile)
    except Exception:  # Hypothesis has a private exception for it
        return False
    return True


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The last words of a failure, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if crash is not None else lines[-1])[:200] if lines else ""
