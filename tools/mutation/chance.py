"""Mutations that nobody chose: edits at random places, judged by the tests that execute them."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

from tools.ledger import LedgerError
from tools.mutation.functions import digest, functions_of
from tools.mutation.operators import Edit, Place, places
from tools.mutation.pool import Hand, Hands, failing_tests, load_seconds, save_seconds
from tools.mutation.reached import Case, Reached
from tools.mutation.worker import Request

#: The packages that mutations are drawn from, and the share of them that tests should kill.
AIMS = {
    "wire": 97,
    "protocol": 97,
    "storage": 93,
    "runtime": 93,
    "pipeline/transforms": 93,
    "admin": 93,
}
EQUIVALENT = Path("tests/mutations/random/equivalent.toml")
#: Tests are tried in rounds, each of so many files and tests, as importing a file takes longer
#: than most tests. The last has what can be done in so many seconds.
_ROUNDS = ((2, 30), (6, 80), (60, 400))
_LAST_ROUND_S = 120.0

Fate = Literal["killed", "timeout", "survived", "unreached", "equivalent", "invalid"]


@dataclass(frozen=True, slots=True)
class Chance:
    """One edit at a random place of a file."""

    package: str
    file: str
    place: Place
    edit: Edit

    def before(self, source: str) -> str:
        return source.encode()[self.edit.start : self.edit.end].decode()


@dataclass(frozen=True, slots=True)
class Judged:
    """The fate of a random mutation; ``test`` decided it."""

    package: str
    file: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    fate: Fate
    test: str = ""
    detail: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifies the edit as long as its function is not rewritten, wherever it stands."""
        return self.file, self.function, self.before, self.after


def draw(
    root: Path, seed: int, number: int, packages: Iterable[str], reached: Reached
) -> list[Chance]:
    """Draws statements, all equally likely, and for each a kind of edit and one such edit."""
    found: list[tuple[str, str, Place]] = []
    for package in packages:
        for path in sorted((root / "src" / "mqis" / package).rglob("*.py")):
            name = str(path.relative_to(root))
            if reached.knows(name):
                found += [(package, name, place) for place in places(path.read_text("utf-8"))]
    random = Random(seed)
    chosen = random.sample(found, min(number, len(found)))
    return [Chance(package, name, place, _one(place, random)) for package, name, place in chosen]


def _one(place: Place, random: Random) -> Edit:
    kind = random.choice(sorted({edit.operator for edit in place.edits}))
    return random.choice([edit for edit in place.edits if edit.operator == kind])


@dataclass(frozen=True, slots=True)
class ChanceJudge:
    """Judges random mutations with ``jobs`` workers."""

    root: Path
    jobs: int
    limit_s: float

    def judge(self, drawn: Sequence[Chance], tell: Callable[[Judged], None]) -> list[Judged]:
        reached, known = Reached(self.root), load_equivalent(self.root)
        seconds = load_seconds(self.root)

        def one(hand: Hand, chance: Chance) -> Judged:
            judged = self._one(hand, chance, reached)
            if judged.fate in {"survived", "unreached"} and (reason := known.get(judged.key)):
                judged = _with(judged, "equivalent", detail=reason)
            tell(judged)
            return judged

        with Hands(self.root, min(self.jobs, len(drawn))) as hands:
            verdicts = hands.each(drawn, one)
            deciding = {v.test for v in verdicts if v.fate in {"killed", "timeout"}}
            failing = failing_tests(hands, deciding, self.limit_s)
        save_seconds(self.root, seconds)
        return [
            _with(v, "invalid", v.test, "the test fails without the edit too")
            if v.test in failing
            else v
            for v in verdicts
        ]

    def _one(self, hand: Hand, chance: Chance, reached: Reached) -> Judged:
        source = (self.root / chance.file).read_text("utf-8")
        text, place = chance.edit.applied(source), chance.place
        before, after = chance.before(source), chance.edit.text
        judged = Judged(
            chance.package,
            chance.file,
            place.function,
            place.line,
            chance.edit.operator,
            before,
            after,
            "unreached",
        )
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)):
            return _with(judged, "equivalent", detail="the edit changes no code")
        tests, executed = _tests(chance, reached)
        fate: Fate
        ran = 0
        for batch in rounds(tests):
            names = [case.nodeid for case in batch]
            ran += len(names)
            request = Request(["any"], names, "any", chance.file, text, self.limit_s)
            reply = hand.ask(request)
            if reply.error:
                # What cannot be imported, or ends the process, every test notices.
                return _with(judged, "killed", detail=reply.error)
            if found := reply.settled.get("any"):
                fate = "timeout" if found[0] == "timeout" else "killed"
                return _with(judged, fate, found[1], found[2])
            fate = "survived" if executed else "unreached"
            judged = _with(judged, fate, detail=f"{ran} of {len(tests)} tests passed")
        return judged


