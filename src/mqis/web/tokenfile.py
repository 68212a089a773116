"""The file with the console's address and token, which only its user can read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mqis.views.console.faults import MqisError

MODE = 0o600


@contextmanager
def token_file(run: Path | None, port: int, url: str) -> Iterator[Path]:
    """Writes the file for the length of the block, in the run directory or in a new private one."""
    if run is not None and os.access(run, os.W_OK):
        path = run / f"console-{port}.url"
        try:
            yield _write(path, url)
        finally:
            path.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="mqis-console-") as own:
        yield _write(Path(own) / f"console-{port}.url", url)


def _write(path: Path, url: str) -> Path:
    """Creates the file anew, so that it is no link and no other process has it open."""
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), MODE)
            file.write(f"{url}\n")
    except OSError as error:
        reason = error.strerror or error
        raise MqisError(f"cannot write the console's token to {path}: {reason}") from error
    return path.absolute()
