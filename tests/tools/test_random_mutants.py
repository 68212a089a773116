"""Mutations at random places: the edits, the tests that execute a line, and their verdicts."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.ledger import LedgerError
from tools.mutation.chance import Judged, draw, load_equivalent, rounds
from tools.mutation.functions import functions_of
from tools.mutation.operators import places
from tools.mutation.reached import PLACE, Case, Reached, ReachedWriter
from tools.mutation.recorder import SOURCE, TEST
from tools.mutation.report import page_of_chance, rates

ROOT = Path(__file__).resolve().parents[2]


def edits(source: str) -> dict[str, list[str]]:
    """The edited sources by operator."""
    found: dict[str, list[str]] = {}
    for place in places(source):
        for edit in place.edits:
            changed = edit.applied(source)
            ast.parse(changed)
            found.setdefault(edit.operator, []).append(changed)
    return found


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("condition negated", "if a: b()", "if (not (a)): b()"),
        ("condition negated", "x = a if b else c", "x = a if (not (b)) else c"),
        ("condition dropped", "if a: b()", "if True: b()"),
        ("condition dropped", "return a or b", "return ((b))"),
        ("condition dropped", "return [x for x in y if x]", "return [x for x in y if True]"),
        ("comparison shifted", "return a < b", "return (a <= b)"),
        ("comparison shifted", "return a is None", "return (a is not None)"),
        ("constant changed", "return 41", "return 42"),
        ("constant changed", "return f(deep=True)", "return f(deep=False)"),
        ("statement left out", "self.x = 1", "pass"),
        ("statement left out", "raise ValueError", "pass"),
        ("early return", "return a", "return None"),
        ("early return", "call()", "return"),
        ("wrong variable", "return a", "return b"),
        ("exception swallowed", "try: a()\n    except E: b()", "try: a()\n    except E: pass"),
        ("await left out", "await a()", "(a())"),
        ("max and min exchanged", "return max(a, b)", "return min(a, b)"),
        ("search for fullmatch", "return p.fullmatch(a)", "return p.search(a)"),
    ],
)
def test_each_operator(operator: str, before: str, after: str) -> None:
    head = "async def f(a: int, b: int, c: str):\n    "
    assert head + after in edits(head + before)[operator]


def test_what_is_never_edited() -> None:
    source = '''
"""Text 1."""
from x import y
if TYPE_CHECKING:
    z = 1
@cached(maxsize=5)
def f(a: Literal[1]) -> Literal[2]:
    """More than 3."""
    b: Literal[3] = g(f"{4}")
'''
    assert "constant changed" not in edits(source)
    assert "wrong variable" not in edits("def f(a: int, b: str): return a")
    for same in ("None", "False", '""', "()"):
        assert "early return" not in edits(f"def f(): return {same}")


def test_a_field_is_exchanged_for_one_of_its_type() -> None:
    source = "class A:\n    x: int\n    y: int\n    z: str\n    def f(self): return self.x"
    assert edits(source)["wrong variable"] == [source.replace("self.x", "self.y")]


def test_bytes_and_not_characters_are_counted() -> None:
    source = 'def f(a):\n    x("ä"); return 1'
    assert edits(source)["constant changed"] == ['def f(a):\n    x("ä"); return 2']


def test_places_know_their_function_and_their_names() -> None:
    source = "LIMIT = 1\nclass A:\n    size = 2\n    def f(self):\n        def g(): return 3\n"
    found = {(place.function, place.line): place.names for place in places(source)}
    assert found == {("", 1): {"LIMIT"}, ("", 3): {"A", "size"}, ("A.f.g", 5): {"A"}}


NOW = """
LIMIT = 7
def first():
    return LIMIT
