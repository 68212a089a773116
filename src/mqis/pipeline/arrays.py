"""Conversion to Arrow: of NumPy's arrays without a Python object per value, and of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Row = Mapping[str, Any]
#: The rows of a batch, and about so many bytes of text.
_BATCH, _BATCH_BYTES = 5000, 32 << 20


def schema_of(schema: StructType) -> pa.Schema:
    """Spark's schema as Arrow's."""
    return to_arrow_schema(schema, timezone="UTC")


def guids(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A binary array of GUIDs, sixteen bytes each."""
    count = len(values)
    ends = np.arange(count + 1, dtype=np.int32) * 16
    octets = np.ascontiguousarray(values).tobytes()
    buffers = [_validity(missing), pa.py_buffer(ends), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def numbers(
    values: npt.NDArray[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    wanted = np.int32 if pa.types.is_int32(kind) else np.int64
    plain = values.astype(np.uint64).view(np.int64) if values.dtype == np.uint64 else values
    made = pa.array(plain.astype(wanted), mask=missing)
    return made.cast(kind) if made.type != kind else made


def pieces(
    data: bytes | npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64], kind: pa.DataType
) -> pa.Array:
    """An array of the texts or byte strings that ``data`` holds one after the other."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def only_where(known: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """The texts where ``known``, null elsewhere."""
    buffers = [_validity(~known), *values.buffers()[1:]]
    return pa.Array.from_buffers(values.type, len(values), buffers)


def batches(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of rows, which are Python values by the names of columns; a missing one is null."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(waiting) >= _BATCH or size >= _BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(waiting, schema=schema)
            waiting, size = [], 0
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema=schema)


def text(name: str) -> str:
    """Escapes lone surrogates, which Windows names may contain and Arrow's texts may not."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode("utf-8")


def signed(number: int) -> int:
    """The signed number of 64 bits that has the bits of an unsigned one; others as they are."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _validity(missing: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
