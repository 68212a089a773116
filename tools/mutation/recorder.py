"""Records the lines of ``src/mqis`` that Python executes, at almost no cost.

It needs ``sys.monitoring`` (Python 3.12): a line reports itself once, and then no more until the
next ``take``. Nothing here is imported from the project, because processes that tests start load
this file alone (``startup/sitecustomize.py``).
"""

from __future__ import annotations

import json
import os
import sys
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import Any

#: The directory for what is recorded, and the test that runs: for processes that a test starts.
PLACE, TEST = "MQIS_REACHED", "MQIS_REACHED_TEST"
SOURCE = f"{Path(__file__).resolve().parents[2] / 'src'}{os.sep}"

#: The lines of each file as the bits of a number.
Lines = dict[str, int]


class Recorder:
    """Gathers executed lines between two calls of ``take``."""

    def __init__(self, source: str = SOURCE) -> None:
        self._source = source
        self._lines: Lines = {}
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        self._monitoring, self._tool = monitoring, monitoring.PROFILER_ID
        self._watched: set[CodeType] = set()

    def start(self) -> None:
        events = self._monitoring.events
        self._monitoring.use_tool_id(self._tool, "mqis")
        self._monitoring.register_callback(self._tool, events.PY_START, self._started)
        self._monitoring.register_callback(self._tool, events.LINE, self._reached)
        self._monitoring.set_events(self._tool, events.PY_START)

    def take(self) -> Lines:
        """Returns the lines since the last call, and has all lines report themselves again."""
        lines, self._lines = self._lines, {}
        self._monitoring.restart_events()
        return lines

    def stop(self) -> Lines:
        """Returns the lines since the last ``take``, and records no more."""
        # Before 3.14 a freed tool still gets its events.
        self._monitoring.set_events(self._tool, 0)
        for code in self._watched:
            self._monitoring.set_local_events(self._tool, code, 0)
        self._monitoring.free_tool_id(self._tool)
        return self._lines

    def _started(self, code: CodeType, _offset: int) -> object:
        # Modules and class bodies run on import, which belongs to no test.
        if code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(self._source):
            self._note(code, code.co_firstlineno)
            if code not in self._watched:
                self._watched.add(code)
                events = self._monitoring.events
                self._monitoring.set_local_events(self._tool, code, events.LINE)
        return self._monitoring.DISABLE

    def _reached(self, code: CodeType, line: int) -> object:
        self._note(code, line)
        return self._monitoring.DISABLE

    def _note(self, code: CodeType, line: int) -> None:
        name = code.co_filename[len(self._source) :]
        self._lines[name] = self._lines.get(name, 0) | 1 << line


def leave(lines: Lines, place: Path, test: str) -> None:
    """Writes what a process other than the tests' own executed for a test."""
    path = place / f"{os.getpid()}-{os.urandom(4).hex()}.json"
    path.write_text(json.dumps({"test": test, "lines": {n: hex(b) for n, b in lines.items()}}))


def gathered(place: Path) -> list[tuple[str, Lines]]:
    """Reads what processes left, and removes it."""
    found = []
    for path in sorted(place.glob("*.json")):
        left = json.loads(path.read_text())
        found.append((left["test"], {n: int(b, 16) for n, b in left["lines"].items()}))
        path.unlink()
    return found
