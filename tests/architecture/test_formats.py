"""Byte layouts are known to ``wire`` alone, and SQL to ``storage``: a look at every syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqis

PACKAGE = Path(mqis.__file__).parent

#: Modules outside ``wire`` that read or write bytes by their place, and why.
OWN_LAYOUTS = {
    "runtime/discovery/networks.py": "structures of the kernel, which no peer ever sees",
    "runtime/authentication/ntlm_fix.py": "a part of NTLM that pyspnego leaves out",
    "protocol/replication/acknowledging.py": "a state in the server's own store",
    "protocol/replication/replays.py": "states in the server's own store",
    "pipeline/content.py": "the input of a digest",
    "sim/run_trace.py": "the input of a digest",
    "testing/pcap.py": "frames around messages, which mqis only reads",
}

#: Names that bytes of a message, file or structure have in this project.
RAW = frozenset({"body", "data", "descriptor", "octets", "packet", "payload", "raw"})
#: Methods of ``pipeline.decoding.octets`` that read at a place.
READS_AT = frozenset({"joined", "numbers", "rows", "terminator", "u16", "u32"})
DATABASES = frozenset({"sqlite3", "psycopg", "psycopg2"})
SQL = re.compile(
    r"\s*(SELECT\s.+\sFROM\b|INSERT\s+INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b"
    r"|(CREATE|DROP|ALTER)\s+(TABLE|INDEX)\b|PRAGMA\s+\w+)",
    re.DOTALL,
)


def is_number(node: ast.AST | None, least: int = 0) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value >= least


def adds_a_number(node: ast.AST) -> bool:
    """Returns whether a literal is added anywhere within an expression."""
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add)
        and (is_number(part.left, 1) or is_number(part.right, 1))
        for part in ast.walk(node)
    )


def name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> set[str]:
    """The top-level packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").partition(".")[0]}
    return set()


def assigned_offsets(node: ast.AST) -> Iterator[str]:
    """Constants called ``..._AT`` that are a literal: offsets, each alone or in a tuple."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for one, value in pairs:
                if name_of(one).endswith("_AT") and is_number(value):
                    yield f"{name_of(one)} is an offset"


def subscript_problem(node: ast.Subscript) -> str | None:
    if name_of(node.value) not in RAW:
        return None
    place = node.slice
    fixed = is_number(place.lower, 1) if isinstance(place, ast.Slice) else is_number(place, 1)
    return f"{ast.unparse(node)} reads at an offset" if fixed or adds_a_number(place) else None


def call_problem(node: ast.Call) -> str | None:
    function, text = name_of(node.func), ast.unparse(node)
    if function == "slice" and any(map(is_number, node.args)):
        return f"{text} is an offset"
    first = node.args[0] if node.args else None
    if function == "from_bytes" and isinstance(first, ast.Subscript):
        lower = first.slice.lower if isinstance(first.slice, ast.Slice) else None
        return f"{text} reads at an offset" if lower is not None else None
    if function in READS_AT and first is not None and adds_a_number(first):
        return f"{text} reads at an offset"
    if function == "substring" and isinstance(first, ast.Constant) and is_number(node.args[1]):
        return f"{text} reads at an offset"
    return None


def layout_problems(tree: ast.AST) -> Iterator[str]:
    """The places in a module that read or write bytes at fixed offsets."""
    for node in ast.walk(tree):
        found = list(assigned_offsets(node))
        if "struct" in imported(node):
            found.append("imports struct")
        if isinstance(node, ast.Subscript):
            found.append(subscript_problem(node) or "")
        if isinstance(node, ast.Call):
            found.append(call_problem(node) or "")
        yield from (f"{getattr(node, 'lineno', 0)}: {text}" for text in found if text)


def sql_problems(tree: ast.AST) -> Iterator[str]:
    """Statements of SQL in literals, and imports of databases."""
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "is SQL" if SQL.match(node.value) else ""
        elif isinstance(node, ast.JoinedStr):
            written = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
            text = "is SQL" if SQL.match(written) else ""
        elif DATABASES & imported(node):
            text = "imports a database"
        if text:
            yield f"{getattr(node, 'lineno', 0)}: {text}"


def modules_outside(layer: str) -> list[str]:
    paths = (path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")))
    return [path.as_posix() for path in paths if path.parts[0] != layer]


def tree_of(module: str) -> ast.AST:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


def test_byte_layouts_are_known_to_wire_alone() -> None:
    found = {
        module: problems
        for module in modules_outside("wire")
        if module not in OWN_LAYOUTS and (problems := list(layout_problems(tree_of(module))))
    }
    assert found == {}


@pytest.mark.parametrize("module", OWN_LAYOUTS)
def test_every_exception_is_needed(module: str) -> None:
    assert list(layout_problems(tree_of(module))) != []


def test_sql_is_written_in_storage_alone() -> None:
    found = {
        module: problems
        for module in modules_outside("storage")
        if (problems := list(sql_problems(tree_of(module))))
    }
    assert found == {}


def test_the_layers_themselves_would_be_found() -> None:
    """Both searches find what they are about where it belongs."""
    assert list(layout_problems(tree_of("wire/journal/headers.py"))) != []
    assert list(sql_problems(tree_of("storage/outbox.py"))) != []
    assert "storage/outbox.py" in modules_outside("wire")
    assert "wire/journal/headers.py" in modules_outside("storage")


@pytest.mark.parametrize(
    "source",
    [
        "import struct",
        "def late():\n    from struct import Struct",
        "_OPERATION_AT = 17",
        "_FROM_AT, _TO_AT = 34, 42",
        "_PARTITION = slice(18, 34)",
        "body[17]",
        "record.body[18:34]",
        "data[at + 8 : at + 16]",
        "int.from_bytes(start[10:12], 'little')",
        "octets.u32(bodies.start[answers] + 58)",
        "octets.data[at + 17]",
        "F.substring('body', 59, 1)",
    ],
)
def test_a_byte_layout_is_found(source: str) -> None:
    assert list(layout_problems(ast.parse(source))) != []


@pytest.mark.parametrize(
    "source",
    [
        "PAUSE_AT = 256 * 1024",
        "body[at:end]",
        "body[0]",
        "data[:-1]",
        "int.from_bytes(entropy.guid().raw[:4], 'little')",
        "int.from_bytes(digest, 'big')",
        "octets.u32(start + PROPAGATION_COUNT_AT)",
        "F.substring(digits, 2 * number - 1, 2)",
        "words[2]",
    ],
)
def test_other_code_is_not_reported_as_a_layout(source: str) -> None:
    assert list(layout_problems(ast.parse(source))) == []


@pytest.mark.parametrize(
    "source",
    [
        "rows.run('SELECT lsn FROM outbox_last')",
        "rows.run('DELETE FROM states')",
        "rows.run('UPDATE outbox_last SET lsn=0')",
        "rows.run(f'DELETE FROM {table}')",
        "SQL = '''\n  SELECT id\n  FROM objects'''",
        "run('INSERT INTO outbox (lsn) VALUES (?)')",
        "import sqlite3",
        "from psycopg.rows import tuple_row",
        "run('PRAGMA journal_mode=WAL')",
    ],
)
def test_sql_is_found(source: str) -> None:
    assert list(sql_problems(ast.parse(source))) != []


@pytest.mark.parametrize(
    "source",
    [
        "help = 'Select a server from the list.'",
        "'UPDATE'",
        "ChangeKind.UPDATE",
        "'delete from the directory'",
        "'SELECT and INSERT are words'",
    ],
)
def test_other_text_is_not_reported_as_sql(source: str) -> None:
    assert list(sql_problems(ast.parse(source))) == []
