"""The rule of gaps, record by record: what nobody brought, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqis.pipeline import schemas
from mqis.pipeline.transforms.progress import gaps
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import MessageOperation, Sync0, SyncReply, encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.builders import guid

SITE = guid(0x3001)


def change(state: RecordState, previous: int, seq: int, ordinal: int = 0) -> JournalRecord:
    return JournalRecord(
        0,
        RecordKind.CHANGE,
        state,
        message=MessageIdentifier(Guid.NULL, ordinal) if ordinal else None,
        operation=Command.DELETE,
        partition=SITE,
        seq=SequenceNumber(seq),
        previous_seq=SequenceNumber(previous),
    )


def applied(seq: int, ordinal: int = 0) -> JournalRecord:
    return change(RecordState.APPLIED, seq - 1, seq, ordinal)


def made(seq: int) -> JournalRecord:
    return change(RecordState.LOCAL, seq - 1, seq)


def skipped(before: int, last: int) -> JournalRecord:
    return change(RecordState.SKIPPED, before, last)


def reply(ordinal: int, begin: int, end: int) -> JournalRecord:
    numbers = SequenceNumber(begin), SequenceNumber(end)
    return JournalRecord(
        0,
        RecordKind.MESSAGE,
        RecordState.RECEIVED,
        peer="pec",
        message=MessageIdentifier(Guid.NULL, ordinal),
        operation=MessageOperation.SYNC_REPLY,
        body=encode_message(SyncReply(SITE, SITE, *numbers, SequenceNumber.MIN, Sync0.NONE, ())),
    )


def refused(message: JournalRecord) -> JournalRecord:
    return replace(message, state=RecordState.REFUSED, operation=0, body=b"")


def dropped(message: JournalRecord) -> JournalRecord:
    """By the queue manager, which knows no server."""
    return replace(refused(message), peer="", reason="duplicate")


#: Journals of one server each, and what ``gaps`` tells about them: (kind, first, last).
CASES: dict[str, tuple[list[JournalRecord], list[tuple[str, int, int]]]] = {
    "what nobody brought": (
        [applied(1), applied(3), applied(7)],
        [("gap", 2, 2), ("gap", 4, 6)],
    ),
    "made in place of the authority, which goes on behind it": (
        [made(1), reply(9, 1, 500), applied(501)],
        [],
    ),
    "skipped when it took office, replica again later": (
        [applied(1), skipped(1, 50), applied(51)],
        [],
    ),
    "skipped by the clock": (
        [applied(1), skipped(1, 868_401_760), made(868_401_761), applied(868_401_762)],
        [],
    ),
    "missing behind what was skipped": (
        [applied(1), skipped(1, 900), applied(903)],
        [("gap", 901, 902)],
    ),
    "missing before what was skipped, with changes behind": (
        [applied(1), applied(4), skipped(4, 900)],
        [("gap", 2, 3)],
    ),
    "skipped, in a journal of an earlier version": (
        [applied(1), made(868_401_761), applied(868_401_762)],
        [],
    ),
    "a reply that comes again and is refused then": (
        [applied(1), reply(9, 1, 4), reply(9, 1, 4), refused(reply(9, 1, 4)), applied(5)],
        [],
    ),
    "a reply that comes again and is dropped": (
        [applied(1), reply(9, 1, 4), dropped(reply(9, 1, 4)), applied(5)],
        [],
    ),
    "a refused reply": (
        [applied(1), reply(9, 1, 4), refused(reply(9, 1, 4)), applied(5)],
        [("gap", 2, 4)],
    ),
    "applied twice": ([applied(1, 8), applied(1, 9)], [("duplicate", 1, 1)]),
    "a deletion that synchronisations repeat": (
        [applied(1, 8), reply(9, 0, 1), applied(1, 9), reply(10, 0, 1), applied(1, 10)],
        [],
    ),
}
CASES["joined: its first snapshot has another partition only"] = (
    [applied(1), applied(5)],
    [("gap", 2, 4)],
)
CASES["goes on from its first snapshot"] = ([applied(6), applied(8)], [("gap", 7, 7)])


def snapshot(server: str, lsn: int, partition: Guid, last_seq: int) -> dict[str, Any]:
    told = {"server": server, "lsn": lsn, "partition": partition.raw, "last_seq": last_seq}
    return dict.fromkeys(schemas.SNAPSHOT_PARTITIONS.names) | told


SNAPSHOTS = [
    snapshot("joined: its first snapshot has another partition only", 0, Guid.NULL, 9),
    snapshot("joined: its first snapshot has another partition only", 2, Guid.NULL, 9),
    snapshot("joined: its first snapshot has another partition only", 2, SITE, 5),
    snapshot("goes on from its first snapshot", 0, SITE, 5),
    snapshot("goes on from its first snapshot", 1, SITE, 6),
]


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[str, list[tuple[str, int, int]]]:
    rows = [
        _row(name, lsn, record)
        for name, (written, _) in CASES.items()
        for lsn, record in enumerate(written, 1)
    ]
    complete = [(name, True) for name in CASES]
    found: dict[str, list[tuple[str, int, int]]] = {name: [] for name in CASES}
    for row in gaps(
        spark.createDataFrame(rows, schemas.RECORDS),
        spark.createDataFrame(complete, "server string, complete boolean"),
        spark.createDataFrame(SNAPSHOTS, schemas.SNAPSHOT_PARTITIONS),
    ).collect():
        found[row["server"]].append((row["kind"], row["first_seq"], row["last_seq"]))
    return found


def _row(server: str, lsn: int, record: JournalRecord) -> dict[str, Any]:
    message = record.message
    known = {
        "server": server,
        "lsn": lsn,
        "peer": record.peer,
        "kind": int(record.kind),
        "state": int(record.state),
        "operation": int(record.operation),
        "partition": record.partition.raw,
        "seq": record.seq.value,
        "previous_seq": record.previous_seq.value,
        "message_source": None if message is None else message.source.raw,
        "message_ordinal": None if message is None else message.ordinal,
        "body": record.body,
    }
    return {name: known.get(name) for name in schemas.RECORDS.names}


@pytest.mark.parametrize("case", CASES)
def test_gaps_are_what_nobody_brought(
    told: dict[str, list[tuple[str, int, int]]], case: str
) -> None:
    assert told[case] == CASES[case][1]
