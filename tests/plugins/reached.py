"""Records which lines of the product each test executes: ``pytest --reached FILE``.

``make reached`` runs all tests so; ``tools/mutation/reached.py`` reads the file. It needs Python
3.12 or newer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tools.mutation.reached import ReachedWriter
from tools.mutation.recorder import PLACE, TEST, Recorder, gathered

STARTUP = Path(__file__).resolve().parents[2] / "tools" / "mutation" / "startup"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reached", metavar="FILE", help="record the lines that each test executes")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--reached"):
        config.pluginmanager.register(Reached(Path(path)))


class Reached:
    """Attributes lines to tests; what a module executes on import belongs to none."""

    def __init__(self, path: Path) -> None:
        self._writer = ReachedWriter(path)
        self._recorder = Recorder()
        self._recorder.start()
        self._place = Path(tempfile.mkdtemp(prefix="reached"))
        paths = [str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ |= {PLACE: str(self._place), "PYTHONPATH": os.pathsep.join(paths)}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        os.environ[TEST] = item.nodeid
        self._recorder.take()
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            left_out = any(item.get_closest_marker(mark) for mark in ("interop", "slow"))
            self._writer.test(item.nodeid, seconds, counts=not left_out)
            self._writer.reached(item.nodeid, self._recorder.take())

    def pytest_sessionfinish(self) -> None:
        self._recorder.stop()
        for test, lines in gathered(self._place):
            self._writer.reached(test, lines)
        self._place.rmdir()
        self._writer.close()
