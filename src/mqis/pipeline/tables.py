"""Tables as Parquet, each version in a directory of its own.

    tables/divergence/v000003/part-....parquet
    tables/divergence/CURRENT          says v000003

Spark replaces files one by one, so a concurrent reader would see a mix of old and new. Here a new
version is written beside the old one and becomes current by a rename: a reader sees one version or
the other, and readers never see the output of a failed job. The executors have to share the
directory with the driver.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from mqis.files import write_whole
from mqis.pipeline.failures import SPARK_ERRORS, explained
from mqis.pipeline.locations import local_path
from mqis.wire.errors import MqisError

_POINTER = "CURRENT"
_VERSION = re.compile(r"v(\d{6,})")
#: The number of versions kept: the current one, and the previous one for its remaining readers.
_KEPT = 2
_UNWRITTEN: tuple[type[Exception], ...] = (OSError, *SPARK_ERRORS)


class TableStore(Protocol):
    """A place for tables: a directory of Parquet files, or a schema of a Spark catalogue."""

    session: SparkSession

    def names(self) -> list[str]: ...

    def has(self, name: str) -> bool: ...

    def read(self, name: str) -> DataFrame:
        """Reads a table; raises ``MqisError`` if there is none."""
        ...

    def write(self, name: str, frame: DataFrame, *, by: Sequence[str] = ()) -> DataFrame:
        """Replaces a table and reads it back; ``by`` divides its files by values of columns."""
        ...

    def drop(self, name: str) -> None: ...


class TableDirectory:
    """The tables of one directory."""

    def __init__(self, session: SparkSession, directory: str | Path) -> None:
        self.session = session
        self.directory = local_path(directory).resolve()

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self.directory.glob(f"*/{_POINTER}"))

    def has(self, name: str) -> bool:
        return (self.directory / name / _POINTER).is_file()

    def read(self, name: str) -> DataFrame:
        """Reads the current version; raises ``MqisError`` if there is none."""
        if not self.has(name):
            raise MqisError(
                f"{self.directory}: there is no table {name!r}; run 'mqis pipeline ingest' first"
                + (f" (there are {', '.join(self.names())})" if self.names() else "")
            )
        version = (self.directory / name / _POINTER).read_text(encoding="ascii").strip()
        if _VERSION.fullmatch(version) is None:
            raise MqisError(
                f"{self.directory / name / _POINTER}: {version!r} is not a version (v000001); "
                "write the table again"
            )
        return self.session.read.parquet(str(self.directory / name / version))

    def write(self, name: str, frame: DataFrame, *, by: Sequence[str] = ()) -> DataFrame:
        """Writes a new version, makes it current and reads it back from its files."""
        place = self.directory / name
        version = f"v{self._last_version(place) + 1:06}"
        target = place / version
        try:
            place.mkdir(parents=True, exist_ok=True)
            writer = frame.write.mode("error")
            (writer.partitionBy(*by) if by else writer).parquet(str(target))
            self._make_current(place, version)
        except _UNWRITTEN as error:
            shutil.rmtree(target, ignore_errors=True)
            raise MqisError(f"{place}: cannot be written: {explained(error)}") from error
        self._remove_old_versions(place)
        return self.read(name)

    def drop(self, name: str) -> None:
        """Removes the table."""
        place = self.directory / name
        (place / _POINTER).unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)

    @staticmethod
    def _make_current(place: Path, version: str) -> None:
        write_whole(place / _POINTER, f"{version}\n")

    @staticmethod
    def _last_version(place: Path) -> int:
        return max((number for number, _ in _versions(place)), default=0)

    @staticmethod
    def _remove_old_versions(place: Path) -> None:
        for _, path in _versions(place)[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def _versions(place: Path) -> list[tuple[int, Path]]:
    if not place.is_dir():
        return []
    matches = [(_VERSION.fullmatch(path.name), path) for path in place.iterdir()]
    return sorted((int(match[1]), path) for match, path in matches if match)
