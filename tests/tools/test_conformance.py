"""The ledger end to end: real pytest runs of small projects, with the real plugin and command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tools.ledger import COLUMNS, LedgerError, load_ledger, load_tables
from tools.mutation.kills import Kill, edit_digest, proof_digest, save_kills
from tools.mutation.records import load_mutations

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
[tool.pytest.ini_options]
testpaths = ["cases"]
addopts = "--strict-markers --import-mode=importlib"
markers = ["req(*ids): ids", "departs(*ids): ids", "interop: judged elsewhere"]
"""

LEVELS_OF_ALPHA = ["MUST"] * 6 + ["SHOULD", "MAY"]
BINDING_ROWS = [*(f"A-{n}" for n in range(1, 7)), "B-1"]


def table(prefix: str, levels: list[str]) -> str:
    rows = [
        [f"{prefix}-{n}", prefix, "1", level, "both", "state", f"rule {n} of {prefix}", ""]
        for n, level in enumerate(levels, start=1)
    ]
    return "".join("\t".join(cells) + "\n" for cells in [COLUMNS, *rows])


def mutations(*rows: str) -> str:
    """The text of a file with two edits for each row."""
    edits = [f'file = "src/rules.py"\nbefore = "1"\nafter = "{n}"\n' for n in (2, 3)]
    return "".join(f'[[mutation]]\nrows = ["{row}"]\n{edit}' for row in rows for edit in edits)


