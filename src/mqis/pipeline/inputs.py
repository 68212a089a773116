"""The sources of the graph: journals, exports, captures and messages that a run reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mqis.pipeline import schemas, sources
from mqis.pipeline.locations import local_path
from mqis.pipeline.sources import Only
from mqis.pipeline.sources.capture import capture_files
from mqis.pipeline.sources.directory import export_files, server_of
from mqis.pipeline.sources.files import (
    SourceFile,
    files_beside,
    open_plain,
    paths_in,
    source_file,
    stamps_of,
    unreadable,
)
from mqis.pipeline.sources.inventory import (
    PATTERN,
    segment_files,
    server_of_segment,
)
from mqis.texts import parse_moment
from mqis.wire.errors import MqisError

#: Lists files, each with a text that changes when it is written.
Stamps = Callable[[], dict[str, str]]


class FileSource:
    """A source whose rows are those of files, each by itself; it can read some of them only."""

    def __init__(self, read: Callable[[Only], DataFrame], stamps: Stamps) -> None:
        self._read = read
        self._stamps = stamps

    def __call__(self, only: Only = None) -> DataFrame:
        return self._read(only)

    @cached_property
    def stamps(self) -> dict[str, str]:
        """The files, each with a text that changes when it is written; listed once."""
        return self._stamps()


#: Functions that read the sources, by their names in the graph.
Sources = dict[str, FileSource | Callable[[], DataFrame]]

_SNAPSHOTS = "snapshot-*.jsonl"
_NUMBER = re.compile(r"[0-9]{1,20}")
_MAX_LSN = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class PipelineInputs:
    """What a run reads. Each of the first three is a file or directory, or several with commas."""

    journals: str = ""
    exports: str = ""
    captures: str = ""
    #: A CSV file (source, destination, messages; by machine name). Without it, messages are made
    #: up from ``seed``.
    messages: str = ""
    #: A link that is assumed to have failed, as the table ``what_if`` names it.
    failed: str = ""
    seed: int = 1
    #: Results of ``mqis estate check --json``, several with commas.
    findings: str = ""

    def check(self, *, may_be_empty: bool = False) -> None:
        """Raises an error in one line if a place cannot be read, or has nothing to read.

        A stream waits for journals, so for it places ``may_be_empty``.
        """
        more = {"allow_empty": "true"} if may_be_empty else {}
        if self.journals:
            segment_files({"path": self.journals, **more})
        if self.exports:
            export_files({"path": self.exports, **more})
        if self.captures:
            capture_files({"path": self.captures, **more})
        if self.messages and not local_path(self.messages).exists():
            raise MqisError(f"{self.messages}: there is no such file (a CSV of messages)")
        if self.findings:
            finding_files(self.findings)


def sources_of(spark: SparkSession, inputs: PipelineInputs) -> Sources:
    """The sources that these inputs give; nothing is read yet but a header beside snapshots."""
    found: Sources = {
        "synthetic_seed": lambda: spark.createDataFrame([(inputs.seed,)], schemas.SEED),
        "failed_link": lambda: spark.createDataFrame([(inputs.failed,)], schemas.FAILED_LINK),
    }
    if inputs.journals:
        found |= _journal_sources(spark, inputs.journals)
    if inputs.exports:
        exports = _stamps(export_files, inputs.exports)
        found["exported_objects"] = _reader(spark, inputs.exports, "objects", exports)
        found["exported_partitions"] = _reader(spark, inputs.exports, "partitions", exports)
    if inputs.captures:
        read = partial(sources.capture, spark, inputs.captures)
        captures = _stamps(capture_files, inputs.captures)
        found["captured"] = FileSource(lambda only: read(only=only), captures)
    if inputs.messages:
        reader = spark.read.schema(schemas.MESSAGES).option("header", value=True)
        found["messages"] = lambda: reader.csv(str(local_path(inputs.messages)))
    if inputs.findings:
        checked = estate_checks(inputs.findings)
        found["estate_checks"] = lambda: spark.createDataFrame(checked, schemas.ESTATE_CHECKS)
    return found


def _stamps(listed: Callable[[dict[str, str]], Iterable[SourceFile]], path: str) -> Stamps:
    return lambda: stamps_of(listed({"path": path}))


def _reader(spark: SparkSession, path: str, rows: str, stamps: Stamps) -> FileSource:
    """Reads exports or snapshots."""
    read = partial(sources.directory, spark, path, rows=rows)
    return FileSource(lambda only: read(only=only), stamps)


def _journal_sources(spark: SparkSession, path: str) -> Sources:
    records = partial(sources.journal, spark, path, schemas.JOURNAL.fieldNames())
    segments, stamps = partial(sources.segments, spark, path), _stamps(segment_files, path)
    found: Sources = {
        "journal": FileSource(lambda only: records(only=only), stamps),
        "checked_segments": FileSource(lambda only: segments(only=only), stamps),
    }
    return found | _snapshot_sources(spark, path)


# --- snapshots ------------------------------------------------------------------------------------
#
# A snapshot is the server's directory as it was after one record. Retention removes the records
# before the oldest snapshot that it keeps, so a rebuild of the past may have to start from one.


def _snapshot_sources(spark: SparkSession, journals: str) -> Sources:
    """The snapshots in the journals' directories; nothing if there are none."""
    listed = segment_files({"path": journals, "allow_empty": "true"})
    beside = {path.parent for path in listed}
    found = [row for directory in sorted(beside, key=str) for row in snapshot_files(directory)]
    if not found:
        return {}
    paths = ",".join(path for path, _, _ in found)

    def stamps() -> dict[str, str]:
        told = stamps_of(source_file(path) for path, _, _ in found)
        return {path: f"{told[path]} {server}" for path, server, _ in found if path in told}

    def placed(_: Only) -> DataFrame:
        return spark.createDataFrame(found, schemas.SNAPSHOT_PLACES)

    digests = partial(sources.digests, spark, paths)
    return {
        "snapshot_files": FileSource(lambda only: digests(only=only), stamps),
        "snapshot_places": FileSource(placed, stamps),
        "snapshot_lines": _reader(spark, paths, "lines", stamps),
        "snapshot_states": _reader(spark, paths, "partitions", stamps),
    }


