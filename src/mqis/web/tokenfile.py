"""The file with the console's address, token included, that only its user can read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mqis.web.settings import ConsoleError

MODE = 0o600


@contextmanager
def token_file(run: Path | None, port: int, url: str) -> Iterator[Path]:
    """In the run directory, else in a directory of its own that nobody else can enter; there while
    the block runs."""
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
    """Anew, so that it is neither a link nor open to somebody who read the one before."""
    try:
        with suppress(FileNotFoundError):
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), MODE)
            file.write(f"{url}\n")
    except OSError as error:
        reason = error.strerror or error
        raise ConsoleError(f"{path}: the console's token cannot be written: {reason}") from error
    return path.absolute()
