"""The views behind the pages, tested without a page: the search in a journal, and forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from mqis.protocol.directory.object_sources import Source
from mqis.storage.journal.journal_files import segment_name
from mqis.views.console import journal
from mqis.views.console.journal import RecordFilter, journal_page, record_page
from mqis.views.console.journal_sight import Sight
from mqis.views.console.recordednames import RecordedNames
from mqis.views.console.server_places import NotShownError
from mqis.wire.guid import Guid
from mqis.wire.journal import (
    JournalRecord,
    RecordKind,
    RecordState,
    SegmentHeader,
    encode_record,
)
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Heartbeat,
    PartitionSeqNumbers,
    SyncRequest,
    encode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

OBJECT = Guid(b"o" * 16)


class OnlyLines:
    """The judge of a visitor who sees no content."""

    sees_users = False

    def __call__(self, record: JournalRecord, /) -> Sight:
        return Sight.LINE


def records() -> list[JournalRecord]:
    made = []
    for n in range(100):
        kind = RecordKind.CHANGE if n % 3 else RecordKind.MESSAGE
        state = RecordState(n % 8 + 1)
        peer = ("", "ber-dir1", "chi-dir1")[n % 3]
        record = JournalRecord(n, kind, state, peer, operation=n % 3, object_type=1)
        made.append(replace(record, object_id=OBJECT) if n % 10 == 7 else record)
    return made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A hundred records in segments of 7, 20, 30 and 43."""
    listed = list(enumerate(records(), 1))
    for number, (begin, end) in enumerate(pairwise((0, 7, 27, 57, 100)), 1):
        header = SegmentHeader("s1", Guid(b"s" * 16), number, begin + 1)
        data = header.to_bytes() + b"".join(encode_record(*each) for each in listed[begin:end])
        (tmp_path / segment_name(number)).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize(
    "wanted",
    [
        RecordFilter(),
        RecordFilter(kind="message"),
        RecordFilter(state="refused"),
        RecordFilter(what="update"),
        RecordFilter(peer="BER"),
        RecordFilter(object=str(OBJECT)),
        RecordFilter(kind="change", state="local", peer="chi"),
    ],
)
def test_pages_have_every_record_once(
    written: Path, wanted: RecordFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However soon a search stops, whoever goes on where it stopped misses nothing."""
    monkeypatch.setattr(journal, "MOST_DECODED", 9)
    monkeypatch.setattr(journal, "MOST_SEGMENTS", 2)
    expected = [n for n, record in enumerate(records(), 1) if wanted.takes(record)][::-1]
    found: list[int] = []
    before = None
    for _ in range(100):
        page = journal_page(written, wanted, before, size=4)
        assert len(page.lines) <= 4
        found += [line.lsn for line in page.lines]
        before = page.older
        if before is None:
            break
    assert found == expected
    assert (page.server, page.first) == ("s1", 1)


# --- heartbeats and names -------------------------------------------------------------------------

SITE, QUEUE = Guid(b"s" * 16), Guid(b"q" * 16)
SEQ = SequenceNumber(0x1014)
BEAT = encode_message(
    ChangePropagation(SITE, (), Heartbeat("a", (PartitionSeqNumbers(SITE, SEQ, SEQ),)))
)
CREATE = DirectoryChange(
    Command.CREATE, "a\\orders", None, SITE, SequenceNumber.MIN, SEQ, SequenceNumber.MIN
)
CHANGE = encode_message(ChangePropagation(SITE, (CREATE,)))
SYNC = encode_message(
    SyncRequest(SITE, SITE, SEQ, SEQ, SEQ, is_sync0=False, scope=0, requester="a")
)


def message(state: RecordState, ordinal: int, body: bytes = b"") -> JournalRecord:
    """As servers write it: the content of a message is in the record of its queueing alone."""
    operation = body[17] if body else 0
    identifier = MessageIdentifier(SITE, ordinal)
    return JournalRecord(
        *(ordinal, RecordKind.MESSAGE, state, "b", identifier), operation=operation, body=body
    )


TRAFFIC = (
    message(RecordState.QUEUED, 1, BEAT),
    message(RecordState.QUEUED, 2, SYNC),
    message(RecordState.WRITTEN, 1),
    message(RecordState.WRITTEN, 2),
    message(RecordState.ACKNOWLEDGED, 2),
    message(RecordState.ACKNOWLEDGED, 1),
    message(RecordState.RECEIVED, 7, BEAT),
    message(RecordState.RECEIVED, 8, CHANGE),
    message(RecordState.QUEUED, 3, BEAT),
    message(RecordState.EXPIRED, 3),
    message(RecordState.WRITTEN, 99),
)


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    header = SegmentHeader("s1", Guid(b"s" * 16), 1, 1)
    data = b"".join(encode_record(*each) for each in enumerate(TRAFFIC, 1))
    (tmp_path / segment_name(1)).write_bytes(header.to_bytes() + data)
    return tmp_path


def test_heartbeats_are_hidden_in_every_state_that_is_not_a_failure(traffic: Path) -> None:
    page = journal_page(traffic, RecordFilter(heartbeats=False))
    assert [(line.lsn, line.state, line.what) for line in page.lines] == [
        (11, "written", "change propagation"),
        (10, "expired", "heartbeat"),
        (8, "received", "change propagation"),
        (5, "acknowledged", "sync request"),
        (4, "written", "sync request"),
        (2, "queued", "sync request"),
    ]
    assert page.hidden == 5
    everything = journal_page(traffic, RecordFilter())
    assert [line.lsn for line in everything.lines] == list(range(11, 0, -1))
    assert [line.what for line in everything.lines].count("heartbeat") == 6
    assert everything.hidden == 0


def test_damage_in_a_hidden_heartbeat_is_told(traffic: Path) -> None:
    beat = bytearray(encode_record(12, message(RecordState.RECEIVED, 9, BEAT)))
    beat[-2] ^= 0xFF
    with (traffic / segment_name(1)).open("ab") as file:
        file.write(beat)
    for heartbeats in (False, True):
        damage = journal_page(traffic, RecordFilter(heartbeats=heartbeats)).damage
        assert [text.split(":")[0] for text in damage] == [segment_name(1)]


def test_pages_without_heartbeats_have_every_other_record_once(traffic: Path) -> None:
    wanted = RecordFilter(heartbeats=False)
    found, before = [], None
    while True:
        page = journal_page(traffic, wanted, before, size=1)
        found += [line.lsn for line in page.lines]
        before = page.older
        if before is None:
            break
    assert found == [11, 10, 8, 5, 4, 2]


def test_a_message_is_found_by_its_name_in_every_state(traffic: Path) -> None:
    found = journal_page(traffic, RecordFilter(what="sync req"))
    assert [line.state for line in found.lines] == ["acknowledged", "written", "queued"]
    assert record_page(traffic, 4).record["what"] == "sync request"
    assert record_page(traffic, 7).record["what"] == "heartbeat"


def test_the_content_of_a_message_is_named(traffic: Path) -> None:
    class Directory:
        """Knows one site."""

        def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
            return "Berlin" if (object_type, id) == (ObjectType.SITE, SITE) else None

    names = RecordedNames(cast(Source, Directory()))
    lines = {line.lsn: line for line in journal_page(traffic, RecordFilter(), names=names).lines}
    assert lines[8].content == "create a\\orders (1014)"
    assert lines[4].content.startswith("Berlin from 1014 to 1014")
    assert lines[7].content == "heartbeat: Berlin up to 1014"
    hidden = journal_page(traffic, RecordFilter(), judge=OnlyLines(), names=names)
    assert {line.content for line in hidden.lines} == {""}


def test_a_deleted_object_is_named_after_its_older_records(tmp_path: Path) -> None:
    name = ((PropId.Q_PATHNAME, prop(PropId.Q_PATHNAME, "a\\orders")),)
    create = replace(CREATE, properties=name)
    change = JournalRecord(
        0, RecordKind.CHANGE, RecordState.LOCAL, object_type=ObjectType.QUEUE, object_id=QUEUE
    )
    written = (
        replace(change, operation=Command.CREATE, body=create.encoded),
        replace(change, object_id=OBJECT, operation=Command.DELETE),
        replace(change, operation=Command.DELETE),
    )
    header = SegmentHeader("s1", Guid(b"s" * 16), 1, 1)
    data = b"".join(encode_record(*each) for each in enumerate(written, 1))
    (tmp_path / segment_name(1)).write_bytes(header.to_bytes() + data)
    lines = journal_page(tmp_path, RecordFilter(), size=2).lines
    assert [(line.named.name, line.named.exists) for line in lines] == [
        ("a\\orders", False),
        ("", False),
    ]
    hidden = journal_page(tmp_path, RecordFilter(), judge=OnlyLines())
    assert {line.named.name for line in hidden.lines} == {""}


def test_damaged_headers_are_not_taken_for_heartbeats(traffic: Path) -> None:
    path = traffic / segment_name(1)
    whole = path.read_bytes()
    for at in range(len(whole) - 3 * 120, len(whole), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        journal_page(traffic, RecordFilter(heartbeats=False))


def test_one_record_is_found_in_any_segment(written: Path) -> None:
    for lsn in (1, 7, 8, 57, 58, 100):
        assert record_page(written, lsn).record["lsn"] == lsn
    for lsn in (-1, 0, 101, 1 << 70):
        with pytest.raises(NotShownError):
            record_page(written, lsn)


def test_a_record_that_is_being_written_is_no_damage(written: Path) -> None:
    last = written / segment_name(4)
    last.write_bytes(last.read_bytes()[:-5])
    page = journal_page(written, RecordFilter())
    assert page.damage == ()
    assert page.lines[0].lsn == 99
