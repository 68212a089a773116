"""The tables in words (``transforms.words``), read from a directory of tables."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.words import in_words, names_of, site_names_of
from mqis.pipeline.trusted import readable_objects


def readable_tables(
    tables: TableDirectory, names: Iterable[str], *, paths: bool = True
) -> dict[str, DataFrame]:
    """The tables of these names in words, as far as there are such tables.

    With ``paths`` the names of objects are looked up too, which reads all exports.
    """
    wanted = [name for name in names if tables.has(name)]
    if not (wanted and tables.has("objects")):
        return {name: in_words(tables.read(name)) for name in wanted}
    objects = readable_objects(tables)
    sites, named = site_names_of(objects), names_of(objects) if paths else None
    return {name: in_words(tables.read(name), sites, named) for name in wanted}
