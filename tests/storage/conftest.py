"""Places for stores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """One that every user may enter, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp(prefix="mqis-"))
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)
