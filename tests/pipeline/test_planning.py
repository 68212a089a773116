"""What a plan reads of journals, and what its tasks read: little, by listings and indexes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import create_connection, create_server, socket
from threading import Thread

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan

from mqis.pipeline.sources.files import Share, Shares, TaskSize
from mqis.pipeline.sources.inventory import index_of, open_segment
from mqis.pipeline.sources.journal import JournalSource, PushingJournalReader
from mqis.pipeline.sources.segments import BLOCK_BYTES
from mqis.storage.journal import Journal
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    encode_record,
    segment_header,
)
from tests.s3server import S3Server

pytestmark = pytest.mark.interop

P, Q = Guid(b"p" * 16), Guid(b"q" * 16)
_REQUEST = re.compile(rb"(GET|HEAD) (/\S+) HTTP/1.1\r\n((?:[^\r\n]+\r\n)*)\r\n")
_RANGE = re.compile(rb"range: bytes=(\d+)-(\d+)", re.IGNORECASE)


@dataclass
class RequestLog:
    """What passed through a proxy before a server: methods, paths and ranges."""

    requests: list[tuple[str, str, int]] = field(default_factory=list)

    def note(self, data: bytes) -> None:
        for method, path, headers in _REQUEST.findall(data):
            asked = _RANGE.search(headers)
            size = int(asked[2]) - int(asked[1]) + 1 if asked else 0
            self.requests.append((method.decode(), path.decode(), size))

    @property
    def objects(self) -> list[int]:
        """The bytes that each GET of an object asked for; -1: all of it."""
        gets = [(path, size) for method, path, size in self.requests if method == "GET"]
        return [size or -1 for path, size in gets if ".mqj" in path and "?" not in path]


def _passed(source: socket, target: socket, log: RequestLog | None) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            if log is not None:
                log.note(data)
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(1)


def _accepted(listener: socket, port: int, log: RequestLog) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = create_connection(("127.0.0.1", port))
            Thread(target=_passed, args=(client, server, log), daemon=True).start()
            Thread(target=_passed, args=(server, client, None), daemon=True).start()


@pytest.fixture
def watched(s3: S3Server) -> Iterator[tuple[S3Server, RequestLog]]:
    """The S3 server behind a proxy that logs what is asked of it."""
    log = RequestLog()
    with create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_accepted, args=(listener, s3.port, log), daemon=True).start()
        yield S3Server(s3.root, listener.getsockname()[1]), log


def write_segment(directory: Path, records: int, body: int, first: int = 1) -> Path:
    """A sealed segment: the first half of its records is about P, the rest about Q."""
    with closing(Journal(directory, "psc1", Guid(b"s" * 16), segment_bytes=1 << 30)) as journal:
        for lsn in range(first, first + records):
            partition = P if lsn < first + records // 2 else Q
            record = JournalRecord(
                lsn, RecordKind.CHANGE, RecordState.LOCAL, partition=partition, body=bytes(body)
            )
            journal.append([(lsn, encode_record(lsn, record))])
        journal.seal()
    return max(directory.glob("*.mqj"))


def reader_of(place: str, *filters: Filter, **options: str) -> PushingJournalReader:
    source = JournalSource({"path": place, "pushdown": "true", "columns": "lsn", **options})
    reader = source.reader(source.schema())
    assert isinstance(reader, PushingJournalReader)
    assert list(reader.pushFilters(list(filters))) == []
    return reader


def numbers(reader: PushingJournalReader) -> list[int]:
    tasks = reader.partitions()
    return [n for task in tasks for batch in reader.read(task) for n in batch["lsn"].to_pylist()]


def test_a_plan_reads_less_than_a_thousandth(
    watched: tuple[S3Server, RequestLog], tmp_path: Path
) -> None:
    s3, log = watched
    path = write_segment(tmp_path / "made", 4_000, 16_000)
    size = path.stat().st_size
    assert size > 60_000_000
    shutil.copytree(tmp_path / "made", s3.root / "bucket" / "journal")
    tasks = reader_of(s3.uri("bucket/journal")).partitions()
    assert 0 < sum(log.objects) < size / 1000
    assert -1 not in log.objects
    assert [len(task.shares) for task in tasks] == [1, 1, 1, 1]
    assert sum(s.end - s.start for task in tasks for s in task.shares) > 64_000_000 * 0.99


def test_a_plan_opens_none_of_ten_thousand_small_segments(
    watched: tuple[S3Server, RequestLog], tmp_path: Path
) -> None:
    s3, log = watched
    data = write_segment(tmp_path / "made", 8, 100).read_bytes()
    place = s3.root / "bucket" / "journal"
    place.mkdir()
    for number in range(1, 10_001):
        (place / f"segment-{number:010}.mqj").write_bytes(data)
    tasks = reader_of(s3.uri("bucket/journal")).partitions()
    assert log.objects == []
    assert not [path for method, path, _ in log.requests if method == "HEAD" and ".mqj" in path]
    assert sum(len(task.shares) for task in tasks) == 10_000
    assert len(tasks) < 400  # 32 files to a task, as Spark's own sources count


@pytest.mark.parametrize(
    ("pushed", "wanted"),
    [
        (EqualTo(("lsn",), 1_234), [1_234]),
        (GreaterThan(("lsn",), 3_998), [3_999, 4_000]),
        (EqualTo(("kind",), int(RecordKind.MESSAGE)), []),
    ],
)
def test_tasks_read_the_blocks_that_a_query_wants(
    watched: tuple[S3Server, RequestLog], tmp_path: Path, pushed: Filter, wanted: list[int]
) -> None:
    s3, log = watched
    path = write_segment(tmp_path / "made", 4_000, 8_000)
    shutil.copytree(tmp_path / "made", s3.root / "bucket" / "journal")
    assert numbers(reader_of(s3.uri("bucket/journal"), pushed)) == wanted
    assert -1 not in log.objects
    assert sum(log.objects) < path.stat().st_size / 10


def test_a_partition_is_in_half_of_the_blocks(tmp_path: Path) -> None:
    path = write_segment(tmp_path, 4_000, 8_000)
    index = index_of(path, open_segment(path)[1], path.stat().st_size)
    assert index is not None
    for partition, numbered in ((P, range(1, 2_001)), (Q, range(2_001, 4_001))):
        reader = reader_of(str(tmp_path), partition=str(partition))
        assert numbers(reader) == list(numbered)
        shares = [share for task in reader.partitions() for share in task.shares]
        assert sum(share.end - share.start for share in shares) < 0.53 * index.end
    nobody = reader_of(str(tmp_path), partition=str(Guid(b"n" * 16)))
    assert numbers(nobody) == []
    assert nobody.partitions() == []


def test_a_server_that_nobody_asked_for_is_not_read(tmp_path: Path) -> None:
    write_segment(tmp_path, 10, 10)
    assert numbers(reader_of(str(tmp_path), server="psc2")) == []
    assert numbers(reader_of(str(tmp_path), server="psc1,psc2")) == list(range(1, 11))


def test_a_segment_without_an_index_is_one_share(tmp_path: Path) -> None:
    path = write_segment(tmp_path, 200, 100)
    whole = path.read_bytes()
    numbered = list(range(1, 201))
    for spoiled in (whole[:-1], whole[:-1] + b"?"):
        path.write_bytes(spoiled)
        reader = reader_of(str(tmp_path), EqualTo(("kind",), 2), share_bytes="2000")
        assert reader.partitions() == [Shares((Share(str(path), 0, len(spoiled)),))]
        assert numbers(reader) == numbered
    # The rest of the index is damage, and is told.
    assert numbers(reader_of(str(tmp_path))) == [*numbered, None]


def test_an_index_behind_another_header_is_not_used(tmp_path: Path) -> None:
    """As after somebody signed a segment with another key: its records are read all the same."""
    path = write_segment(tmp_path, 200, 100)
    data = path.read_bytes()
    header, start = segment_header(data)
    path.write_bytes(replace(header, server="psc1-renamed").to_bytes() + data[start:])
    reader = reader_of(str(tmp_path), GreaterThan(("lsn",), 50), share_bytes="2000")
    assert len(reader.partitions()) == 1
    assert numbers(reader) == list(range(51, 201))


def test_shares_of_a_segment_lose_nothing(tmp_path: Path) -> None:
    write_segment(tmp_path, 9_000, 200)
    reader = reader_of(str(tmp_path), share_bytes="500000")
    shares = [share for task in reader.partitions() for share in task.shares]
    assert len(shares) > 2
    assert [a.end for a in shares[:-1]] == [b.start for b in shares[1:]]
    assert numbers(reader) == list(range(1, 9_001))


def test_small_files_share_a_task() -> None:
    size = TaskSize(share_bytes=100, task_bytes=300, open_bytes=50)
    shares = [Share(str(n), 0, length) for n, length in enumerate((10, 20, 70, 1, 1, 1, 1, 1, 100))]
    tasks = [[int(share.path) for share in task.shares] for task in size.packed(shares)]
    # 70 would be too much in bytes; of the files of one byte, five cost too much to open.
    assert tasks == [[0, 1, 2], [3, 4, 5, 6, 7], [8]]
    assert size.packed([]) == []
    with pytest.raises(MqisError, match="share_bytes is a positive number of bytes, not 'many'"):
        TaskSize.of({"share_bytes": "many"})
    assert TaskSize().share_bytes == BLOCK_BYTES
