"""The ledger's departures: rows that mqis does not follow, each with an erratum and a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.conformance import claim_errors
from tests.tools.test_conformance import Project, project, table
from tools.conformance import faults, missed
from tools.errata import errata_numbers
from tools.ledger import (
    CaseResult,
    Count,
    Ledger,
    LedgerError,
    Outcome,
    Results,
    count,
    load_ledger,
    open_rows,
    proved,
)

__all__ = ["project"]

ERRATA = "# Errata\n\n| erratum | the text |\n|---|---|\n| E01 | sorts |\n| | other |\n"
DEPARTURES = "id\terratum\treason\nA-2\tE01\tit loses data\n"


def write(root: Path, departures: str = DEPARTURES, waivers: str = "") -> None:
    """A ledger with the rows A-1 to A-8, all of MS-MQSD."""
    directory = root / "docs" / "conformance"
    directory.mkdir(parents=True)
    (root / "docs" / "errata.md").write_text(ERRATA, "utf-8")
    (directory / "mqsd.tsv").write_text(table("A", ["MUST"] * 8), "utf-8")
    (directory / "waivers.tsv").write_text(f"id\treason\n{waivers}", "utf-8")
    (directory / "departures.tsv").write_text(departures, "utf-8")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    write(tmp_path)
    return load_ledger(tmp_path)


def results(*tests: CaseResult) -> Results:
    return Results(None, None, True, "3", {f"test {n}": test for n, test in enumerate(tests)})


def found(root: Path, ledger: Ledger, *tests: CaseResult, numbers: str) -> list[str]:
    """The faults of these results, beside a README with these numbers."""
    (root / "README.md").write_text(f"| MS-MQSD | discovery | {numbers} | x |\n", "utf-8")
    counts = count(ledger, proved(tests))
    return list(faults(root, ledger, results(*tests), counts))


def test_end_to_end(project: Project) -> None:
    project.write("docs/errata.md", ERRATA)
    project.write("docs/conformance/departures.tsv", DEPARTURES)
    project.write_tests(
        "@pytest.mark.departs('A-2')\ndef test_it(): pass\n"
        "@pytest.mark.req('A-1')\ndef test_other(): pass"
    )
    project.commit()
    done = project.conformance("--json")
    assert done.returncode == 0, done.stderr
    must = {"covered": 1, "departs": 1, "open": 4, "waived": 0}
    assert json.loads(done.stdout)["alpha"]["MUST"] == must
    words = project.conformance().stdout.split()
    assert "1/1/4/0" in words
    assert "12.5" in words  # a departure is not covered, and not waived either
    project.write_tests("@pytest.mark.req('A-2')\ndef test_it(): pass")
    run = project.pytest()
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "A-2 is in departures.tsv: mark the test departs('A-2')" in run.stderr


def test_a_departure_that_a_test_proves_is_not_open(tmp_path: Path, ledger: Ledger) -> None:
    test = CaseResult(("A-1",), "passed", interop=False, departs=("A-2",))
    assert count(ledger, proved([test])) == {"mqsd": {"MUST": Count(1, 1, 6, 0)}}
    assert "A-2" not in {row.id for row in open_rows(ledger, proved([test]))}
    assert found(tmp_path, ledger, test, numbers="1 | 1 | 6 | 0") == []


@pytest.mark.parametrize(
    ("outcome", "interop"), [("xfailed", False), ("passed", True), ("failed", False)]
)
def test_a_departure_without_a_passing_test_is_an_error(
    tmp_path: Path, ledger: Ledger, outcome: Outcome, interop: bool
) -> None:
    test = CaseResult((), outcome, interop, ("A-2",))
    assert "A-2" in {row.id for row in open_rows(ledger, proved([test]))}
    faults_found = found(tmp_path, ledger, test, numbers="0 | 0 | 8 | 0")
    assert "departures.tsv: A-2 has no passing test marked departs('A-2')" in faults_found
    without = found(tmp_path, ledger, numbers="0 | 0 | 8 | 0")
    assert without == ["departures.tsv: A-2 has no passing test marked departs('A-2')"]


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("NO-1\tE01\treason\n", "'NO-1' is in no table"),
        ("A-2\tE01\treason\nA-2\tE01\treason\n", "A-2 is departed from twice"),
        ("A-2\tE01\t \n", "A-2 is departed from without a reason"),
        ("A-2\tE02\treason\n", "names erratum 'E02', which docs/errata.md does not have"),
        ("A-2\t\treason\n", "names erratum ''"),
        ("A-2\tE01\n", "2 cells"),
        ("A-3\tE01\treason\n", "A-3 is in departures.tsv too"),
    ],
)
def test_bad_departure_is_refused(tmp_path: Path, rows: str, named: str) -> None:
    write(tmp_path, f"id\terratum\treason\n{rows}", waivers="A-3\treason\n")
    with pytest.raises(LedgerError, match=named):
        load_ledger(tmp_path)


@pytest.mark.parametrize(
    ("mark", "named"),
    [
        (pytest.mark.req("A-2"), "A-2 is in departures.tsv: mark the test departs('A-2')"),
        (pytest.mark.departs("A-1"), "A-1 is not in departures.tsv"),
        (pytest.mark.departs("NO-1"), "'NO-1' is in no table of docs/conformance"),
        (pytest.mark.departs(), "departs wants ids and nothing else"),
    ],
)
def test_wrong_mark(ledger: Ledger, mark: pytest.MarkDecorator, named: str) -> None:
    assert claim_errors([mark.mark], ledger.requirements, ledger.departures) == [named]
    right = [pytest.mark.req("A-1").mark, pytest.mark.departs("A-2").mark]
    assert claim_errors(right, ledger.requirements, ledger.departures) == []


@pytest.mark.parametrize(
    ("numbers", "right"),
    [
        ("2 | 1 | 5 | 0", True),
        ("1 | 1 | 6 | 0", True),
        ("3 | 1 | 4 | 0", False),
        ("1 | 2 | 5 | 0", False),
        ("2 | 1 | 5 | 1", False),
    ],
)
def test_a_skipped_test_does_not_switch_off_the_comparison(
    tmp_path: Path, ledger: Ledger, numbers: str, right: bool
) -> None:
    """One row depends on a skipped test: only its number may differ from the README's."""
    tests = (
        CaseResult(("A-1",), "passed", interop=False, departs=("A-2",)),
        CaseResult(("A-1", "A-6"), "skipped", interop=False),
        CaseResult(("A-7",), "xfailed", interop=False),
    )
    said = found(tmp_path, ledger, *tests, numbers=numbers)
    assert (said == []) is right, said
    assert list(missed(ledger, results(*tests))) == ["open: only skipped tests claim A-6"]


def test_numbers_of_a_page() -> None:
    page = """
| erratum | section |
|---|---|
| E02 | 3 |
| E30, E33 to E35, E44 | E99 |
| E-MQSD-04, -05 | x |
| E-CMP-05, E-CMP-06 | x |
| | E98 |
"""
    assert errata_numbers(page) == {
        *("E02", "E30", "E33", "E34", "E35", "E44"),
        *("E-MQSD-04", "E-MQSD-05", "E-CMP-05", "E-CMP-06"),
    }


def test_our_own_page_has_numbers() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "errata.md"
    numbers = errata_numbers(page.read_text("utf-8"))
    assert {"E01", "E35", "E69", "E-MQSD-05", "E-MQBR-02", "E-CMPO-13"} <= numbers
