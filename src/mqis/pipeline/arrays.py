"""Conversion from NumPy to Arrow without a Python object per value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


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


def constant(value: object, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def rows(columns: dict[str, Sequence[object]], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch from lists of Python values; a column that is not given is null."""
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _validity(missing: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
