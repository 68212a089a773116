"""The tests in two parts that run side by side, one for each of two cores.

Together they are all of them: the second part is whatever the first does not name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: What needs no other program but Java: machines, bytes, simulation, pipeline.
_MACHINES = frozenset({"architecture", "fuzz", "pipeline", "protocol", "sim", "wire"})
#: Directories without tests of their own.
_HELPERS = frozenset({"__pycache__", "data", "plugins", "strategies"})


def parts(root: Path) -> Mapping[str, list[Path]]:
    """name -> the directories of tests that belong to it."""
    found = sorted(p for p in (root / "tests").iterdir() if p.is_dir() and p.name not in _HELPERS)
    return {
        "machines": [p for p in found if p.name in _MACHINES],
        "world": [p for p in found if p.name not in _MACHINES],
    }