def _tests(chance: Chance, reached: Reached) -> tuple[list[Case], bool]:
    """The tests that judge an edit, and whether any is known to execute it or mention its name."""
    place, module = chance.place, reached.tests_of_module(chance.file)
    if place.function:
        known = reached.tests(chance.file, range(place.line, place.last + 1))
        first, second = known or reached.tests_of_file(chance.file), module
    else:
        known = reached.tests_of_names(place.names)
        first, second = module, known
    return list(dict.fromkeys([*first, *second])), bool(known)


def rounds(tests: Sequence[Case]) -> Iterator[list[Case]]:
    """Divides the tests into rounds: first those that tell most for their time."""
    left = list(tests)
    for files, number in _ROUNDS:
        wanted = list(dict.fromkeys(case.file for case in left))[:files]
        batch = [case for case in left if case.file in wanted][:number]
        if (files, number) == _ROUNDS[-1]:
            batch = _within(batch, _LAST_ROUND_S)
        if batch:
            yield batch
        taken = {case.nodeid for case in batch}
        left = [case for case in left if case.nodeid not in taken]


def _within(tests: Sequence[Case], limit_s: float) -> list[Case]:
    kept, total = [], 0.0
    for case in tests:
        total += case.seconds
        if total > limit_s:
            break
        kept.append(case)
    return kept


def _with(judged: Judged, fate: Fate, test: str = "", detail: str = "") -> Judged:
    return Judged(**(asdict(judged) | {"fate": fate, "test": test, "detail": detail}))


def load_equivalent(root: Path) -> dict[tuple[str, str, str, str], str]:
    """The edits that change nothing anybody could notice, with the reason of each."""
    path = root / EQUIVALENT
    if not path.exists():
        return {}
    found = {}
    for number, raw in enumerate(tomllib.loads(path.read_text("utf-8"))["equivalent"], start=1):
        if raw.keys() != {"file", "function", "before", "after", "reason"} or not raw["reason"]:
            raise LedgerError(f"{path}: entry {number} needs file, function, before, after, reason")
        found[raw["file"], raw["function"], raw["before"], raw["after"]] = raw["reason"]
    return found


class KeptVerdicts:
    """The verdicts of a run as they come, so that one that was interrupted goes on.

    Kills count as long as the function is as it was; survivors are judged again.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._path = root / ".build" / f"random-{seed}.jsonl"
        self._kills: dict[tuple[str, ...], Judged] = {}
        if self._path.exists():
            for line in self._path.read_text("utf-8").splitlines():
                content = json.loads(line)
                code = content.pop("code")
                verdict = Judged(**content)
                if verdict.fate in {"killed", "timeout"}:
                    self._kills[*verdict.key, code] = verdict

    def kill_of(self, chance: Chance) -> Judged | None:
        source = (self._root / chance.file).read_text("utf-8")
        key = chance.file, chance.place.function, chance.before(source), chance.edit.text
        return self._kills.get((*key, self._code(chance.file, chance.place.function)))

    def add(self, verdict: Judged) -> None:
        content = asdict(verdict) | {"code": self._code(verdict.file, verdict.function)}
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(content) + "\n")

    def _code(self, file: str, function: str) -> str:
        """The digest of the function; of a module's own statements, that of the module."""
        return _digests(self._root / file).get(function, "")


@cache
def _digests(path: Path) -> dict[str, str]:
    text = path.read_text("utf-8")
    return {"": digest(ast.parse(text))} | {each.name: each.digest for each in functions_of(text)}
