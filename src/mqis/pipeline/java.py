"""Finds a Java for the pipeline, 17 or newer: an installed one, else the environment's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from mqis.wire.errors import MqisError

WANTED = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@cache
def java_home() -> Path:
    """Returns the first that is new enough of JAVA_HOME, ``java`` on the PATH, and ``make java``'s.

    Raises ``MqisError`` if none is.
    """
    for home in _candidates():
        if _version(home) >= WANTED:
            return home
    raise MqisError(
        f"the pipeline needs Java {WANTED} or newer: run 'make java', or install one "
        "(Debian: openjdk-17-jre-headless) and set JAVA_HOME"
    )


def _candidates() -> list[Path]:
    environment = Path(sys.prefix)
    found = []
    if not os.environ.get("MQIS_NO_SYSTEM_JAVA"):  # ignores installed ones; tools/java_home.sh too
        if os.environ.get("JAVA_HOME"):
            found.append(Path(os.environ["JAVA_HOME"]))
        if on_path := shutil.which("java"):
            found.append(Path(on_path).resolve().parent.parent)
    chosen = environment / "java-home"
    if chosen.is_file() and (text := chosen.read_text(encoding="utf-8").strip()):
        found.append(Path(text))
    return [*found, environment / "java"]


def _version(home: Path) -> int:
    try:
        shown = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = _VERSION.search(shown.stderr)
    return int(match[1]) if match else 0
