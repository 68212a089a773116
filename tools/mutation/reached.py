"""The tests that execute a line of the product, from the files that ``make reached`` writes.

A file has the source as it was then. So a line is found again as long as its function is the same;
of a function that has changed since, all tests count, and of a new one all tests of its file.
"""

from __future__ import annotations

import ast
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from tools.mutation.functions import Function, functions_of
from tools.mutation.recorder import SOURCE, Lines

PLACE = Path(".build/reached")
_SCHEMA = """
CREATE TABLE tests (
    id INTEGER PRIMARY KEY, nodeid TEXT UNIQUE, seconds REAL, counts INTEGER, lines INTEGER
);
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, source TEXT);
CREATE TABLE reached (
    file INTEGER, test INTEGER, lines BLOB, PRIMARY KEY (file, test)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A test, the seconds it took, and how many lines of the product it executed."""

    nodeid: str
    seconds: float
    lines: int

    @property
    def file(self) -> str:
        return self.nodeid.partition("::")[0]

    @property
    def cost(self) -> float:
        """Smaller for quick tests, and for those that are about little: they tell most."""
        return self.seconds + self.lines / 5000


class ReachedWriter:
    """Writes the file of one run of tests; it is there only when the run has ended."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_suffix(".partial")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._partial.unlink(missing_ok=True)
        self._database = sqlite3.connect(self._partial)
        self._database.executescript(_SCHEMA)
        self._lines: dict[str, Lines] = {}

    def test(self, nodeid: str, seconds: float, *, counts: bool) -> None:
        values = (nodeid, round(seconds, 4), counts)
        text = "INSERT OR REPLACE INTO tests (nodeid, seconds, counts) VALUES (?, ?, ?)"
        self._database.execute(text, values)

    def reached(self, nodeid: str, lines: Lines) -> None:
        known = self._lines.setdefault(nodeid, {})
        for name, bits in lines.items():
            known[name] = known.get(name, 0) | bits

    def close(self) -> None:
        numbers = dict(self._database.execute("SELECT nodeid, id FROM tests"))
        names = sorted({name for lines in self._lines.values() for name in lines})
        places = {name: place for place, name in enumerate(names) if Path(SOURCE, name).is_file()}
        sources = [(p, f"src/{n}", Path(SOURCE, n).read_text("utf-8")) for n, p in places.items()]
        self._database.executemany("INSERT INTO files VALUES (?, ?, ?)", sources)
        for nodeid, lines in self._lines.items():
            if (test := numbers.get(nodeid)) is None:
                continue
            rows = [(places[n], test, _bytes(bits)) for n, bits in lines.items() if n in places]
            self._database.executemany("INSERT INTO reached VALUES (?, ?, ?)", rows)
            total = sum(bits.bit_count() for bits in lines.values())
            self._database.execute("UPDATE tests SET lines = ? WHERE id = ?", (total, test))
        self._database.commit()
        self._database.close()
        self._partial.replace(self._path)


def _bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


class Reached:
    """All that the runs of tests recorded."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._databases = [_open(path) for path in sorted((root / PLACE).glob("*.db"))]

    def __bool__(self) -> bool:
        return bool(self._databases)

    def knows(self, file: str) -> bool:
        """Returns whether a test executed anything of the file."""
        return file in self._mentions

    def tests(self, file: str, lines: Iterable[int]) -> list[Case]:
        """The tests that execute one of the lines of the file as it is now."""
        found: dict[str, Case] = {}
        for database in self._databases:
            for case in _tests(database, file, _translated(self._root, database, file, lines)):
                found[case.nodeid] = case
        return sorted(found.values(), key=lambda case: (case.cost, case.nodeid))

    def tests_of_names(self, names: Iterable[str]) -> list[Case]:
        """The tests that execute a function which mentions one of the names.

        For what Python executes on import, and so in no test: constants, tables, fields.
        """
        wanted, found = set(names), dict[str, Case]()
        for file, functions in self._mentions.items():
            lines = [line for f in functions if f.words & wanted for line in f.body]
            if lines:
                found |= {case.nodeid: case for case in self.tests(file, lines)}
        return sorted(found.values(), key=lambda case: (case.cost, case.nodeid))

    def tests_of_file(self, file: str) -> list[Case]:
        """The tests that execute anything of the file.

        What a process executes that a test starts, such as a worker of Spark, is not recorded.
        """
        return self.tests(file, [line for f in _now(self._root, file) for line in f.body])

    def tests_of_module(self, file: str) -> list[Case]:
        """The tests in files that import the module, whether or not they execute a line of it.

        A table is often compared as a whole, and what a module computes on import no test executes.
        One case of each test comes before the others, and the file that has the module's name
        before all.
        """
        module = _module(file)
        namesake = f"test_{module.rpartition('.')[2]}.py"
        number = Counter[str]()
        own: list[tuple[bool, int, Case]] = []
        for case in sorted(self._all_tests, key=lambda case: (case.cost, case.nodeid)):
            if module in _imported(self._root / case.file):
                function = case.nodeid.partition("[")[0]
                own.append((not case.file.endswith(namesake), number[function], case))
                number[function] += 1
        return [case for *_, case in sorted(own, key=lambda found: found[:2])]

    @cached_property
    def _all_tests(self) -> list[Case]:
        # A test that only compares a table executes no line.
        text = "SELECT nodeid, seconds, coalesce(lines, 0) FROM tests WHERE counts"
        return [Case(*row) for database in self._databases for row in database.execute(text)]

    @cached_property
    def _mentions(self) -> Mapping[str, list[Function]]:
        files = {path for database in self._databases for (path,) in _paths(database)}
        return {file: _now(self._root, file) for file in sorted(files)}