@dataclass(frozen=True)
class Project:
    """A repository with tables alpha (A-1..8) and beta (B-1, B-2) and the tests it is given."""

    root: Path

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def kill(self, only: Collection[str] = ("2", "3")) -> None:
        """Records kills of the mutations, or of those with certain texts."""
        test = "cases/conftest.py::test_it"
        found = load_mutations(self.root, load_tables(self.root / "docs/conformance"))
        proof = proof_digest(self.root, test)
        kills = [
            Kill(row, edit_digest(self.root, mutation), test, proof)
            for mutation in found
            for row in mutation.rows
            if mutation.after in only
        ]
        save_kills(self.root, kills)

    def write_tests(self, body: str) -> None:
        self.write("cases/test_it.py", f"import pytest\n{body}")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        # A git hook that runs these tests must not lend them its repository.
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTEST_"))}
        return subprocess.run(
            command,
            cwd=self.root,
            env=env | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "pytest", *arguments)

    def conformance(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        script = str(ROOT / "tools" / "conformance.py")
        return self.run(sys.executable, script, "--root", str(self.root), *arguments)

    def commit(self) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        for arguments in (["add", "-A"], [*who, "commit", "-qm", "x", "--allow-empty"]):
            done = self.run("git", *arguments)
            assert done.returncode == 0, done.stderr

    @property
    def results(self) -> Path:
        return self.root / ".build" / "conformance.json"

    def recorded(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.results.read_text(encoding="utf-8"))
        return value


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("pyproject.toml", CONFIG)
    made.write(".gitignore", ".build/\n.pytest_cache/\n__pycache__/\n")
    made.write("cases/conftest.py", 'pytest_plugins = ["tests.plugins.conformance"]\n')
    made.write("docs/conformance/alpha.tsv", table("A", LEVELS_OF_ALPHA))
    made.write("docs/conformance/beta.tsv", table("B", ["MUST NOT", "FACT"]))
    made.write("docs/conformance/waivers.tsv", "id\treason\n")
    made.write("src/rules.py", "LIMIT = 1\n")
    made.write("tests/mutations/all.toml", mutations(*BINDING_ROWS, "B-2"))
    made.kill()
    assert made.run("git", "init", "-q").returncode == 0
    return made


OUTCOMES = """
@pytest.mark.req("A-1")
def test_passes(): pass

@pytest.mark.req("A-2")
def test_fails(): assert False

@pytest.mark.req("A-3")
def test_skips(): pytest.skip()

@pytest.mark.req("A-4")
@pytest.mark.xfail
def test_xfails(): assert False

@pytest.mark.req("A-5")
@pytest.mark.xfail
def test_xpasses(): pass

@pytest.mark.interop
@pytest.mark.req("A-6", "A-7")
def test_interop(): pass

@pytest.mark.req("A-7")
def test_own_beside_interop(): pass

@pytest.fixture
def bad_teardown():
    yield
    assert False

@pytest.mark.req("B-1")
def test_teardown_fails(bad_teardown): pass

@pytest.fixture
def bad_setup(): assert False

@pytest.mark.req("B-2")
def test_setup_fails(bad_setup): pass
"""


def test_only_passing_tests_of_our_own_cover(project: Project) -> None:
    project.write_tests(OUTCOMES)
    project.write("docs/conformance/waivers.tsv", "id\treason\nA-8\tdoes not apply\n")
    project.commit()

    done = project.conformance("--json")

    # stdout is the JSON alone although the tests ran, and failed, underneath
    assert json.loads(done.stdout) == {
        "alpha": {
            "MUST": {"covered": 1, "departs": 0, "open": 5, "waived": 0},
            "SHOULD": {"covered": 1, "departs": 0, "open": 0, "waived": 0},
            "MAY": {"covered": 0, "departs": 0, "open": 0, "waived": 1},
        },
        "beta": {
            "MUST NOT": {"covered": 0, "departs": 0, "open": 1, "waived": 0},
            "FACT": {"covered": 0, "departs": 0, "open": 1, "waived": 0},
        },
    }
    assert done.returncode == 1
    assert "failed: cases/test_it.py::test_fails" in done.stderr
    recorded = project.recorded()
    assert recorded["full"] is True
    assert recorded["python"].startswith("3.")
    assert recorded["commit"] == project.run("git", "rev-parse", "HEAD").stdout.strip()
    tests = {
        n.rpartition("::")[2]: (t["outcome"], t["interop"]) for n, t in recorded["tests"].items()
    }
    assert tests == {
        "test_passes": ("passed", False),
        "test_fails": ("failed", False),
        "test_skips": ("skipped", False),
        "test_xfails": ("xfailed", False),
        "test_xpasses": ("xfailed", False),
        "test_interop": ("passed", True),
        "test_own_beside_interop": ("passed", False),
        "test_teardown_fails": ("failed", False),
        "test_setup_fails": ("failed", False),
    }
    assert recorded["tests"]["cases/test_it.py::test_interop"]["ids"] == ["A-6", "A-7"]


def test_a_binding_row_needs_two_killed_mutations_and_a_fact_one(project: Project) -> None:
    project.write("tests/mutations/all.toml", mutations("A-1", "B-2"))
    project.kill(only="2")
    project.write_tests("@pytest.mark.req('A-1', 'A-7', 'B-1', 'B-2')\ndef test_it(): pass")
    project.commit()
    done = project.conformance("--json")
    figures = json.loads(done.stdout)
    assert figures["alpha"]["MUST"]["covered"] == 0
    assert figures["beta"]["FACT"]["covered"] == 1
    assert "2 of 4 mutations have not been killed on the code as it is" in done.stderr
    assert "1 of 2" in project.conformance("--open", "alpha").stdout


def test_a_kill_on_other_code_counts_no_more(project: Project) -> None:
    project.write_tests("@pytest.mark.req('A-1')\ndef test_it(): pass")
    project.commit()
    before = json.loads(project.conformance("--json").stdout)
    project.write("src/rules.py", "LIMIT = 1 + 0\n")
    after = json.loads(project.conformance("--json").stdout)
    assert [f["alpha"]["MUST"]["covered"] for f in (before, after)] == [1, 0]


def test_a_binding_row_without_a_mutation_is_open(project: Project) -> None:
    project.write("tests/mutations/all.toml", mutations("A-2"))
    project.write_tests("@pytest.mark.req('A-1', 'A-2', 'A-7', 'B-1')\ndef test_it(): pass")
    project.commit()

    figures = json.loads(project.conformance("--json").stdout)

    assert figures["alpha"]["MUST"] == {"covered": 1, "departs": 0, "open": 5, "waived": 0}
    assert figures["alpha"]["SHOULD"] == {"covered": 1, "departs": 0, "open": 0, "waived": 0}
    assert figures["beta"]["MUST NOT"] == {"covered": 0, "departs": 0, "open": 1, "waived": 0}


def test_reports_for_readers(project: Project) -> None:
    project.write_tests("@pytest.mark.req('A-1', 'B-1')\ndef test_it(): pass")
    project.commit()

    shown = project.conformance()
    opened = project.conformance("--open", "beta")
    unknown = project.conformance("--open", "gamma")

    assert shown.returncode == opened.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 100
    words = {
        line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines() if line.split()
    }
    assert words["alpha"] == ["1/0/5/0", "0/0/1/0", "0/0/1/0", "1/0/7/0", "12.5", "%"]
    assert words["beta"] == ["1/0/0/0", "0/0/1/0", "1/0/1/0", "50.0", "%"]
    assert words["total"][-3:] == ["2/0/8/0", "20.0", "%"]
    assert [line.split() for line in opened.stdout.splitlines() if "B-" in line] == [
        ["B-2", "FACT", "enough", "rule", "2", "of", "B"]
    ]
    assert unknown.returncode == 2
    assert "gamma" in unknown.stderr


@pytest.mark.parametrize(
    ("mark", "named"),
    [
        ("req('A-1', 'NO-1')", "'NO-1'"),
        ("req(7)", "7 is not a string"),
        ("req('')", "''"),
        ("req()", "req wants ids"),
        ("req", "req wants ids"),
        ("req(id='A-1')", "req wants ids"),
        ("req('A-1', 'A-2', 'A-3', 'A-4', 'A-5', 'A-6')", "6 ids"),
    ],
)
def test_wrong_mark_fails_the_run(project: Project, mark: str, named: str) -> None:
    project.write_tests(f"@pytest.mark.{mark}\ndef test_marked(): pass\ndef test_other(): pass")
    done = project.pytest()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "cases/test_it.py::test_marked" in done.stderr
    assert named in done.stderr
    assert not project.results.exists()


def test_ids_of_function_and_case_add_up(project: Project) -> None:
    project.write_tests("""
@pytest.mark.req("A-1", "A-2", "A-3", "A-4")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("A-5", "A-6"))])
def test_it(x): pass
""")
    done = project.pytest()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "A-1" in done.stderr
    assert "A-6" in done.stderr


def test_six_cases_with_an_id_each_pass(project: Project) -> None:
    project.write_tests("""
CASES = [pytest.param(n, marks=pytest.mark.req(f"A-{n}")) for n in range(1, 7)]

@pytest.mark.parametrize("n", CASES)
def test_it(n): pass
""")
    project.commit()
    done = project.conformance("--json")
    must = {"covered": 6, "departs": 0, "open": 0, "waived": 0}
    assert json.loads(done.stdout)["alpha"]["MUST"] == must
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("NO-1\treason\n", "'NO-1' is in no table"),
        ("A-2\treason\nA-2\treason\n", "A-2 is waived twice"),
        ("A-2\t\n", "A-2 is waived without a reason"),
        ("A-2\n", "1 cells"),
        ("A-1\treason\n", "remove their waivers: A-1"),
    ],
)
def test_bad_waiver_is_refused(project: Project, rows: str, named: str) -> None:
    project.write_tests("@pytest.mark.req('A-1')\ndef test_it(): pass")
    project.write("docs/conformance/waivers.tsv", "id\treason\n" + rows)
    project.commit()
    done = project.conformance("--json")
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stdout == ""


