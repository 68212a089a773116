"""One place for each job: what must be done in one way is done nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import mqis

PACKAGE = Path(mqis.__file__).parent
#: These write a file in place: a crash leaves half of it, and everybody may read it.
_IN_PLACE = frozenset({"write_text", "write_bytes"})
#: Files that are nobody's: what a simulation or a generator spoils, and a browser's input.
_MAY_WRITE_IN_PLACE = frozenset({
    "lab/generate/exports.py",
    "lab/generate/generate.py",
    "lab/generate/spoiling.py",
    "lab/generate/tampering.py",
    "pipeline/printing.py",
    "sim/archive/world.py",
})  # fmt: skip


def calls(path: Path) -> Iterator[str]:
    """The names of the methods and functions that a module calls."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def test_files_are_written_whole() -> None:
    """``mqis.files`` does it; an exception that is needless fails too."""
    writers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if _IN_PLACE & set(calls(path))
    }
    assert writers == _MAY_WRITE_IN_PLACE
