"""One place for each job: what must be done in one way is done nowhere else."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mqis

PACKAGE = Path(mqis.__file__).parent
#: These write a file in place: a crash leaves half of it, and everybody may read it.
_IN_PLACE = frozenset({"write_text", "write_bytes"})
#: Files that are nobody's: what a simulation or a generator spoils, and a browser's input.
_MAY_WRITE_IN_PLACE = frozenset({
    "lab/generate/generated_exports.py",
    "lab/generate/generate.py",
    "lab/generate/spoiling.py",
    "lab/generate/filefaults.py",
    "pipeline/printing.py",
    "sim/archive/archive_world.py",
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


#: Errors that no handler of mqis names, each with what it is for.
_UNHANDLED = {
    "ConnectionDenied": "carries the reason of a refusal to callers of ``mqis.client``",
    "LdapOverflow": "tells a caller that read too slowly from one whose connection was lost",
    "LdapUnreachable": "no connection was made, so that the request can be sent again",
    "LdifError": "carries the line",
    "MirrorInterrupted": "a round that ended early, and is taken up again",
    "MissingError": "public beside its base: a place without such a file",
    "NdrError": "carries the offset",
    "SessionError": "carries the code that the peer gets",
    "UnknownClass": "noted apart from values that are garbled",
    "UnpackError": "of no use outside its module, which turns all errors of tar into one",
    "_AdvisedError": "the base of two",
}


@cache
def _trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py"))


def _errors() -> set[str]:
    """The classes that derive from an exception, over any number of steps."""
    bases = {
        node.name: {name.split(".")[-1] for name in map(ast.unparse, node.bases)}
        for tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
    known = {name for name in known if issubclass(getattr(builtins, name), BaseException)}
    found: set[str] = set()
    while more := {n for n, above in bases.items() if above & (known | found)} - found:
        found |= more
    return found


def _handled() -> set[str]:
    """The names in ``except``, and in calls that ask for a type."""
    found: set[str] = set()
    for tree in _trees():
        for node in ast.walk(tree):
            named: ast.AST | None = node.type if isinstance(node, ast.ExceptHandler) else None
            asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if asks and node.func.id in {"isinstance", "issubclass", "suppress"}:  # type: ignore[attr-defined]
                named = node
            if named is not None:
                within = list(ast.walk(named))
                found |= {each.id for each in within if isinstance(each, ast.Name)}
                found |= {each.attr for each in within if isinstance(each, ast.Attribute)}
    return found


def test_an_error_has_a_class_of_its_own_if_somebody_handles_it() -> None:
    """Every other is an ``MqisError`` (or the error of its layer) with a text for a person."""
    assert _errors() - _handled() == _UNHANDLED.keys()


#: The words of scales of gravity; a second scale would have two of them.
_GRAVE = frozenset({
    "ACT", "AMBER", "CRITICAL", "ERROR", "FATAL", "FINE", "GREEN", "INFO", "LOOK", "NOTE", "NOTICE",
    "OK", "RED", "SEVERE", "WARNING",
})  # fmt: skip


def _members(node: ast.ClassDef) -> set[str]:
    targets = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_a_fault_has_one_type_and_one_scale() -> None:
    """``mqis.findings`` has both; every check yields its ``Finding``."""
    classes = [n for tree in _trees() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    assert [n.name for n in classes if n.name.endswith(("Finding", "Note"))] == ["Finding"]
    scales = {n.name for n in classes if len(_members(n) & _GRAVE) > 1}
    assert scales == {"Gravity", "LogLevel"}, "log lines have the levels of Python's logging"
