"""A bucket that is mounted as a directory by ``rclone mount``, which needs FUSE and root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.s3server import KEY, SECRET, S3Server, rclone
from tests.waiting import DEADLINE_S, wait_until

#: Covers a directory with an empty file system, and runs a program.
_HIDE = 'mount -t tmpfs none "$0" && exec "$@"'


def check_mounts() -> None:
    """Skips the test where buckets cannot be mounted or directories cannot be hidden."""
    if os.geteuid() or not Path("/dev/fuse").exists() or not shutil.which("fusermount3"):
        pytest.skip("mounting needs root, /dev/fuse and fusermount3 (Debian: fuse3)")
    if not shutil.which("unshare"):
        pytest.skip("hiding directories needs unshare (Debian: util-linux)")


def credential() -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def mounted(server: S3Server, bucket: str, point: Path) -> Iterator[None]:
    """Mounts the bucket for the block.

    Everybody has to use this one mount: S3 has no empty directories, so only the mount knows those.
    """
    settings = f"provider=Rclone,env_auth=true,endpoint='http://127.0.0.1:{server.port}'"
    command = [rclone(), "mount", f":s3,{settings}:{bucket}", str(point), "--config", "/dev/null"]
    process = subprocess.Popen(command, env=os.environ | credential())
    try:
        wait_until(lambda: os.path.ismount(point) or process.poll() is not None, "the mount")
        assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def without(hidden: Path) -> list[str]:
    """The command that starts a program for which a directory is empty, whoever it is."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", _HIDE, str(hidden)]