def test_results_are_reused_only_for_the_same_tree(project: Project) -> None:
    """The test counts its runs in an ignored file, which tells whether it ran again."""
    project.write_tests("""
from pathlib import Path

@pytest.mark.req("A-1")
def test_it():
    with Path(".build/runs").open("a") as runs:
        runs.write("x")
""")
    project.commit()
    runs = project.root / ".build" / "runs"
    runs.parent.mkdir()

    def runs_after_report() -> int:
        assert project.conformance("--json").returncode == 0
        return len(runs.read_text())

    assert runs_after_report() == 1
    assert runs_after_report() == 1  # same commit, same files
    assert project.pytest().returncode == 0  # a full run by hand serves as well
    assert runs_after_report() == 2
    project.commit()  # other commit, same files
    assert runs_after_report() == 3
    project.write("cases/conftest.py", 'pytest_plugins = ("tests.plugins.conformance",)\n')
    assert runs_after_report() == 4  # a changed file
    assert runs_after_report() == 4
    project.write("cases/conftest.py", "pytest_plugins = 'tests.plugins.conformance'\n")
    assert runs_after_report() == 5  # the same file changed again
    project.write("notes.txt", "one")
    assert runs_after_report() == 6  # a new file
    project.write("notes.txt", "two")
    assert runs_after_report() == 7  # the same new file with other contents
    assert runs_after_report() == 7


