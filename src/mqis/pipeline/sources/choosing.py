"""The columns of a source that a query chooses, as Spark does not pass them to Python sources."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import ArrayType, StructField, StructType

from mqis.pipeline.sources.files import check_names
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
