"""The resources that a server uses and has left: memory, and space for its files."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from mqis.config.sections import Config
from mqis.config.stores import file_of
from mqis.places import parse_place

_STATM = Path("/proc/self/statm")


def memory_bytes() -> int:
    """The resident memory of this process; 0 where the system does not tell."""
    try:
        pages = int(_STATM.read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def disk_free(config: Config) -> dict[str, int]:
    """The free bytes where store, journal and archive are, as far as these are files."""
    store, section = file_of(config.store.url), config.replication
    places = {
        "store": None if store is None else store.parent,
        "journal": Path(section.journal) if section.journal else None,
        "archive": parse_place(section.archive) if section.archive else None,
    }
    found = {}
    for name, place in places.items():
        if isinstance(place, Path):
            with suppress(OSError):
                found[name] = shutil.disk_usage(place).free
    return found
