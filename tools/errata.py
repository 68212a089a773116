"""The numbers of the errata that a page of tables such as docs/errata.md has.

A row's first cell names them: ``E02``, ``E30, E33 to E37``, ``E-MQSD-04, -05``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CELL = re.compile(r"^\|\s*(E[^|]*?)\s*\|", re.MULTILINE)
_NAME = re.compile(r"(E(?:-[A-Z]+-)?|-)(\d+)(?: to (?:E(?:-[A-Z]+-)?|-)?(\d+))?")


def errata_numbers(page: str) -> set[str]:
    return {number for cell in _CELL.findall(page) for number in _numbers(cell)}


def _numbers(cell: str) -> Iterator[str]:
    """The numbers of one cell. A short one such as ``-05`` has the letters of the one before."""
    letters = "E"
    for prefix, first, last in _NAME.findall(cell):
        letters = letters if prefix == "-" else prefix
        for number in range(int(first), int(last or first) + 1):
            yield f"{letters}{number:02}"