def snapshot_files(directory: SourceFile) -> list[tuple[str, str, int]]:
    """(file, server, lsn) of the snapshots in a journal's directory."""
    taken = files_beside(directory, _SNAPSHOTS)
    beside = files_beside(directory, PATTERN) if taken else []
    server = next(filter(None, map(server_of_segment, beside)), "")
    if not server:
        return []
    # A path with a comma is left out: a comma separates paths.
    numbered = ((path, server_of(path).partition("-")[2]) for path in taken if "," not in str(path))
    return [(str(path), server, int(n)) for path, n in numbered if _is_lsn(n)]


def _is_lsn(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and int(text) <= _MAX_LSN


_FINDING_FILES = "*.json"
_WHAT = "results of 'mqis estate check --json'"
_FINDING = schemas.CHECKED_FINDING.fieldNames()
_WRITTEN = {"entry": "where"}


def finding_files(path: str) -> list[SourceFile]:
    return paths_in({"path": path}, _WHAT, _FINDING_FILES)


def estate_checks(path: str) -> list[tuple[Any, ...]]:
    """The rows of ``schemas.ESTATE_CHECKS``, one for each file.

    A file that is no such result is an error: its findings would seem to be mended.
    """
    return [_checked(file) for file in finding_files(path)]


def _checked(file: SourceFile) -> tuple[Any, ...]:
    try:
        with open_plain(file) as opened:
            told = json.loads(opened.read())
        moment = parse_moment(told["checked"], zoned=True)
        unknown = [_text(limit["check"]) for limit in told["unknown"]]
        return str(file), moment, unknown, [_finding(one) for one in told["findings"]]
    except OSError as error:
        raise MqisError(f"{file}: {unreadable(error)}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MqisError(f"{file}: this is no result of 'mqis estate check': {reason}") from None


def _finding(told: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple(
        None if name == "ldif" and told["ldif"] is None else _text(told[_WRITTEN.get(name, name)])
        for name in _FINDING
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value
