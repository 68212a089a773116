"""docs/journal.md: its program prints what it says, its table is the layout."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mqis.wire.journal.index import IndexBlock, encode_index
from mqis.wire.journal.layout import FIELDS, HEADER_SIZE

DOC = (Path(__file__).resolve().parents[2] / "docs" / "journal.md").read_text(encoding="utf-8")


def test_the_program_prints_what_the_text_says() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", DOC, re.M | re.S)
    (expected,) = re.findall(r"It prints\n\n```\n(.*?)^```", DOC, re.M | re.S)
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"TMPDIR": directory},
        )
    assert done.stdout == expected


def test_the_table_is_the_layout() -> None:
    (table,) = re.findall(r"^## Record, versions 1 and 2\n\n(.*?)\n\n", DOC, re.M | re.S)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    documented = [(int(row[0]), int(row[1])) for row in rows[:-1]]
    dtype = np.dtype(list(FIELDS))
    assert dtype.names is not None
    assert dtype.fields is not None
    laid_out = [(dtype.fields[name][1], dtype.fields[name][0].itemsize) for name in dtype.names]
    assert documented == laid_out
    assert int(rows[-1][0]) == HEADER_SIZE


def test_the_table_of_a_block_is_its_layout() -> None:
    """Each number of a block stands where the table says; no two of them are equal."""
    (table,) = re.findall(r"^\| offset in a block .*?\n\|.*?\n(.*?)\n\n", DOC, re.M | re.S)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    data = encode_index([IndexBlock(1000, 2, 3, 4, 5, -6, 7, 8)])[HEADER_SIZE:]
    told = [
        int.from_bytes(data[int(at) : int(at) + int(size)], "little", signed="time" in text)
        for at, size, text in rows
    ]
    assert told == [1000, 2, 3, 4, 5, -6, 7, 8]
    at, size, _ = rows[-1]
    assert int(at) + int(size) == 80 == len(data) - 8
