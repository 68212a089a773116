"""The program that starts Python for Spark's workers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mqis.pipeline.session import worker_python


def test_workers_use_the_installed_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's zip is left out wherever it stands, and nothing else is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spark = "/spark/lib/pyspark.zip:/spark/lib/py4j.zip"
    code = "import os; print(os.environ['PYTHONPATH'])"
    done = subprocess.run(
        [worker_python(), "-c", code],
        env=os.environ | {"PYTHONPATH": f"{spark}:/sent with/the job:{spark}:/a user's"},
        capture_output=True,
        text=True,
        check=True,
    )
    left = "/spark/lib/py4j.zip:/sent with/the job:/spark/lib/py4j.zip:/a user's"
    assert done.stdout == f"{left}\n"
