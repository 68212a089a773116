"""Input that cannot be used is told, and what can be used is; no half of a table is ever seen."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from struct import pack

import pytest
from pyspark.sql import SparkSession

from mqis.lab.generate import GeneratePlan, generate
from mqis.pipeline.runs import ingest
from mqis.pipeline.tables import TableDirectory
from mqis.wire.errors import MqisError
from tests.disks import small_disk

SMALL = GeneratePlan(sites=1, machines=2, queues=3, changes=10, faults=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bad") / "made"
    generate(SMALL, directory)
    return directory


def test_nothing_to_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    tables = TableDirectory(spark, tmp_path / "tables")
    with pytest.raises(MqisError, match="nothing to read"):
        ingest(tables)
    with pytest.raises(MqisError, match="there are no journal segments in it"):
        ingest(tables, str(tmp_path / "empty"))
    with pytest.raises(MqisError, match="there are no exports in it"):
        ingest(tables, exports=str(tmp_path / "empty"))
    with pytest.raises(MqisError, match="there is no such file or directory"):
        ingest(tables, str(tmp_path / "none"))
    assert not (tmp_path / "tables").exists()


def test_files_that_cannot_be_used_stop_nothing(
    spark: SparkSession, made: Path, tmp_path: Path
) -> None:
    """A newer format, and a file that cannot be opened: here it is a directory."""
    journals, exports = tmp_path / "journals", tmp_path / "exports"
    (journals / "newer").mkdir(parents=True)
    exports.mkdir()
    newer = bytearray(next((made / "journals").rglob("*.mqj")).read_bytes())
    newer[8] = 4
    (journals / "newer" / "segment-0000000001.mqj").write_bytes(newer)
    (journals / "segment-0000000002.mqj").mkdir()
    (exports / "closed.jsonl").mkdir()
    header = '{"format":"mqis-directory","version":3,"enterprise":null,"partitions":[]}\n'
    (exports / "newer.jsonl").write_text(header, encoding="ascii")
    tables = TableDirectory(spark, tmp_path / "tables")
    both = [f"{made / name},{tmp_path / name}" for name in ("journals", "exports")]
    done = ingest(tables, *both)
    assert done.records > 10
    assert done.objects > 5
    told = {
        (row.source, Path(row.file).name): row.reason for row in tables.read("errors").collect()
    }
    assert len(told) == done.errors == 4
    assert "format version 4, mqis reads 1 to 3" in told["journal", "segment-0000000001.mqj"]
    assert "cannot be read: Is a directory" in told["journal", "segment-0000000002.mqj"]
    assert "cannot be read: Is a directory" in told["export", "closed.jsonl"]
    assert "3 is not version 1 or 2" in told["export", "newer.jsonl"]


def test_a_full_disk_leaves_the_tables_as_they_were(
    spark: SparkSession, made: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tables"
    place.mkdir()
    with small_disk(place, "200k"):
        tables = TableDirectory(spark, place)
        tables.write("numbers", spark.range(3))
        with (place / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while ballast.write(bytes(4096)):
                pass
        with pytest.raises(MqisError, match="no room left on the disk"):
            ingest(tables, str(made / "journals"))
        assert tables.names() == ["numbers"]
        assert tables.read("numbers").count() == 3
        assert not list((place / "records").glob("v*"))


def test_java_shares_stderr_and_has_room_for_code(spark: SparkSession) -> None:
    """Its warnings, such as of a full code cache, must not stand among the JSON on stdout."""
    context = spark.sparkContext
    place = Path(f"/proc/{context._gateway.proc.pid}/fd")  # type: ignore[union-attr]
    if not place.exists():
        pytest.skip("this system has no /proc")
    assert (place / "1").stat().st_ino == (place / "2").stat().st_ino
    options = context.getConf().get("spark.driver.extraJavaOptions") or ""
    assert "-XX:ReservedCodeCacheSize=240m" in options


@pytest.mark.req("SEC-10-05")
def test_other_users_of_this_computer_do_not_talk_to_spark(spark: SparkSession) -> None:
    """Spark's own protocol carries Java objects, so whoever is heard can run anything."""
    port = int(spark.sparkContext.getConf().get("spark.driver.port") or 0)
    request = pack(">bqi", 3, 1, 4) + bytes.fromhex("aced0005")  # an RpcRequest with a Java object
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        stranger.sendall(pack(">q", 8 + len(request)) + request)
        assert b"Expected SaslMessage" in stranger.recv(65_536)
