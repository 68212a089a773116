"""``mqis.capture`` as Spark runs it, what ingesting makes of it, and who talks to whom."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mqis.pipeline import arrays
from mqis.pipeline.schemas import CAPTURE
from mqis.pipeline.sources.capture import CaptureReader, capture_files, option_choice
from mqis.pipeline.sources.files import Share
from mqis.pipeline.tables import TableDirectory
from mqis.protocol.capture.conversations import Summary
from mqis.protocol.capture.decoder import decode_rows
from mqis.protocol.capture.row import DecodedRow
from mqis.wire.errors import MqisError
from mqis.wire.mqdsrp import messages as m
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.seqnum import SequenceNumber
from tests.cli.commands import run
from tests.protocol.capture.made import MQQB, SOURCE, capture, frames_of, user_message
from tests.protocol.capture.recordings import oletx

REPLICATION = QueueName.at_destination(1)
#: A name that is no Unicode, and a number whose first bit is set.
ACK = m.PscAck(SOURCE, SOURCE, SOURCE, SequenceNumber(2**64 - 2), "psc\ud800")


def write_captures(directory: Path) -> None:
    """Writes a real OleTx session, replication, and three files that are damaged."""
    (directory / "below").mkdir(parents=True)
    (directory / "oletx.pcap").write_bytes(oletx())
    message = user_message(7, REPLICATION, m.encode_message(ACK))
    made = capture(frames_of(MQQB, [(True, message), (True, message)]))
    (directory / "below" / "replication.pcapng").write_bytes(made)
    (directory / "cut.cap").write_bytes(made[:-7])
    (directory / "empty.pcap").write_bytes(b"")
    (directory / "strange.pcap").write_bytes(b"something else")
    (directory / "notes.txt").write_bytes(b"not looked at")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("captures")
    write_captures(directory)
    return directory


def decoded(captures: Path) -> list[tuple[str, DecodedRow]]:
    paths = capture_files({"path": str(captures)})
    return [(str(path), row) for path in paths for row in decode_rows(Path(str(path)).read_bytes())]


def test_rows_are_those_of_the_decoder(spark: SparkSession, captures: Path) -> None:
    """However many tasks share a file; with the boxcars and stubs of a real OleTx session."""
    frame = spark.read.format("mqis.capture").option("share_bytes", 6000).load(str(captures))
    found = frame.toArrow().to_pylist()
    wanted = decoded(captures)
    ours = Counter(
        (path, row.frame or None, row.kind, row.summary.replace("\ud800", "\\ud800"), row.detail)
        for path, row in wanted
    )
    assert ours == Counter(
        (row["file"], row["frame"], row["kind"], row["summary"], row["detail"] or "")
        for row in found
    )
    (ack, *_) = [row for row in found if row["protocol"] == "mqdsrp" and "below" in row["file"]]
    assert (ack["partition"], ack["seq"], ack["queue_manager"]) == (SOURCE.raw, -2, SOURCE.raw)
    assert ack["machines"] == ["psc\\ud800"]
    assert (ack["source"], ack["destination_port"], ack["to_server"]) == ("10.0.0.7", 1801, True)
    assert (ack["time"].year, ack["time"].microsecond, ack["call_id"]) == (1970, 4, 7)
    partners = [row for row in found if row["file"].endswith("oletx.pcap")]
    assert {row["error"] for row in partners} == {None}
    kinds = Counter(row["kind"] for row in partners if row["protocol"] == "ixnremote")
    assert kinds["BuildContextW request"] == kinds["BuildContextW response"] == 2
    assert kinds["SendReceive request"] == kinds["SendReceive response"] == 5
    messages = Counter(row["kind"] for row in partners if row["protocol"] == "cmp")
    assert messages == Counter(CONNECTION_REQ=1, USER_MESSAGE=2, DISCONNECT=1, DISCONNECTED=1)
    sent = [row["detail"] for row in partners if row["kind"] == "USER_MESSAGE"]
    assert all(b"prepare".hex() in detail for detail in sent)


def test_options_and_columns_reach_the_source(spark: SparkSession, captures: Path) -> None:
    reader = spark.read.format("mqis.capture").schema("protocol string, file string")
    reader = reader.option("protocol", "cmp,epmapper").option("address", "10.0.0.0/24")
    reader = reader.option("since", "2001-01-01").option("until", "2101-01-01T00:00:00+01:00")
    rows = reader.load(str(captures / "oletx.pcap")).collect()
    assert [row.protocol for row in rows] == ["cmp"] * 5
    with pytest.raises(PySparkException, match="no column 'colour'"):
        spark.read.format("mqis.capture").schema("colour string").load(str(captures)).collect()


def read(path: Path, **options: str) -> list[dict[str, Any]]:
    """As a task does it."""
    reader = CaptureReader(CAPTURE, {"path": str(path), **options})
    batches = [batch for share in reader.partitions() for batch in reader.read(share)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_options_choose_rows(captures: Path) -> None:
    path = captures / "oletx.pcap"
    count = len(list(decode_rows(oletx())))
    assert len(read(path, share_bytes="1000")) == len(read(path)) == count
    assert read(path, until="2001-01-02") == read(path, since="2101-01-01") == []
    assert read(path, address="10.9.9.9, fe80::/10") == []
    assert {row["carrier"] for row in read(path, protocol="rpc")} == {"rpc"}
    assert option_choice({"until": "1970-01-01T00:00:01"}).until_ns == 1_000_000_000
    for name, value in (("protocol", "http"), ("address", "here"), ("since", "soon")):
        with pytest.raises(MqisError, match=r"an option of mqis\.capture is wrong"):
            read(path, **{name: value})


def test_what_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(MqisError, match=r"there are no captures in it \(\*\.pcap, "):
        capture_files({"path": str(tmp_path)})
    assert capture_files({"path": str(tmp_path), "allow_empty": "true"}) == []


def test_big_files_come_in_batches(captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(captures / "oletx.pcap")
    monkeypatch.setattr(arrays, "_BATCH", 4)
    assert read(captures / "oletx.pcap") == whole


def test_a_file_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "gone.pcap"
    path.write_bytes(oletx())
    reader = CaptureReader(CAPTURE, {"path": str(path), "share_bytes": "4000"})
    shares = reader.partitions()
    assert len(shares) > 1
    path.unlink()
    batches = [batch for share in shares for batch in reader.read(share)]
    ((error,),) = [batch.to_pydict()["error"] for batch in batches]
    assert error.startswith("cannot be read: No such file")
    assert list(reader.read(Share("other", 0, 0))) == []


def test_ingested_packets_and_conversations(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    """From the command to the tables."""
    result = run("pipeline", "run", "--captures", str(captures), "--tables", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "captured messages: " in result.stdout
    tables, wanted = TableDirectory(spark, tmp_path), decoded(captures)
    assert tables.names() == ["conversations", "errors", "packets"]
    assert tables.read("packets").count() == len(wanted)
    errors = tables.read("errors").collect()
    told = {(row.source, Path(row.file).name, row.reason) for row in errors}
    assert told == {("capture", Path(path).name, row.error) for path, row in wanted if row.error}
    assert {name for _, name, _ in told} == {"cut.cap", "empty.pcap", "strange.pcap"}

    summary = Summary()
    for _, row in wanted:
        summary.add(row)
    found = {
        (r.client, r.server, r.port, r.protocol): (r.messages, r.bytes, r.errors)
        for r in tables.read("conversations").collect()
    }
    assert found == {
        (c.client, c.server, c.port, c.protocol): (c.messages, c.bytes, c.errors)
        for c in summary.conversations()
    }
