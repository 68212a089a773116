"""Divides the tests into parts, which run in separate processes.

Together they are all tests: ``rest`` has all that the others do not name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Directories without tests, and those of ``make slices`` (``slices``) and of ``make engines``
#: (``slow``).
_HELPERS = frozenset({"__pycache__", "data", "plugins", "slices", "slow", "strategies"})
#: The longest part first, then those that wait for servers, so that others work meanwhile.
_NAMED = {
    "pipeline": ("pipeline/*",),
    "sockets": ("interop/*", "runtime/*"),
    "documents": ("docs/*", "examples", "web/*"),
    "commands": ("cli/*",),
    "rest": ("admin/*", "server/*", "storage/*"),
    "layers": ("protocol", "wire"),
    "interfaces": (
        "admin/activedirectory",
        "cli/test_decode.py",
        "cli/test_estate_proof.py",
        "cli/test_estate_resolve.py",
        "cli/test_journal.py",
        "cli/test_transfer.py",
        "client",
        "hostile/test_authority.py",
        "hostile/test_compromised_backup.py",
        "hostile/test_quotas.py",
        "hostile/test_sessions.py",
        "hostile/test_undelete.py",
        "runtime/activedirectory",
        "runtime/directory",
        "runtime/node",
        "runtime/oletx",
        "pipeline/test_chains.py",
        "server/test_forwarding.py",
        "server/test_undeletion.py",
        "sim/test_regressions.py",
        "storage/journal",
        "views",
        "web/test_views.py",
    ),
    "hostile": ("hostile/*",),
    "sim": ("architecture", "fuzz", "sim/*"),
}
_REST = "rest"
LONGEST = next(iter(_NAMED))
#: Only wire and protocol need coverage. Tracing more than doubles a test's time, so only their own
#: tests are traced, and those that test them through the interfaces above.
_TRACED = frozenset({"layers", "interfaces"})


@dataclass(frozen=True, slots=True)
class Part:
    paths: tuple[Path, ...]
    #: Coverage is measured.
    traced: bool


def parts(root: Path) -> Mapping[str, Part]:
    """The parts by name, each with its directories and files of tests."""
    tests = root / "tests"
    named = {name for names in _NAMED.values() for name in names}
    opened = {name.partition("/")[0] for name in named if "/" in name}
    listed = [*_children(tests, opened), *(p for name in opened for p in _children(tests / name))]
    found: dict[str, list[Path]] = {part: [] for part in _NAMED}
    for path in sorted(listed):
        found[_part_of(path.relative_to(tests).as_posix())].append(path)
    return {part: Part(tuple(paths), part in _TRACED) for part, paths in found.items()}


def _children(directory: Path, without: Iterable[str] = ()) -> list[Path]:
    left_out = {*_HELPERS, *without}
    return [
        path
        for path in directory.iterdir()
        if path.name not in left_out and (path.is_dir() or path.match("test_*.py"))
    ]


def _part_of(name: str) -> str:
    """The part that names the directory, else the one for all others beside it."""
    for wanted in (name, f"{name.partition('/')[0]}/*"):
        for part, names in _NAMED.items():
            if wanted in names:
                return part
    return _REST
