"""Checks the ``req`` and ``departs`` marks of the tests and records what a full run proves.

A mark that names an unknown id, or claims too much, stops the run before the first test. So does a
``req`` of a row that mqis departs from, and a ``departs`` of one that it does not. A full
run leaves ``.build/conformance.json`` for ``tools/conformance.py``, a part of it (``--part``) a
file of its own that ``tools/run_tests.py`` puts together with the others; any other run leaves
those files alone. The rules are in docs/conformance/README.md.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tools.ledger import (
    DEPARTURES,
    RESULTS,
    TABLES,
    CaseResult,
    Ledger,
    LedgerError,
    Outcome,
    Requirement,
    Results,
    load_ledger,
    results_of,
    save_results,
)
from tools.parts import parts
from tools.worktree import UNKNOWN, tree_state

ROOT = Path(__file__).resolve().parents[2]
MAX_IDS = 5
"""A test that claims more proves none of them in particular."""

PHASES = {"setup", "call", "teardown"}

# Each of these runs fewer tests than there are, or other ones, or judges them differently.
NARROWING = (
    "keyword",
    "markexpr",
    "ignore",
    "ignore_glob",
    "deselect",
    "lf",
    "collectonly",
    "setuponly",
    "setupplan",
    "runxfail",
    "inifilename",
)


def claim_errors(
    marks: Sequence[pytest.Mark],
    requirements: Mapping[str, Requirement],
    departures: Collection[str] = (),
) -> list[str]:
    """The errors in all the ``req`` and ``departs`` marks of one test together."""
    errors = []
    for mark in marks:
        if mark.kwargs or not mark.args:
            errors.append(f"{mark.name} wants ids and nothing else")
        for id_ in mark.args:
            errors += _wrong(mark.name, id_, requirements, departures)
    ids = [argument for mark in marks for argument in mark.args]
    if len(ids) > MAX_IDS:
        errors.append(f"{len(ids)} ids, at most {MAX_IDS} are allowed: {', '.join(map(str, ids))}")
    return errors


def _wrong(
    mark: str, id_: object, requirements: Mapping[str, Requirement], departures: Collection[str]
) -> list[str]:
    if not isinstance(id_, str):
        return [f"{id_!r} is not a string"]
    if id_ not in requirements:
        return [f"{id_!r} is in no table of {TABLES}"]
    if mark == "req" and id_ in departures:
        return [f"{id_} is in {DEPARTURES}: mark the test departs({id_!r})"]
    if mark == "departs" and id_ not in departures:
        return [f"{id_} is not in {DEPARTURES}"]
    return []


def is_narrowed(config: pytest.Config) -> bool:
    """Returns whether the command line selects anything but all the configured tests."""
    part = config.getoption("--part")
    if part is None:
        wanted = {(config.rootpath / path).resolve() for path in config.getini("testpaths")}
    else:
        wanted = {path.resolve() for path in parts(config.rootpath)[part].paths}
    asked = {Path(config.invocation_params.dir, path).resolve() for path in config.args}
    # --strict-markers and --strict-config arrive as overrides too; they leave out no test.
    overrides = [o for o in config.getoption("override_ini") or () if not o.startswith("strict")]
    narrowing = any(config.getoption(name, None) for name in NARROWING)
    return wanted != asked or narrowing or bool(overrides)


class Recorder:
    """Gathers the phases of every test, and at the end writes down what a full run came to."""

    def __init__(self, config: pytest.Config, ledger: Ledger) -> None:
        self._ledger = ledger
        self._root = config.rootpath
        self._part: str | None = config.getoption("--part")
        self._complete = not is_narrowed(config)
        # Taken before any test module is imported: the results belong to this tree.
        self._tree = tree_state(self._root) if self._complete else UNKNOWN
        self._claims: dict[str, CaseResult] = {}
        self._passed: dict[str, set[str]] = {}
        self._spoiled: dict[str, Outcome] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        errors: list[str] = []
        requirements, departures = self._ledger.requirements, self._ledger.departures
        for item in items:
            marks = [mark for mark in item.iter_markers() if mark.name in ("req", "departs")]
            found = claim_errors(marks, requirements, departures)
            errors += [f"{item.nodeid}: {error}" for error in found]
            interop = item.get_closest_marker("interop") is not None
            self._claims[item.nodeid] = CaseResult(
                _ids(marks, "req"), "failed", interop, _ids(marks, "departs")
            )
        if errors:
            raise pytest.UsageError(*errors)

    def pytest_deselected(self) -> None:
        self._complete = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._complete = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._spoiled[report.nodeid] = "failed"
        elif hasattr(report, "wasxfail"):
            self._spoiled.setdefault(report.nodeid, "xfailed")
        elif report.skipped:
            self._spoiled.setdefault(report.nodeid, "skipped")
        elif report.when is not None:
            self._passed.setdefault(report.nodeid, set()).add(report.when)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ended = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
        if not ended or session.shouldstop or session.shouldfail or not self._complete:
            return
        tests = {
            nodeid: replace(claim, outcome=self._outcome(nodeid))
            for nodeid, claim in self._claims.items()
        }
        # A tree that was edited meanwhile is neither the one nor the other.
        tree = self._tree if tree_state(self._root) == self._tree else UNKNOWN
        whole = self._part is None
        path = self._root / RESULTS if self._part is None else results_of(self._root, self._part)
        save_results(
            path, Results(tree.commit, tree.dirty, whole, platform.python_version(), tests)
        )

    def _outcome(self, nodeid: str) -> Outcome:
        if nodeid in self._spoiled:
            return self._spoiled[nodeid]
        return "passed" if self._passed.get(nodeid) == PHASES else "failed"


def _ids(marks: Sequence[pytest.Mark], name: str) -> tuple[str, ...]:
    return tuple(str(id_) for mark in marks if mark.name == name for id_ in mark.args)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=list(parts(ROOT)), help="what these directories are")


def pytest_configure(config: pytest.Config) -> None:
    try:
        ledger = load_ledger(config.rootpath)
    except LedgerError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(Recorder(config, ledger), "conformance-recorder")
