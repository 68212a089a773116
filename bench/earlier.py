"""The pipeline of an earlier commit, measured in the same run as today's.

Its code comes from the history of this repository and runs in a process of its own, with a Spark
session of its own, so that nothing of today's code is in it. It waits while others are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from bench.earlierworker import MARK
from bench.measure import Sample

#: The last commit before the journal source decoded bodies and copied headers as one array.
COMMIT = "ff1fa9a4"
NAME = f"Spark, commit {COMMIT}"
_ROOT = Path(__file__).resolve().parents[1]
_WORKER = Path(__file__).with_name("earlierworker.py")


class EarlierPipeline:
    """A process with the earlier code, which measures what it is asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def headers(self) -> Sample:
        """Reads the headers of all records."""
        return self._measured("headers")

    def changes(self) -> Sample:
        """Decodes all changes with all properties, which was the only way."""
        return self._measured("changes")

    def _measured(self, what: str) -> Sample:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(what, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(MARK):
                return Sample(*json.loads(line.removeprefix(MARK)))
        raise RuntimeError(f"the earlier pipeline ended with status {self._process.wait()}")


@contextmanager
def earlier_pipeline(
    directory: Path, journals: Path, memory: str, *, large: bool
) -> Iterator[EarlierPipeline | None]:
    """Starts the process; gives None if the history of the repository is not here."""
    done = subprocess.run(
        ["git", "archive", COMMIT, "src"], cwd=_ROOT, capture_output=True, check=False
    )
    if done.returncode:
        yield None
        return
    # Python before 3.11.4 knows no filters; the archive is one of our own repository.
    known: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(directory, **known)
    process = subprocess.Popen(
        [sys.executable, str(_WORKER), str(journals), memory, "large" if large else ""],
        env=os.environ | {"PYTHONPATH": str(directory / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield EarlierPipeline(process)
    finally:
        process.communicate()  # the end of its input ends it
