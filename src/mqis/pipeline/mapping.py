"""Runs a function on the batches or rows of a frame, also in a declarative pipeline."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import NullType, StructField, StructType

from mqis.pipeline import arrays

#: Called in each task with its batches.
ArrowWork = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
#: Called in each task with the values of its rows; returns rows by the names of columns.
RowWork = Callable[[Iterator[tuple[Any, ...]]], Iterable[arrays.Row]]


def mapped(
    frame: DataFrame, columns: Iterable[str], work: ArrowWork, schema: StructType
) -> DataFrame:
    """Applies ``mapInArrow`` to some columns of a frame.

    Through Connect, ``mapInArrow`` asks the server for the names of the columns, which Spark
    forbids inside a function of a declarative pipeline. They are known here, so the frame gets them
    as if it had asked; their types are not looked at.
    """
    names = list(columns)
    chosen: Any = frame.select(*names)
    if hasattr(chosen, "_cached_schema"):
        chosen._cached_schema = StructType([StructField(name, NullType()) for name in names])

    def in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        return work(batches)

    made: DataFrame = chosen.mapInArrow(in_task, schema)
    return made


def mapped_rows(
    frame: DataFrame, columns: Iterable[str], work: RowWork, schema: StructType
) -> DataFrame:
    """Applies a function to the rows of each task, for rules in plain Python."""
    arrow = arrays.schema_of(schema)

    def on_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (
            row
            for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        return arrays.batches(work(rows), arrow)

    return mapped(frame, columns, on_batches, schema)


def settle() -> None:
    """Lets garbage collection in this worker pass over all that is loaded by now.

    Spark collects garbage after every task. Going through the modules of Spark, Arrow and mqis each
    time took as long as reading the headers of 40,000 records. Only new modules are a reason to do
    this again, because what a task itself leaves must still be collected.
    """
    if TaskContext.get() is not None:
        _freeze(len(sys.modules))


@cache
def _freeze(modules: int) -> None:
    """Does it once for this number of ``modules``."""
    gc.freeze()
