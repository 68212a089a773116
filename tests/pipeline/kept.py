"""Tables as sorted lines of JSON, and those that an earlier pipeline wrote of a seeded generation.

``tests/data/pipeline/tables.jsonl.xz`` has the tables that the jobs before ``mqis.pipeline.graph``
wrote of ``KEPT_PLAN``: one line for each row, with the name of its table. Since then, the first
lines of exports are longer, which moved the offsets behind them, and two explanations are worded
anew.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from mqis.lab.generate import GeneratePlan

KEPT_PLAN = GeneratePlan(sites=3, machines=5, queues=12, changes=120, faults=1, hygiene=1, seed=18)
KEPT = Path(__file__).parents[1] / "data" / "pipeline" / "tables.jsonl.xz"
#: Stands for the directory of the generated files, which differs from run to run.
_ROOT = "ROOT"


def lines_of(name: str, frame: DataFrame, root: Path) -> list[str]:
    """The rows of a table, sorted; paths below ``root`` begin with a fixed word."""
    columns = sorted(frame.columns)
    rows = frame.select(*columns).toArrow().to_pylist()
    return sorted(
        json.dumps([name, plain(row)], sort_keys=True).replace(str(root), _ROOT) for row in rows
    )


def plain(value: Any) -> Any:
    """A value that JSON can hold; numbers that two summations may round differently are cut."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        # Arrow has a map as pairs, in any order.
        return sorted(items, key=str) if value and isinstance(value[0], tuple) else items
    return value


def write_kept(lines: Iterable[str]) -> None:
    with lzma.open(KEPT, "wt", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in lines)


def kept_tables() -> dict[str, list[str]]:
    """The lines of each table."""
    found: dict[str, list[str]] = defaultdict(list)
    with lzma.open(KEPT, "rt", encoding="ascii") as file:
        for line in file:
            found[json.loads(line)[0]].append(line.rstrip("\n"))
    return found
