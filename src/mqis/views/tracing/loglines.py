"""Parses the lines of the logger ``mqis.change`` in a server's log, text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqis.texts import parse_moment

LOGGER = "mqis.change"

_TEXT = re.compile(
    rf"(\d{{4}}-\d\d-\d\dT[\d:.]+Z) \w+ {re.escape(LOGGER)}: ([a-z ]+?)((?: \w+=.*)?)$"
)
_DETAIL = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line; ``changes`` and ``request`` identify what it is about."""

    time: float
    event: str
    changes: tuple[str, ...]
    request: str | None
    #: All other details of the line.
    details: dict[str, Any]


def change_lines(path: Path, wanted: Callable[[str], bool]) -> Iterator[ChangeLine]:
    """Yields the wanted lines of a log, those of its renamed predecessor first."""
    for file in (path.with_name(f"{path.name}.1"), path):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                for text in lines:
                    if LOGGER in text and wanted(text):
                        line = parse_line(text.rstrip("\n"))
                        if line is not None:
                            yield line
        except FileNotFoundError:
            continue


def parse_line(text: str) -> ChangeLine | None:
    """Parses a line; None if it is incomplete or of another logger."""
    return _from_json(text) if text.startswith("{") else _from_text(text)


def _from_json(text: str) -> ChangeLine | None:
    try:
        content = json.loads(text)
        if content.pop("logger") != LOGGER:
            return None
        content.pop("level")
        return _line(content.pop("time"), content.pop("event"), content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _from_text(text: str) -> ChangeLine | None:
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    details = {key: _read(value) for key, value in _DETAIL.findall(match[3])}
    try:
        return _line(match[1], match[2], details)
    except ValueError:
        return None


def _read(value: str) -> str:
    if value.startswith('"'):
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    return value


def _line(time: str, event: str, details: dict[str, Any]) -> ChangeLine:
    changes = details.pop("change", ())
    if isinstance(changes, str):
        changes = changes.split(",")
    request = details.pop("request", None)
    moment = parse_moment(time).timestamp()
    return ChangeLine(moment, event, tuple(map(str, changes)), request, details)
