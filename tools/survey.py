"""Counts what costs a reader of the code time: names, tables, circles, and first words.

Usage: python tools/survey.py [--json] [PACKAGE]

``tests/architecture`` holds the limits: no public class name twice, and hardly a docstring that
begins with a question word.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "mqis"
QUESTION_WORDS = frozenset({"What", "Whether", "How", "Where", "Who", "When", "Which", "Why"})

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def docstrings(self) -> list[str]:
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, _DOCUMENTED))
        return [text for node in nodes if (text := ast.get_docstring(node))]

    @cached_property
    def public_classes(self) -> list[str]:
        classes = (node.name for node in self.tree.body if isinstance(node, ast.ClassDef))
        return [name for name in classes if not name.startswith("_")]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def import_lines(self) -> int:
        imports = (n for n in ast.walk(self.tree) if isinstance(n, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def modules(package: Path) -> list[Module]:
    """Every module of a package, by name."""
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, path, text, ast.parse(text)))
    return found


def homonyms(found: list[Module]) -> dict[str, list[str]]:
    """Public class names that several modules define, with those modules."""
    defined: dict[str, list[str]] = defaultdict(list)
    for module in found:
        for name in module.public_classes:
            defined[name].append(module.name)
    return {name: where for name, where in sorted(defined.items()) if len(where) > 1}


def first_words(found: list[Module]) -> Counter[str]:
    """The first word of each docstring, with how many begin with it."""
    return Counter(text.split()[0].strip(".,:;") for module in found for text in module.docstrings)


def questions(words: Mapping[str, int]) -> float:
    """The share of docstrings that begin with a question word."""
    return sum(words.get(word, 0) for word in QUESTION_WORDS) / max(1, sum(words.values()))


def circles(found: list[Module], depth: int | None = None) -> list[list[str]]:
    """Groups of modules that import each other, or packages ``depth`` names deep.

    An import that only the type checker sees counts too.
    """
    known = {module.name for module in found}
    graph = nx.DiGraph()
    for module in found:
        for target in _loaded(module.tree, known):
            here, there = (".".join(name.split(".")[:depth]) for name in (module.name, target))
            if here != there:
                graph.add_edge(here, there)
    return sorted(
        sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1
    )


def _loaded(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules of the package that this one imports outside of functions, if only for types."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in whole)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))


def property_tables(found: list[Module]) -> list[tuple[str, int]]:
    """Module-level collections with two or more property ids as keys or members: (module, line)."""
    tables = []
    for module in found:
        for statement in module.tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                outermost = _collections(statement.value)
                if any(_property_ids(node) > 1 for node in outermost):
                    tables.append((module.name, statement.lineno))
    return tables


def _collections(value: ast.AST) -> list[ast.AST]:
    kinds = (ast.Dict, ast.Set, ast.List, ast.Tuple, ast.DictComp, ast.SetComp)
    return [node for node in ast.walk(value) if isinstance(node, kinds)]


def _property_ids(node: ast.AST) -> int:
    if isinstance(node, ast.Dict):
        members: list[ast.expr | None] = [*node.keys]
    elif isinstance(node, ast.Set | ast.List | ast.Tuple):
        members = [*node.elts]
    else:
        members = []
    return sum(
        isinstance(m, ast.Attribute) and isinstance(m.value, ast.Name) and m.value.id == "PropId"
        for m in members
    )


def survey(package: Path) -> dict[str, object]:
    """All counts of one package."""
    found = modules(package)
    lines = sum(module.lines for module in found)
    words = first_words(found)
    tables = property_tables(found)
    return {
        "files": len(found),
        "lines": lines,
        "import share": round(sum(module.import_lines for module in found) / lines, 4),
        "circles of modules": len(circles(found)),
        "circles of packages": len(circles(found, 3)),
        "class names with several meanings": len(homonyms(found)),
        "docstrings": sum(words.values()),
        "docstrings that begin with a question word": round(questions(words), 4),
        "most common first words": dict(words.most_common(12)),
        "tables keyed by property id": len(tables),
        "modules with such tables": len({name for name, _ in tables}),
    }


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", nargs="?", type=Path, default=PACKAGE)
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args()
    counts = survey(options.package)
    if options.json:
        print(json.dumps(counts, indent=2))
        return
    for name, value in counts.items():
        shown = (
            ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        )
        print(f"{name:44} {shown}")


if __name__ == "__main__":
    main()
