"""Ctrl-C: held back while Java starts, and told in one line whatever fails on the way out.

``slow/test_commands.py`` sends a real one to a real process.
"""

from __future__ import annotations

import logging
import signal

import pytest
import typer
from py4j import java_gateway  # type: ignore[import-untyped]

from mqis.cli.pipeline.opening import INTERRUPTED, interruptible, is_not_of_py4j
from mqis.pipeline.session import interrupts_held


def test_it_is_held_back_while_java_starts() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = []

    def start() -> None:
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
            done.append("java")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["java"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_that_pyspark_sets_stays() -> None:
    before = signal.getsignal(signal.SIGINT)

    def theirs(number: int, frame: object) -> None: ...

    try:
        with interrupts_held():
            signal.signal(signal.SIGINT, theirs)
        assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


def ends_badly() -> None:
    """Java does not answer any more when the session is to be stopped."""
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("the answer is empty")
    finally:
        raise OSError("nor is there a socket")


def test_what_fails_on_the_way_out_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        interruptible(ends_badly)()
    assert ended.value.exit_code == INTERRUPTED
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "mqis: interrupted; each table is either as it was or new"


def test_other_errors_stay_what_they_are() -> None:
    def fails() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        interruptible(fails)()


@pytest.mark.parametrize(("file", "kept"), [(java_gateway.__file__, False), (__file__, True)])
def test_py4j_logs_nothing(file: str, kept: bool) -> None:
    record = logging.LogRecord("root", logging.ERROR, file, 1, "while sending", None, None)
    assert is_not_of_py4j(record) is kept
