"""Journals, exports and captures that somebody else made, as Spark's tasks read them.

The sources run here without Spark: a task calls the same functions.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

pytest.importorskip("pyspark")

from mqis.pipeline import schemas
from mqis.pipeline.inputs import snapshot_files
from mqis.pipeline.sources.capture import CaptureReader
from mqis.pipeline.sources.directory import DirectoryReader
from mqis.pipeline.sources.journal import JournalReader
from mqis.protocol.directory.export_format import ExportError, parse_entry
from mqis.wire.guid import Guid
from mqis.wire.journal import SegmentHeader, walk
from mqis.wire.journal.layout import HEADER_SIZE, encode_record
from mqis.wire.journal.record import JournalRecord, RecordKind, RecordState
from tests.waiting import DEADLINE_S

SECRET = "the password of the operator"
HEADER = json.dumps(
    {"format": "mqis-directory", "version": 1, "enterprise": "Acme", "partitions": []}
)
RECORD = encode_record(1, JournalRecord(0, RecordKind(1), RecordState(1)))


def readers(directory: Path) -> Iterator[Any]:
    options = {"path": str(directory), "allow_empty": "true"}
    yield JournalReader(schemas.JOURNAL, options)
    yield DirectoryReader(schemas.DIRECTORY, options, "objects")
    yield DirectoryReader(schemas.EXPORT_LINES, options, "lines")
    yield DirectoryReader(schemas.PARTITIONS, options, "partitions")
    yield CaptureReader(schemas.CAPTURE, options)


def rows(directory: Path) -> list[dict[str, Any]]:
    """Everything that any source reads in a directory."""
    found: list[dict[str, Any]] = []
    for reader in readers(directory):
        for partition in reader.partitions():
            for batch in reader.read(partition):
                found += batch.to_pylist()
    return found


def segment(*records: bytes) -> bytes:
    return SegmentHeader("psc1", Guid(b"the server......"), 1, 1).to_bytes() + b"".join(records)


NAMES = ("segment-0000000001.mqj", "psc1.jsonl", "traffic.pcap")


@pytest.mark.req("SEC-10-05")
@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_a_directory_of_inputs_does_not_lead_out_of_it(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(f"{HEADER}\n{SECRET}\n")
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / name).symlink_to(elsewhere)
    found = rows(inputs)
    assert found
    assert all("it is a symbolic link" in row["error"] for row in found)


@pytest.mark.req("SEC-10-05")
def test_a_pipe_and_a_device_do_not_stop_a_task_for_ever(tmp_path: Path) -> None:
    for name in NAMES:
        os.mkfifo(tmp_path / name)
    (tmp_path / "zeros.jsonl").symlink_to("/dev/zero")
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.hostile.test_spark_inputs import rows\n"
        "print({row['error'] for row in rows(Path(sys.argv[1]))})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        check=False,
        capture_output=True,
        timeout=DEADLINE_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert done.returncode == 0, done.stderr
    assert b"it is not a regular file" in done.stdout


@pytest.mark.req("SEC-10-05")
def test_a_comma_in_a_directory_name_names_no_other_file(tmp_path: Path) -> None:
    """Paths are listed with commas, so that this one would be two."""
    hostile = tmp_path / "journal," / "etc"
    hostile.mkdir(parents=True)
    (hostile / "segment-0000000001.mqj").write_bytes(segment(RECORD))
    (hostile / "snapshot-1.jsonl").write_text(HEADER)
    assert snapshot_files(hostile) == []


@pytest.mark.req("SEC-10-05")
def test_a_snapshot_with_a_strange_name_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "segment-0000000001.mqj").write_bytes(segment(RECORD))
    for name in ("evil", "", "1,2", "9" * 200, "7"):
        (tmp_path / f"snapshot-{name}.jsonl").write_text(HEADER)
    assert [lsn for _, _, lsn in snapshot_files(tmp_path)] == [7]


@pytest.mark.req("SEC-10-05")
def test_a_line_without_end_takes_no_memory_of_its_length(tmp_path: Path) -> None:
    """Its beginning is enough to refuse it, and no task looks for its end beyond its own share."""
    with (tmp_path / "psc1.jsonl").open("wb") as file:
        file.write(f"{HEADER}\n".encode())
        file.truncate(128 << 20)
    tracemalloc.start()
    try:
        reader = DirectoryReader(schemas.DIRECTORY, {"path": str(tmp_path)}, "objects")
        told = [
            row["error"]
            for share in reader.partitions()
            for batch in reader.read(share)
            for row in batch.to_pylist()
        ]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [error for error in told if "a line has at most" in error]
    assert peak < 100 << 20


def _seconds(data: bytes) -> float:
    start = time.process_time()
    for _ in walk(data, 0):
        pass
    return time.process_time() - start


@pytest.mark.req("SEC-10-05")
def test_lengths_that_lie_do_not_sum_up_a_journal_again_and_again(tmp_path: Path) -> None:
    """A record that claims to go on for 8 MB and whose parts say it is short; then a whole one."""
    size = 8 << 20
    head = bytearray(RECORD[:HEADER_SIZE])
    struct.pack_into("<I", head, 0, size)
    liar = bytes(head) + RECORD
    count = 2000
    lies = liar * count + bytes(size)
    plain = RECORD * (2 * count) + bytes(size)
    limit_s = 20 * max(0.05, _seconds(plain))
    assert _seconds(lies) < limit_s
    path = tmp_path / NAMES[0]
    path.write_bytes(segment(lies))
    start = time.process_time()
    found = rows(tmp_path)
    assert time.process_time() - start < 2 * limit_s
    assert sum(row["error"] is None for row in found) >= count


@pytest.mark.req("SEC-10-05")
def test_a_key_that_stands_twice_among_many_is_found_at_once() -> None:
    """Each of 60,000 keys was counted by a walk through all of them."""
    many = ",".join(f'"{n}":0' for n in range(60_000))
    start = time.process_time()
    with pytest.raises(ExportError, match="stands twice"):
        parse_entry(f'{{{many},"59999":0}}', 2)
    assert time.process_time() - start < 10


@pytest.mark.req("SEC-10-05")
@pytest.mark.parametrize(
    "line", ["[" * 200_000, '{"a":' * 200_000, '{"type":' + "9" * 100_000 + "}", "null", '"' * 99]
)
def test_json_without_end_is_a_row_that_says_so(tmp_path: Path, line: str) -> None:
    (tmp_path / "psc1.jsonl").write_text(f"{HEADER}\n{line}\n")
    assert [row["error"] for row in rows(tmp_path) if "offset" in row if row["error"]]


def test_the_liar_is_one() -> None:
    """A record's own checksum is right before its length is changed."""
    length, crc = struct.unpack_from("<II", RECORD)
    assert (length, crc) == (len(RECORD), crc32(RECORD[8:]))
