"""Writes docs/tables.md: the tables of the pipeline and their columns, from their schemas.

Usage: python tools/tables_doc.py [--check]

``--check`` writes nothing and exits with 1 if the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mqis.pipeline.columns import comment_of
from mqis.pipeline.graph import TABLES, TableKind
from mqis.pipeline.registry import TableDefinition

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tables.md"

INTRODUCTION = """\
# Tables of the pipeline

`tools/tables_doc.py` writes this page from `mqis.pipeline.schemas` and `mqis.pipeline.columns`.
What the tables are for says [the pipeline](pipeline.md#tables). The comments stand in the tables
too, where Spark (`DESCRIBE`) and catalogues show them:

```python
for column in spark.read.parquet("demo/tables/gaps").schema:
    print(column.name, column.metadata["comment"])
```

Identifiers are text in tables for people; where they are `binary`, they are the 16 bytes of the
packets. A type or an operation is a word where it is a `string`, else the number of the
specification. Times are in UTC.
"""


def page() -> str:
    return "\n".join([INTRODUCTION, *_tables()])


def _tables() -> Iterator[str]:
    for table in TABLES.values():
        if table.kind is TableKind.TABLE:
            yield from (f"## {table.name}", "", *_columns(table), "")


def _columns(table: TableDefinition) -> Iterator[str]:
    assert table.schema is not None
    yield from ("| column | type | what it is |", "|---|---|---|")
    for each in table.schema:
        kind = each.dataType.simpleString()
        yield f"| `{each.name}` | {kind} | {comment_of(table.name, each.name)} |"


def main() -> int:
    made = page()
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text("utf-8") != made)
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
