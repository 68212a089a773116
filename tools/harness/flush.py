"""Checks a trace of system calls: no write may be acknowledged before it was flushed.

To see it find something: python -m tools.harness flush --worker-option=--synchronous-off

The traced process is ``storewriter``, with a new store. For each line ``ack TASK OPERATION ID ...``
that it wrote, at the instant the kernel was asked to write it:

1. Every change that the process ever made to the store's file or its write-ahead log (write,
   truncate) is covered by an fsync or fdatasync of that file that began after the change had
   returned and has itself returned 0. A flush under way does not count.
2. At least one such change came after the process had written ``try TASK OPERATION ID ...``:
   otherwise the acknowledgement came before its own write, or had none.
3. If the store is new: the directory was flushed after the files were
   made, so that their names are on the disk too.

What that proves: the kernel had confirmed that everything was on stable storage before the process
acknowledged it. Strace stops a thread at the entry and at the exit of a call until it has recorded
it, so the order of lines is the order of events wherever one caused the other.

What it does not prove: that kernel and drive really store the data; that the data are right, or can
be read back after a crash (the scenario ``store`` tests that); anything about runs other than the
traced one. It sees writes through descriptors only: a writable shared mapping of the files is
reported as a violation, because writes through it leave no trace; the shared-memory index (-shm)
and the rollback journal (-journal) are left out, because SQLite rebuilds the one and needs the
other only until the log exists; io_uring is not looked for.

Rule 1 is too strict where commits overlap: the log may hold unflushed frames of the next commit
while the previous one is acknowledged, and that is reported although it is correct. The worker's
``--groups`` keeps commits apart. Overlap never hides a violation.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.harness.processes import ROOT, module
from tools.harness.scenario import Given, Scenario, Verdict

CHANGES = frozenset({"write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate"})
FLUSHES = frozenset({"fsync", "fdatasync"})
CALLS = ",".join(sorted(CHANGES | FLUSHES | {"openat", "mmap"}))

_LINE = re.compile(r"(?P<thread>\d+)\s+(?:\d+[.:][\d.:]+\s+)?(?P<rest>\S.*)")
_NOTE = re.compile(r"(\+\+\+|---) .* (\+\+\+|---)")
_UNFINISHED = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?),?\s*<unfinished \.\.\.>")
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)\)\s+= (?P<result>.+)")
_WHOLE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>.+)")
_DESCRIPTOR = re.compile(r"(\d+)<(?P<path>[^>]*)>")
_REPORT = re.compile(r'\d+<[^>]*>, "(?:try|ack) ')
_TEXT = re.compile(r'\d+<[^>]*>, "(?P<text>(?:try|ack)(?: [^\s"\\]+){3,})\\n", \d+')


class Event(NamedTuple):
    """The entry (``result`` is None) or exit of a call."""

    line: int
    thread: str
    name: str
    arguments: str
    result: str | None


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Yields entries and exits of calls in order; raises ``ValueError`` for an unknown line."""
    under_way: dict[str, Event] = {}
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number} is not strace's: {line[:80]!r}")
        thread, rest = match["thread"], match["rest"]
        if _NOTE.fullmatch(rest):
            continue
        if call := _UNFINISHED.fullmatch(rest):
            under_way[thread] = Event(number, thread, call["name"], call["arguments"], None)
            yield under_way[thread]
        elif (call := _RESUMED.fullmatch(rest)) and thread in under_way:
            entry = under_way.pop(thread)
            if entry.name != call["name"]:
                raise ValueError(f"line {number} resumes {call['name']}, not {entry.name}")
            yield entry._replace(line=number, result=call["result"])
        elif call := _WHOLE.fullmatch(rest):
            entry = Event(number, thread, call["name"], call["arguments"], None)
            yield entry
            yield entry._replace(result=call["result"])
        else:
            raise ValueError(f"line {number} is not a call: {line[:80]!r}")


@dataclass(slots=True)
class File:
    """The changes of one file, and how many of them are flushed."""

    changes: int = 0
    flushes: int = 0
    under_way: set[str] = field(default_factory=set)
    """Threads inside a change; a flush that begins meanwhile may not cover it."""
    returned: int = 0
    """The number of changes that had returned when last no change was in progress."""
    flushed: int = 0
    flushing: dict[str, int] = field(default_factory=dict)

    @property
    def unflushed(self) -> int:
        return self.changes - self.flushed

    def change(self, event: Event) -> None:
        if event.result is None:
            self.changes += 1
            self.under_way.add(event.thread)
            return
        self.under_way.discard(event.thread)
        if not self.under_way:
            self.returned = self.changes

    def flush(self, event: Event) -> None:
        if event.result is None:
            self.flushing[event.thread] = self.returned
            return
        covered = self.flushing.pop(event.thread)
        if event.result == "0":
            self.flushes += 1
            self.flushed = max(self.flushed, covered)


