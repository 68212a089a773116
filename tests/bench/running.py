"""The benchmarks as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = [
    *("stores", "digest", "lookup100k", "import", "check", "codecs", "ndr", "boxcars", "oletx"),
    *("rpc", "signed", "processor", "directory", "growth", "beside", "replication"),
    *("servers", "activedirectory", "journal", "discovery", "routing", "pipeline", "capture"),
]
#: What these tests run; ``make engines`` runs the one that wants Spark, and the one that wants the
#: ports of a domain controller.
RUN = [entry for entry in ENTRIES if entry not in ("activedirectory", "pipeline")]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
