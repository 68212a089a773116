"""What Spark's Python workers keep from one task to the next."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

from mqis.pipeline.mapping import mapped, settle

_COUNTS = StructType()
for _name in ("modules", "frozen", "again"):
    _COUNTS.add(_name, LongType())


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The objects that garbage collection passes over: at first, and after a new module."""
    list(batches)
    modules, frozen = len(sys.modules), gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == frozen  # nothing was loaded since
    kept = [[index] for index in range(1000)]
    sys.modules["a_new_module"] = ModuleType("a_new_module")
    settle()
    counts = modules, frozen, gc.get_freeze_count()
    del sys.modules["a_new_module"], kept
    names = _COUNTS.fieldNames()
    yield pa.RecordBatch.from_pylist([dict(zip(names, counts, strict=True))])


def test_a_worker_does_not_search_loaded_modules_for_garbage(spark: SparkSession) -> None:
    frame = mapped(spark.range(1, numPartitions=1), ["id"], _counted, _COUNTS)
    row = frame.collect()[0]
    assert row["frozen"] > 10 * row["modules"]
    assert row["again"] >= row["frozen"] + 1000


@pytest.mark.usefixtures("spark")
def test_a_process_without_a_task_is_left_alone() -> None:
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == before
