"""The version of this installation: of the package, its commit, Python and Spark."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import mqis

_PACKAGE = Path(mqis.__file__).parent
#: The build writes the commit into this file of the package (hatch_build.py).
_RECORD = "COMMIT"


def version_line() -> str:
    """All versions in one line, for a report of an error."""
    spark = _installed("pyspark")
    return ", ".join(
        (
            f"mqis {mqis.__version__}",
            f"commit {commit() or 'unknown'}",
            f"Python {platform.python_version()}",
            f"Spark {spark}" if spark else "no Spark",
        )
    )


def commit() -> str | None:
    """The commit that the package was built from, or that a checkout is at; None if unknown."""
    record = _PACKAGE / _RECORD
    if record.is_file():
        return record.read_text("utf-8").strip()
    checkout = _PACKAGE.parents[1]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return None
    return found.stdout.strip() or None


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
