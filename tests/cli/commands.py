"""The command as a user runs it: in this process where that will do, else in one of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from mqis.cli.main import app
from tests.waiting import DEADLINE_S


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Without ``main``, so an ``MqisError`` is ``result.exception``."""
    runner = CliRunner(env={"COLUMNS": "120"})
    with logging_as_it_was():
        return runner.invoke(app, [str(a) for a in arguments], input=stdin)


@contextmanager
def logging_as_it_was() -> Iterator[None]:
    """Takes away what a command sets up for its process: handlers on its streams, and levels."""
    loggers = [logging.getLogger(name) for name in ("", "asyncio", "mqis")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    try:
        yield
    finally:
        for logger, handlers, level in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)


def process(
    *arguments: str | Path,
    directory: Path | None = None,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """The whole of it, exit status and both streams included."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("MQIS_CONFIG", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "mqis.cli.main", *map(str, arguments)],
        cwd=directory,
        input=stdin,
        env=inherited | (env or {}),
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
