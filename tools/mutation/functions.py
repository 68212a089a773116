"""The functions of a source file: their lines, the names they mention, and a digest of each."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_]\w*")
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its qualified name; ``digest`` is that of its code, whatever its layout."""

    name: str
    first: int
    last: int
    digest: str
    words: frozenset[str]

    @property
    def body(self) -> range:
        return range(self.first, self.last + 1)


def functions_of(text: str) -> list[Function]:
    """All functions of a file, methods and nested ones too."""
    lines = text.splitlines()
    return [_function(name, node, lines) for name, node in definitions(ast.parse(text))]


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """The functions below a node with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
            yield from definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from definitions(child, f"{prefix}{child.name}.")
        else:
            yield from definitions(child, prefix)


def _function(name: str, node: Definition, lines: list[str]) -> Function:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    words = frozenset(_WORD.findall("\n".join(lines[first - 1 : last])))
    return Function(name, first, last, digest(node), words)


def digest(node: ast.AST) -> str:
    """The digest of code: without its layout, comments and docstring."""
    return hashlib.sha256(_dump(node).encode()).hexdigest()[:16]


def _dump(node: ast.AST) -> str:
    if isinstance(node, Definition | ast.ClassDef) and is_docstring(node.body):
        fields = dict(ast.iter_fields(node))
        node = type(node)(**(fields | {"body": node.body[1:]}))
    return ast.dump(node)


def is_docstring(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
