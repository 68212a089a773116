"""Compares the README's claims about conformance with the counted results.

Its table has a row for each specification, with a cell like ``436 of 441``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.ledger import Count, Counts

#: By the beginning of a row of the README's table: the tables of its requirements.
SPECIFICATIONS = {
    "MS-MQDS": ("mqds-client", "mqds-server"),
    "MC-MQDSRP": ("mqdsrp",),
    "MS-MQSD": ("mqsd",),
    "MS-MQBR": ("mqbr",),
    "MS-CMP": ("cmp",),
    "Security": ("security",),
}
_CELL = re.compile(r"\|\s*([\d,]+ of [\d,]+)\s*\|")


def figures(counts: Counts, tables: tuple[str, ...]) -> str:
    """``proved of all``; all includes waived requirements."""
    of_all = [count for table in tables for count in counts.get(table, {}).values()]
    total = sum(of_all, Count())
    return f"{total.covered:,} of {total.covered + total.open + total.waived:,}"


def wrong_claims(readme: str, counts: Counts) -> Iterator[str]:
    """Describes each row whose numbers differ from the counted ones."""
    for name, tables in SPECIFICATIONS.items():
        if counts.keys().isdisjoint(tables):
            continue
        row = re.search(rf"^\| {name}[ ,].*$", readme, re.MULTILINE)
        cell = None if row is None else _CELL.search(row[0])
        said, counted = None if cell is None else cell[1], figures(counts, tables)
        if said != counted:
            yield f"README.md: {name} has {said or 'no numbers'}, but the ledger has {counted}"
