"""Replication messages in words; captures are tested with the full style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.describing import FULL, TRACE, Style, describe, operation_name
from mqis.wire.mqdsrp.messages import (
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    Message,
    MessageOperation,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.mqdsrp import messages

SITE = Guid.parse("10000000-0000-0000-0000-000000000001")
THING = Guid.parse("30000000-0000-0000-0000-000000000003")
N = SequenceNumber
DELETED = DirectoryChange(Command.DELETE, None, THING, SITE, N(6), N(7), N(2))
CREATED = DirectoryChange(Command.CREATE, "m\\q", None, Guid.NULL, N(0), N(1), N(0))
NUMBERS = (PartitionSeqNumbers(SITE, N(7), N(2)),)

TRACED: list[tuple[Message, str]] = [
    (
        ChangePropagation(SITE, (DELETED, CREATED), Heartbeat("psc", NUMBERS)),
        (
            "delete 30000000 (10000000 7 after 6), create m\\q (enterprise 1 after 0); "
            "heartbeat: 10000000 up to 7 purged 2"
        ),
    ),
    (ChangePropagation(SITE, (DELETED,)), "delete 30000000 (10000000 7 after 6)"),
    (
        SyncRequest(SITE, SITE, N(3), N(9), N(2), False, 0, "bsc"),
        "10000000 from 3 to 9 purged 2",
    ),
    (
        SyncRequest(SITE, SITE, N(0), N(9), N(2), True, 0, "bsc"),
        "10000000: everything purged 2",
    ),
    (
        SyncReply(SITE, SITE, N(3), N(9), N(2), Sync0.MORE, (DELETED,)),
        (
            "10000000 from 3 to 9 purged 2 full synchronisation, more follows: "
            "delete 30000000 (10000000 7 after 6)"
        ),
    ),
    (
        SyncReply(SITE, SITE, N(3), N(9), N(2), Sync0.NONE),
        "10000000 from 3 to 9 purged 2: no change",
    ),
    (
        ChangeRequest(SITE, SITE, 5, "bsc", None, DELETED),
        "bsc 5: delete 30000000 (10000000 7 after 6)",
    ),
    (ChangeReply(SITE, 5, 0, "bsc"), "bsc 5: MQ_OK"),
    (PscAck(SITE, SITE, Guid.NULL, N(8), "psc"), "psc has enterprise up to 8"),
    (BscAck(SITE, THING, "bsc"), "bsc is there"),
]


@pytest.mark.parametrize(("message", "text"), TRACED, ids=lambda part: type(part).__name__)
def test_a_trace_tells_the_numbers_of_replication(message: Message, text: str) -> None:
    assert describe(message, TRACE) == text


def test_the_full_style_writes_identifiers_out_and_leaves_details_out() -> None:
    carried = ChangePropagation(SITE, (DELETED,), Heartbeat("psc", NUMBERS))
    assert describe(carried) == f"delete {THING} (0000000000000007)"


def test_an_object_without_path_and_identifier_is_unnamed() -> None:
    nameless = DirectoryChange(Command.CREATE, "", None, SITE, N(6), N(7), N(2))
    assert describe(ChangePropagation(SITE, (nameless,))) == "create unnamed (0000000000000007)"


def test_changes_beyond_the_limit_of_the_style_are_counted() -> None:
    many = ChangePropagation(SITE, (DELETED,) * 14)
    assert describe(many, TRACE).endswith(" and 2 more")
    assert describe(many, FULL).endswith(" and 11 more")


@given(messages())
@pytest.mark.parametrize("style", [FULL, TRACE], ids=["full", "trace"])
def test_every_message_has_a_description(style: Style, message: Message) -> None:
    assert describe(message, style)


@dataclass(frozen=True, slots=True)
class Undescribed:
    """A message that ``describing`` has no sentence for."""

    site: Guid
    partition: Guid
    seq: SequenceNumber
    changes: tuple[DirectoryChange, ...]
    flush: int


@pytest.mark.parametrize(
    ("changes", "text"), [((), "none"), ((CREATED,), "create m\\q (enterprise 1 after 0)")]
)
def test_a_message_without_a_sentence_lists_its_fields(
    changes: tuple[DirectoryChange, ...], text: str
) -> None:
    message: Any = Undescribed(SITE, THING, N(7), changes, 3)
    assert describe(message, TRACE) == f"partition 30000000, seq 7, changes {text}, flush 3"


def test_operations_have_names() -> None:
    assert [operation_name(number) for number in (*MessageOperation, 8)] == [
        "change_propagation",
        "change_request",
        "sync_request",
        "sync_reply",
        "change_reply",
        "already_purged",
        "psc_ack",
        "bsc_ack",
        "operation 8",
    ]
