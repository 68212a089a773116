"""Tracing reads what the change log writes, in both formats."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqis.config.logs import configure
from mqis.config.sections import LogFormat, LogLevel, LogSection
from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Scope
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.replication.effects import ChangeApplied, RequestDecided, RequestPassedOn
from mqis.runtime import changelog
from mqis.runtime.changelog import SELF, Origin
from mqis.views.tracing.change_timeline import ChangeLine, change_lines, parse_line
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber

PARTITION, QUEUE = Guid(bytes(range(16))), Guid(bytes(range(16, 32)))
NAME = 'app1\\odd "name"=x \u00e9'
FIRST = f"{PARTITION}:0000000000000007"
SECOND = f"{PARTITION}:0000000000000008"
REQUEST = "ber-dir2:0000002a"
ALICE = Origin("LAB\\alice smith", "127.0.0.1")


def queue(seq: int = 7) -> DirectoryObject:
    properties: dict[int, PropVariant] = props({PropId.Q_PATHNAME: NAME})
    return DirectoryObject(ObjectType.QUEUE, QUEUE, PARTITION, SequenceNumber(seq), properties)


CREATED = OwnChange(ChangeKind.CREATE, queue())
DELETED = OwnChange(
    ChangeKind.DELETE,
    queue(),
    queue(),
    tombstone=DeletedObject(
        QUEUE, PARTITION, SequenceNumber(8), ObjectType.QUEUE, Scope.ENTERPRISE
    ),
)
ABOUT = {"operation": "create", "type": "queue", "id": str(QUEUE), "object": NAME}


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(write: Callable[[], None], form: LogFormat, level: LogLevel = LogLevel.INFO) -> str:
    stream = io.StringIO()
    configure(LogSection(level, form), stream)
    write()
    return stream.getvalue()


def read(write: Callable[[], None], form: LogFormat) -> list[ChangeLine]:
    found = [parse_line(line) for line in written(write, form).splitlines()]
    assert None not in found
    return [line for line in found if line is not None]


@pytest.mark.parametrize("form", list(LogFormat))
def test_a_change_that_was_made(form: LogFormat) -> None:
    (line,) = read(lambda: changelog.made(CREATED, ALICE), form)
    assert (line.event, line.changes, line.request) == ("change made", (FIRST,), None)
    assert line.details == {**ABOUT, "user": "LAB\\alice smith", "peer": "127.0.0.1"}
    (line,) = read(lambda: changelog.made(DELETED, SELF), form)
    assert line.changes == (SECOND,), "a deletion has the number of its tombstone"
    assert (line.details["operation"], line.details["user"]) == ("delete", "this server")


@pytest.mark.parametrize("form", list(LogFormat))
def test_one_for_another_authority(form: LogFormat) -> None:
    def write() -> None:
        changelog.forwarded(REQUEST, CREATED, "psc2", ALICE)
        changelog.relayed(RequestPassedOn("BER-DIR2", 42, "pec1"))
        changelog.decided(RequestDecided("ber-dir2", 42, HResult.MQ_OK, (CREATED, DELETED)))
        changelog.decided(RequestDecided("ber-dir2", 42, HResult.MQ_ERROR_QUEUE_EXISTS, ()))
        changelog.answered(REQUEST, 0x12345678, 0.0123)

    lines = read(write, form)
    assert [line.request for line in lines] == [REQUEST] * 6
    assert [line.event for line in lines] == [
        *("change forwarded", "change relayed", "change decided", "change decided"),
        *("change decided", "change answered"),
    ]
    assert [line.changes for line in lines] == [(), (), (FIRST,), (SECOND,), (), ()]
    assert lines[0].details["to"] == "psc2"
    assert lines[0].details["partition"] == str(PARTITION)
    assert lines[1].details == {"to": "pec1"}
    assert lines[2].details == {"result": "MQ_OK", **ABOUT}
    assert lines[4].details == {"result": "MQ_ERROR_QUEUE_EXISTS"}
    assert lines[5].details["result"] == "0x12345678"
    assert float(lines[5].details["ms"]) == 12.3


@pytest.mark.parametrize("form", list(LogFormat))
def test_changes_that_came_share_lines(form: LogFormat) -> None:
    came = [ChangeApplied("pec1", PARTITION, SequenceNumber(n)) for n in range(1, 121)]
    came += [ChangeApplied("psc2", PARTITION, SequenceNumber(7))]
    lines = read(lambda: changelog.applied(came), form)
    assert [(len(line.changes), line.details["sender"]) for line in lines] == [
        *((50, "pec1"), (50, "pec1"), (20, "pec1"), (1, "psc2")),
    ]
    told = [name for line in lines for name in line.changes]
    assert told == [f"{PARTITION}:{c.seq}" for c in came]


def test_at_a_higher_level_nothing_is_written() -> None:
    def write() -> None:
        changelog.made(CREATED, ALICE)
        changelog.forwarded(REQUEST, CREATED, "psc2", ALICE)
        changelog.relayed(RequestPassedOn("BER-DIR2", 42, "pec1"))
        changelog.decided(RequestDecided("ber-dir2", 42, 0, (CREATED,)))
        changelog.answered(REQUEST, 0, 0.0)
        changelog.applied([ChangeApplied("pec1", PARTITION, SequenceNumber(1))])

    assert written(write, LogFormat.TEXT, LogLevel.WARNING) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[1]",
        '{"logger": "mqis.change"}',
        '{"logger": "other", "level": "info", "time": "2026-01-01T00:00:00.000Z", "event": "x"}',
        '{"logger": "mqis.change", "level": "info", "time": "now", "event": "x"}',
        "2026-01-01T00:00:00.000Z info mqis.server.serve: change made change=x",
        "2026-99-01T00:00:00.000Z info mqis.change: change made change=x",
        "2026-01-01T00:00:00.000Z info mqis.chan",
    ],
)
def test_other_lines_are_none(text: str) -> None:
    assert parse_line(text) is None


def test_a_line_that_was_cut_off_tells_what_is_left() -> None:
    line = parse_line('2026-01-01T00:00:00.000Z info mqis.change: change made change=a:1 object="b')
    assert line is not None
    assert (line.changes, line.details) == (("a:1",), {"object": '"b'})


def test_the_log_that_was_put_aside_is_read_first(tmp_path: Path) -> None:
    path = tmp_path / "pec1.log"
    for file, event in ((path, "change applied"), (tmp_path / "pec1.log.1", "change made")):
        line = {"time": "2026-01-01T00:00:00.000Z", "level": "info", "logger": "mqis.change"}
        file.write_text(json.dumps({**line, "event": event, "change": FIRST}) + "\nnoise\n")
    found = list(change_lines(path, lambda text: FIRST in text))
    assert [line.event for line in found] == ["change made", "change applied"]
    assert list(change_lines(tmp_path / "none.log", lambda _text: True)) == []
    assert list(change_lines(path, lambda text: SECOND in text)) == []
