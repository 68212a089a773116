"""Every reason that replication refuses for has a kind; kinds are few, reasons are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.protocol import replication
from mqis.protocol.replication.refusals import KINDS, NOT_APPLIED, kind_of

PACKAGE = Path(replication.__path__[0])
#: Functions that give reasons to those who refuse.
GIVERS = {"refusal_of_change", "_refusal", "_unusable"}
#: Words for which a change, not a message, was refused.
OF_CHANGES = {"this change stops a whole reply"}


def _texts(node: ast.AST) -> Iterator[str]:
    """Strings in an expression, with an x in the place of each value."""
    if isinstance(node, ast.JoinedStr):
        pieces = (v.value if isinstance(v, ast.Constant) else "x" for v in node.values)
        yield "".join(map(str, pieces))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for part in ast.iter_child_nodes(node):
            yield from _texts(part)


def reasons() -> set[str]:
    found: set[str] = set()
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr == "refuse":  # type: ignore[attr-defined]
                found |= {t for a in node.args for t in _texts(a)}  # type: ignore[attr-defined]
            elif isinstance(node, ast.FunctionDef) and node.name in GIVERS:
                body = node.body[1:] if ast.get_docstring(node) else node.body
                found |= {text for statement in body for text in _texts(statement)}
    return {text for text in found if len(text.split()) > 2} - OF_CHANGES


def test_there_are_reasons() -> None:
    assert len(reasons()) > 20


@pytest.mark.parametrize("reason", sorted(reasons()))
def test_each_has_a_kind(reason: str) -> None:
    if reason == "a heartbeat: x":
        return  # with any of the others
    assert kind_of(reason) != NOT_APPLIED


def test_the_rest_is_what_the_directory_said() -> None:
    assert kind_of("the name 'x' is taken") == NOT_APPLIED
    assert NOT_APPLIED in KINDS
    assert len(KINDS) < 16


def test_a_heartbeat_is_refused_for_what_any_message_is() -> None:
    assert kind_of("a heartbeat: x is no server of this enterprise") == "stranger"
