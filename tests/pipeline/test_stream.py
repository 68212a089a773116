"""The journal as a stream: nothing twice, nothing left out, across a restart."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources import files, stream
from mqis.pipeline.sources.files import Share, Shares, open_plain
from mqis.pipeline.sources.journal import JournalSource
from mqis.pipeline.sources.stream import JournalStreamReader, Offset
from mqis.pipeline.transforms.live import divergence, without_strangers
from mqis.storage.journal import Journal
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    encode_record,
    index,
    segment_header,
    walk,
)
from tests.pipeline.conftest import Enterprise


def ends(path: Path) -> list[int]:
    """The offset at which records begin, then the offset at which each record of a segment ends."""
    data = path.read_bytes()
    _, start = segment_header(data)
    return [start, *(entry.offset + entry.length for entry in walk(data, start))]


def test_offsets_stand_behind_whole_records(enterprise: Enterprise, tmp_path: Path) -> None:
    (source,) = Path(enterprise.journals, "s001-psc").glob("*.mqj")
    cuts = ends(source)
    target = tmp_path / source.name
    target.write_bytes(source.read_bytes()[: cuts[5] + 7])
    reader = JournalSource({"path": str(tmp_path)}).streamReader(schemas.JOURNAL)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first[str(target)] == cuts[5]
    target.write_bytes(source.read_bytes()[: cuts[9]])
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second[str(target)] == cuts[9]
    assert reader.partitions({}, first) == [Shares((Share(str(target), 0, cuts[5]),))]
    (share,) = reader.partitions(first, second)
    batches: list[Any] = list(reader.read(share))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["lsn"] for row in rows] == [6, 7, 8, 9]
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    assert reader.partitions(second, second) == []


def a_journal(enterprise: Enterprise, directory: Path) -> tuple[Path, list[int]]:
    (source,) = Path(enterprise.journals, "s001-psc").glob("*.mqj")
    target = directory / source.name
    target.write_bytes(source.read_bytes())
    return target, ends(source)


def stream_of(directory: Path, columns: str = "", **options: str) -> JournalStreamReader:
    source = JournalSource({"path": str(directory), "columns": columns, **options})
    return source.streamReader(source.schema())


def batches_of(reader: JournalStreamReader) -> list[Offset]:
    """The offsets of one batch after the other, until there is nothing new."""
    found = [reader.initialOffset()]
    while (following := reader.latestOffset(found[-1], reader.getDefaultReadLimit())) != found[-1]:
        found.append(following)
    return found


def test_a_batch_has_no_more_records_than_allowed(enterprise: Enterprise, tmp_path: Path) -> None:
    target, cuts = a_journal(enterprise, tmp_path)
    reader = stream_of(tmp_path, "lsn", maxRowsPerTrigger="100")
    offsets = batches_of(reader)
    assert [offset[str(target)] for offset in offsets[1:]] == [*cuts[100::100], cuts[-1]]
    numbers: list[int] = []
    for start, end in pairwise(offsets):
        for share in reader.partitions(start, end):
            numbers += [n for batch in reader.read(share) for n in batch["lsn"].to_pylist()]
    assert numbers == list(range(1, len(cuts)))


def test_a_batch_has_no_more_bytes_than_allowed(enterprise: Enterprise, tmp_path: Path) -> None:
    target, cuts = a_journal(enterprise, tmp_path)
    offsets = batches_of(stream_of(tmp_path, maxBytesPerTrigger="20000"))
    reached = [cuts[0], *(offset[str(target)] for offset in offsets[1:])]
    longest = max(b - a for a, b in pairwise(cuts))
    steps = [b - a for a, b in pairwise(reached)]
    assert max(steps) <= max(20_000, longest)
    assert min(steps[:-1]) > 20_000 - longest
    assert reached[-1] == cuts[-1]


def test_a_record_longer_than_the_limit_is_a_batch(enterprise: Enterprise, tmp_path: Path) -> None:
    target, cuts = a_journal(enterprise, tmp_path)
    reader = stream_of(tmp_path, maxBytesPerTrigger="1")
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert first[str(target)] == cuts[1]


def test_a_busy_server_does_not_keep_others_waiting(enterprise: Enterprise) -> None:
    reader = stream_of(Path(enterprise.journals), maxRowsPerTrigger="50")
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert len(first) - 1 == len(list(Path(enterprise.journals).rglob("*.mqj")))


def test_available_now_ends_where_the_files_ended(enterprise: Enterprise, tmp_path: Path) -> None:
    target, cuts = a_journal(enterprise, tmp_path)
    octets = target.read_bytes()
    target.write_bytes(octets[: cuts[20]])
    reader = stream_of(tmp_path, maxRowsPerTrigger="8")
    reader.prepareForTriggerAvailableNow()
    target.write_bytes(octets)
    (tmp_path / "segment-0000000002.mqj").write_bytes(octets)
    assert batches_of(reader)[-1] == {**reader.initialOffset(), str(target): cuts[20]}


def test_a_restart_with_other_columns_is_refused(enterprise: Enterprise, tmp_path: Path) -> None:
    a_journal(enterprise, tmp_path)
    before = stream_of(tmp_path, "server,lsn")
    start = before.initialOffset()
    end = before.latestOffset(start, ReadAllAvailable())
    for other in (
        stream_of(tmp_path, "server,lsn,seq"),
        stream_of(tmp_path, "lsn", rows="changes"),
    ):
        with pytest.raises(MqisError, match="was started with records: struct<server:string"):
            other.latestOffset(end, ReadAllAvailable())
        with pytest.raises(MqisError, match="a new checkpoint and a new table"):
            other.partitions(start, end)


def test_a_batch_whose_file_is_gone_is_an_error(enterprise: Enterprise, tmp_path: Path) -> None:
    target, cuts = a_journal(enterprise, tmp_path)
    reader = stream_of(tmp_path)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    target.write_bytes(target.read_bytes()[: cuts[3]])
    with pytest.raises(MqisError, match="gone or shorter; put it back"):
        reader.partitions(reader.initialOffset(), end)
    target.unlink()
    with pytest.raises(MqisError, match="gone or shorter"):
        reader.partitions(reader.initialOffset(), end)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxRowsPerTrigger": "many"}, "positive number, not 'many'"),
        ({"maxBytesPerTrigger": "0"}, "positive number, not '0'"),
        ({"maxBytesPerTrigger": "1", "maxRowsPerTrigger": "1"}, "not both"),
        ({"rows": "pages"}, "no rows 'pages'; it has records and changes"),
    ],
)
def test_options_that_are_wrong(tmp_path: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(MqisError, match=words):
        stream_of(tmp_path, **options)


def indexed_journal(
    directory: Path, monkeypatch: pytest.MonkeyPatch, segments: int = 1
) -> list[int]:
    """Writes sealed segments with 200 records each, in blocks of 20; the ends of the first."""
    monkeypatch.setattr(index, "BLOCK_RECORDS", 20)
    record = JournalRecord(5, RecordKind.CHANGE, RecordState.LOCAL, body=bytes(80))
    with closing(Journal(directory, "psc1", Guid(b"p" * 16))) as journal:
        for first in range(1, 200 * segments, 200):
            journal.append([(n, encode_record(n, record)) for n in range(first, first + 200)])
            journal.seal()
    return ends(directory / "segment-0000000001.mqj")


def numbers_of(reader: JournalStreamReader, start: Offset, end: Offset) -> list[int]:
    tasks = reader.partitions(start, end)
    return [n for task in tasks for batch in reader.read(task) for n in batch["lsn"].to_pylist()]


def test_long_parts_are_read_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = indexed_journal(tmp_path, monkeypatch)
    monkeypatch.setattr(stream, "_SHARE_BYTES", 5_000)
    reader = stream_of(tmp_path, "lsn", share_bytes="5000")
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    tasks = reader.partitions(reader.initialOffset(), offset)
    shares = [share for task in tasks for share in task.shares]
    assert len(tasks) == len(shares) > 5
    assert {share.start for share in shares[1:]} <= set(cuts)
    assert [s.start for s in shares[1:]] == [s.end for s in shares[:-1]]
    assert (shares[0].start, shares[-1].end) == (0, cuts[-1])
    assert numbers_of(reader, reader.initialOffset(), offset) == list(range(1, 201))


def test_a_segment_that_another_follows_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is in the listing; of the last one, only the new records are looked at."""
    indexed_journal(tmp_path, monkeypatch, segments=3)
    opened: list[str] = []

    def watched(path: Any) -> Any:
        opened.append(Path(path).name)
        return open_plain(path)

    monkeypatch.setattr(files, "open_plain", watched)
    reader = stream_of(tmp_path, "lsn")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert set(opened) == {"segment-0000000003.mqj"}
    assert sorted(numbers_of(reader, start, end)) == list(range(1, 601))
    opened.clear()
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_stream_goes_on_where_a_segment_was_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was known of the segment before: each record comes once."""
    cuts = indexed_journal(tmp_path, monkeypatch, segments=2)
    path = tmp_path / "segment-0000000001.mqj"
    whole = path.read_bytes()
    second = tmp_path / "segment-0000000002.mqj"
    second.rename(tmp_path / "aside")
    reader = stream_of(tmp_path, "lsn")
    found: list[int] = []
    start = reader.initialOffset()
    for size in (cuts[7] + 5, cuts[150], len(whole), len(whole)):
        path.write_bytes(whole[:size])
        end = reader.latestOffset(start, ReadAllAvailable())
        found += numbers_of(reader, start, end)
        start = end
    (tmp_path / "aside").rename(second)
    found += numbers_of(reader, start, reader.latestOffset(start, ReadAllAvailable()))
    assert found == list(range(1, 401))


def test_limited_batches_of_a_sealed_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = indexed_journal(tmp_path, monkeypatch)
    monkeypatch.setattr(stream, "TAIL_BYTES", 1)
    reader = stream_of(tmp_path, "lsn", maxRowsPerTrigger="47")
    offsets = batches_of(reader)
    reached = [offset[str(tmp_path / "segment-0000000001.mqj")] for offset in offsets[1:]]
    assert reached == [*cuts[47::47], cuts[-1]]


@pytest.mark.parametrize("options", [{}, {"maxRowsPerTrigger": "130"}])
def test_an_offset_forgets_segments_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    """They come once, also when the one that was missing among them is there at last."""
    indexed_journal(tmp_path, monkeypatch, segments=6)
    segments = sorted(tmp_path.glob("*.mqj"))
    aside = tmp_path / "aside"
    aside.mkdir()
    hidden = [path.rename(aside / path.name.replace(".mqj", "")) for path in segments[2:]]
    found: list[int] = []
    reader = stream_of(tmp_path, "lsn", **options)
    start = reader.initialOffset()
    ranges = []
    for path in (None, hidden[2], hidden[3], hidden[0], hidden[1]):
        if path is not None:
            path.rename(tmp_path / f"{path.name}.mqj")
        while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
            found += numbers_of(reader, start, end)
            start = end
        ranges.append([*start.get("read", {}).values()])
        reader = stream_of(tmp_path, "lsn", **options)  # a restart
    assert sorted(found) == list(range(1, 1201))
    assert ranges[0] == []  # it has only just read it
    assert ranges[-1][0][0][0] == 1
    assert len(start) < 6
    (tmp_path / "segment-0000000001.mqj").unlink()
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start


def test_ranges_of_numbers() -> None:
    ranges: list[list[int]] = []
    for number in (3, 1, 7, 2, 8, 3):
        ranges = stream.with_number(ranges, number)
    assert ranges == [[1, 3], [7, 8]]


def test_damage_in_an_open_segment_does_not_stop_the_stream(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """A length that is wrong cannot be followed; the records behind it come all the same."""
    target, cuts = a_journal(enterprise, tmp_path)
    data = bytearray(target.read_bytes()[: cuts[30]])
    data[cuts[9] + 2] ^= 0xFF
    target.write_bytes(data)
    reader = stream_of(tmp_path)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end[str(target)] == cuts[30]
    found = numbers_of(reader, start, end)
    assert [n for n in found if n] == [*range(1, 10), *range(11, 31)]


def test_messages_that_arrive_otherwise(spark: SparkSession) -> None:
    """The digests of a body at both ends, and the changes that came with it."""
    source, partition, obj = (bytearray([n]) * 16 for n in (1, 2, 3))
    rows = [
        ("a", 1, 1, 2, 0, None, source, 7, 111),
        ("b", 1, 1, 6, 0, None, source, 7, 112),
        ("b", 2, 2, 7, 1, obj, source, 7, None),
        ("a", 2, 1, 2, 0, None, source, 8, 111),
        ("c", 1, 1, 6, 0, None, source, 8, 111),
        ("c", 2, 2, 7, 1, obj, source, 8, None),
    ]
    names = ("server", "lsn", "kind", "state", "operation", "object_id", "message_source")
    fields = [schemas.JOURNAL[name] for name in (*names, "message_ordinal")]
    schema = StructType([*fields, StructField("digest", LongType())])
    frame = spark.createDataFrame(rows, schema).select(
        "*",
        F.lit(partition).alias("partition"),
        F.lit(5).cast("long").alias("seq"),
        F.lit(1).alias("object_type"),
        F.lit(None).cast("timestamp").alias("time"),
        F.lit(None).cast("long").alias("from_seq"),
        F.lit(None).cast("long").alias("to_seq"),
    )
    found = divergence(frame).collect()
    assert [(row.server, row.seq, row.difference) for row in found] == [("b", 5, "altered")]


@pytest.mark.parametrize("received", [True, False])
def test_nobody_is_behind_a_stranger(spark: SparkSession, received: bool) -> None:
    """Own changes of a server that nobody has heard from count only where no others claim any."""
    ours, theirs, partition, other = (bytearray([n]) * 16 for n in (1, 2, 3, 4))
    rows = [
        ("authority", 2, 1, partition, 5, None),
        ("authority", 1, 2, None, None, ours),
        ("stranger", 2, 1, partition, 9, None),
        ("stranger", 2, 1, other, 9, None),
        ("stranger", 2, 7, partition, 4, None),
        ("stranger", 1, 2, None, None, theirs),
    ]
    if received:
        rows.append(("replica", 1, 6, None, None, ours))
    names = ("server", "kind", "state", "partition", "seq", "message_source")
    schema = StructType([schemas.JOURNAL[name] for name in names])
    left = without_strangers(spark.createDataFrame(rows, schema)).collect()
    claims = [(row.server, row.partition, row.seq) for row in left if row.state == 1]
    false = ("stranger", partition, 9)
    assert sorted(claims) == sorted(
        [
            ("authority", partition, 5),
            *([] if received else [false]),
            ("stranger", other, 9),
        ]
    )
    assert len(left) == len(rows) - received
