"""The results of the pipeline: its tables, a summary of them, and the report.

Tables are read without Spark, by pyarrow if that is installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqis.places.pipeline_tables import current_version, table_names, table_versions
from mqis.texts import moment
from mqis.views.presentation.rendering import cell_text

REPORT = "report.html"
#: The most rows of a table on its page.
MOST_ROWS = 50
#: Rows that are held in memory at a time.
_BATCH = 4096
_UNREADABLE = (OSError, ValueError, KeyError)
#: A report that is larger than this was not written by the pipeline.
MOST_REPORT = 64 << 20


@dataclass(frozen=True, slots=True)
class PipelineTable:
    name: str
    version: str
    versions: int
    written: str
    files: int
    size: int
    #: None: pyarrow is not installed, or the files cannot be read.
    rows: int | None


@dataclass(frozen=True, slots=True)
class PageOfRows:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int
    #: True for each column that holds numbers.
    numeric: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelinePage:
    directory: str
    tables: tuple[PipelineTable, ...]
    has_report: bool
    report_written: str
    #: True if pyarrow is installed, so that tables can be read.
    readable: bool
    #: Differences by (server, cause); None: there was no audit.
    divergence: tuple[tuple[str, str, int], ...] | None
    #: Hygiene findings by (explanation, object type); None: there was no such check.
    hygiene: tuple[tuple[str, str, int], ...] | None
    lag: PageOfRows | None


def pipeline_page(directory: Path) -> PipelinePage:
    tables = tuple(_tables(directory))
    report = directory / REPORT
    readable = _arrow() is not None
    names = {table.name for table in tables}
    divergence = hygiene = None
    if readable and "divergence" in names:
        divergence = _counts(directory, "divergence", ("server", "cause"))
    if readable and "hygiene" in names:
        hygiene = _counts(directory, "hygiene", ("explanation", "type"))
    return PipelinePage(
        str(directory),
        tables,
        report.is_file(),
        moment(report.stat().st_mtime) if report.is_file() else "",
        readable,
        divergence,
        hygiene,
        table_rows(directory, "lag") if "lag" in names else None,
    )


def _counts(
    directory: Path, name: str, columns: tuple[str, str]
) -> tuple[tuple[str, str, int], ...] | None:
    """Counts a table's rows by two columns, batch by batch: there may be millions of rows."""
    counted: Counter[tuple[str, str]] = Counter()
    batches = _batches(directory, name, columns, _BATCH)
    if batches is None:
        return None
    first, second = columns
    try:
        for rows in batches:
            counted.update((str(row[first]), str(row[second])) for row in rows)
    except _UNREADABLE:
        return None
    return tuple((*key, number) for key, number in sorted(counted.items()))


def table_rows(directory: Path, name: str, most: int = MOST_ROWS) -> PageOfRows | None:
    """The first rows of a table; None if it does not exist or cannot be read."""
    batches = _batches(directory, name, None, most)
    if batches is None:
        return None
    rows: list[Mapping[str, Any]] = []
    try:
        for batch in batches:
            rows += batch[: most - len(rows)]
            if len(rows) >= most:
                break
    except _UNREADABLE:
        return None
    columns = tuple(rows[0]) if rows else ()
    total = _count(directory, name) or len(rows)
    cells = tuple(tuple(cell_text(value) for value in row.values()) for row in rows)
    numeric = tuple(all(_is_number(row[name]) for row in rows) for name in columns)
    return PageOfRows(columns, cells, max(0, total - len(rows)), numeric)


def read_rows(
    directory: Path, name: str, columns: Sequence[str]
) -> Iterator[Mapping[str, Any]] | None:
    """Some columns of a table, row by row; None if it does not exist or cannot be read."""
    batches = _batches(directory, name, columns, _BATCH)
    try:
        first = None if batches is None else next(batches, [])
    except _UNREADABLE:
        return None
    return None if first is None or batches is None else _rows(first, batches)


def _rows(
    first: list[Mapping[str, Any]], batches: Iterator[list[Mapping[str, Any]]]
) -> Iterator[Mapping[str, Any]]:
    """The rows of batches, up to the first that cannot be read."""
    yield from first
    try:
        for batch in batches:
            yield from batch
    except _UNREADABLE:
        return


def report_file(directory: Path) -> Path | None:
    """The report, if it is a plain file in this directory and not too large."""
    path = directory / REPORT
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_REPORT:
        return None
    return path


def _tables(directory: Path) -> Iterator[PipelineTable]:
    for name in table_names(directory):
        current = current_version(directory, name)
        if current is None:  # it was dropped meanwhile
            continue
        files = _files(current)
        yield PipelineTable(
            name,
            current.name,
            len(table_versions(directory, name)),
            moment(current.stat().st_mtime),
            len(files),
            sum(path.stat().st_size for path in files),
            _count(directory, name),
        )


def _files(place: Path) -> list[Path]:
    return sorted(p for p in place.rglob("*.parquet") if p.is_file() and not p.is_symlink())


# --- contents of tables ---------------------------------------------------------------------------


def _arrow() -> Any:
    try:
        import pyarrow.parquet  # noqa: PLC0415 -- comes with the pipeline, and takes a moment
    except ImportError:
        return None
    return pyarrow.parquet


def _count(directory: Path, name: str) -> int | None:
    parquet, place = _arrow(), current_version(directory, name)
    if parquet is None or place is None:
        return None
    try:
        return sum(int(parquet.ParquetFile(path).metadata.num_rows) for path in _files(place))
    except (OSError, ValueError):
        return None


def _batches(
    directory: Path, name: str, columns: Sequence[str] | None, size: int
) -> Iterator[list[Mapping[str, Any]]] | None:
    """The rows of a table in batches, to limit the memory."""
    parquet, place = _arrow(), current_version(directory, name)
    if parquet is None or place is None:
        return None
    return (
        batch.to_pylist()
        for path in _files(place)
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=size, columns=columns)
    )


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