@dataclass(slots=True)
class Report:
    """The result for a trace; it proves nothing without acknowledgements."""

    store: File = field(default_factory=File)
    log: File = field(default_factory=File)
    acknowledgements: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.acknowledgements} acknowledgements, {len(self.violations)} violations; "
            f"store: {self.store.changes} changes, {self.store.flushes} flushes; "
            f"log: {self.log.changes} changes, {self.log.flushes} flushes"
        )


class _Checker:
    def __init__(self, store: str, *, new: bool) -> None:
        self.report = Report()
        self._files = {store: self.report.store, f"{store}-wal": self.report.log}
        self._directory = str(Path(store).parent)
        # The directory is treated as a file that creating another file changes.
        self._names = File()
        self._made: set[str] = set() if new else set(self._files)
        self._tries: dict[str, int] = {}

    def take(self, event: Event) -> None:
        if event.name == "openat":
            self._open(event)
            return
        if event.name == "mmap":
            self._map(event)
            return
        descriptor = _DESCRIPTOR.match(event.arguments)
        file = self._file(descriptor["path"]) if descriptor else None
        if file is None:
            self._take_report(event)
        elif event.name in CHANGES:
            file.change(event)
        elif event.name in FLUSHES:
            file.flush(event)

    def _file(self, path: str) -> File | None:
        return self._names if path == self._directory else self._files.get(path)

    def _open(self, event: Event) -> None:
        """Takes the first opening that can create a file for the one that creates it."""
        opened = _DESCRIPTOR.match(event.result or "")
        if opened is None or "O_CREAT" not in event.arguments:
            return
        path = opened["path"]
        if path in self._files and path not in self._made:
            self._made.add(path)
            self._names.change(event._replace(result=None))
            self._names.change(event)

    def _map(self, event: Event) -> None:
        writable = "PROT_WRITE" in event.arguments and "MAP_SHARED" in event.arguments
        if event.result is None and writable:
            for path in self._files:
                if f"<{path}>" in event.arguments:
                    self._violation(event, f"{path} is mapped for writing")

    def _take_report(self, event: Event) -> None:
        if event.name != "write" or event.result is not None or not _REPORT.match(event.arguments):
            return
        report = _TEXT.fullmatch(event.arguments)
        if report is None:
            raise ValueError(f"line {event.line} is cut off, or reports several operations")
        verb, *words = report["text"].split()
        operation = " ".join(words[:3])
        if verb == "try":
            self._tries[operation] = self._changes()
        else:
            self._acknowledge(event, operation)

    def _acknowledge(self, event: Event, operation: str) -> None:
        self.report.acknowledgements += 1
        tried_at = self._tries.pop(operation, None)
        if tried_at is None:
            self._violation(event, f"'{operation}' is acknowledged, but no task tried it")
        elif self._changes() == tried_at:
            self._violation(event, f"'{operation}' is acknowledged before anything was written")
        for path, file in {**self._files, self._directory: self._names}.items():
            if file.unflushed:
                reason = f"{file.unflushed} changes of {path} are not flushed"
                self._violation(event, f"'{operation}' is acknowledged, but {reason}")

    def _changes(self) -> int:
        return sum(file.changes for file in self._files.values())

    def _violation(self, event: Event, text: str) -> None:
        self.report.violations.append(f"line {event.line}: {text}")


def check(lines: Iterable[str], store: str, *, new: bool = False) -> Report:
    """Applies the rules above to the lines of ``strace -f -y``; ``store`` is the path it shows."""
    checker = _Checker(store, new=new)
    for event in events(lines):
        checker.take(event)
    return checker.report


def traced(directory: Path, *options: str, groups: int, writers: int = 10) -> Report:
    """The report on a worker that made a new store and ran so many groups of operations."""
    store, trace = directory.resolve() / "store.db", directory / "trace"
    worker = module("storewriter", store, "--seed=1", f"--groups={groups}", f"--writers={writers}")
    strace = ["strace", "-f", "-qq", "-y", "-s256", f"-etrace={CALLS}", "-o", str(trace)]
    done = subprocess.run(
        [*strace, *worker, *options], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the traced worker failed: {done.stderr}")
    with trace.open(encoding="utf-8") as lines:
        report = check(lines, str(store), new=True)
    said = done.stdout.count("ack ")
    if not report.acknowledgements == groups * writers == said:
        raise RuntimeError(f"{said} acknowledgements were said, {report.acknowledgements} traced")
    return report


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", type=int, default=60, help="commits")
    parser.add_argument("--writers", type=int, default=16, help="writes of each commit")
    parser.add_argument("--worker-option", action="append", default=[], help="pass this on")


def _run(given: Given) -> Verdict:
    options = given.options
    report = traced(
        given.directory, *options.worker_option, groups=options.groups, writers=options.writers
    )
    return Verdict(str(report), report.violations, "every write was flushed before its answer")


SCENARIO = Scenario("flush", "looks for acknowledgements before their flush", _run, _options)
