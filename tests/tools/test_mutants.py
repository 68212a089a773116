"""The runner of mutations, on a small project with real edits, processes and tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.conformance import with_mutations
from tools.ledger import COLUMNS, Ledger, LedgerError, load_ledger, load_tables
from tools.mutants import main, shard
from tools.mutation.pool import files_by_row
from tools.mutation.records import (
    Choice,
    Mutation,
    MutationError,
    edited,
    edited_file,
    load_mutations,
)
from tools.mutation.report import page
from tools.mutation.verdicts import Tally, tally

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
[tool.pytest.ini_options]
addopts = "--strict-markers --import-mode=importlib"
markers = ["req(*ids): ids", "interop: judged elsewhere", "slow: long"]
"""

SOURCE = """
import time
LIMIT = 10
def limited(value: int) -> bool:
    return value <= LIMIT
def halved(value: int) -> int:
    while value < 0:
        time.sleep(1)
    return value // 2
"""

TESTS = """
import pytest
from small.values import halved, limited

@pytest.mark.req("A-1")
@pytest.mark.parametrize("value", [1, 10])
def test_limit_holds(value): assert limited(value)

@pytest.mark.req("A-2", "A-3")
def test_limit_refuses(): assert not limited(11)

@pytest.mark.req("A-3")
@pytest.mark.interop
def test_of_another(): assert False

@pytest.mark.req("A-4")
def test_half(): assert halved(4) == 2

@pytest.mark.req("A-5")
def test_fails_always(): assert False
"""


def table() -> str:
    rows = [
        [f"A-{n}", "A", "1", level, "both", "state", f"rule {n}", ""]
        for n, level in enumerate(["MUST"] * 5 + ["MUST NOT", "FACT", "MAY"], start=1)
    ]
    return "".join("\t".join(cells) + "\n" for cells in [COLUMNS, *rows])


def mutation(rows: str, before: str, after: str, file: str = "src/small/values.py") -> str:
    return f"""
[[mutation]]
rows = [{rows}]
file = "{file}"
before = "{before}"
after = "{after}"
"""


