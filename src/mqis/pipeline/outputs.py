"""Writes the files of a report: all of a file, or nothing."""

from __future__ import annotations

from pathlib import Path

from mqis.files import refuse_database, write_whole
from mqis.wire.errors import MqisError


def write_output(out: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes a file in a directory that is made if it is missing."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        refuse_database(out)
        write_whole(out, data, mode)
    except OSError as error:
        raise MqisError(f"{out}: cannot be written: {error.strerror or error}") from error
