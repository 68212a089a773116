"""Files and directories that only their owner may read, whatever the umask is.

The configuration of a server and the directories of its store, key and journal are made here.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
#: Permission bits of group and others.
OTHERS = 0o077


def write_private(path: Path, content: str | bytes) -> None:
    """Writes a file of mode 0600 atomically; raises ``OSError`` if it cannot be written.

    An existing draft is deleted first: another user may have placed it there to read the content.
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
    """Makes a directory and its missing parents with mode 0700; leaves an existing one as it is."""
    if path.is_dir():
        return
    if path.parent != path:
        make_private_directory(path.parent)
    path.mkdir(exist_ok=True, mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)


def is_open_to_others(path: Path) -> bool:
    """True if anybody but the owner may read, write or enter."""
    return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)
