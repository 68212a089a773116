"""Bodies decoded side by side say what ``mqis.wire`` says of each; garbage is told by the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from mqis.pipeline import schemas
from mqis.pipeline.decoding import columns
from mqis.pipeline.decoding.onebyone import decode_one_by_one
from mqis.pipeline.transforms import bodies
from mqis.protocol.directory.objects import Scope
from mqis.protocol.replication.outgoing_changes import deletion
from mqis.wire.guid import Guid
from mqis.wire.journal import RecordKind
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Heartbeat,
    PartitionSeqNumbers,
    Sync0,
    SyncReply,
    encode_message,
)
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer
from tests.strategies.mqdsrp import changes, messages

ID, PARTITION = Guid(bytes(range(16))), Guid(bytes(range(16, 32)))
NOW = datetime(2024, 3, 1, tzinfo=UTC)
#: A body, and whether a message or a change it is.
Body = tuple[int, bytes]
_SCHEMA = to_arrow_schema(schemas.JOURNAL, timezone="UTC")
INPUT = pa.schema([_SCHEMA.field(name) for name in bodies.NEEDED])


def of_change(change: DirectoryChange) -> Body:
    writer = Writer()
    change.encode(writer)
    return int(RecordKind.CHANGE), writer.getvalue()


def of_message(message: Any) -> Body:
    return int(RecordKind.MESSAGE), encode_message(message)


def batch_of(listed: list[Body]) -> pa.RecordBatch:
    rows = [
        {
            "server": "s",
            "lsn": lsn,
            "time": NOW,
            "state": 1,
            "operation": 0,
            "kind": kind,
            "body": body,
            "object_id": ID.raw if kind == RecordKind.CHANGE else None,
            "object_type": 2,
        }
        for lsn, (kind, body) in enumerate(listed)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=INPUT)


def agrees(listed: list[Body], *, properties: bool = True) -> list[dict[str, Any]]:
    """Both ways, row by row; the rows in the order of the bodies."""
    batch = batch_of(listed)
    schema = bodies.arrow_of(properties)
    made = [b.to_pylist() for b in bodies.decoded_batch(batch, schema)]
    found = sorted((row for rows in made for row in rows), key=lambda row: row["lsn"])
    assert found == decode_one_by_one(batch, schema).to_pylist()
    return found


@st.composite
def damaged(draw: st.DrawFn, whole: Callable[[], st.SearchStrategy[Body]]) -> Body:
    kind, body = draw(whole())
    octets = bytearray(body)
    if octets and draw(st.booleans()):
        octets[draw(st.integers(0, len(octets) - 1))] = draw(st.integers(0, 255))
    return kind, bytes(octets[: draw(st.integers(0, len(octets)))])


#: The first batch loads what Arrow computes with.
few = settings(max_examples=40, deadline=None)


def either() -> st.SearchStrategy[Body]:
    return changes().map(of_change) | messages().map(of_message)


@few
@given(st.lists(either(), max_size=4), st.booleans())
def test_whole_bodies(listed: list[Body], properties: bool) -> None:
    agrees(listed, properties=properties)


@few
@given(st.lists(damaged(either), max_size=4), st.booleans())
def test_damaged_bodies(listed: list[Body], properties: bool) -> None:
    agrees(listed, properties=properties)


@few
@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=80)), max_size=4))
def test_garbage(listed: list[Body]) -> None:
    agrees(listed)


def change(
    command: Command, *properties: tuple[int, PropVariant], path: str | None = None
) -> DirectoryChange:
    numbers = (SequenceNumber(6), SequenceNumber(7), SequenceNumber(5))
    return DirectoryChange(
        command, path, None if path is not None else ID, PARTITION, *numbers, properties
    )


LABEL = pair(PropId.Q_LABEL, "orders")
QUOTA = pair(PropId.Q_QUOTA, 1 << 31)
SECURITY = pair(PropId.Q_SECURITY, b"\0\0\1")
OWN = pair(PropId.Q_INSTANCE, ID)
SITES = pair(PropId.QM_SITE_IDS, (ID, PARTITION))
WIDE = pair(PropId.Q_LABEL, "Aufträge")
CREATE = change(Command.CREATE, OWN, LABEL, QUOTA, SECURITY, path="m\\orders")
DELETE = change(Command.DELETE, *deletion(ObjectType.QUEUE, Scope.SITE))
REPLY = SyncReply(
    ID,
    PARTITION,
    SequenceNumber(1),
    SequenceNumber(9),
    SequenceNumber(0),
    Sync0.MORE,
    (change(Command.SYNC, LABEL), DELETE),
)


def test_the_ordinary_is_decoded_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = [
        of_change(CREATE),
        of_change(change(Command.UPDATE, QUOTA)),
        of_message(ChangePropagation(ID, (CREATE, DELETE, change(Command.UPDATE, LABEL)))),
        of_message(REPLY),
    ]
    rows = agrees(ordinary)
    monkeypatch.setattr(columns, "decode_one_by_one", None)
    made = [b.to_pylist() for b in bodies.decoded_batch(batch_of(ordinary), bodies.arrow_of(True))]
    assert made == [rows]
    assert [row["lsn"] for row in rows] == [0, 1, 2, 2, 2, 3, 3]
    assert rows[2]["object_id"] == ID.raw
    assert rows[2]["path"] == "m\\orders"
    assert [p["number"] for p in rows[2]["properties"]] == [None, None, 1 << 31, None]
    assert [p["text"] for p in rows[2]["properties"]] == [str(ID), "orders", None, None]
    assert rows[3]["object_type"] == ObjectType.QUEUE
    assert [row["reached_seq"] for row in rows] == [None] * 5 + [9, 9]


@pytest.mark.parametrize("label", ["l" * 1200, "ä" * 1200], ids=["many at once", "one by one"])
def test_a_body_is_not_copied_for_every_change_in_it(label: str) -> None:
    """A full synchronisation has thousands: with copies it would be more than a batch can hold."""
    one = change(Command.SYNC, pair(PropId.Q_LABEL, label))
    reply = replace(REPLY, changes=(one,) * 1000)
    made = list(bodies.decoded_batch(batch_of([of_message(reply)]), bodies.arrow_of(False)))
    assert sum(batch.num_rows for batch in made) == 1000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(of_change(change(Command.UPDATE, WIDE)), id="a text beyond ASCII"),
        pytest.param(of_change(change(Command.CREATE, OWN, path="ä\\q")), id="such a path"),
        pytest.param(of_change(change(Command.UPDATE, SITES)), id="a list"),
        pytest.param(of_change(change(Command.UPDATE)), id="nothing"),
        pytest.param((2, b""), id="no body"),
        pytest.param((2, of_change(CREATE)[1] + b"\0"), id="too long a change"),
        pytest.param((1, encode_message(REPLY) + b"\0"), id="surplus bytes"),
        pytest.param(
            of_message(
                ChangePropagation(
                    ID,
                    (DELETE,),
                    Heartbeat("a", (PartitionSeqNumbers(ID, *[SequenceNumber(1)] * 2),)),
                )
            ),
            id="a heartbeat",
        ),
        pytest.param((1, encode_message(ChangePropagation(ID, (DELETE,)))[:-1]), id="half of one"),
    ],
)
def test_what_is_out_of_the_ordinary(body: Body) -> None:
    agrees([of_change(CREATE), body, of_change(CREATE)])
    agrees([of_change(CREATE), body, of_message(REPLY)], properties=False)


def test_decoding_needs_neither_sources_nor_transforms() -> None:
    """Both import it, and a worker of Spark may import any of the three first."""
    package = Path(columns.__file__).parent
    texts = [path.read_text("utf-8") for path in package.glob("*.py")]
    assert len(texts) > 5
    assert not re.findall(r"(?m)^from mqis\.pipeline\.(?:sources|transforms)\b.*", "".join(texts))
