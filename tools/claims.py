"""Compares the README's claims about conformance with the counted results.

Its table has a row for each specification, with four cells of numbers: the requirements that are
covered, departed from, open and waived.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, astuple

from tools.ledger import Count, Counts

#: By the beginning of a row of the README's table: the tables of its requirements.
SPECIFICATIONS = {
    "MS-MQDS": ("mqds-client", "mqds-server"),
    "MC-MQDSRP": ("mqdsrp",),
    "MS-MQSD": ("mqsd",),
    "MS-MQBR": ("mqbr",),
    "MS-CMP": ("cmp",),
    "MS-MQDSSM": ("mqdssm",),
    "Security": ("security",),
}
_CELLS = re.compile(r"\|" + r"\s*([\d,]+)\s*\|" * 4)


def figures(counts: Counts, tables: tuple[str, ...]) -> Count:
    """The numbers of a specification, over all its tables and levels."""
    return sum((n for table in tables for n in counts.get(table, {}).values()), Count())


def wrong_claims(readme: str, counts: Counts, possible: Counts | None = None) -> Iterator[str]:
    """Describes each row whose numbers differ from the counted ones.

    ``possible`` are the counts if every skipped test had passed. Between both, the README may be
    right: it has the numbers of a computer on which everything is installed.
    """
    for name, tables in SPECIFICATIONS.items():
        if counts.keys().isdisjoint(tables):
            continue
        claimed, counted = _claimed(readme, name), figures(counts, tables)
        if claimed is None:
            yield f"README.md: {name} has no numbers, but the ledger has {_words(counted)}"
        elif not _between(claimed, counted, figures(possible or counts, tables)):
            yield f"README.md: {name} has {_words(claimed)}, but the ledger has {_words(counted)}"


def _claimed(readme: str, name: str) -> Count | None:
    row = re.search(rf"^\| {name}[ ,].*$", readme, re.MULTILINE)
    cells = None if row is None else _CELLS.search(row[0])
    return None if cells is None else Count(*(int(n.replace(",", "")) for n in cells.groups()))


def _between(claimed: Count, counted: Count, possible: Count) -> bool:
    """Returns whether each number lies between both, and their sum is the number of rows."""
    numbers = zip(astuple(claimed), astuple(counted), astuple(possible), strict=True)
    same = sum(astuple(claimed)) == sum(astuple(counted))
    return same and all(min(a, b) <= n <= max(a, b) for n, a, b in numbers)


def _words(numbers: Count) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in asdict(numbers).items())
