"""A process that applies edits to a copy of the project, and runs the tests of the rows.

It is started in the copy and reads one request a line on stdin, as JSON; the reply to each is one
line on stdout. It has imported pytest and the libraries, but nothing of the project, and forks a
child for each edit: so a child imports the edited code anew, and starts in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from tools.mutation.session import By, LabelledTests, run_session

#: Libraries that most tests import.
LIBRARIES = (
    "asyncio",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.x509",
    "hypothesis.strategies",
    "jinja2",
    "networkx",
    "numpy",
    "prometheus_client",
    "psycopg",
    "rich.table",
    "spnego",
    "sqlite3",
    "starlette.applications",
    "typer.testing",
    "uvicorn",
    "uvloop",
)
LOG = Path(".build/mutant.log")
#: An edit may make a loop that never ends and takes memory each time.
MEMORY = 8 * 2**30


@dataclass(frozen=True, slots=True)
class Request:
    """The labels to settle with these tests, after ``file`` has been given ``text``."""

    labels: list[str]
    tests: list[str]
    by: By = "row"
    file: str = ""
    text: str = ""
    limit_s: float = 60.0


@dataclass(slots=True)
class Reply:
    """The settled labels (fate, test, detail), the tests that ran, and why no more did."""

    settled: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    error: str = ""


class Worker:
    """Answers requests; keeps the times of tests, so that quick ones come first."""

    def __init__(self, seconds: dict[str, float], scratch: str) -> None:
        self._seconds = seconds
        self._scratch = scratch

    def answer(self, request: Request) -> Reply:
        reply = Reply()
        with edit(request):
            while not reply.error and set(request.labels) - reply.settled.keys():
                if self._run(request, reply):
                    break
        self._seconds |= reply.seconds
        return reply

    def _run(self, request: Request, reply: Reply) -> bool:
        """Runs one child; returns whether it ran to its end."""
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.close(reader)
            self._live(request, sorted(set(request.labels) - reply.settled.keys()), writer)
        os.close(writer)
        try:
            return follow(reader, request.limit_s, reply)
        finally:
            os.close(reader)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _live(self, request: Request, labels: list[str], writer: int) -> None:
        """Runs the tests in the child, and never returns."""
        try:
            os.setsid()
            _redirect()
            if "/pipeline/" not in request.file:  # Java reserves more than it uses
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

            def send(event: dict[str, Any]) -> None:
                os.write(writer, json.dumps(event).encode() + b"\n")

            send({"event": "alive"})
            if trouble := import_error(request.file):
                send({"event": "broken", "detail": trouble})
            else:
                plugin = LabelledTests(set(labels), request.by, self._seconds, send, request.tests)
                run_session(plugin, request.tests, self._scratch)
                send({"event": "done"})
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)


def follow(reader: int, limit_s: float, reply: Reply) -> bool:
    """Notes what the child reports, until it is done or a test exceeds the limit."""
    running: dict[str, Any] | None = None
    for event in _events(reader, limit_s):
        match event:
            case {"event": "start"}:
                running = event
            case {"event": "failed", "test": test, "labels": labels, "detail": detail}:
                reply.settled |= dict.fromkeys(labels, ("killed", test, detail))
                running = {"test": test, "labels": []}
            case {"event": "end", "test": test, "seconds": seconds}:
                running = None
                reply.seconds[test] = seconds
            case {"event": "broken", "detail": detail}:
                reply.error = detail
                return True
            case {"event": "done"}:
                return True
            case {"event": "silence"} if running is not None:
                fate = ("timeout", running["test"], f"no end after {limit_s:g} s")
                reply.settled |= dict.fromkeys(running["labels"], fate)
                return False
    reply.error = f"the tests ended early; see {LOG}" if running is None else _died(running)
    return True


def _died(running: dict[str, Any]) -> str:
    return f"the process ended in {running['test']}; see {LOG}"


def _events(reader: int, limit_s: float) -> Iterator[dict[str, Any]]:
    """The child's lines; a last one says that nothing came for ``limit_s``."""
    rest = b""
    while select.select([reader], [], [], limit_s)[0]:
        if not (data := os.read(reader, 65536)):
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json.loads, lines)
    yield {"event": "silence"}


@contextlib.contextmanager
def edit(request: Request) -> Iterator[None]:
    """Gives the file its new text, and afterwards the old one with its old time."""
    if not request.file:
        yield
        return
    path = Path(request.file)
    old, status = path.read_bytes(), path.stat()
    # Compiled code is compared by size and second only, so none may stay.
    compiled = Path(cache_from_source(str(path.absolute())))
    compiled.unlink(missing_ok=True)
    path.write_text(request.text, "utf-8")
    try:
        yield
    finally:
        path.write_bytes(old)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        compiled.unlink(missing_ok=True)


def import_error(file: str) -> str:
    """Imports the edited module; returns the error, or nothing."""
    path = Path(file)
    if path.suffix != ".py" or path.name == "__main__.py":
        return ""
    parts = path.with_suffix("").parts[1:]
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        importlib.import_module(name)
    except Exception as error:
        return f"the edited module cannot be imported: {type(error).__name__}: {error}"
    return ""


def _redirect() -> None:
    """Sends the child's output to a file: stdout carries the replies."""
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)


def main() -> None:
    seconds: dict[str, float] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Short, because tests make Unix sockets below it.
    scratch = tempfile.mkdtemp(prefix="mut")
    try:
        worker = Worker(seconds, f"{scratch}/t")
        for line in sys.stdin:
            reply = worker.answer(Request(**json.loads(line)))
            print(json.dumps(asdict(reply)), flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
