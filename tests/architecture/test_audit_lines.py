"""Every line of the audit trail names the address of the peer that it is about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mqis

PACKAGE = Path(mqis.__file__).parent
WRITERS = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if 'audit = logging.getLogger("mqis.audit")' in path.read_text(encoding="utf-8")
)
_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def audits(node: ast.AST) -> bool:
    """Returns whether a node is a call that writes an audit line."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _METHODS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "audit"
    )


def told(function: ast.AST) -> set[str]:
    """The keys that a function gives to ``details``, or writes into a dictionary."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            found.update(keyword.arg for keyword in node.keywords if keyword.arg)
        elif isinstance(node, ast.Dict):
            found.update(str(k.value) for k in node.keys if isinstance(k, ast.Constant))
    return found


@pytest.mark.req("SEC-5-05")
@pytest.mark.parametrize("path", WRITERS, ids=lambda path: path.name)
def test_audit_lines_name_the_peer(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    writing = [f for f in functions if any(audits(node) for node in ast.walk(f))]
    assert writing
    assert [f.name for f in writing if "peer" not in told(f)] == []


def test_there_are_writers() -> None:
    assert {"context.py", "logon.py", "login.py", "sessions.py"} <= {path.name for path in WRITERS}
