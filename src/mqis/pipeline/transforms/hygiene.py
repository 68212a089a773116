"""The rules of ``protocol.hygiene`` on a cluster.

Each task turns its objects into claims. Claims of one key then meet in one task, which judges them.
Nothing of a rule is written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from mqis.findings import Finding
from mqis.pipeline import schemas
from mqis.pipeline.mapping import mapped_rows
from mqis.pipeline.transforms.current import OBJECT_COLUMNS, object_from
from mqis.protocol.hygiene.checks import finding_row
from mqis.protocol.hygiene.claims import Claim, claims_of
from mqis.protocol.hygiene.judging import judge_sorted

Values = Iterator[tuple[Any, ...]]
Rows = Iterator[dict[str, Any]]


def judged(directory: DataFrame) -> DataFrame:
    """The findings of all rules about objects and their references (``schemas.HYGIENE``)."""
    claims = mapped_rows(directory, OBJECT_COLUMNS, _claims, schemas.CLAIMS)
    together = claims.repartition("key").sortWithinPartitions("key")
    return mapped_rows(together, schemas.CLAIMS.fieldNames(), _judge, schemas.HYGIENE)


def _claims(rows: Values) -> Rows:
    return (claim._asdict() for row in rows for claim in claims_of(object_from(*row)))


def _judge(rows: Values) -> Rows:
    return map(hygiene_row, judge_sorted(Claim(*row) for row in rows))


def hygiene_row(found: Finding) -> dict[str, Any]:
    """The row of ``schemas.HYGIENE``."""
    row = finding_row(found)
    return {name: row[name] for name in schemas.HYGIENE.fieldNames()}
