"""``mqis.journal`` with ``rows=changes`` gives what ``mqis.wire`` decodes, record by record."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from mqis.pipeline import schemas
from mqis.pipeline.sources.files import Share
from mqis.pipeline.sources.filters import check_columns, columns_of
from mqis.pipeline.sources.journal import JournalSource, read_share
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    encode_record,
)
from mqis.wire.journal.record import decode_body
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, SyncReply
from tests.pipeline.test_bodies import (
    CREATE,
    DELETE,
    ID,
    LABEL,
    QUOTA,
    REPLY,
    SITES,
    WIDE,
    Body,
    change,
    damaged,
    either,
    few,
    of_change,
    of_message,
)

#: The package has a function of the same name.
segments = import_module("mqis.pipeline.sources.segments")
HEADER = SegmentHeader("psc1", ID, 1, 1)
NUMBERS = ("lsn", "command", "seq", "object_id", "properties.propid", "properties.number")


def record_of(body: Body) -> JournalRecord:
    kind = RecordKind(body[0])
    named = ID if kind is RecordKind.CHANGE else Guid(bytes(16))
    state = RecordState.LOCAL if kind is RecordKind.CHANGE else RecordState.RECEIVED
    return JournalRecord(0, kind, state, peer="psc2", object_type=2, object_id=named, body=body[1])


def rows_of(
    records: list[JournalRecord], *columns: str, spoil: bytes = b""
) -> list[dict[str, Any]]:
    """The rows of a segment with these records, in their order."""
    with TemporaryDirectory() as directory:
        path = Path(directory, "segment-0000000001.mqj")
        start = HEADER.to_bytes()
        data = [encode_record(lsn, record) for lsn, record in enumerate(records, 1)]
        path.write_bytes(start + b"".join(data) + spoil)
        schema = columns_of(schemas.CARRIED, columns, "mqis.journal")
        share = Share(str(path), len(start), path.stat().st_size)
        rows = [
            row for batch in read_share(share, schema, [], "changes") for row in batch.to_pylist()
        ]
    return sorted(rows, key=lambda row: row.get("lsn") or 0)


def changes_in(record: JournalRecord) -> tuple[list[DirectoryChange], list[str]]:
    """The changes of a record, and the reason if its body cannot be decoded."""
    try:
        return (listed(decode_body(record)) if record.body else []), []
    except WireError as error:
        return [], [str(error)]


def listed(body: object) -> list[DirectoryChange]:
    if isinstance(body, ChangePropagation | SyncReply):
        return list(body.changes)
    if isinstance(body, ChangeRequest):
        return [body.change]
    return [body] if isinstance(body, DirectoryChange) else []


def shown(change_: DirectoryChange) -> tuple[object, ...]:
    numbers = (change_.seq, change_.previous_seq, change_.purged_seq)
    return (
        int(change_.command),
        change_.partition.raw,
        *(number.value for number in numbers),
        change_.path if change_.path is None else plain(change_.path),
        [(int(propid), value.packed()) for propid, value in change_.properties],
    )


def plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def shown_row(row: dict[str, Any]) -> tuple[object, ...]:
    numbers = (row["seq"], row["previous_seq"], row["purged_seq"])
    return (
        row["command"],
        row["partition"],
        *(number % (1 << 64) for number in numbers),
        row["path"],
        [(part["propid"], part["raw"]) for part in row["properties"]],
    )


def agrees(bodies: list[Body]) -> None:
    """Compares with ``wire``, record by record, and some columns with all columns."""
    records = [record_of(body) for body in bodies]
    rows = rows_of(records)
    for lsn, record in enumerate(records, 1):
        mine = [row for row in rows if row["lsn"] == lsn]
        told = [shown_row(row) for row in mine if row["command"] is not None]
        wanted, error = changes_in(record)
        assert told == [shown(one) for one in wanted]
        assert [row["error"] for row in mine if row["error"]] == error
    parts = ("propid", "number")
    fewer = [
        {name: row[name] for name in NUMBERS[:4]}
        | {"properties": [{part: p[part] for part in parts} for p in row["properties"]]}
        for row in rows
    ]
    assert rows_of(records, *NUMBERS) == fewer


GARBAGE = st.tuples(st.sampled_from([1, 2]), st.binary(max_size=80))


@few
@given(st.lists(either() | damaged(either) | GARBAGE, max_size=5))
def test_rows_are_what_wire_decodes(bodies: list[Body]) -> None:
    agrees(bodies)


def test_all_kinds_in_one_segment() -> None:
    long = ChangePropagation(ID, (CREATE, DELETE, change(Command.UPDATE, LABEL)) * 9)
    kinds = [of_change(CREATE), of_change(change(Command.UPDATE, SITES, QUOTA)), of_message(REPLY)]
    emoji = change(Command.CREATE, path="m\\\N{GRINNING FACE}")
    odd = [of_change(change(Command.UPDATE, WIDE, LABEL)), of_change(emoji), (2, b"\3")]
    agrees(kinds * 3 + [of_message(long)] * 4 + odd + [of_message(long)] + kinds)


@pytest.mark.parametrize("lone", ["\ud800", "\udc00x", "x\udbff"])
def test_half_a_surrogate_does_not_join_with_the_next_text(lone: str) -> None:
    before = change(Command.CREATE, path=f"m\\{lone}")
    agrees([of_change(before), of_change(change(Command.CREATE, path="\udc00m"))])


def test_lists_are_texts() -> None:
    (row,) = rows_of([record_of(of_change(change(Command.UPDATE, SITES)))])
    assert row["properties"][0]["text"] == f"{ID},{Guid(bytes(range(16, 32)))}"


def test_damage_is_a_row_too() -> None:
    record = record_of(of_change(CREATE))
    torn = encode_record(2, record)[:-3]
    rows = rows_of([record], "server", "seq", "error", spoil=torn)
    assert [row["seq"] for row in rows if row["error"] is None] == [7]
    (error,) = [row for row in rows if row["error"]]
    assert error["server"] == "psc1"
    assert ".mqj at byte" in error["error"]
    assert "torn" in error["error"]


def test_blocks_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record_of(body) for body in (of_change(CREATE), of_message(REPLY)) * 40]
    whole = rows_of(records)
    for size in (300, 1000, 5000):
        monkeypatch.setattr(segments, "BLOCK_BYTES", size)
        assert rows_of(records) == whole
        spoiled = rows_of(records, spoil=b"\1" * 2000)
        assert [row for row in spoiled if row["error"] is None] == whole
        assert len(spoiled) == len(whole) + 1


def test_a_task_holds_one_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However long its share is."""
    monkeypatch.setattr(segments, "BLOCK_BYTES", 4000)
    data = b"".join(encode_record(n, record_of(of_change(CREATE))) for n in range(1, 400))
    path = tmp_path / "records"
    path.write_bytes(data)
    with path.open("rb") as file:
        blocks = [
            (found.base, len(found.data)) for found in segments.scans(file, 0, len(data), last=True)
        ]
    assert max(length for _, length in blocks) <= 2 * 4000
    assert all(a + n == b for (a, n), (b, _) in pairwise(blocks))


