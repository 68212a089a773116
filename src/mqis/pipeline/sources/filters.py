"""The columns that a query chooses, and the filters that Spark pushes down.

Filters work on columns that are NumPy arrays. A source takes those that it can decide exactly and
hands the rest back to Spark. As in SQL, a comparison drops the rows that have no value in the
compared column.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import datasource
from pyspark.sql.datasource import Filter
from pyspark.sql.types import ArrayType, StructField, StructType

from mqis.pipeline.sources.files import check_names
from mqis.texts import microseconds
from mqis.wire.errors import MqisError


def columns_of(whole: StructType, names: Iterable[str], source: str) -> StructType:
    """The columns with these names, all if there are none.

    ``properties.number`` is the part ``number`` of the column ``properties``, an array.
    """
    wanted: dict[str, list[str]] = {}
    for name in names:
        column, _, part = name.partition(".")
        wanted.setdefault(column, []).extend([part] if part else [])
    if not wanted:
        return whole
    check_names(wanted, whole.fieldNames(), source)
    return StructType([_column(whole[name], parts, source) for name, parts in wanted.items()])


def _column(field: StructField, parts: list[str], source: str) -> StructField:
    if not parts:
        return field
    items = _parts(field)
    if items is None:
        raise MqisError(f"the column {field.name!r} of {source} has no parts")
    check_names(parts, items.fieldNames(), f"{field.name} of {source}")
    return StructField(field.name, ArrayType(columns_of(items, parts, source), containsNull=False))


def check_columns(schema: StructType, whole: StructType, source: str) -> None:
    """Raises ``MqisError`` if the source has no such column, or has it with another type."""
    check_names(schema.fieldNames(), whole.fieldNames(), source)
    for field in schema.fields:
        known = whole[field.name]
        given, items = _parts(field), _parts(known)
        if given is not None and items is not None:
            check_columns(given, items, f"{field.name} of {source}")
        elif field.dataType != known.dataType:
            raise MqisError(
                f"the column {field.name!r} of {source} is {known.dataType.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )


def _parts(field: StructField) -> StructType | None:
    """The parts of a column that is an array of structures."""
    kind = field.dataType
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        return kind.elementType
    return None


Mask = npt.NDArray[np.bool_]
#: Returns the values of the column with that name.
Column = Callable[[str], npt.NDArray[Any]]

_COMPARE: dict[type[Filter], Callable[[Any, Any], Any]] = {
    datasource.EqualTo: operator.eq,
    datasource.GreaterThan: operator.gt,
    datasource.GreaterThanOrEqual: operator.ge,
    datasource.LessThan: operator.lt,
    datasource.LessThanOrEqual: operator.le,
}
_DECIDABLE: tuple[type[Filter], ...] = (datasource.In, datasource.IsNotNull, *_COMPARE)
_ORDERED = tuple(kind for kind in _COMPARE if kind is not datasource.EqualTo)


def column_of(pushed: Filter) -> str:
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    return path[0] if len(path) == 1 else ""


def split(
    filters: Iterable[Filter], columns: Iterable[str], unordered: Iterable[str] = ()
) -> tuple[list[Filter], list[Filter]]:
    """Returns the filters that ``columns`` can decide, and the rest.

    ``unordered`` columns can be compared for equality only.
    """
    known, equal_only = frozenset(columns), frozenset(unordered)
    taken: list[Filter] = []
    left: list[Filter] = []
    for pushed in filters:
        name = column_of(pushed)
        decidable = isinstance(pushed, _DECIDABLE) and name in known
        if isinstance(pushed, _ORDERED) and name in equal_only:
            decidable = False
        (taken if decidable else left).append(pushed)
    return taken, left


def wants(filters: Iterable[Filter], name: str, value: object) -> bool:
    """Returns whether rows whose column ``name`` is ``value`` can pass the filters."""
    for pushed in filters:
        if column_of(pushed) != name:
            continue
        if isinstance(pushed, datasource.EqualTo) and value != pushed.value:
            return False
        if isinstance(pushed, datasource.In) and value not in pushed.value:
            return False
        if isinstance(pushed, datasource.IsNotNull) and value is None:
            return False
        if isinstance(pushed, datasource.IsNull) and value is not None:
            return False
    return True


def values_of(pushed: Filter) -> Collection[Any] | None:
    """The values of which a column must have one; None if the filter names none."""
    if isinstance(pushed, datasource.In):
        return [plain(value) for value in pushed.value]
    return [plain(pushed.value)] if isinstance(pushed, datasource.EqualTo) else None


def may_pass_between(pushed: Filter, least: int, most: int) -> bool:
    """Returns whether a number from ``least`` to ``most`` can pass the filter."""
    values = values_of(pushed)
    if values is not None:
        return any(least <= value <= most for value in values)
    if isinstance(pushed, (datasource.GreaterThan, datasource.GreaterThanOrEqual)):
        return bool(_COMPARE[type(pushed)](most, plain(pushed.value)))
    if isinstance(pushed, (datasource.LessThan, datasource.LessThanOrEqual)):
        return bool(_COMPARE[type(pushed)](least, plain(pushed.value)))
    return True


def mask(filters: Iterable[Filter], column: Column, rows: int) -> Mask:
    """A mask of the rows that pass; ``filters`` are those that ``split`` accepted."""
    passing: Mask = np.ones(rows, dtype=np.bool_)
    for pushed in filters:
        name = column_of(pushed)
        if isinstance(pushed, datasource.In):
            values = np.array([plain(value) for value in pushed.value], dtype=column(name).dtype)
            passing &= np.isin(column(name), values)
        elif not isinstance(pushed, datasource.IsNotNull):
            compared = _COMPARE[type(pushed)](column(name), _scalar(pushed, column(name)))
            passing &= compared
    return passing


def _scalar(pushed: Any, column: npt.NDArray[Any]) -> Any:
    value = plain(pushed.value)
    return np.array([value], dtype=column.dtype)[0] if column.dtype.kind == "V" else value


def plain(value: object) -> Any:
    """Converts times to microseconds since 1970; returns other values unchanged."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return microseconds(aware)
    return bytes(value) if isinstance(value, bytearray) else value
