"""Workers, each a process in a copy of its own, and the mutations that they judge."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Self, TypeVar

from tools.mutation.copies import PLACE, claim_copy
from tools.mutation.records import Mutation, MutationError, edited_file
from tools.mutation.verdicts import Verdict, verdicts_for
from tools.mutation.worker import Reply, Request

SECONDS = PLACE / "seconds.json"
#: A test that waits for an event waits this part of its usual time: most mutants prevent events.
PATIENCE = "0.1"

_T = TypeVar("_T")
_Done = TypeVar("_Done")


class Hand:
    """The near end of one worker process."""

    def __init__(self, root: Path) -> None:
        self.copy, self._lock = claim_copy(root)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.mutation.worker", str((root / SECONDS).resolve())],
            cwd=self.copy,
            env=environment(self.copy),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: Request) -> Reply:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(asdict(request)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return Reply(**json.loads(line)) if line else Reply(error="the worker has ended")

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._lock.close()


class Hands:
    """Several workers, which take things to do one after the other."""

    def __init__(self, root: Path, count: int) -> None:
        self.count = max(1, count)
        self._opened = [Hand(root) for _ in range(self.count)]
        self._idle: SimpleQueue[Hand] = SimpleQueue()
        for hand in self._opened:
            self._idle.put(hand)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for hand in self._opened:
            hand.close()

    def each(self, things: Iterable[_T], do: Callable[[Hand, _T], _Done]) -> list[_Done]:
        """Does each thing with whatever worker is idle; the results keep the order."""

        def one(thing: _T) -> _Done:
            hand = self._idle.get()
            try:
                return do(hand, thing)
            finally:
                self._idle.put(hand)

        with ThreadPoolExecutor(self.count) as pool:
            return list(pool.map(one, things))


def environment(copy: Path) -> dict[str, str]:
    """The environment in which the copy's own code is imported, and kept compiled beside it."""
    ours = {
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    dropped = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {"MQIS_TEST_PATIENCE": PATIENCE} | kept | ours


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges mutations with ``jobs`` workers; tests that take longer than ``limit_s`` are ended."""

    root: Path
    jobs: int
    limit_s: float

    def judge(
        self, mutations: Sequence[Mutation], tell: Callable[[list[Verdict]], None]
    ) -> list[Verdict]:
        """Returns a verdict for each row of each mutation, in the order of the mutations.

        ``tell`` gets those of one mutation as soon as they are known.
        """
        claims = files_by_row(self.root, {row for m in mutations for row in m.rows})
        seconds = load_seconds(self.root)

        def one(hand: Hand, mutation: Mutation) -> list[Verdict]:
            reply = self._ask(hand, mutation, claims)
            seconds.update(reply.seconds)
            found = _verdicts(mutation, reply)
            tell(found)
            return found

        with Hands(self.root, min(self.jobs, len(mutations))) as hands:
            verdicts = [verdict for found in hands.each(mutations, one) for verdict in found]
            failing = failing_tests(hands, {v.test for v in verdicts if v.dead}, self.limit_s)
        save_seconds(self.root, seconds)
        return [_doubted(verdict, failing) for verdict in verdicts]

    def _ask(self, hand: Hand, mutation: Mutation, claims: Mapping[str, set[str]]) -> Reply:
        try:
            text = edited_file(self.root, mutation)
        except MutationError as error:
            return Reply(error=str(error))
        tests = sorted({file for row in mutation.rows for file in claims[row]})
        if not tests:
            return Reply()
        file = mutation.file
        return hand.ask(
            Request(list(mutation.rows), tests, file=file, text=text, limit_s=self.limit_s)
        )


def failing_tests(hands: Hands, tests: Iterable[str], limit_s: float) -> set[str]:
    """The tests that fail without any edit too."""
    wanted = sorted(tests)
    shares = [wanted[place :: hands.count] for place in range(hands.count)]

    def ask(hand: Hand, mine: list[str]) -> Reply:
        return hand.ask(Request(mine, mine, by="test", limit_s=2 * limit_s))

    replies = hands.each([share for share in shares if share], ask)
    for reply in replies:
        if reply.error:
            raise RuntimeError(f"the tests do not run without an edit: {reply.error}")
    return {test for reply in replies for test in reply.settled}


def _verdicts(mutation: Mutation, reply: Reply) -> list[Verdict]:
    if reply.error:
        return verdicts_for(mutation, "invalid", reply.error)
    ran = len(reply.seconds)
    verdicts = []
    for row in mutation.rows:
        fate, test, detail = reply.settled.get(row, ("survived", "", f"{ran} tests passed"))
        verdicts.append(Verdict(mutation.name, row, fate, test, detail))  # type: ignore[arg-type]
    return verdicts


def _doubted(verdict: Verdict, failing: set[str]) -> Verdict:
    if verdict.test not in failing:
        return verdict
    return replace(verdict, fate="invalid", detail="the test fails without the edit too")


def files_by_row(root: Path, rows: Iterable[str]) -> dict[str, set[str]]:
    """The test files that name each row; their marks decide which of their tests claim it.

    Some tests put an id together, as ``f"MQDS-3.1.4.21.{group}"``: they may name any such row.
    """
    found: dict[str, set[str]] = {row: set() for row in rows}
    word, stem = re.compile(r"[A-Z]+-[\w.-]*\w"), re.compile(r"([A-Z]+-[\w.-]+)\{")
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = str(path.relative_to(root))
        text = path.read_text("utf-8")
        words, stems = set(word.findall(text)), tuple(stem.findall(text))
        for row, files in found.items():
            if row in words or row.startswith(stems):
                files.add(name)
    return found


def load_seconds(root: Path) -> dict[str, float]:
    path = root / SECONDS
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        save_seconds(root, {})
    loaded: dict[str, float] = json.loads(path.read_text("utf-8"))
    return loaded


def save_seconds(root: Path, seconds: Mapping[str, float]) -> None:
    partial = (root / SECONDS).with_suffix(".partial")
    partial.write_text(json.dumps(dict(sorted(seconds.items()))), "utf-8")
    partial.replace(root / SECONDS)
