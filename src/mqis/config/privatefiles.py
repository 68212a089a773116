"""Files and directories that only their owner may read, whatever the umask says.

Everything that a server is made of is written through here: its configuration, and the directories
of its store, its key and its journal.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
#: Permissions of anybody but the owner.
OTHERS = 0o077


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file of mode 0600, all of it or nothing; ``OSError`` if it cannot be written.

    What lies where the draft will be goes first: it may be somebody else's, left there to be
    written into.
    """
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def make_private_directory(path: Path) -> None:
    """Make a directory of mode 0700, and its missing parents; one that is there stays as it is."""
    if path.is_dir():
        return
    if path.parent != path:
        make_private_directory(path.parent)
    path.mkdir(exist_ok=True, mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)


def is_open_to_others(path: Path) -> bool:
    """Return whether anybody but the owner may read, write or enter."""
    return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)
