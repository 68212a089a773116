"""``mqis journal``: tail, show and check."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mqis.protocol.errors import StorageError
from mqis.storage.journal import Journal
from mqis.storage.journal.journal_files import segment_name, segments
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState, encode_record
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import BscAck, MessageOperation, encode_message
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from mqis.wire.writer import Writer
from tests.builders import guid
from tests.cli.commands import process, run
from tests.waiting import DEADLINE_S

SITE, QUEUE = guid(0x3001), guid(0x1001)
NOON_US = 946_728_000_000_000
LABEL = (108, PropVariant(VarType.LPWSTR, "Orders"))


def change() -> bytes:
    made = DirectoryChange(
        Command.CREATE,
        "ams-app1\\orders",
        None,
        SITE,
        SequenceNumber(6),
        SequenceNumber(7),
        SequenceNumber.MIN,
        (LABEL,),
    )
    writer = Writer()
    made.encode(writer)
    return writer.getvalue()


RECORDS = [
    JournalRecord(
        NOON_US,
        RecordKind.CHANGE,
        RecordState.LOCAL,
        partition=SITE,
        operation=Command.CREATE,
        seq=SequenceNumber(7),
        object_type=1,
        object_id=QUEUE,
        body=change(),
    ),
    JournalRecord(
        NOON_US + 1,
        RecordKind.MESSAGE,
        RecordState.RECEIVED,
        peer="BSC\x1b[31m1",
        message=MessageIdentifier(SITE, 5),
        operation=MessageOperation.BSC_ACK,
        body=encode_message(BscAck(SITE, QUEUE, "BSC1")),
    ),
    JournalRecord(
        NOON_US + 2,
        RecordKind.MESSAGE,
        RecordState.REFUSED,
        operation=9,
        reason="operation 9 is not one of 0 to 7",
        body=b"\0\1\2",
    ),
]


def append(journal: Journal, first: int, *records: JournalRecord) -> None:
    journal.append([(lsn, encode_record(lsn, r)) for lsn, r in enumerate(records, first)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "journal"
    with closing(Journal(place, "PSC1", Guid.NULL)) as journal:
        append(journal, 1, *RECORDS)
    return place


def test_tail_shows_what_happened(directory: Path) -> None:
    done = process("journal", "tail", directory, "--no-follow")
    assert done.returncode == 0
    head, first, second, third = done.stdout.decode().splitlines()
    assert head.split() == ["lsn", "time", "state", "what", "seq", "peer", "object"]
    assert first.split() == [
        "1",
        "2000-01-01T12:00:00.000000Z",
        "local",
        "create",
        "queue",
        "0000000000000007",
        str(QUEUE),
    ]
    assert "received" in second
    assert "bsc ack" in second
    assert "BSC\\x1b[31m1" in second, "a name does not act on the terminal"
    assert third.endswith("(operation 9 is not one of 0 to 7)")
    assert "refused       operation 9" in third


def test_tail_of_the_last_ones(directory: Path) -> None:
    lines = run("journal", "tail", directory, "--no-follow", "-n", "1").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["3"]
    lines = run("journal", "tail", directory, "--no-follow", "--after", "1").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["2", "3"]


def test_tail_as_json(directory: Path) -> None:
    lines = run("journal", "tail", directory, "--no-follow", "--json").stdout.splitlines()
    first, second, _ = map(json.loads, lines)
    assert first["lsn"] == 1
    assert first["time"] == "2000-01-01T12:00:00.000000Z"
    assert first["what"] == "create queue"
    assert first["seq"] == "0000000000000007"
    assert first["object_id"] == str(QUEUE)
    assert first["message"] is None
    assert second["message"] == f"{SITE}\\5"
    assert second["peer"] == "BSC\x1b[31m1"
    assert second["object_id"] is None


def test_tail_tells_damage(directory: Path) -> None:
    (path,) = segments(directory).values()
    data = bytearray(path.read_bytes())
    at = len(data) - len(encode_record(3, RECORDS[2])) - 1
    data[at] ^= 1
    path.write_bytes(data)
    text = run("journal", "tail", directory, "--no-follow").stdout
    assert "corrupt  offset " in text
    assert "checksum" in text
    lines = run("journal", "tail", directory, "--no-follow", "--json").stdout.splitlines()
    assert [json.loads(line).get("corrupt", False) for line in lines] == [False, True, False]


def test_tail_follows(directory: Path) -> None:
    command = [sys.executable, "-m", "mqis.cli.main", "journal", "tail", str(directory), "--json"]
    environment = {k: v for k, v in os.environ.items() if k != "MQIS_CONFIG"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as following:
        assert following.stdout is not None
        try:
            seen = [json.loads(following.stdout.readline())["lsn"] for _ in range(3)]
            with closing(Journal(directory, "PSC1", Guid.NULL)) as journal:
                append(journal, 4, RECORDS[0])
                seen.append(json.loads(following.stdout.readline())["lsn"])
                append(journal, 5, RECORDS[1])
                seen.append(json.loads(following.stdout.readline())["lsn"])
            following.send_signal(signal.SIGINT)
            assert following.wait(DEADLINE_S) == 0
        finally:
            following.kill()
    assert seen == [1, 2, 3, 4, 5]


def test_show_one_record(directory: Path) -> None:
    text = run("journal", "show", directory, "1").stdout
    assert "record 1: create queue" in text
    assert "path: ams-app1\\orders" in text
    assert "Orders" in text
    assert "record 2" not in text


def test_show_a_range_as_json(directory: Path) -> None:
    content = json.loads(run("journal", "show", directory, "1-2", "--json").stdout)
    assert [entry["lsn"] for entry in content] == [1, 2]
    assert content[0]["body"]["path"] == "ams-app1\\orders"
    assert content[1]["body"] == {"site": str(SITE), "machine": str(QUEUE), "name": "BSC1"}


def test_show_a_body_that_does_not_parse(directory: Path) -> None:
    (content,) = json.loads(run("journal", "show", directory, "3", "--json").stdout)
    assert content["body"] == "000102"
    assert "needs 16 bytes" in content["body_error"]


def test_show_what_is_not_there(directory: Path, tmp_path: Path) -> None:
    error = run("journal", "show", directory, "4").exception
    assert isinstance(error, StorageError)
    assert str(error).endswith("there is no record 4; it holds 1 to 3")
    (tmp_path / "empty").mkdir()
    assert str(run("journal", "show", tmp_path / "empty", "4").exception).endswith("it is empty")
    missing = process("journal", "show", tmp_path / "missing", "4")
    assert missing.returncode == 1
    assert b"No such file" in missing.stderr
    assert run("journal", "show", directory, "four").exit_code == 2


def test_check_tells_a_segment_under_another_name(directory: Path) -> None:
    """Nobody reads such a file, and the journal seems whole without the copy."""
    (path,) = segments(directory).values()
    copy = directory / "segment-1 (old).mqj"
    copy.write_bytes(path.read_bytes())
    (directory / "notes.txt").write_text("no segment", "ascii")
    (directory / f"{segment_name(2)}.part").write_bytes(path.read_bytes())
    done = run("journal", "check", directory, "--json")
    assert done.exit_code == 1
    (fault,) = json.loads(done.stdout)["faults"]
    assert copy.name in str(fault)
    assert "is segment 1 under another name: the file was copied or renamed" in str(fault)
    copy.unlink()
    assert run("journal", "check", directory).exit_code == 0


def test_check(directory: Path) -> None:
    sound = run("journal", "check", directory)
    assert sound.exit_code == 0
    unsigned, summary = sound.stdout.splitlines()
    assert unsigned == f"unsigned: {segment_name(1)}: not signed (the server had no key)"
    assert summary == "ok: 3 records in 1 segment"
    (path,) = segments(directory).values()
    path.write_bytes(path.read_bytes()[:-1])
    damaged = run("journal", "check", directory)
    assert damaged.exit_code == 1
    assert "torn" in damaged.stdout
    content = json.loads(run("journal", "check", directory, "--json").stdout)
    assert content["ok"] is False
    assert len(content["faults"]) == 1
