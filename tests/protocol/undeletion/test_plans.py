"""The plan of an undelete: the objects that a request means, and why some cannot come back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.errors import DirectoryError
from mqis.protocol.undeletion.choosing import TOGETHER_US, chosen, may_matter
from mqis.protocol.undeletion.conflicts import conflicts, taken
from mqis.protocol.undeletion.lost import LostObject
from mqis.protocol.undeletion.messages import (
    MAX_PAGE,
    UndeleteEntry,
    UndeleteRequest,
    Verb,
    fitting,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, Value
from tests.protocol.directory import world as w

NEW = w.number(0x4242)


def values(given: dict[PropId, Value]) -> dict[int, PropVariant]:
    return {int(propid): variant for propid, variant in props(given).items()}


def found(world: w.World, kind: ObjectType, id_: Guid) -> DirectoryObject:
    with world.store.read() as view:
        obj = view.get(kind, id_)
    assert obj is not None
    return obj


def lost(obj: DirectoryObject | None, lsn: int = 1, **known: Any) -> LostObject:
    kind, id_, partition = (w.QUEUE, NEW, w.SITE_A)
    if obj is not None:
        kind, id_, partition = obj.type, obj.id, obj.partition
    return LostObject(kind, id_, partition, lsn, 1_000 * lsn, obj=obj, **known)


def reasons(world: w.World, *plan: LostObject) -> list[str]:
    with world.store.read() as view:
        return list(conflicts(plan, view).values())


def names(world: w.World, all_lost: list[LostObject], **wanted: Any) -> list[str]:
    with world.store.read() as view:
        request = UndeleteRequest(Verb.PLAN, **wanted)
        return [each.path or "" for each in chosen(all_lost, request, view)]


@pytest.fixture
def world() -> w.World:
    return w.World()


# --- conflicts ------------------------------------------------------------------------------------


def test_an_object_of_which_nothing_is_known(world: w.World) -> None:
    (reason,) = reasons(world, lost(None))
    assert "has no copy of its properties" in reason


@pytest.mark.parametrize(
    ("kind", "id_", "reason"),
    [
        (w.ENTERPRISE, w.ENTERPRISE_ID, "there is another enterprise object"),
        (w.USER, w.ALICE, f"user {w.ALICE} has the same SID"),
        (w.QUEUE, w.ORDERS, f"the name is taken by queue {w.ORDERS}"),
        (w.LINK, w.LINK_AB, f"link {w.LINK_AB} joins the same sites"),
    ],
)
def test_another_object_has_its_place(
    world: w.World, kind: ObjectType, id_: Guid, reason: str
) -> None:
    held = found(world, kind, id_)
    (told,) = reasons(world, lost(replace(held, id=NEW)))
    assert told.startswith(reason)
    if kind is not w.ENTERPRISE:
        assert reasons(world, lost(held)) == [], "itself is no conflict"


def test_a_user_without_a_sid_and_one_whose_sid_is_free(world: w.World) -> None:
    alice = found(world, w.USER, w.ALICE)
    other = values({PropId.U_SID: w.BOB_SID})
    assert reasons(world, lost(replace(alice, id=NEW, properties={}))) == []
    assert reasons(world, lost(replace(alice, id=NEW, properties=other))) == []


def test_two_deleted_objects_of_one_name(world: w.World) -> None:
    orders = found(world, w.QUEUE, w.ORDERS)
    path = values({PropId.Q_PATHNAME: "C14\\gone", PropId.Q_QMID: w.C14})
    old, new = (replace(orders, id=w.number(n), properties=path) for n in (0x4001, 0x4002))
    (told,) = reasons(world, lost(new, 9), lost(old, 5))
    assert told == f"queue {new.id} had the name later; name one of them by its id"


def test_what_it_lies_in_is_gone(world: w.World) -> None:
    machine = found(world, w.MACHINE, w.C14)
    nowhere = replace(machine, id=NEW, properties=values({PropId.QM_PATHNAME: "lonely"}))
    away = values({PropId.QM_PATHNAME: "far", PropId.QM_SITE_IDS: (w.OTHER,)})
    elsewhere = replace(machine, id=NEW, properties=away)
    queue = found(world, w.QUEUE, w.ORDERS)
    orphan = replace(queue, id=NEW, properties=values({PropId.Q_PATHNAME: "gone\\q"}))
    assert reasons(world, lost(nowhere)) == ["it names no site"]
    assert reasons(world, lost(elsewhere)) == [f"site {w.OTHER} is not there; undelete it too"]
    (told,) = reasons(world, lost(orphan))
    assert told == "machine gone is not there; undelete it too (--under gone)"


# --- choosing -------------------------------------------------------------------------------------


def test_time_and_author(world: w.World) -> None:
    orders = found(world, w.QUEUE, w.ORDERS)
    gone = [lost(orders, 5, by="LAB\\alice")]
    assert names(world, gone) == ["C14\\orders"]
    assert names(world, gone, by="alice") == names(world, gone, by="lab\\ALICE") == ["C14\\orders"]
    assert names(world, gone, by="bob") == []
    assert names(world, gone, since_us=5_001) == names(world, gone, until_us=5_000) == []


def test_under_a_machine_and_under_a_site(world: w.World) -> None:
    orders, link = found(world, w.QUEUE, w.ORDERS), found(world, w.LINK, w.LINK_AB)
    elsewhere = values({PropId.Q_PATHNAME: "C15\\x", PropId.Q_QMID: w.C15})
    other = replace(orders, id=NEW, partition=w.SITE_B, properties=elsewhere)
    bare = LostObject(w.LINK, w.number(0x77), w.ENTERPRISE_ID, 4, 4_000)
    gone = [lost(orders), lost(link, 2), lost(other, 3), bare]
    assert names(world, gone, under="C14") == ["C14\\orders"]
    assert len(names(world, gone, under=str(w.SITE_A))) == 2, "a link belongs to both its sites"
    with pytest.raises(DirectoryError, match="there is no site or machine 'nothing'"):
        names(world, gone, under="nothing")


def test_one_object_with_what_went_with_it(world: w.World) -> None:
    machine, orders = found(world, w.MACHINE, w.C14), found(world, w.QUEUE, w.ORDERS)
    gone = [lost(orders, 5, by="a"), lost(machine, 6, by="a")]
    assert names(world, gone, type="machine", name="C14") == ["C14", "C14\\orders"]
    assert names(world, gone, type="queue", name="C14\\orders") == ["C14\\orders"]
    assert names(world, gone, type="queue") == ["C14\\orders"]
    assert names(world, gone, name=str(w.C14)) == ["C14", "C14\\orders"]
    with pytest.raises(DirectoryError, match="no deleted site 'x' is in the journal"):
        names(world, gone, type="site", name="x")
    with pytest.raises(DirectoryError, match="there is no type 'printer'"):
        names(world, gone, type="printer", name="x")


def test_a_link_is_not_created_twice(world: w.World) -> None:
    link = found(world, w.LINK, w.LINK_AB)
    again = lost(replace(link, id=NEW))
    with world.store.read() as view:
        assert taken(again, view) == f"link {w.LINK_AB} joins the same sites"


def test_what_a_request_can_mean_before_names_are_known(world: w.World) -> None:
    """What went with a named object was deleted shortly before it."""
    queue = replace(lost(found(world, w.QUEUE, w.ORDERS)), time_us=TOGETHER_US)
    machine = lost(found(world, w.MACHINE, w.C14))
    since = UndeleteRequest(Verb.PLAN, since_us=TOGETHER_US + 1)
    assert not may_matter(queue, since)
    assert may_matter(queue, replace(since, type="machine", name="m1"))
    assert not may_matter(queue, replace(since, under="m1"))
    assert may_matter(machine, replace(since, under="m1"))
    assert machine.label == f"machine {machine.path}"
    assert lost(None).label == f"queue {NEW}"


def test_a_page_of_a_plan_has_a_limit(world: w.World) -> None:
    long = UndeleteEntry("queue", str(NEW), "x" * (MAX_PAGE // 2), 0, "", "", True, False, "ready")
    assert fitting([long] * 3) == (long,)
    huge = replace(long, path="x" * MAX_PAGE)
    assert fitting([huge, long]) == (huge,), "else the page would be empty"
