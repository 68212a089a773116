"""The tables in words (``transforms.words``), read from a directory of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from mqis.pipeline.building import TableBuilder, settled
from mqis.pipeline.evidence.findings import EvidenceKind
from mqis.pipeline.graph import TABLES
from mqis.pipeline.tables import TableStore
from mqis.pipeline.transforms.words import in_words, names_of, site_names_of, with_names_of_changes

#: The column that holds the place of a row while names are looked up.
_PLACE = "place in the table"


def site_names(tables: TableStore) -> DataFrame | None:
    """The names of sites, computed: several queries use them. None if nothing was exported."""
    if not tables.has("objects"):
        return None
    return settled(site_names_of(readable_objects(tables)))


def object_names(tables: TableStore) -> DataFrame | None:
    """The names of all objects; those of deleted ones come from the history, if there is one."""
    if not tables.has("objects"):
        return None
    held = names_of(readable_objects(tables))
    if not tables.has("changes"):
        return held
    return with_names_of_changes(held, tables.read("changes"))


def in_order(name: str, frame: DataFrame) -> DataFrame:
    """The rows of a table in the order in which they are shown: those of a few files have none."""
    order = TABLES[name].order if name in TABLES else ()
    columns = (F.desc(each[1:]) if each.startswith("-") else F.asc(each) for each in order)
    return frame.orderBy(*columns) if order else frame


def readable_tables(tables: TableStore, names: Iterable[str]) -> dict[str, DataFrame]:
    """The tables of these names in words, as far as there are such tables."""
    wanted = [name for name in names if tables.has(name)]
    if not wanted:
        return {}
    sites, objects = site_names(tables), object_names(tables)
    return {name: in_words(tables.read(name), sites, objects) for name in wanted}


def readable_rows(tables: TableStore, name: str, limit: int) -> list[Row]:
    """The first rows of a table in words, in its order, which looking names up would change."""
    rows = in_order(name, tables.read(name))
    first = rows.limit(limit).withColumn(_PLACE, F.monotonically_increasing_id())
    named = {"partition", "id", "object_id", "props"} & set(first.columns)
    sites, objects = (site_names(tables), object_names(tables)) if named else (None, None)
    return in_words(first, sites, objects).orderBy(_PLACE).drop(_PLACE).collect()


#: The kinds of findings about journals that were altered.
ALTERED = (EvidenceKind.TAMPERED.value, EvidenceKind.FOREIGN.value)


def readable_objects(tables: TableStore) -> DataFrame:
    """The table ``objects`` without the lines that could not be read."""
    return tables.read("objects").filter("error is null").drop("error")


def used_input(tables: TableStore, name: str) -> DataFrame:
    """The part of ``records``, ``objects`` or ``partitions`` that is used; raises without it."""
    tables.read(name)
    return TableBuilder(tables).frame(f"used_{name}")


def explanations(tables: TableStore, kinds: Collection[str]) -> dict[str, str]:
    """The explanations of findings of these kinds, by server."""
    rows = TableBuilder(tables).frame("evidence").filter(F.col("kind").isin(*kinds))
    return {row["server"]: row["explanation"] for row in rows.collect()}
