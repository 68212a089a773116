"""Records that do not tell the past, and the rare ones that do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.journal.folding import FoldPolicy, JournalFold, JournalWriter, UnknownPast
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Sync0,
    SyncReply,
    encode_message,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory import world as w

ME = JournalWriter(w.C15, "C15")
LOCAL, APPLIED = RecordState.LOCAL, RecordState.APPLIED


def record(state: RecordState, operation: int, **values: Any) -> JournalRecord:
    known: dict[str, Any] = {
        "partition": w.SITE_A,
        "seq": SequenceNumber(500),
        "object_type": int(w.QUEUE),
        "object_id": w.ORDERS,
    }
    return JournalRecord(5, RecordKind.CHANGE, state, operation=operation, **{**known, **values})


def change(command: Command, path: str | None, guid: Guid | None) -> DirectoryChange:
    values = {PropId.Q_LABEL: "new", PropId.Q_PATHNAME: path or "C14\\new"}
    properties = tuple((int(propid), prop(propid, value)) for propid, value in values.items())
    numbers = SequenceNumber(499), SequenceNumber(500), SequenceNumber.MIN
    return DirectoryChange(
        command, None if guid else path, guid, w.SITE_A, *numbers, properties=properties
    )


def fold(*records: JournalRecord) -> MemoryStore:
    store = w.World().store
    with store.write() as tx:
        taken = JournalFold(tx, ME, FoldPolicy())
        for each in records:
            taken.take(each)
    return store


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (record(LOCAL, Command.UPDATE), "a change of this server has no content"),
        (record(LOCAL, Command.UPDATE, body=b"\x01"), "a body cannot be decoded"),
        (record(LOCAL, Command.DELETE, object_type=99, body=b""), "has no content"),
        (record(APPLIED, Command.UPDATE), "the message with change"),
        (record(APPLIED, Command.DELETE, object_type=99), "99 is no type of objects"),
    ],
)
def test_records_that_do_not_tell_enough(told: JournalRecord, reason: str) -> None:
    with pytest.raises(UnknownPast, match=reason):
        fold(told)


def test_a_change_of_an_object_that_is_not_there() -> None:
    body = change(Command.UPDATE, "C14\\nothing", w.OTHER).encoded
    with pytest.raises(UnknownPast, match="is changed before it is"):
        fold(record(LOCAL, Command.UPDATE, object_id=w.OTHER, body=body))


def test_a_new_object_takes_the_name_of_another() -> None:
    body = change(Command.CREATE, "C14\\orders", w.OTHER).encoded
    store = fold(record(LOCAL, Command.CREATE, object_id=w.OTHER, body=body))
    with store.read() as view:
        assert view.get(w.QUEUE, w.ORDERS) is None
        named = view.find(w.QUEUE, "C14\\orders")
        assert named is not None
        assert named.id == w.OTHER


def test_a_deletion_whose_message_is_not_there() -> None:
    """Its record names the object, which is enough."""
    store = fold(record(APPLIED, Command.DELETE))
    with store.read() as view:
        assert view.get(w.QUEUE, w.ORDERS) is None


def test_a_deleted_site_takes_its_partition_along() -> None:
    """But not that of the server's own site."""

    def machines(site: Guid) -> set[Guid]:
        gone = record(APPLIED, Command.DELETE, object_type=int(w.SITE), object_id=site)
        with fold(gone).read() as view:
            assert view.get(w.SITE, site) is None
            return {m.id for m in view.objects(w.MACHINE)}

    assert w.C14 not in machines(w.SITE_A)
    assert w.C15 in machines(w.SITE_B), "the writer of the journal"


def received(*changes: DirectoryChange) -> JournalRecord:
    """A message with changes, which are applied later."""
    body = encode_message(ChangePropagation(w.SITE_A, changes))
    kind, state = RecordKind.MESSAGE, RecordState.RECEIVED
    return JournalRecord(5, kind, state, operation=ChangePropagation.OPERATION, body=body)


def test_a_change_that_does_not_fit() -> None:
    """Its type cannot be told: it names no object, and has no property of one type alone."""
    empty = replace(change(Command.UPDATE, None, w.OTHER), properties=())
    told = record(APPLIED, Command.UPDATE, object_id=w.OTHER)
    with pytest.raises(UnknownPast, match="does not fit"):
        fold(received(empty), told)


def test_a_message_that_tells_of_another_kind_of_change() -> None:
    """A restored authority takes copies of others; a deletion is no copy."""
    with w.World().store.write() as tx:
        taken = JournalFold(tx, ME, FoldPolicy())
        taken.take(received(change(Command.CREATE, None, w.ORDERS)))
        with pytest.raises(UnknownPast, match="is not in the journal"):
            taken.take(record(APPLIED, Command.UPDATE, seq=SequenceNumber(777)))
        refused = JournalRecord(5, RecordKind.MESSAGE, RecordState.REFUSED)
        taken.take(refused)


@pytest.mark.parametrize("refused", [False, True])
def test_a_full_synchronisation_takes_away_what_it_does_not_bring(refused: bool) -> None:
    """The next message shows that the changes of the reply have been applied; a refusal, none."""
    low, high = SequenceNumber.MIN, SequenceNumber(500)
    reply = SyncReply(w.SITE_A, w.SITE_A, low, high, low, Sync0.COMPLETE)
    message = MessageIdentifier(w.C14, 7)
    whole = JournalRecord(
        *(5, RecordKind.MESSAGE, RecordState.RECEIVED, "C14", message),
        operation=SyncReply.OPERATION,
        body=encode_message(reply),
    )
    no = JournalRecord(6, RecordKind.MESSAGE, RecordState.REFUSED, "C14", message)
    store = fold(whole, *([no] if refused else []), received())
    with store.read() as view:
        assert (view.get(w.QUEUE, w.ORDERS) is None) is not refused


def test_missing_records_end_a_fold_that_has_no_policy_for_them() -> None:
    store = w.World().store
    with store.write() as tx, pytest.raises(UnknownPast, match="segment 7 is missing"):
        JournalFold(tx, ME, FoldPolicy()).skip("segment 7 is missing")
