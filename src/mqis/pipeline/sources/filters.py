"""Filters that Spark pushes down, over columns that are NumPy arrays.

A source takes what it can decide exactly and hands the rest back. Whatever is compared drops rows
that have no value there, as SQL says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

Mask = npt.NDArray[np.bool_]
#: The values of a column as an array, and a value of a filter as what it holds.
Column = Callable[[str], npt.NDArray[Any]]

_COMPARE: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: lambda column, value: column == value,
    GreaterThan: lambda column, value: column > value,
    GreaterThanOrEqual: lambda column, value: column >= value,
    LessThan: lambda column, value: column < value,
    LessThanOrEqual: lambda column, value: column <= value,
}
_ORDERED = (GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def column_of(pushed: Filter) -> str:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    return path[0] if len(path) == 1 else ""


def split(
    filters: Iterable[Filter], columns: Iterable[str], unordered: Iterable[str] = ()
) -> tuple[list[Filter], list[Filter]]:
    """What can be decided over ``columns``, and the rest; ``unordered`` ones are but equal."""
    known, equal_only = frozenset(columns), frozenset(unordered)
    taken: list[Filter] = []
    left: list[Filter] = []
    for pushed in filters:
        name = column_of(pushed)
        decidable = isinstance(pushed, (In, IsNotNull, *_COMPARE)) and name in known
        if isinstance(pushed, _ORDERED) and name in equal_only:
            decidable = False
        (taken if decidable else left).append(pushed)
    return taken, left


def wants(filters: Iterable[Filter], name: str, value: object) -> bool:
    """Whether rows that all have this value in a column can pass."""
    for pushed in filters:
        if column_of(pushed) != name:
            continue
        if isinstance(pushed, EqualTo) and value != pushed.value:
            return False
        if isinstance(pushed, In) and value not in pushed.value:
            return False
        if isinstance(pushed, IsNotNull) and value is None:
            return False
        if isinstance(pushed, IsNull) and value is not None:
            return False
    return True


def mask(filters: Iterable[Filter], column: Column, rows: int) -> Mask:
    """Which rows pass; filters are such as ``split`` has taken."""
    passing: Mask = np.ones(rows, dtype=np.bool_)
    for pushed in filters:
        name = column_of(pushed)
        if isinstance(pushed, In):
            values = np.array([plain(value) for value in pushed.value], dtype=column(name).dtype)
            passing &= np.isin(column(name), values)
        elif not isinstance(pushed, IsNotNull):
            compared = _COMPARE[type(pushed)](column(name), _scalar(pushed, column(name)))
            passing &= compared
    return passing


def _scalar(pushed: Any, column: npt.NDArray[Any]) -> Any:
    value = plain(pushed.value)
    return np.array([value], dtype=column.dtype)[0] if column.dtype.kind == "V" else value


def plain(value: object) -> Any:
    """Times as microseconds since 1970, everything else as it is."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return bytes(value) if isinstance(value, bytearray) else value