def second():
    return 2
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two functions, each of which a test executes, as recorded."""
    monkeypatch.setattr("tools.mutation.reached.SOURCE", f"{tmp_path}/src/")
    source = tmp_path / "src" / "mqis" / "wire" / "small.py"
    source.parent.mkdir(parents=True)
    for directory in (source.parent, source.parent.parent):
        (directory / "__init__.py").touch()
    source.write_text(NOW)
    writer = ReachedWriter(tmp_path / PLACE / "all.db")
    for nodeid, line in (("tests/test_a.py::test_first", 4), ("tests/test_a.py::test_second", 6)):
        writer.test(nodeid, 0.5, counts=True)
        writer.reached(nodeid, {"mqis/wire/small.py": 1 << line})
    writer.test("tests/test_b.py::test_elsewhere", 0.5, counts=False)
    writer.reached("tests/test_b.py::test_elsewhere", {"mqis/wire/small.py": 1 << 4})
    writer.close()
    return tmp_path


def names(cases: list[Case]) -> list[str]:
    return [case.nodeid.rpartition("_")[2] for case in cases]


FILE = "src/mqis/wire/small.py"


def test_the_tests_of_a_line(project: Path) -> None:
    reached = Reached(project)
    assert names(reached.tests(FILE, [4])) == ["first"]  # and not the one that does not count
    assert names(reached.tests(FILE, [6])) == ["second"]
    assert names(reached.tests_of_names({"LIMIT"})) == ["first"]
    assert names(reached.tests_of_file(FILE)) == ["first", "second"]
    assert reached.knows(FILE)
    assert not reached.knows("src/mqis/wire/other.py")


def test_the_tests_of_a_table(project: Path) -> None:
    """A test that compares a table of a module executes none of its lines."""
    writer = ReachedWriter(project / PLACE / "tables.db")
    for nodeid in ("test_z.py::test_table[a_1]", "test_z.py::test_table[b_2]"):
        writer.test(f"tests/{nodeid}", 0.1, counts=True)
    writer.test("tests/test_z.py::test_slower", 0.2, counts=True)
    writer.test("tests/test_small.py::test_namesake", 0.9, counts=True)
    writer.test("tests/test_other.py::test_other", 0.1, counts=True)
    writer.close()
    (project / "tests").mkdir()
    (project / "tests" / "test_z.py").write_text("from mqis.wire.small import LIMIT\n")
    (project / "tests" / "test_small.py").write_text("from mqis.wire import small\n")
    (project / "tests" / "test_other.py").write_text("from mqis.wire import smallest\n")
    found = names(Reached(project).tests_of_module(FILE))
    assert found == ["namesake", "1]", "slower", "2]"]


def test_the_tests_of_a_line_that_has_moved(project: Path) -> None:
    (project / FILE).write_text("# New.\n" * 10 + NOW)
    assert names(Reached(project).tests(FILE, [16])) == ["second"]


def test_the_tests_of_changed_and_of_new_functions(project: Path) -> None:
    changed = NOW.replace("return 2", "a = 2\n    return a") + "def third():\n    return 3\n"
    (project / FILE).write_text(changed)
    assert names(Reached(project).tests(FILE, [7])) == ["second"]
    assert sorted(names(Reached(project).tests(FILE, [9]))) == ["first", "second"]


def test_a_seed_repeats_what_is_drawn(project: Path) -> None:
    drawn = [draw(project, seed, 2, ["wire"], Reached(project)) for seed in (1, 1, 2, 3, 4)]
    assert drawn[0] == drawn[1]
    assert any(other != drawn[0] for other in drawn)
    assert len({chance.place.line for chance in drawn[0]}) == 2


def test_rounds_begin_with_the_tests_that_tell_most() -> None:
    quick = [Case(f"tests/test_quick.py::test_{n}", 0.01, 100) for n in range(40)]
    others = [Case(f"tests/test_{n}.py::test_it", 1.0 + n, 5000) for n in range(100)]
    first, second, third = rounds([*quick, *others])
    assert first == quick[:30]
    assert second == [*quick[30:], *others[:5]]
    assert sum(case.seconds for case in third) <= 120
    assert not {*first} & {*second, *third}


def test_verdicts_end_to_end(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n'
    )
    (project / "tests").mkdir()
    (project / "tests" / "test_a.py").write_text(
        "from mqis.wire.small import first, second\n"
        "def test_first(): assert first() > 6\ndef test_second(): assert second() == 2\n"
    )
    shutil.copytree(ROOT / "tools" / "mutation", project / "tools" / "mutation")
    for name in ("ledger.py", "errata.py"):
        shutil.copy(ROOT / "tools" / name, project / "tools" / name)
    equivalent = project / "tests" / "mutations" / "random" / "equivalent.toml"
    equivalent.parent.mkdir(parents=True)
    (project / "docs/conformance").mkdir(parents=True)
    command = [sys.executable, str(ROOT / "tools/mutants.py"), "--root", str(project)]

    def run(*arguments: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [*command, "--random", "3", "--seed", "1", "--json", "--jobs", "1", *arguments],
            env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    fates = {verdict["line"]: verdict["fate"] for verdict in run("--write")}
    # The constant becomes 8, which the test does not tell from 7.
    assert fates == {2: "survived", 4: "killed", 6: "killed"}
    page = (project / "docs/conformance/mutants.md").read_text()
    assert "| `wire` | 3 | 2 | 0 | 1 | 0 | 66.7 % | 97 % |" in page
    assert f"- `{FILE}:2` , constant changed: `7` to `8` (survived)" in page
    equivalent.write_text(
        f'[[equivalent]]\nfile = "{FILE}"\nfunction = ""\nbefore = "7"\nafter = "8"\n'
        'reason = "both are more than six"\n'
    )
    # A plugin that cannot be imported with the edit: no test runs, and that is noticed.
    plugin = project / "tests" / "conftest.py"
    plugin.write_text("from mqis.wire import small\nassert small.LIMIT == 7\n")
    fates = {verdict["line"]: verdict["fate"] for verdict in run()}
    assert fates == {2: "killed", 4: "killed", 6: "killed"}
    plugin.unlink()
    kept = project / ".build" / "random-1.jsonl"
    kept.write_text("".join(li for li in kept.open() if json.loads(li)["line"] != 2))
    # Kills are kept, so that a run that was interrupted goes on: now a test would notice nothing.
    (project / "tests" / "test_a.py").write_text(
        "from mqis.wire.small import first, second\n"
        "def test_first(): first()\ndef test_second(): second()\n"
    )
    fates = {verdict["line"]: verdict["fate"] for verdict in run()}
    assert fates == {2: "equivalent", 4: "killed", 6: "killed"}


def test_an_equivalent_edit_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "mutations" / "random" / "equivalent.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[[equivalent]]\nfile = "a"\nfunction = ""\nbefore = "1"\nafter = "2"\n')
    with pytest.raises(LedgerError, match="entry 1 needs"):
        load_equivalent(tmp_path)


def test_recorded_equivalents_are_edits_of_the_source_as_it_is() -> None:
    for file, function, before, after in load_equivalent(ROOT):
        source = (ROOT / file).read_text("utf-8")
        data = source.encode()
        known = {
            (place.function, data[edit.start : edit.end].decode(), edit.text)
            for place in places(source)
            for edit in place.edits
        }
        assert (function, before, after) in known, f"{file}: {function}: {before} to {after}"


def test_rates_leave_equivalent_ones_out() -> None:
    fates = ["killed", "killed", "timeout", "survived", "equivalent", "unreached"]
    verdicts = [Judged("wire", "f", "", 1, "o", "a", "b", fate) for fate in fates]  # type: ignore[arg-type]
    wire, total = rates(verdicts)
    assert wire.cells == ["6", "2", "1", "2", "1", "60.0 %", "97 %"]
    assert total.cells[-1] == ""
    text = page_of_chance(
        verdicts, 5, "today", "# Mutants\n\nfirst\n\n## Random mutations\n\nold\n"
    )
    assert text.startswith("# Mutants\n\nfirst\n\n## Random mutations\n")
    assert "Seed 5, today." in text
    assert "old" not in text


def test_a_digest_is_of_code_and_not_of_its_layout() -> None:
    one, same, other = (
        functions_of(text)[0].digest
        for text in (
            "def f():\n    return 1",
            'def f():\n    """Says one."""\n    return (1)  # one',
            "def f():\n    return 2",
        )
    )
    assert one == same
    assert one != other


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_lines_are_recorded_once_between_two_looks(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(tmp_path)!r}]
from tools.mutation.recorder import Recorder
recorder = Recorder({f"{tmp_path}/"!r})
recorder.start()
import small
recorder.take()
small.f(1)
print(recorder.take())
small.f(0)
small.f(0)
print(recorder.stop())
small.f(1)
"""
    (tmp_path / "small.py").write_text("def f(a):\n    if a:\n        return 1\n    return 2\n")
    # A run that is recorded itself would have taken the tool's place already.
    env = {key: value for key, value in os.environ.items() if key != TEST}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    lines = [sum(1 << n for n in numbers) for numbers in ((1, 2, 3), (1, 2, 4))]
    assert done.stdout.splitlines() == [f"{{'small.py': {bits}}}" for bits in lines]


def test_the_recorder_watches_this_project() -> None:
    assert f"{ROOT / 'src'}{os.sep}" == SOURCE
