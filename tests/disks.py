"""A disk that is soon full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(directory: Path, size: str) -> Iterator[None]:
    """``directory`` on a file system of this size. Skips the test where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "mqis-test", str(directory)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk is not allowed here (run as root on Linux)")
    try:
        yield
    finally:
        # Lazily: a server may still hold files of it, and closes them in its own time.
        subprocess.run(["umount", "-l", str(directory)], check=True)