@dataclass(frozen=True)
class Project:
    root: Path

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def mutations(self, *texts: str) -> None:
        self.write("tests/mutations/alpha.toml", "".join(texts))

    def load(self) -> list[Mutation]:
        return load_mutations(self.root, load_tables(self.root / "docs/conformance"))

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """The exit status and the verdicts by row."""
        command = [sys.executable, str(ROOT / "tools/mutants.py"), "--root", str(self.root)]
        done = subprocess.run(
            [*command, "--json", "--jobs", "1", "--limit", "12", *arguments],
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return done.returncode, {v["row"]: v for v in json.loads(done.stdout)["verdicts"]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("pyproject.toml", CONFIG)
    made.write("src/small/__init__.py", "")
    made.write("src/small/values.py", SOURCE)
    made.write("tests/test_values.py", TESTS)
    made.write("docs/conformance/alpha.tsv", table())
    made.write("docs/conformance/waivers.tsv", "id\treason\n")
    # The copy has its own tools, as this project's copies have.
    shutil.copytree(ROOT / "tools" / "mutation", tmp_path / "tools" / "mutation")
    for name in ("ledger.py", "errata.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    return made


def test_each_fate(project: Project) -> None:
    project.mutations(
        mutation('"A-1"', "value <= LIMIT", "value < LIMIT"),
        mutation('"A-2"', "LIMIT = 10", "LIMIT = 12"),
        mutation('"A-4"', "while value < 0", "while value > 0"),
        mutation('"A-5"', "value // 2", "value // 3"),
        mutation('"A-6"', "value // 2", "value // 4"),
    )
    status, verdicts = project.run()
    assert status == 1
    assert {row: verdict["fate"] for row, verdict in verdicts.items()} == {
        "A-1": "killed",
        "A-2": "killed",
        "A-4": "timeout",
        "A-5": "invalid",  # its test fails without the edit too
        "A-6": "survived",  # no test names it
    }
    assert verdicts["A-1"]["test"] == "tests/test_values.py::test_limit_holds[10]"
    assert (project.root / "src/small/values.py").read_text() == SOURCE
    copy = project.root / ".build/mutants/1/src/small/values.py"
    assert copy.read_text() == SOURCE


def test_each_row_of_an_edit_needs_a_failing_test_of_its_own(project: Project) -> None:
    # The test that names A-1 passes; the interop test that names A-3 fails but does not count.
    project.mutations(mutation('"A-1", "A-2"', "LIMIT = 10", "LIMIT = 12"))
    _, verdicts = project.run()
    assert {row: v["fate"] for row, v in verdicts.items()} == {"A-1": "survived", "A-2": "killed"}


def test_an_edit_that_leaves_no_program_is_invalid(project: Project) -> None:
    project.mutations(
        mutation('"A-1"', "LIMIT = 10", "LIMIT = nothing"),
        mutation('"A-2"', "LIMIT = 10", "LIMIT = ("),
        mutation('"A-4"', "value", "number"),
    )
    status, verdicts = project.run()
    assert status == 1
    assert {v["fate"] for v in verdicts.values()} == {"invalid"}
    assert "cannot be imported: NameError" in verdicts["A-1"]["detail"]
    assert "does not compile" in verdicts["A-2"]["detail"]
    assert "occurs 5 times" in verdicts["A-4"]["detail"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (mutation('"A-9"', "a", "b"), "A-9 in no table"),
        (mutation("", "a", "b"), "rows is a list"),
        (mutation('"A-1"', "", "b"), "before is empty or"),
        (mutation('"A-1"', "a", "a"), "or equals after"),
        (mutation('"A-1"', "a", "b") + "hope = 1", "hope not known"),
        ('[[mutation]]\nrows = ["A-1"]\nbefore = ""', "after, file missing"),
        ("[table]", "nothing else"),
        ("nonsense", "alpha.toml"),
    ],
)
def test_a_wrong_file_is_refused(project: Project, text: str, reason: str) -> None:
    project.mutations(text)
    with pytest.raises(LedgerError, match=reason):
        project.load()
    assert main(["--root", str(project.root)]) == 2


def test_an_edit_stays_inside_src_and_changes_code(project: Project) -> None:
    project.mutations(mutation('"A-1"', "[tool", "[fool", "pyproject.toml"))
    with pytest.raises(MutationError, match="not a file of src"):
        edited_file(project.root, project.load()[0])
    with pytest.raises(MutationError, match="changes no code"):
        edited("a = 1  # one", Mutation("alpha:1", ("A-1",), "src/a.py", "one", "two"))
    assert main(["--root", str(project.root), "--check"]) == 1


def test_choice(project: Project) -> None:
    edits = [mutation(f'"A-{n}"', f"{n}", "b") for n in (1, 2, 3, 4)]
    project.mutations(*edits)
    project.write("tests/mutations/other.toml", mutation('"A-5"', "5", "b"))
    requirements = load_tables(project.root / "docs/conformance")
    found = project.load()

    def chosen(choice: Choice) -> list[str]:
        return [m.name for m in choice.of(found, requirements)]

    assert chosen(Choice(only=("A-2", "other"))) == ["alpha:2", "other:1"]
    assert chosen(Choice(only=("alpha:3",))) == ["alpha:3"]
    assert len(chosen(Choice(only=("alpha",)))) == 5  # the table, which has A-5 too
    shards = [chosen(Choice(shard=shard(f"{n}/2"))) for n in (1, 2)]
    assert sorted(name for names in shards for name in names) == [m.name for m in found]
    assert len(chosen(Choice(sample=2, seed=1))) == 2
    assert chosen(Choice(sample=2, seed=1)) == chosen(Choice(sample=2, seed=1))


def test_files_that_may_claim_a_row(project: Project) -> None:
    project.write("tests/test_more.py", 'pytest.mark.req(f"A-{number}")\n')
    project.write("tests/test_none.py", "# A-33 or A-3.1\n")
    project.write("tests/test_parts.py", 'pytest.mark.req(f"B-3.1.{number}")\n')
    found = files_by_row(project.root, ["A-3", "B-3.1.7-01", "B-3.2-01"])
    assert found == {
        "A-3": {"tests/test_values.py"},
        "B-3.1.7-01": {"tests/test_parts.py"},
        "B-3.2-01": set(),
    }


def test_counts_and_page(project: Project) -> None:
    requirements = load_tables(project.root / "docs/conformance")
    ledger = Ledger(requirements, {}, {"A-6": "never"})
    counts = tally(ledger, {"A-1": 2, "A-2": 1, "A-7": 1})
    assert counts == {"alpha": Tally(rows=6, proved=2, partly=1, unproved=3)}
    text = page(counts, 5, "on a day", "# Mutants\n\n## Random mutations\n\nkept\n")
    assert "| `alpha` | 6 | 2 | 1 | 3 |" in text
    assert "5 mutations are recorded. Last judged on a day." in text
    assert text.endswith("## Random mutations\n\nkept\n")


def test_a_row_is_covered_if_enough_mutations_of_it_were_killed(project: Project) -> None:
    requirements = load_tables(project.root / "docs/conformance")
    covered = {"A-1", "A-2", "A-7", "A-8"}
    kills = {"A-1": 2, "A-2": 1}
    assert with_mutations(covered, Ledger(requirements, {}, {}), kills) == {"A-1", "A-8"}
    unbreakable = Ledger(requirements, {}, {}, {"A-7": "no code"})
    assert with_mutations(covered, unbreakable, kills) == {"A-1", "A-7", "A-8"}


def test_a_kill_counts_while_function_and_test_are_what_they_were(project: Project) -> None:
    project.mutations(
        mutation('"A-1"', "value <= LIMIT", "value < LIMIT"),
        mutation('"A-4"', "value // 2", "value // 3"),
    )

    def judged() -> set[str]:
        return set(project.run()[1])

    assert judged() == {"A-1", "A-4"}
    assert judged() == set()
    # Layout, comments and the rest of the file are not the function.
    project.write("src/small/values.py", SOURCE.replace("LIMIT = 10", "LIMIT = 10  # ten"))
    assert judged() == set()
    project.write("src/small/values.py", SOURCE.replace("while value < 0", "while value < -1"))
    assert judged() == {"A-4"}
    project.write("tests/test_values.py", TESTS.replace("[1, 10]", "[2, 10]"))
    assert judged() == {"A-1"}
    project.write("tests/test_values.py", TESTS.replace('"A-1")', '"A-1", "A-7")'))
    assert judged() == {"A-1"}  # the values are as at first again
    assert judged() == set()


def test_an_unbreakable_row_is_a_fact_with_a_reason(project: Project) -> None:
    project.write("docs/conformance/unbreakable.tsv", "id\treason\nA-7\tno code does it\n")
    assert load_ledger(project.root).unbreakable == {"A-7": "no code does it"}
    project.write("docs/conformance/unbreakable.tsv", "id\treason\nA-1\thard\n")
    with pytest.raises(LedgerError, match="A-1 has level MUST"):
        load_ledger(project.root)


def test_every_recorded_edit_fits_the_source() -> None:
    assert main(["--check"]) == 0
