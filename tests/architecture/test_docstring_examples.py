"""Code in docstrings is true: its names exist, and calls fit the signatures of what they call.

An example is an indented paragraph that parses as Python. Names in lower case that nothing defines
stand for values that a caller has (``now``, ``data``). Every other name, and whatever is called,
has to be found in the example, its module, Python, or the package of its layer.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import pathlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.docs.documents import ROOT

SOURCE = ROOT / "src"
#: Modules that are known to show how they are used.
SHOWN = frozenset(
    {
        "mqis.client.events",
        "mqis.protocol.discovery.discovery_client",
        "mqis.protocol.multiplexer.multiplexer",
        "mqis.protocol.node.node",
        "mqis.protocol.queueing.manager",
        "mqis.protocol.replication.machine",
    }
)


class Example(NamedTuple):
    module: str
    code: str


def examples_of(docstring: str) -> Iterator[str]:
    """The indented paragraphs that are calls or assignments, and no tables or pictures.

    ``with`` stands at the margin where nothing but the first line of the docstring is above it.
    """
    indented = r"(?:^(?:async )?with .*:\n)?(?:^ {4,}.*\n|^\n(?= {4}))+"
    for found in re.findall(indented, f"{docstring}\n", re.M):
        code = textwrap.dedent(found).strip("\n")
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        if any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(tree)):
            yield code


def examples(path: Path) -> Iterator[Example]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for code in examples_of(ast.get_docstring(node) or ""):
                yield Example(module_name(path), code)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


EXAMPLES = [each for path in sorted(SOURCE.rglob("*.py")) for each in examples(path)]


def test_the_examples_are_found() -> None:
    """A pattern that matches too little would let the test below pass without examples."""
    assert {each.module for each in EXAMPLES} >= SHOWN


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.module)
def test_an_example_calls_what_exists(example: Example) -> None:
    Reader(importlib.import_module(example.module)).visit(ast.parse(example.code))


class Reader(ast.NodeVisitor):
    """Finds each name, and the class of each variable that can be told."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        #: What the names of the example stand for; None where that cannot be told.
        self._given: dict[str, Any] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name in node.names:
            found = getattr(importlib.import_module(node.module or ""), name.name)
            self._given[name.asname or name.name] = found

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.generic_visit(node)
        self._given[node.name] = None

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._give(target, self._made(node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._give(node.target, None)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._give(node.target, None)
        self.generic_visit(node)

    visit_AsyncFor = visit_For  # noqa: N815 -- the name that ast looks for

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self._give(node.optional_vars, self._made(node.context_expr))

    def visit_Name(self, node: ast.Name) -> None:
        if not node.id.islower():
            self._named(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        self._attribute(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called: Any = None
        if isinstance(node.func, ast.Name):
            called = self._named(node.func.id)
        elif isinstance(node.func, ast.Attribute):
            called = self._attribute(node.func)
        if called is not None and not any(_is_ellipsis(each) for each in node.args):
            named = {each.arg: None for each in node.keywords if each.arg}
            inspect.signature(called).bind(*node.args, **named)

    def _give(self, target: ast.expr, value: Any) -> None:
        for each in ast.walk(target):
            if isinstance(each, ast.Name):
                self._given[each.id] = value

    def _made(self, node: ast.expr) -> Any:
        """A stand-in for the object that a call of a class makes."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found = self._named(node.func.id)
            if inspect.isclass(found):
                return _Made(found)
        return None

    def _attribute(self, node: ast.Attribute) -> Any:
        """The attribute of a class, of a made object, or of one that the module is about."""
        if not isinstance(node.value, ast.Name):
            return None
        name = node.value.id
        owner = self._given.get(name) or self._about(name)
        if owner is None and not name.islower():
            owner = self._named(name)
        return None if owner is None else getattr(owner, node.attr)

    def _about(self, name: str) -> Any:
        """``node`` is a ``ServerNode`` if the module has no other class of such a name."""
        if name in self._given:
            return None
        classes = [
            each
            for each in vars(self._module).values()
            if inspect.isclass(each)
            and each.__module__ == self._module.__name__
            and each.__name__.lower().endswith(name)
        ]
        return _Made(classes[0]) if len(classes) == 1 else None

    def _named(self, name: str) -> Any:
        """What a name stands for: in the example, its module, Python, its package or below it."""
        if name in self._given:
            return self._given[name]
        for place in (self._module, builtins, dataclasses, pathlib):
            if name in vars(place):
                return vars(place)[name]
        package = self._module.__name__.split(".")[:2]
        for module in defining(name):
            if module.split(".")[:2] == package:
                return vars(importlib.import_module(module))[name]
        raise AssertionError(f"{self._module.__name__}: its example names {name}, which is nowhere")


class _Made:
    """An object of a class, of which only the methods and the names of attributes are known."""

    def __init__(self, made: type) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name, None)
        if inspect.isfunction(found):
            return functools.partial(found, self)
        source = inspect.getsource(self._made)
        known = found is not None or re.search(rf"^\s+(?:self\.)?{name}(?:: .+|\s=)", source, re.M)
        assert known, f"{self._made.__name__} has no {name}"
        return found if callable(found) else None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


@functools.cache
def _definitions() -> dict[str, list[str]]:
    """The modules that define each name at their top level."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append(module_name(path))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(module_name(path))
    return found


def defining(name: str) -> list[str]:
    return _definitions().get(name, [])
