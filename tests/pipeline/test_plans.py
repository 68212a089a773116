"""The plans in docs/pipeline.md are those that Spark makes; none calls Python for single rows."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mqis.pipeline import sources
from mqis.pipeline.readable import readable_objects
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.bodies import NEEDED, carried
from mqis.pipeline.transforms.divergence import grouped
from tests.pipeline.conftest import Enterprise

DOC = Path(__file__).resolve().parents[2] / "docs" / "pipeline.md"
#: What a line of a plan begins with: its place in the tree, the mark of generated code, its name.
NODE = re.compile(r"^[\s:+-]*(?:\*\(\d+\) )?([A-Z]\w*)", re.M)
ROW_BY_ROW = ("BatchEvalPython", "ArrowEvalPython", "UDF")


def plan_of(frame: DataFrame) -> str:
    told = frame._jdf.queryExecution().executedPlan().toString()
    return str(told)


def documented() -> list[list[str]]:
    section = DOC.read_text("utf-8").partition("## Plans")[2]
    return [NODE.findall(block) for block in re.findall(r"^```\n(.*?)^```", section, re.M | re.S)]


def test_the_documents_plans_are_true(
    spark: SparkSession, tables: TableDirectory, enterprise: Enterprise
) -> None:
    audit = plan_of(grouped(readable_objects(tables).filter("not deleted")))
    chosen = sources.journal(spark, enterprise.journals, NEEDED).filter("kind = 2 and state = 1")
    decode = plan_of(carried(chosen))
    assert [NODE.findall(audit), NODE.findall(decode)] == documented()
    for plan in (audit, decode):
        assert not any(name in plan for name in ROW_BY_ROW)
