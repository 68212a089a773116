"""A Samba domain controller for a test run: provisioned once, then copied."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.ldif import write_ldif

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools/samba_domain.sh"
LOADER = Path(__file__).with_name("samba_ldif.py")
TEMPLATE = ROOT / ".build/samba-domain"
MISSING_EXIT = 3
_GIVEN = ("objectSid", "memberOf")
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


def load_ldif(directory: Path, file: Path) -> str:
    """Loads a file into the databases of a forest; returns what they have then, as LDIF.

    Unlike a server, which chooses the GUIDs of entries, the databases take those of the file.
    """
    command = ["/usr/bin/python3", str(LOADER), str(directory / "etc/smb.conf"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load_entries(directory: Path, entries: Iterable[AddEntry]) -> None:
    """Loads entries without what a directory writes itself: SIDs and the lists of a member."""
    file = directory / "estate.ldif"
    given = (
        AddEntry(entry.name, tuple(row for row in entry.attributes if row[0] not in _GIVEN))
        for entry in entries
    )
    file.write_text("".join(write_ldif(given)), "utf-8")
    load_ldif(directory, file)


def provisioned() -> None:
    """Makes the forest that is copied, once; skips where Samba or root is missing."""
    if not (TEMPLATE / "etc/smb.conf").exists():
        _run("provision", str(TEMPLATE))


@contextmanager
def samba_domain(
    directory: Path, *settings: str, before_start: Callable[[Path], None] | None = None
) -> Iterator[Path]:
    """Serves a fresh forest in ``directory``; skips where Samba, root or the ports are missing.

    ``settings`` are further lines of smb.conf. ``before_start`` may fill the databases.
    """
    if shutil.which("ldapsearch") is None:
        pytest.skip("ldapsearch is missing (Debian: apt install ldap-utils)")
    provisioned()
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