def test_columns_are_chosen_by_name() -> None:
    source = JournalSource({"rows": "changes", "columns": "seq, properties.number,properties.raw"})
    wanted = "struct<seq:bigint,properties:array<struct<number:bigint,raw:binary>>>"
    assert source.schema().simpleString() == wanted
    assert JournalSource({"rows": "changes"}).schema() == schemas.CARRIED
    assert JournalSource({"columns": "lsn"}).schema().simpleString() == "struct<lsn:bigint>"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": "body"}, "has no column 'body'; it has server, lsn"),
        ({"columns": "properties.colour"}, "has no column 'colour'; it has propid, text"),
        ({"columns": "seq.high"}, "the column 'seq' of mqis.journal has no parts"),
        ({"partition": str(ID)}, "filter the column 'partition'"),
    ],
)
def test_columns_that_are_wrong(options: dict[str, str], words: str) -> None:
    with pytest.raises(MqisError, match=words):
        JournalSource({"rows": "changes", **options}).schema()


def test_a_schema_with_another_type_is_refused() -> None:
    check_columns(StructType().add("object_type", "integer"), schemas.CARRIED, "mqis.journal")
    wide = StructType().add("object_type", "long")
    with pytest.raises(MqisError, match=r"'object_type' of mqis.journal is int, not bigint"):
        check_columns(wide, schemas.CARRIED, "mqis.journal")
