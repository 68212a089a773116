"""What Linux tells about a running process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def open_files(pid: int) -> Iterator[str]:
    """Names of what a process has open; it may close a file, or end, while this looks."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(descriptor.readlink())
