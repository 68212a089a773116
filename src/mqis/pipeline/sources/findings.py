"""The findings of ``mqis estate check --json``: a few small files, which the driver reads."""

from __future__ import annotations

import json
from typing import Any

from mqis.pipeline import schemas
from mqis.pipeline.sources.files import SourceFile, open_plain, paths_in, unreadable
from mqis.texts import parse_moment
from mqis.wire.errors import MqisError

PATTERN = "*.json"
WHAT = "results of 'mqis estate check --json'"
_FINDING = schemas.CHECKED_FINDING.fieldNames()
_WRITTEN = {"entry": "where"}


def finding_files(path: str) -> list[SourceFile]:
    return paths_in({"path": path}, WHAT, PATTERN)


def estate_checks(path: str) -> list[tuple[Any, ...]]:
    """The rows of ``schemas.ESTATE_CHECKS``, one for each file.

    A file that is no such result is an error: its findings would seem to be mended.
    """
    return [_checked(file) for file in finding_files(path)]


def _checked(file: SourceFile) -> tuple[Any, ...]:
    try:
        with open_plain(file) as opened:
            told = json.loads(opened.read())
        moment = parse_moment(told["checked"], zoned=True)
        unknown = [_text(limit["check"]) for limit in told["unknown"]]
        return str(file), moment, unknown, [_finding(one) for one in told["findings"]]
    except OSError as error:
        raise MqisError(f"{file}: {unreadable(error)}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MqisError(f"{file}: this is no result of 'mqis estate check': {reason}") from None


def _finding(told: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple(
        None if name == "ldif" and told["ldif"] is None else _text(told[_WRITTEN.get(name, name)])
        for name in _FINDING
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value
