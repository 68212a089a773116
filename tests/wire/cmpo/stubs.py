"""The vectors of ``tests/data/cmpo``."""

from __future__ import annotations

import re
from pathlib import Path

_TEXT = (Path(__file__).parents[2] / "data" / "cmpo" / "stubs.txt").read_text(encoding="ascii")


def _sections() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, dump in re.findall(r"^\[(.+)\]\n((?:[0-9a-f]{4}  .+\n)+)", _TEXT, re.MULTILINE):
        found[name] = bytes.fromhex("".join(line[6:] for line in dump.splitlines()))
    return found


#: By "method request" or "method response".
STUBS = _sections()
