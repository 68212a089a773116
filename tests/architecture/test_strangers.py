"""One definition of a stranger: nobody else asks whether an identity is there.

NTLM lets nobody log on, so that a caller may have an identity and no name. Code that asked for None
alone gave such callers the share of users.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqis

PACKAGE = Path(mqis.__file__).parent
#: The place of the definition.
DEFINED = "protocol/authentication.py"


def is_identity(node: ast.AST) -> bool:
    """Returns whether an expression is ``identity`` or ``something.identity``."""
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    return isinstance(node, ast.Name | ast.Attribute) and name == "identity"


def asked(tree: ast.AST) -> Iterator[int]:
    """The lines that ask what only the definition may ask."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
            found = none and any(map(is_identity, sides))
        elif isinstance(node, ast.Attribute):
            found = node.attr == "anonymous" and is_identity(node.value)
        elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            found = is_identity(node.test)
        elif isinstance(node, ast.UnaryOp):
            found = isinstance(node.op, ast.Not) and is_identity(node.operand)
        elif isinstance(node, ast.BoolOp):
            found = any(map(is_identity, node.values))
        else:
            found = False
        if found and isinstance(node, ast.expr | ast.stmt):
            yield node.lineno


@pytest.mark.req("SEC-17-02")
def test_only_one_place_says_who_is_a_stranger() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in asked(ast.parse(path.read_text(encoding="utf-8")))
        if path != PACKAGE / DEFINED
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "call.identity is None",
        "None is not identity",
        "identity == None",
        "x = identity.anonymous",
        "x = 1 if call.identity else 2",
        "if not identity: pass",
        "y = identity and identity.name",
        "while machine.identity: pass",
    ],
)
def test_the_question_is_recognised(code: str) -> None:
    assert list(asked(ast.parse(code)))


def test_the_definition_asks_it() -> None:
    assert list(asked(ast.parse((PACKAGE / DEFINED).read_text(encoding="utf-8"))))
    assert not list(asked(ast.parse("x = has_name(call.identity) and identity.name == y")))
