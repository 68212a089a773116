"""The tests in parts, each a process of its own, of which two run at a time.

Together they are all of them: the last part is whatever the others do not name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Directories without tests of their own.
_HELPERS = frozenset({"__pycache__", "data", "plugins", "strategies"})
#: The longest first, so that the last ones to end are short.
_NAMED = {
    "layers": ("architecture", "fuzz", "protocol", "wire"),
    "pipeline": ("pipeline",),
    "commands": ("cli", "examples", "web"),
    "sockets": ("client", "interop", "runtime"),
    "sim": ("sim",),
}
_REST = "rest"
#: Coverage is asked of wire and protocol, and of their own tests. Tracing more than doubles what a
#: test takes, so the others, which go through these layers as well, run without.
_TRACED = frozenset({"layers"})


@dataclass(frozen=True, slots=True)
class Part:
    paths: tuple[Path, ...]
    #: Whether coverage is measured.
    traced: bool


def parts(root: Path) -> Mapping[str, Part]:
    """name -> the directories of tests that belong to it."""
    found = sorted(p for p in (root / "tests").iterdir() if p.is_dir() and p.name not in _HELPERS)
    named = {name for names in _NAMED.values() for name in names}
    made = {
        part: Part(tuple(p for p in found if p.name in names), part in _TRACED)
        for part, names in _NAMED.items()
    }
    rest = tuple(p for p in found if p.name not in named)
    return {**made, _REST: Part(rest, traced=False)}
