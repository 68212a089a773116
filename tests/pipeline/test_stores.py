"""Inputs in a real S3 server: the sources give the same rows as for files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSource

from mqis.pipeline.inputs import snapshot_files
from mqis.pipeline.sources.capture import CaptureSource
from mqis.pipeline.sources.checks import SegmentSource
from mqis.pipeline.sources.directory import DirectorySource
from mqis.pipeline.sources.files import paths_in
from mqis.pipeline.sources.journal import JournalSource
from mqis.places import parse_place
from mqis.wire.errors import MqisError
from mqis.wire.journal.index import read_index
from tests.pipeline.journals import journal_files
from tests.pipeline.test_capture import write_captures
from tests.s3server import SECRET, S3Server
from tests.storage.archive.test_archiver import write_journal

pytestmark = pytest.mark.interop


@pytest.fixture
def journal(s3: S3Server, tmp_path: Path) -> Path:
    """A journal in a directory, damaged in one place, and the same files in the bucket."""
    directory = tmp_path / "journal"
    write_journal(directory, 3)
    path = directory / "segment-0000000002.mqj"
    data = bytearray(path.read_bytes())
    data[read_index(bytes(data), len(data)).end - 1] ^= 1
    path.write_bytes(data)
    shutil.copytree(directory, s3.root / "bucket" / "journal")
    return directory


def rows(kind: type[DataSource], place: str, **options: str) -> list[dict[str, object]]:
    """All rows, by the calls that Spark makes; files by their names alone."""
    source = kind({"path": place, **options})
    reader = source.reader(source.schema())  # type: ignore[arg-type]
    batches: list[pa.RecordBatch] = []
    for partition in reader.partitions():
        batches += list(reader.read(partition))
    found = [row for batch in batches for row in batch.to_pylist()]
    for row in found:
        for column in ("file", "snapshot"):
            name = str(row.get(column, ""))
            assert SECRET not in name
            row[column] = name.partition("?")[0].rpartition("/")[2]
    return sorted(found, key=str)


@pytest.mark.parametrize("share_bytes", ["16777216", "300"])
def test_journals_give_the_same_rows(journal: Path, s3: S3Server, share_bytes: str) -> None:
    local = rows(JournalSource, str(journal), share_bytes=share_bytes)
    assert any(row["error"] for row in local)
    assert len(local) == 15
    assert rows(JournalSource, s3.uri("bucket/journal"), share_bytes=share_bytes) == local
    one = "segment-0000000001.mqj"
    assert rows(JournalSource, s3.uri(f"bucket/journal/{one}")) == rows(
        JournalSource, str(journal / one)
    )


def test_digests_and_damage_are_the_same(journal: Path, s3: S3Server) -> None:
    assert rows(SegmentSource, s3.uri("bucket/journal")) == rows(SegmentSource, str(journal))
    found = journal_files(s3.uri("bucket/journal"))
    assert sorted(segment.number for segment in found) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["objects", "partitions", "lines"])
def test_exports_give_the_same_rows(kind: str, journal: Path, s3: S3Server) -> None:
    name = "snapshot-00000000000000000005.jsonl"
    local = rows(DirectorySource, str(journal / name), rows=kind, share_bytes="100")
    place = s3.uri(f"bucket/journal/{name}")
    assert rows(DirectorySource, place, rows=kind, share_bytes="100") == local


def test_snapshots_are_found_beside_their_segments(journal: Path, s3: S3Server) -> None:
    place = parse_place(s3.uri("bucket/journal"))
    found = [(server, lsn) for _, server, lsn in snapshot_files(place)]
    assert found == [("PSC1", 0), ("PSC1", 5), ("PSC1", 10)]
    assert found == [(server, lsn) for _, server, lsn in snapshot_files(journal)]


@pytest.mark.parametrize("share_bytes", ["33554432", "200"])
def test_captures_give_the_same_rows(s3: S3Server, tmp_path: Path, share_bytes: str) -> None:
    """Whole, in several shares, cut off, empty, and of another kind."""
    directory = tmp_path / "captures"
    write_captures(directory)
    shutil.copytree(directory, s3.root / "bucket" / "captures")
    local = rows(CaptureSource, str(directory), share_bytes=share_bytes)
    damaged = {row["file"] for row in local if row["error"]}
    assert damaged == {"cut.cap", "empty.pcap", "strange.pcap"}
    assert {row["file"] for row in local} == damaged | {"oletx.pcap", "replication.pcapng"}
    assert rows(CaptureSource, s3.uri("bucket/captures"), share_bytes=share_bytes) == local


def test_a_missing_bucket_and_an_empty_one_are_one_clear_line(s3: S3Server) -> None:
    with pytest.raises(MqisError, match="no such bucket"):
        paths_in({"path": s3.uri("nowhere/x")}, "journal segments", "*")
    with pytest.raises(MqisError, match="there are no journal segments in it"):
        paths_in({"path": s3.uri("bucket/empty")}, "journal segments", "*")


def test_a_store_that_fails_later_is_an_error_row(journal: Path, s3: S3Server) -> None:
    source = JournalSource({"path": s3.uri("bucket/journal")})
    reader = source.reader(source.schema())
    shares = reader.partitions()
    (s3.root / "bucket" / "journal" / "segment-0000000003.mqj").unlink()
    found = [row for share in shares for batch in reader.read(share) for row in batch.to_pylist()]
    (missing,) = [row for row in found if "segment-0000000003" in row["file"]]
    assert "cannot be read: " in missing["error"]
