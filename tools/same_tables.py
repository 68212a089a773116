"""Compares the tables of two directories row by row: of the same inputs in two places, for example.

Usage: python tools/same_tables.py TABLES OTHER

Names of files count from their directory ``journals`` or ``exports`` on, so that inputs may lie in
a directory for one and in a bucket for the other. Exit status 1 if tables differ.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from mqis.places.pipeline_tables import current_version, table_names

#: What comes before a file's name below the inputs, and the settings of a store behind it.
_PLACE = re.compile(r"(?:[a-z0-9]+:/|/)/?[^\s'?]*?/(journals|exports)/([^\s'?]*)(?:\?[^\s')]*)?")


def rows(directory: Path, name: str) -> Iterator[str]:
    """The rows of the current version of a table, as texts."""
    found = ds.dataset(current_version(directory, name), format="parquet", partitioning="hive")
    for batch in found.to_batches():
        for row in batch.to_pylist():
            yield str({key: _unplaced(value) for key, value in sorted(row.items())})


def _unplaced(value: Any) -> Any:
    return _PLACE.sub(r"\1/\2", value) if isinstance(value, str) else value


def differing(first: Path, second: Path) -> Iterator[str]:
    """A line for each table that is in one directory only or has other rows."""
    ours, theirs = table_names(first), table_names(second)
    for name in sorted({*ours} ^ {*theirs}):
        yield f"{name}: only in {first if name in ours else second}"
    for name in sorted({*ours} & {*theirs}):
        here, there = Counter(rows(first, name)), Counter(rows(second, name))
        for row in [*(here - there), *(there - here)][:2]:
            yield f"{name}: {first if row in here else second} has {row[:300]}"


def main(arguments: Sequence[str]) -> int:
    first, second = map(Path, arguments)
    found = list(differing(first, second))
    print("\n".join(found or [f"{len(table_names(first))} tables, all rows are the same"]))
    return 1 if found or not table_names(first) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
