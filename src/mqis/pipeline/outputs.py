"""Writes the files of a report: all of a file, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkstemp

from mqis.wire.errors import MqisError


class ReportError(MqisError):
    """The report cannot be written or printed; the text says what to do."""


def write_whole(out: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes a file beside ``out``, for its user alone, and renames it."""
    draft: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        number, name = mkstemp(dir=out.parent, prefix=f".{out.name}.")  # of mode 0600, and new
        draft = Path(name)
        with os.fdopen(number, "wb") as file:
            file.write(data)
        draft.chmod(mode)
        draft.replace(out)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise ReportError(f"{out}: cannot be written: {error.strerror or error}") from error
