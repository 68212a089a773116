"""Deleted objects of a journal in which records are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.journal.folding import NOBODY, JournalFold, UnknownPast
from mqis.protocol.undeletion.lost import LostObject, LostObjects
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory import world as w


@pytest.fixture
def world() -> w.World:
    return w.World()


def update_of(kind: int) -> JournalRecord:
    """An applied change of the queue."""
    record = JournalRecord(6, RecordKind.CHANGE, RecordState.APPLIED, object_type=kind)
    return replace(record, partition=w.SITE_A, object_id=w.ORDERS)


@pytest.mark.parametrize(
    ("missing", "kind", "is_known"),
    [
        ("", None, True),
        ("numbers 3 to 5", None, False),
        ("", int(ObjectType.QUEUE), False),
        ("", 99, True),  # a record about no object
    ],
)
def test_an_object_of_which_a_change_is_missing_has_no_content(
    world: w.World, missing: str, kind: int | None, is_known: bool
) -> None:
    deletion = LostObject(ObjectType.QUEUE, w.ORDERS, w.SITE_A, 7, 7_000)
    policy = LostObjects([deletion], None)
    with world.store.write() as tx:
        if missing:
            JournalFold(tx, NOBODY, policy).skip(missing)
        if kind is not None:
            policy.unknown(tx, update_of(kind), UnknownPast("an update of nothing"))
        policy.begin(7)
        policy.deleted(w.ORDERS, tx.get(ObjectType.QUEUE, w.ORDERS))
    (found,) = policy.found()
    assert (found.obj is not None) is is_known


def test_a_site_takes_along_what_nobody_knows_any_more(world: w.World) -> None:
    deletion = LostObject(ObjectType.SITE, w.SITE_A, w.SITE_A, 7, 7_000)
    policy = LostObjects([deletion], None)
    with world.store.write() as tx:
        policy.unknown(tx, update_of(int(ObjectType.QUEUE)), UnknownPast("an update of nothing"))
        assert tx.get(ObjectType.QUEUE, w.ORDERS) is None
        policy.begin(7)
    (found,) = policy.found()
    assert (found.id, found.type, found.with_site, found.obj) == (
        *(w.ORDERS, ObjectType.QUEUE, w.SITE_A, None),
    )
