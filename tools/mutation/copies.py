"""Copies of the project in which mutations are applied, one for each worker."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO

PLACE = Path(".build/mutants")


def claim_copy(root: Path) -> tuple[Path, IO[str]]:
    """Returns the first copy that no other run uses, up to date, and the lock that keeps it."""
    place = root / PLACE
    place.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        lock = (place / f"{number}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        copy = place / str(number)
        refresh(root, copy)
        return copy, lock
    raise AssertionError("unreachable")


def refresh(root: Path, copy: Path) -> None:
    """Makes the copy equal to the project's own files; compiled code that still fits stays."""
    wanted = set(project_files(root))
    for name in wanted:
        source, target = root / name, copy / name
        if not _same(source, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for name in set(_walk(copy)) - wanted:
        (copy / name).unlink()
    if not (copy / ".venv").is_symlink() and (root / ".venv").exists():
        (copy / ".venv").symlink_to((root / ".venv").resolve())
    (copy / ".build").mkdir(exist_ok=True)


def project_files(root: Path) -> Iterator[Path]:
    """The files that are committed or that git would take; without git, all but hidden ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [Path(name) for name in listed.stdout.split("\0") if name]
        yield from (name for name in names if (root / name).is_file())
        return
    yield from _walk(root)


def _walk(root: Path) -> Iterator[Path]:
    for directory, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith((".", "__pycache__"))]
        yield from (Path(directory, name).relative_to(root) for name in files)


def _same(source: Path, target: Path) -> bool:
    try:
        one, other = source.stat(), target.stat()
    except FileNotFoundError:
        return False
    return (one.st_mtime_ns, one.st_size) == (other.st_mtime_ns, other.st_size)