def _module(file: str) -> str:
    return file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@lru_cache(2000)
def _imported(path: Path) -> frozenset[str]:
    """The modules that a file imports, and the names that it imports from them."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)


def _paths(database: sqlite3.Connection) -> list[tuple[str]]:
    # Templates of pages become functions too.
    return database.execute("SELECT path FROM files WHERE path LIKE '%.py'").fetchall()


@lru_cache(2000)
def _now(root: Path, file: str) -> list[Function]:
    path = root / file
    return functions_of(path.read_text("utf-8")) if path.is_file() else []


@lru_cache(2000)
def _then(database: sqlite3.Connection, file: str) -> list[Function]:
    row = database.execute("SELECT source FROM files WHERE path = ?", (file,)).fetchone()
    return functions_of(row[0]) if row else []


def _translated(
    root: Path, database: sqlite3.Connection, file: str, lines: Iterable[int]
) -> set[int]:
    """The lines as they were numbered when the tests ran."""
    now, then = _now(root, file), {f.name: f for f in _then(database, file)}
    found: set[int] = set()
    for line in lines:
        inside = [function for function in now if function.first <= line <= function.last]
        function = min(inside, key=lambda f: f.last - f.first, default=None)
        old = then.get(function.name) if function is not None else None
        if function is None or old is None:
            found |= {number for f in then.values() for number in f.body}
        elif old.digest == function.digest:
            found.add(line - function.first + old.first)
        else:
            found |= set(old.body)
    return found


def _tests(database: sqlite3.Connection, file: str, lines: set[int]) -> Iterator[Case]:
    if not lines:
        return
    wanted = sum(1 << line for line in lines)
    text = (
        "SELECT nodeid, seconds, tests.lines, reached.lines FROM reached "
        "JOIN tests ON tests.id = test JOIN files ON files.id = file WHERE path = ? AND counts"
    )
    for nodeid, seconds, total, bits in database.execute(text, (file,)):
        if int.from_bytes(bits, "little") & wanted:
            yield Case(nodeid, seconds, total)
