"""What a server tells, one line an event: text for people, JSON for programs.

    log.info("listening", extra=details(port=2879))

    2024-03-01T08:00:00.250Z info mqis.services.serve: listening port=2879
    {"time": "2024-03-01T08:00:00.250Z", "level": "info", "logger": "mqis.services.serve",
     "event": "listening", "port": 2879}                              (in one line)

Names come from anywhere. What could act on a terminal or begin a new line is written ``\\x1b``.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

from mqis.services.sections import LogFormat, LogSection


def details(**values: object) -> dict[str, Any]:
    """For ``extra``: what the event is about, by name."""
    return {"details": values}


def configure(section: LogSection, stream: TextIO | None = None) -> None:
    """Send everything to one stream, by default the standard error; may be repeated."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if section.format is LogFormat.JSON else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(section.level.upper())
    logging.getLogger("asyncio").setLevel(max(root.level, logging.WARNING))


class TextLines(logging.Formatter):
    """Time, level, logger, event, details."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {_level(record)} {record.name}: {record.getMessage()}"
        for name, value in _given(record).items():
            line += f" {name}={_shown(value)}"
        if record.exc_info:
            line += f" exception={self.formatException(record.exc_info)!r}"
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class JsonLines(logging.Formatter):
    """One object a line, ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": _time(record),
            "level": _level(record),
            "logger": record.name,
            "event": record.getMessage(),
            **_details(record),
        }
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level(record: logging.LogRecord) -> str:
    return record.levelname.lower()


def _given(record: logging.LogRecord) -> dict[str, Any]:
    given = getattr(record, "details", None)
    return given if isinstance(given, dict) else {}


def _details(record: logging.LogRecord) -> dict[str, Any]:
    """What ``details`` was given, or the fields of the one value that the message is made of."""
    args = record.args if isinstance(record.args, tuple) else ()
    if len(args) == 1 and is_dataclass(args[0]) and not isinstance(args[0], type):
        value = args[0]
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return _given(record)


def _plain(value: object) -> object:
    """Enumerations by their name, anything else that JSON lacks as text."""
    name = getattr(value, "label", None) or getattr(value, "name", None)
    if isinstance(name, str):
        return name
    return value if value is None or isinstance(value, str | int | list) else str(value)


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    quoted = not text or any(c.isspace() or c in "\"'=" for c in text)
    return json.dumps(text, ensure_ascii=False) if quoted else text
