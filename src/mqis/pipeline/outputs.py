"""Writes the files of a report: all of a file, or nothing."""

from __future__ import annotations

from pathlib import Path

from mqis.wire.errors import MqisError


class ReportError(MqisError):
    """The report cannot be written or printed; the text says what to do."""


def write_whole(out: Path, data: bytes) -> None:
    """Writes a file beside ``out`` and renames it."""
    aside = out.with_name(f".{out.name}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(data)
        aside.replace(out)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise ReportError(f"{out}: cannot be written: {error.strerror or error}") from error
