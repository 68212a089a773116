"""A Samba domain controller for a test run: provisioned once, then copied."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools/samba_domain.sh"
TEMPLATE = ROOT / ".build/samba-domain"
MISSING_EXIT = 3
USER, PASSWORD = "Administrator@corp.example", "Passw0rd.1"


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode == MISSING_EXIT or "another server listens" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def stop_domain(directory: Path) -> None:
    """Ends the server of a forest, which stays as it is."""
    _run("stop", str(directory))


def start_domain(directory: Path) -> None:
    # Its output goes to files: a pipe would stay open as long as the server runs.
    _run("start", str(directory))


@contextmanager
def samba_domain(
    directory: Path, *settings: str, before_start: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """Serves a fresh forest in ``directory``; skips where Samba, root or the ports are missing.

    ``settings`` are further lines of smb.conf. ``before_start`` may fill the databases.
    """
    if shutil.which("ldapsearch") is None:
        pytest.skip("ldapsearch is missing (Debian: apt install ldap-utils)")
    if not (TEMPLATE / "etc/smb.conf").exists():
        _run("provision", str(TEMPLATE))
    _run("copy", str(TEMPLATE), str(directory))
    conf = directory / "etc/smb.conf"
    lines = "".join(f"\n{line}" for line in settings)
    conf.write_text(conf.read_text().replace("[global]", f"[global]{lines}", 1))
    if before_start is not None:
        before_start(directory)
    start_domain(directory)
    try:
        yield directory
    finally:
        stop_domain(directory)
