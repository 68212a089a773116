"""The recorded mutations: small edits of the product, each of which the tests of a row must notice.

``tests/mutations/*.toml`` has them; docs/conformance/README.md has the rules.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from tools.ledger import LedgerError, Requirement

MUTATIONS = Path("tests/mutations")
_NEEDED = {"rows", "file", "before", "after"}
_ALLOWED = _NEEDED | {"why"}


class MutationError(Exception):
    """An edit that cannot be applied, or that leaves no program; the text says why."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One edit, and the rows whose behaviour it breaks; ``name`` is its file and place there."""

    name: str
    rows: tuple[str, ...]
    file: str
    before: str
    after: str
    why: str = ""

    @property
    def group(self) -> str:
        """The name of the file with the mutation, without its suffix."""
        return self.name.partition(":")[0]


def load_mutations(root: Path, requirements: Mapping[str, Requirement]) -> list[Mutation]:
    """All mutations, by file and place; each row that they name is in a table."""
    found: list[Mutation] = []
    for path in sorted((root / MUTATIONS).glob("*.toml")):
        try:
            tables = tomllib.loads(path.read_text("utf-8"))
        except (ValueError, OSError) as error:
            raise LedgerError(f"{path}: {error}") from error
        if tables.keys() - {"mutation"} or not isinstance(tables.get("mutation", []), list):
            raise LedgerError(f"{path}: it may have [[mutation]] tables and nothing else")
        for number, raw in enumerate(tables.get("mutation", []), start=1):
            name = f"{path.stem}:{number}"
            if problem := _problem(raw, requirements):
                raise LedgerError(f"{path}: mutation {number} {_of(raw)}: {problem}")
            found.append(Mutation(**(raw | {"name": name, "rows": tuple(raw["rows"])})))
    return found


def _of(raw: Mapping[str, object]) -> str:
    return f"(rows {raw.get('rows')})"


def _problem(raw: Mapping[str, object], requirements: Mapping[str, Requirement]) -> str:
    """The first error of one table of the file; empty if there is none."""
    if missing := _NEEDED - raw.keys():
        return f"{', '.join(sorted(missing))} missing"
    if unknown := raw.keys() - _ALLOWED:
        return f"{', '.join(sorted(unknown))} not known"
    if any(not isinstance(raw[key], str) for key in raw.keys() - {"rows"}):
        return "file, before, after and why are strings"
    rows = raw["rows"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
        return "rows is a list of ids"
    if strangers := [row for row in rows if row not in requirements]:
        return f"{', '.join(strangers)} in no table"
    return "" if raw["before"] not in {"", raw["after"]} else "before is empty or equals after"


def edited(text: str, mutation: Mutation) -> str:
    """Returns the text of the mutation's file with the edit applied."""
    if (times := text.count(mutation.before)) != 1:
        raise MutationError(f"before occurs {times} times in {mutation.file}, not once")
    changed = text.replace(mutation.before, mutation.after)
    if mutation.file.endswith(".py"):
        begin = text.count("\n", 0, text.index(mutation.before)) + 1
        try:
            after = _statements(ast.parse(changed), begin, mutation.after)
        except SyntaxError as error:
            raise MutationError(f"the edit does not compile: {error}") from error
        if after == _statements(_parsed(text), begin, mutation.before):
            raise MutationError("the edit changes no code")
    return changed


@lru_cache(100)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _statements(module: ast.Module, begin: int, edit: str) -> list[str]:
    """The outermost statements on the lines of an edit; to dump whole files takes too long."""
    end = begin + edit.count("\n")
    return [ast.dump(node) for node in module.body if _touches(node, begin, end)]


def _touches(node: ast.stmt, begin: int, end: int) -> bool:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return first <= end and (node.end_lineno or end) >= begin


def edited_file(root: Path, mutation: Mutation) -> str:
    """Returns the edited text of the mutation's file below ``root``."""
    path = root / mutation.file
    if not mutation.file.startswith("src/") or ".." in path.parts or not path.is_file():
        raise MutationError(f"{mutation.file} is not a file of src")
    return edited(path.read_text("utf-8"), mutation)


def rows_of(mutations: Iterable[Mutation]) -> set[str]:
    """The rows that have a mutation."""
    return {row for mutation in mutations for row in mutation.rows}


@dataclass(frozen=True, slots=True)
class Choice:
    """The mutations to run: of the named files, tables or rows; every n-th; a random sample."""

    only: tuple[str, ...] = ()
    shard: tuple[int, int] = (1, 1)
    sample: int | None = None
    seed: int = 0

    @property
    def everything(self) -> bool:
        return not self.only and self.shard[1] == 1 and self.sample is None

    def of(
        self, mutations: Sequence[Mutation], requirements: Mapping[str, Requirement]
    ) -> list[Mutation]:
        chosen = [m for m in mutations if not self.only or self._named(m, requirements)]
        number, shards = self.shard
        chosen = chosen[number - 1 :: shards]
        if self.sample is not None and self.sample < len(chosen):
            picked = Random(self.seed).sample(range(len(chosen)), self.sample)
            chosen = [chosen[place] for place in sorted(picked)]
        return chosen

    def _named(self, mutation: Mutation, requirements: Mapping[str, Requirement]) -> bool:
        names = {mutation.name, mutation.group}
        names |= {name for row in mutation.rows for name in _names(row, requirements)}
        return any(wanted in names for wanted in self.only)


def _names(row: str, requirements: Mapping[str, Requirement]) -> Iterator[str]:
    """The names that select a row: its id, its section as ``MQDS-3.1.4.2``, its table."""
    yield row
    yield row.rpartition("-")[0]
    yield requirements[row].table
