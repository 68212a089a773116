"""Tables in words: nothing binary, no codes, names where there are names."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.readable import readable_objects, readable_tables
from mqis.pipeline.tables import TableDirectory
from mqis.pipeline.transforms.words import in_words, names_of, site_names_of
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.property_words import property_word
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command

SITE, QUEUE = Guid(b"the site........"), Guid(b"the queue.......")
VALUES = "propid int, text string, number long, raw binary"


def changed(propid: PropId | int, text: str | None = None, number: int | None = None) -> Any:
    return (int(propid), text, number, bytearray(b"raw bytes"))


def test_a_change_reads_like_what_get_prints(spark: SparkSession) -> None:
    values = [
        changed(PropId.Q_LABEL, text="Orders"),
        changed(PropId.Q_TRANSACTION, number=1),
        changed(PropId.Q_QUOTA, number=0xFFFFFFFF),
        changed(PropId.Q_SCOPE, number=1),
        changed(PropId.Q_PRIV_LEVEL, number=77),
        changed(PropId.Q_CREATE_TIME, number=0),
        changed(PropId.Q_MODIFY_TIME, number=1 << 62),
        changed(PropId.Q_SECURITY),
        changed(PropId.QM_SERVICE, number=0),
        changed(4711, number=5),
        changed(4711, number=6),  # a stranger may set a property twice
    ]
    rows = [(bytearray(SITE.raw), bytearray(QUEUE.raw), 1, 9, values)]
    schema = f"partition binary, id binary, type int, seq long, properties array<struct<{VALUES}>>"
    held = spark.createDataFrame(
        [(bytearray(SITE.raw), 3, "Delft", False), (bytearray(QUEUE.raw), 1, "app1\\q", False)],
        "id binary, type int, path string, deleted boolean",
    )
    frame = spark.createDataFrame(rows, schema)
    (row,) = in_words(frame, site_names_of(held), names_of(held)).collect()
    expected = {
        "label": "Orders",
        "transaction": "yes",
        "quota": "unlimited",
        "scope": "enterprise",
        "priv_level": "77",
        "create_time": "1970-01-01T00:00:00Z",
        "modify_time": str(1 << 62),
        "security": "9 bytes",
        "service": "none",
        "4711": "6",
    }
    assert row.asDict() == {
        "partition": "Delft",
        "partition_id": str(SITE),
        "id": str(QUEUE),
        "path": "app1\\q",
        "type": "queue",
        "seq": 9,
        "properties": expected,
    }


def test_an_objects_properties_have_different_words() -> None:
    """Or one of them would be missing from the map."""
    for object_type in ObjectType:
        words = [property_word(row.id) for row in ROWS.values() if row.object_type is object_type]
        assert len(words) == len(set(words))


def test_records_say_what_happened(spark: SparkSession) -> None:
    names = ("kind", "state", "operation", "object_type", "body", "partition")
    change = (int(RecordKind.CHANGE), int(RecordState.APPLIED), int(Command.CREATE), 1)
    message = (int(RecordKind.MESSAGE), int(RecordState.QUEUED), 2, 0)
    null = bytearray(Guid.NULL.raw)
    rows = [(*change, bytearray(b"abc"), null), (*message, None, bytearray(SITE.raw))]
    schema = schemas.RECORDS
    frame = spark.createDataFrame(rows, StructType([schema[name] for name in names]))
    sites = spark.createDataFrame([(str(SITE), "Delft")], "named_id string, name string")
    one, two = in_words(frame, sites).orderBy("kind").collect()
    assert (one.kind, one.state, one.operation, one.object_type) == (
        "change",
        "applied",
        "create",
        "queue",
    )
    assert (one.body_bytes, one.partition, one.partition_id) == (3, "enterprise", str(Guid.NULL))
    assert (two.kind, two.state, two.object_type, two.partition) == (
        "message",
        "queued",
        None,
        "Delft",
    )
    assert not str(two.operation).isdigit()


def test_no_table_shows_bytes_or_codes(tables: TableDirectory) -> None:
    """Those that ingesting writes have the most of both."""
    made = readable_tables(tables, tables.names())
    assert {"records", "objects", "partitions", "segments", "journals"} <= made.keys()
    for name, frame in made.items():
        kinds = dict(frame.dtypes)
        assert "binary" not in str(kinds), name
        codes = {"kind", "state", "operation", "type", "object_type"} & kinds.keys()
        assert all(kinds[code] == "string" for code in codes), name


def test_an_exported_object_in_words(tables: TableDirectory) -> None:
    objects = readable_objects(tables)
    queues = in_words(objects.filter("type = 1"), site_names_of(objects))
    shown = queues.select(F.explode("properties")).distinct().collect()
    values: dict[str, set[str]] = {}
    for key, value in shown:
        values.setdefault(key, set()).add(value)
    assert values["transaction"] <= {"yes", "no"}
    assert all(value.endswith(" bytes") for value in values["security"])
    assert all("T" in value and value.endswith("Z") for value in values["create_time"])
    assert not any(key.isdigit() for key in values)
    machines = in_words(objects.filter("type = 2"), site_names_of(objects))
    placed = machines.select("partition", "properties.site_ids").distinct().collect()
    assert placed
    assert all(row.site_ids == row.partition for row in placed)
