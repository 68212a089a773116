"""The judge of the scenario ``store``: what it accepts after a kill, and what it calls a loss."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import DeletedObject, DirectoryObject, Scope
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.seqnum import SequenceNumber
from tools.harness.history import Content, History
from tools.harness.storewriter import SITE, queue

A, B = Guid(bytes([1]) * 16), Guid(bytes([2]) * 16)


def held(id_: Guid, label: str, seq: int) -> DirectoryObject:
    return queue(id_, label, SequenceNumber(seq))


def gone(id_: Guid, seq: int) -> DeletedObject:
    return DeletedObject(id_, SITE, SequenceNumber(seq), ObjectType.QUEUE, Scope.ENTERPRISE)


def content(last_seq: int, *found: DirectoryObject | DeletedObject) -> Content:
    return Content(
        last_seq,
        {obj.id: obj for obj in found if isinstance(obj, DirectoryObject)},
        {obj.id: obj for obj in found if isinstance(obj, DeletedObject)},
    )


def history(*lines: str) -> History:
    result = History()
    for line in ("open", "opened", *lines):
        result.hear(line)
    return result


CREATE = (f"try 0 create {A} c", f"ack 0 create {A} 1")
UPDATE = (f"try 0 update {A} u", f"ack 0 update {A} 2")
DELETE = (f"try 0 delete {A} d", f"ack 0 delete {A} 2")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (CREATE, content(1, held(A, "c", 1))),
        ((*CREATE, *UPDATE), content(2, held(A, "u", 2))),
        ((*CREATE, *DELETE), content(2, gone(A, 2))),
        ((), content(0)),
    ],
)
def test_what_was_acknowledged_is_there(lines: tuple[str, ...], found: Content) -> None:
    assert history(*lines).settle(found) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (CREATE, content(0)),
        (CREATE, content(1)),
        (CREATE, content(1, held(A, "other", 1))),
        (CREATE, content(1, held(A, "c", 1), gone(A, 1))),
        ((*CREATE, *UPDATE), content(1, held(A, "c", 1))),
        ((*CREATE, *UPDATE), content(2, held(A, "c", 1))),
        ((*CREATE, *UPDATE), content(2, held(A, "c", 2))),
        ((*CREATE, *DELETE), content(1, held(A, "c", 1))),
        ((*CREATE, *DELETE), content(2)),
        ((*CREATE, *DELETE), content(2, held(A, "c", 1), gone(A, 2))),
    ],
)
def test_what_is_missing_is_named(lines: tuple[str, ...], found: Content) -> None:
    faults = history(*lines).settle(found)
    assert f"lost: {lines[-1].split()[2]} of queue {A}" in faults[0]


@pytest.mark.parametrize(
    ("lines", "done", "undone"),
    [
        (CREATE[:1], content(1, held(A, "c", 1)), content(0)),
        ((*CREATE, UPDATE[0]), content(2, held(A, "u", 2)), content(1, held(A, "c", 1))),
        ((*CREATE, DELETE[0]), content(2, gone(A, 2)), content(1, held(A, "c", 1))),
    ],
)
def test_the_last_operation_may_be_done_or_not(
    lines: tuple[str, ...], done: Content, undone: Content
) -> None:
    assert history(*lines).settle(undone) == []
    finished = history(*lines)
    assert finished.settle(done) == []
    assert finished.settle(undone) != [], "once seen it must stay"


@pytest.mark.parametrize("extra", [held(B, "x", 2), gone(B, 2)])
def test_what_nobody_asked_for_is_named(extra: DirectoryObject | DeletedObject) -> None:
    faults = history(*CREATE).settle(content(2, held(A, "c", 1), extra))
    assert f"never requested: of queue {B}" in faults[0]


def test_a_skipped_number_is_named() -> None:
    faults = history(*CREATE).settle(content(2, held(A, "c", 1)))
    assert faults == ["number 2 was skipped: no operation got it"]


def test_a_partition_that_forgot_a_number_is_named() -> None:
    (fault,) = history(*CREATE).settle(content(0, held(A, "c", 1)))
    assert "the partition ends at number 0, but number 1 was given to create" in fault


def test_a_number_given_twice_is_named() -> None:
    twice = history(*CREATE, f"try 1 create {B} c2", f"ack 1 create {B} 1")
    faults = twice.settle(content(1, held(A, "c", 1), held(B, "c2", 1)))
    assert f"number 1 was given to create of queue {A}" in faults[0]


def test_a_number_given_out_of_order_is_named() -> None:
    lines = (f"try 0 create {A} c", f"ack 0 create {A} 2", f"try 1 create {B} c2")
    faults = history(*lines).settle(content(2, held(A, "c", 2), held(B, "c2", 1)))
    (fault,) = faults
    assert fault.startswith(f"number 1 was given to create of queue {B}")
    assert fault.endswith("which came after number 2")


def test_a_worker_that_finds_a_deleted_queue_is_named() -> None:
    faults = history(*CREATE, *DELETE, UPDATE[0]).settle(content(2, gone(A, 2)))
    assert f"could try update of queue {A}" in faults[0]


@pytest.mark.parametrize(
    "line", ["what", f"ack 1 create {A} 1", f"ack 0 update {A} 1", f"try 0 create {B} x"]
)
def test_lines_out_of_turn_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"worker|had not tried"):
        history(CREATE[0], line)
