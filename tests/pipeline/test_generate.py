"""Generated enterprises: the same from the same seed, and faulty exactly where they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mqis.lab.generate import GeneratePlan, generate
from mqis.storage.journal.checking import check_journal
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    Whole,
    encode_record,
    segment_header,
    walk,
)
from mqis.wire.journal.patterns import RecordPattern, fixed_of
from mqis.wire.journal.record import decode_body
from mqis.wire.mqdsrp.messages import MessageOperation, SyncReply
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

SMALL = GeneratePlan(sites=3, machines=4, queues=10, changes=60, seed=5)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes().replace(bytes(directory), b"")
        for path in files
    }


def test_same_seed_same_files(tmp_path: Path) -> None:
    generate(SMALL, tmp_path / "first")
    generate(SMALL, tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_journals_are_whole_but_for_the_damage(tmp_path: Path) -> None:
    made = generate(SMALL, tmp_path / "made")
    damaged = {damage.server for damage in made.damage if damage.file.endswith(".mqj")}
    assert len(damaged) == 1
    for member in made.members:
        faults = [
            str(fault)
            for fault in check_journal(tmp_path / "made" / "journals" / member.name).faults
        ]
        assert bool(faults) is (member.name in damaged), faults


def test_every_change_is_made_once_and_applied_everywhere_else(tmp_path: Path) -> None:
    plan = GeneratePlan(sites=2, machines=2, queues=5, changes=40, seed=2, faults=0)
    made = generate(plan, tmp_path / "made")
    local: list[tuple[bytes, int]] = []
    applied: list[tuple[bytes, int]] = []
    for path in (tmp_path / "made").rglob("*.mqj"):
        data = path.read_bytes()
        _, start = segment_header(data)
        for entry in walk(data, start):
            assert isinstance(entry, Whole)
            key = entry.record.partition.raw, entry.record.seq.value
            if entry.record.state is RecordState.LOCAL:
                local.append(key)
            elif entry.record.state is RecordState.APPLIED:
                applied.append(key)
    assert len(local) == len(set(local)) == made.changes
    others = len(made.members) - 1
    assert sorted(applied) == sorted(local * others)


def test_servers_that_were_away_synchronise(tmp_path: Path) -> None:
    """Everybody reaches every authority's last number, most of them without every change."""
    plan = GeneratePlan(sites=4, machines=4, queues=8, changes=200, seed=3, faults=0, live=20)
    made = generate(plan, tmp_path / "made")
    assert made.rounds > 0
    local: dict[bytes, int] = {}
    applied: dict[tuple[str, bytes], list[int]] = {}
    synced: dict[tuple[str, bytes], int] = {}
    for path in (tmp_path / "made").rglob("*.mqj"):
        data = path.read_bytes()
        header, start = segment_header(data)
        for entry in walk(data, start):
            assert isinstance(entry, Whole)
            record, seq = entry.record, entry.record.seq.value
            key = header.server, record.partition.raw
            if record.state is RecordState.LOCAL:
                local[record.partition.raw] = max(seq, local.get(record.partition.raw, 0))
            elif record.state is RecordState.APPLIED:
                applied.setdefault(key, []).append(seq)
            elif (
                record.state is RecordState.RECEIVED
                and record.operation == MessageOperation.SYNC_REPLY
            ):
                reply = decode_body(record)
                assert isinstance(reply, SyncReply)
                synced[header.server, reply.partition.raw] = reply.to_seq.value
    last = {m.name: 0 for m in made.members}
    for partition, made_seq in local.items():
        for server in last:
            numbers = applied.get((server, partition), [])
            reached = max([*numbers, synced.get((server, partition), 0)])
            assert reached in (0, made_seq)  # nothing: it is the authority
            assert numbers == sorted(set(numbers))
            last[server] += len(numbers)
    away = {m.name for m in made.members[4:]}
    assert all(last[name] < made.changes - 50 for name in away)


def test_patterns_make_the_records_that_encoding_makes() -> None:
    message = MessageIdentifier(Guid(bytes(range(16))), 77)
    record = JournalRecord(
        5, RecordKind.MESSAGE, RecordState.REFUSED, "peer", message, 9, 3, reason="why", body=b"ab"
    )
    way = RecordPattern.of(replace(record, body=b""))
    assert way.record(8, 5, 77, b"ab") == encode_record(8, record)
    change = replace(
        record, kind=RecordKind.CHANGE, state=RecordState.APPLIED, seq=SequenceNumber(4), body=b""
    )
    assert way.record(8, 5, 77, fixed=fixed_of(change)) == encode_record(8, change)


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MqisError, match="not empty"):
        generate(SMALL, tmp_path)
    with pytest.raises(MqisError, match="--faults 0"):
        GeneratePlan(sites=1, machines=1)
    with pytest.raises(MqisError, match="a site has one or none"):
        GeneratePlan(sites=2, backups=5)
    with pytest.raises(MqisError, match="churn"):
        GeneratePlan(churn=0.9)
