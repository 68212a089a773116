"""The record of kills: which test noticed which mutation, on which code.

``docs/conformance/kills.tsv`` has a line for each row of each mutation that was killed: digests of
the function that the mutation edits, with the edit, and of the test that failed. A kill counts as
long as both are what they were; ``make mutants`` judges the others anew.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path

from tools.ledger import LedgerError
from tools.mutation.functions import Definition, definitions, digest
from tools.mutation.records import Mutation
from tools.mutation.verdicts import Verdict

KILLS = Path("docs/conformance/kills.tsv")
COLUMNS = ("row", "edit", "test", "proof")
_MARKS = ("pytest.mark.req", "pytest.mark.departs")


@dataclass(frozen=True, slots=True, order=True)
class Kill:
    """``edit`` is the digest of an edit and of the code around it, ``proof`` that of the test."""

    row: str
    edit: str
    test: str
    proof: str


def load_kills(root: Path) -> list[Kill]:
    path = root / KILLS
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines()
    if not lines or tuple(lines[0].split("\t")) != COLUMNS:
        raise LedgerError(f"{path}:1: the header is not {', '.join(COLUMNS)}")
    return [Kill(*line.split("\t")) for line in lines[1:]]


def save_kills(root: Path, kills: Iterable[Kill]) -> None:
    lines = ["\t".join(cells) for cells in [COLUMNS, *map(astuple, sorted(set(kills)))]]
    (root / KILLS).write_text("\n".join(lines) + "\n", "utf-8")


class Kills:
    """The kills that still count, by row."""

    def __init__(self, root: Path, mutations: Sequence[Mutation], kills: Iterable[Kill]) -> None:
        known = {(kill.row, kill.edit): kill for kill in kills}
        self._valid: dict[tuple[str, str], Kill] = {}
        for mutation in mutations:
            edit = edit_digest(root, mutation)
            for row in mutation.rows:
                kill = known.get((row, edit))
                if kill is not None and kill.proof == proof_digest(root, kill.test):
                    self._valid[row, mutation.name] = kill

    def of(self, mutation: Mutation) -> bool:
        """Returns whether each row of the mutation has a kill that counts."""
        return all((row, mutation.name) in self._valid for row in mutation.rows)

    def number(self, row: str) -> int:
        """How many mutations of a row were killed on the code as it is."""
        return len({kill.edit for (known, _), kill in self._valid.items() if known == row})

    def by_row(self) -> Mapping[str, int]:
        edits: dict[str, set[str]] = {}
        for (row, _), kill in self._valid.items():
            edits.setdefault(row, set()).add(kill.edit)
        return {row: len(found) for row, found in edits.items()}

    def after(
        self, root: Path, judged: Sequence[Mutation], verdicts: Iterable[Verdict]
    ) -> list[Kill]:
        """The kills that count after a run: what it judged, and what it left alone."""
        names = {mutation.name: mutation for mutation in judged}
        kept = [kill for (_, name), kill in self._valid.items() if name not in names]
        for verdict in verdicts:
            if verdict.dead:
                edit = edit_digest(root, names[verdict.mutation])
                proof = proof_digest(root, verdict.test)
                kept.append(Kill(verdict.row, edit, verdict.test, proof))
        return kept


def edit_digest(root: Path, mutation: Mutation) -> str:
    """The digest of an edit and the innermost function around it, or the statements it touches."""
    path = root / mutation.file
    text = path.read_text("utf-8") if path.is_file() else ""
    around = _around(text, mutation.before) if mutation.file.endswith(".py") else text
    whole = "\0".join((mutation.file, around, mutation.before, mutation.after))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _around(text: str, before: str) -> str:
    first = text.count("\n", 0, max(text.find(before), 0)) + 1
    last = first + before.rstrip("\n").count("\n")
    module, known = _parsed(text)
    inside = [node for node in known.values() if _covers(node, first, last)]
    if inside:
        return digest(min(inside, key=lambda node: (node.end_lineno or 0) - node.lineno))
    return "".join(digest(node) for node in module.body if _touches(node, first, last))


def _covers(node: ast.stmt, first: int, last: int) -> bool:
    return node.lineno <= first and last <= (node.end_lineno or 0)


def _touches(node: ast.stmt, first: int, last: int) -> bool:
    return node.lineno <= last and first <= (node.end_lineno or 0)


@lru_cache(3000)
def _parsed(text: str) -> tuple[ast.Module, dict[str, Definition]]:
    module = ast.parse(text)
    return module, dict(definitions(module))


def proof_digest(root: Path, nodeid: str) -> str:
    """The digest of a test without the marks that name rows; empty if it is gone."""
    file, _, names = nodeid.partition("::")
    return _proof_digest(root / file, names.partition("[")[0].replace("::", "."))


@lru_cache(20_000)
def _proof_digest(path: Path, name: str) -> str:
    if not path.is_file():
        return ""
    node = _parsed(path.read_text("utf-8"))[1].get(name)
    if node is None:  # inherited from a class, or made by a function
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    kept = [d for d in node.decorator_list if not ast.unparse(d).startswith(_MARKS)]
    fields = dict(ast.iter_fields(node)) | {"decorator_list": kept}
    return digest(type(node)(**fields))
