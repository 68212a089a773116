"""The identity of a source tree: its commit, and a digest of all that differs from it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TreeState:
    """The state of a tree. Equal states have equal files; without git, no state equals another."""

    commit: str | None
    dirty: str | None

    @property
    def known(self) -> bool:
        return self.commit is not None and self.dirty is not None


UNKNOWN = TreeState(None, None)


def tree_state(root: Path) -> TreeState:
    """The state of the checkout that contains ``root``, without ignored files."""
    try:
        top = Path(_git(root, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
        commit = _git(top, "rev-parse", "--verify", "HEAD").decode().strip()
        digest = hashlib.sha256()
        _add(digest, _git(top, "status", "--porcelain", "-z", "--untracked-files=all"))
        _add(digest, _git(top, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"))
        for name in _git(top, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
            path = top / os.fsdecode(name)
            _add(digest, name)
            _add(digest, path.read_bytes() if path.is_file() else b"")
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return TreeState(commit, digest.hexdigest())


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """Adds a part with its length before it, so that the boundaries of parts count."""
    digest.update(len(part).to_bytes(8, "big"))
    digest.update(part)
