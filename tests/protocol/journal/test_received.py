"""Changes of messages until they are applied, whoever sent the messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.journal import folding
from mqis.protocol.journal.folding import ReceivedChanges
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

SITE, SENDER = Guid(b"\1" * 16), Guid(b"\2" * 16)


def change(number: int, label: str, command: Command = Command.CREATE) -> DirectoryChange:
    numbers = SequenceNumber(number - 1), SequenceNumber(number), SequenceNumber.MIN
    given = ((int(PropId.Q_LABEL), prop(PropId.Q_LABEL, label)),)
    return DirectoryChange(command, None, guid(number), SITE, *numbers, properties=given)


def guid(number: int) -> Guid:
    return Guid(number.to_bytes(16, "big"))


def message(ordinal: int, state: RecordState = RecordState.RECEIVED) -> JournalRecord:
    identifier = MessageIdentifier(SENDER, ordinal)
    return JournalRecord(5, RecordKind.MESSAGE, state, message=identifier)


def applied(ordinal: int, one: DirectoryChange) -> JournalRecord:
    return replace(
        message(ordinal),
        kind=RecordKind.CHANGE,
        state=RecordState.APPLIED,
        operation=one.command,
        partition=one.partition,
        seq=one.seq,
        object_id=one.guid or Guid.NULL,
    )


@pytest.mark.req("SEC-12-04")
def test_a_refused_message_leaves_nothing_behind() -> None:
    true, false = change(1, "true"), change(1, "false")
    known = ReceivedChanges()
    known.arrive(message(1), [true])
    known.arrive(message(2), [false])
    known.refuse(message(2, RecordState.REFUSED))
    known.refuse(message(1, RecordState.REFUSED))  # of something earlier: too late to count
    assert known.applied(applied(3, true)) == true
    assert known.applied(applied(2, false)) == true, "as a copy, the false one is none either"


def test_a_change_of_a_message_that_was_refused_in_part() -> None:
    """The one that is applied with it is in it, and is not left for later."""
    some = [change(1, "not applied"), change(2, "applied"), change(3, "waits")]
    known = ReceivedChanges()
    known.arrive(message(1), some)
    known.refuse(message(1, RecordState.REFUSED))
    assert known.applied(applied(1, some[1])) == some[1]
    assert known.applied(applied(2, some[2])) is None


def test_copies_come_under_other_numbers() -> None:
    known, copy = ReceivedChanges(), change(1, "copy")
    known.arrive(message(1), [copy, change(2, "update", Command.UPDATE)])
    renumbered = replace(copy, seq=SequenceNumber(900))
    for ordinal in (1, 2):
        assert known.applied(applied(ordinal, renumbered)) == copy
    later = replace(change(2, "", Command.UPDATE), seq=SequenceNumber(901))
    assert known.applied(applied(3, later)) is None, "an update is not all of an object"


def test_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MAX_WAITING", 1)
    known = ReceivedChanges()
    known.arrive(message(1), [change(number, "") for number in (1, 2, 3)])
    known.arrive(message(2), [])
    assert known.applied(applied(3, change(2, ""))) is None
    assert known.applied(applied(3, change(3, ""))) == change(3, "")
