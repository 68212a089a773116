"""The logs of a server: one line per event, whatever the event contains."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from mqis.config.logs import configure, details
from mqis.config.sections import LogFormat, LogLevel, LogSection
from mqis.protocol.directory.guard import Denial
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sid import EVERYONE

log = logging.getLogger("mqis.test")
DENIAL = Denial(EVERYONE, "delete", ObjectType.QUEUE, "m\\q\n\x1b[2J")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def to(section: LogSection) -> StringIO:
    stream = StringIO()
    configure(section, stream)
    return stream


def test_text() -> None:
    stream = to(LogSection())
    log.info("listening", extra=details(port=2879, site="Den Haag", keys=["a", "b"], empty=""))
    moment, rest = stream.getvalue().split(" ", 1)
    assert len(moment) == len("2024-03-01T08:00:00.250Z")
    assert moment.endswith("Z")
    assert rest == 'info mqis.test: listening port=2879 site="Den Haag" keys=a,b empty=""\n'


def test_json() -> None:
    stream = to(LogSection(format=LogFormat.JSON))
    log.info("listening", extra=details(port=2879))
    log.warning("%s", DENIAL)
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert {k: first[k] for k in ("level", "logger", "event", "port")} == {
        "level": "info",
        "logger": "mqis.test",
        "event": "listening",
        "port": 2879,
    }
    assert second["event"] == str(DENIAL)
    told: dict[str, Any] = {"caller": "S-1-1-0", "action": "delete", "object_type": "queue"}
    assert {k: second[k] for k in told} == told
    assert second["name"] == DENIAL.name


@pytest.mark.parametrize("form", LogFormat)
def test_an_event_is_one_line_and_acts_on_no_terminal(form: LogFormat) -> None:
    stream = to(LogSection(format=form))
    log.warning("%s", DENIAL)
    try:
        raise ValueError("a\nb")
    except ValueError:
        log.exception("failed\r\n", extra=details(name="x\u2028y"))
    text = stream.getvalue()
    assert text.count("\n") == 2
    assert not {"\x1b", "\r", "\u2028"} & set(text)
    assert "ValueError" in text


def test_levels_and_repetition() -> None:
    stream = to(LogSection(level=LogLevel.WARNING))
    log.info("quiet")
    log.error("loud")
    assert stream.getvalue().count("\n") == 1
    again = to(LogSection(level=LogLevel.DEBUG))
    log.debug("now")
    assert "now" in again.getvalue()
    assert "now" not in stream.getvalue()
