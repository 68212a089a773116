"""Log lines of a server, one per event: text for people, JSON for programs.

    log.info("listening", extra=details(port=2879))

    2024-03-01T08:00:00.250Z info mqis.server.serve: listening port=2879
    {"time": "2024-03-01T08:00:00.250Z", "level": "info", "logger": "mqis.server.serve",
     "event": "listening", "port": 2879}                              (in one line)

Names come from anywhere: characters that control a terminal or begin a line are escaped, as
``\\x1b``.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TextIO

from mqis.config.sections import LogFormat, LogSection
from mqis.texts import iso_moment


def details(**values: object) -> dict[str, Any]:
    """The named details of an event, for the argument ``extra``."""
    return {"details": values}


def configure(section: LogSection, stream: TextIO | None = None) -> None:
    """Sends all log lines to one stream, by default the standard error; may be called again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if section.format is LogFormat.JSON else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(section.level.upper())
    logging.getLogger("asyncio").setLevel(max(root.level, logging.WARNING))
    for unused in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        setattr(logging, unused, False)  # no line shows them, and finding them out takes time


class TextLines(logging.Formatter):
    """Formats a record as text: time, level, logger, event, details."""

    def format(self, record: logging.LogRecord) -> str:
        start = f"{_time(record)} {_level(record)} {record.name}: "
        lines = [_text(start + event, given) for event, given in _lines(record, _given)]
        if record.exc_info:
            exception = repr(self.formatException(record.exc_info))
            lines[-1] += "".join(map(_visible, f" exception={exception}"))
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object on a line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        start = {"time": _time(record), "level": _level(record), "logger": record.name}
        lines = _lines(record, _details)
        contents: list[dict[str, Any]] = [{**start, "event": e, **given} for e, given in lines]
        if record.exc_info:
            contents[-1]["exception"] = self.formatException(record.exc_info)
        return "\n".join(map(_encode, contents))


Line = tuple[str, dict[str, Any]]


def _lines(
    record: logging.LogRecord, details_of: Callable[[logging.LogRecord], dict[str, Any]]
) -> list[Line]:
    """The lines of a record as (event, details): usually one, or several written together."""
    lines: list[Line] | None = getattr(record, "lines", None)
    return [(record.getMessage(), details_of(record))] if lines is None else lines


def _text(start: str, given: dict[str, Any]) -> str:
    line = start + "".join(f" {name}={_shown(value)}" for name, value in given.items())
    return line if line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


_encode = json.JSONEncoder(default=str).encode


#: Matches a text that needs no quotes.
_is_plain = re.compile(r"[^\s\"'=]+").fullmatch


def _time(record: logging.LogRecord) -> str:
    second, fraction = divmod(record.created, 1)
    return f"{_second(int(second))}.{int(1000 * fraction):03d}Z"


@lru_cache(maxsize=2)
def _second(unix: int) -> str:
    """Formats a second; cached, as most lines of a busy server share it with the line before."""
    return iso_moment(unix * 1_000_000, 0)[:-1]


def _level(record: logging.LogRecord) -> str:
    return record.levelname.lower()


def _given(record: logging.LogRecord) -> dict[str, Any]:
    given = getattr(record, "details", None)
    return given if isinstance(given, dict) else {}


def _details(record: logging.LogRecord) -> dict[str, Any]:
    """The details given to the event, or the fields of the dataclass that is its only argument."""
    args = record.args if isinstance(record.args, tuple) else ()
    if len(args) == 1 and is_dataclass(args[0]) and not isinstance(args[0], type):
        value = args[0]
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return _given(record)


def _plain(value: object) -> object:
    """Converts a value for JSON: an enumeration to its name, other types to text."""
    name = getattr(value, "label", None) or getattr(value, "name", None)
    if isinstance(name, str):
        return name
    return value if value is None or isinstance(value, str | int | list) else str(value)


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if _is_plain(text) else json.dumps(text, ensure_ascii=False)