def test_results_of_a_tree_edited_meanwhile_are_not_reused(project: Project) -> None:
    project.write_tests("""
from pathlib import Path

@pytest.mark.req("A-1")
def test_it(): Path("edited.txt").write_text("x")
""")
    project.commit()
    assert project.pytest().returncode == 0
    recorded = project.recorded()
    assert (recorded["commit"], recorded["dirty"]) == (None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", "one"],
        ["-m", "not interop"],
        ["cases/test_it.py"],
        ["cases/test_it.py::test_one"],
        ["--deselect", "cases/test_it.py::test_two"],
        ["--ignore", "cases/test_more.py"],
        ["--collect-only"],
        ["-x"],
        ["--maxfail=1"],
        ["--lf"],
        ["-o", "python_files=test_it.py"],
    ],
    ids=" ".join,
)
def test_partial_run_leaves_the_results_alone(project: Project, arguments: list[str]) -> None:
    project.write_tests(
        "def test_one(): pass\ndef test_two(): assert False\ndef test_three(): pass"
    )
    project.write("cases/test_more.py", "def test_four(): pass")
    project.commit()
    project.write(".build/conformance.json", "before")
    done = project.pytest(*arguments)
    assert "collected" in done.stdout, done.stderr
    assert project.results.read_text() == "before"


def test_configured_paths_spelled_out_are_a_full_run(project: Project) -> None:
    project.write_tests("def test_one(): pass")
    project.commit()
    assert project.pytest("cases").returncode == 0
    assert project.recorded()["full"] is True


def test_broken_module_is_no_full_run(project: Project) -> None:
    project.write_tests("def test_one(): pass")
    project.commit()
    assert project.pytest().returncode == 0
    before = project.recorded()
    project.write("cases/test_broken.py", "import nothing_of_that_name")
    project.pytest("--continue-on-collection-errors")
    assert project.recorded() == before
    done = project.conformance("--json")  # nor do the old results stand in for it
    assert done.returncode == 2
    assert done.stdout == ""


@pytest.mark.parametrize("content", ["{}", "[]", "not json", '{"tests": 1}'])
def test_unreadable_results_are_made_anew(project: Project, content: str) -> None:
    project.write_tests("@pytest.mark.req('A-1')\ndef test_one(): pass")
    project.commit()
    project.write(".build/conformance.json", content)
    done = project.conformance("--json")
    assert json.loads(done.stdout)["alpha"]["MUST"]["covered"] == 1


def test_without_git_nothing_is_reused(project: Project) -> None:
    project.write_tests("@pytest.mark.req('A-1')\ndef test_one(): pass")
    assert project.conformance("--json").returncode == 0  # a repository without a commit
    assert project.recorded()["commit"] is None
    assert "1 passed" in project.conformance("--json").stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id\tspec\n", ":1: the header"),
        (table("C", ["MUST"]).replace("\t1\t", "\t"), ":2: 7 cells"),
        (table("C", ["OUGHT"]), "'OUGHT' is not one of"),
        (table("C", ["MUST"]) + table("C", ["MUST"]).partition("\n")[2], "C-1 occurs twice"),
        (table("C", ["MUST"]).replace("rule 1 of C", ""), "id or summary is empty"),
    ],
)
def test_bad_table_is_refused(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "c.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(LedgerError, match=named):
        load_tables(tmp_path)


def test_bad_table_fails_the_run(project: Project) -> None:
    project.write_tests("def test_one(): pass")
    project.write("docs/conformance/gamma.tsv", "id\n")
    done = project.pytest()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "gamma.tsv:1" in done.stderr


def test_our_own_tables_departures_and_waivers_load() -> None:
    requirements = load_ledger(ROOT).requirements
    assert {r.table for r in requirements.values()} == {
        "cmp",
        "mqbr",
        "mqds-client",
        "mqds-server",
        "mqdsrp",
        "mqdssm",
        "mqsd",
        "security",
    }
    assert len(requirements) == 1560
