"""Runs a function on the batches or rows of a frame, also in a declarative pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import NullType, StructField, StructType

from mqis.pipeline import arrays
from mqis.pipeline.workers import settle

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
