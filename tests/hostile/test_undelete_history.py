"""Undelete from journals that somebody else helped to write, that are damaged, or that are long."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.errors import DirectoryError
from mqis.protocol.journal import folding
from mqis.protocol.undeletion.messages import UndeleteRequest
from mqis.server.undeletion import deleted_history as searching
from mqis.server.undeletion.deleted_history import JournalHistory
from mqis.server.undeletion.planning import PlannedObject, plan_undelete
from mqis.storage.journal import Appender, Journal
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import ChangePropagation
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    Parcel,
    guid_of,
    machine_properties,
    text,
)

QUEUE = ObjectType.QUEUE


@pytest.fixture
def enterprise() -> Enterprise:
    """A queue of site B, whose PSC decides about it; a server of a third site is hostile."""
    made = Enterprise()
    for name, site in (("pec", "A"), ("psc", "B"), ("third", "C")):
        made.add_pec(name, site) if name == "pec" else made.add_psc(name, site)
    made.create(made.nodes["psc"], ObjectType.MACHINE, machine_properties("app", "B", 0))
    made.create_queue(made.nodes["psc"], "app\\one", label=text("open to all"))
    made.run(30)
    return made


def plan(node: Node, directory: Path, **conditions: str) -> list[PlannedObject]:
    request = UndeleteRequest("plan", **conditions)  # type: ignore[arg-type]
    return plan_undelete(
        JournalHistory(directory, node.store, node.server.site), node.server, request
    )


def label_of(planned: PlannedObject) -> object:
    return None if planned.lost.obj is None else planned.lost.obj.value(PropId.Q_LABEL)


def carries_label(parcel: Parcel, label: str) -> bool:
    message = parcel.message
    if not isinstance(message, ChangePropagation) or parcel.machine != "pec":
        return False
    values = [dict(change.properties).get(PropId.Q_LABEL) for change in message.changes]
    return any(value is not None and value.value == label for value in values)


def forged(parcel: Parcel, label: str) -> ChangePropagation:
    message = parcel.message
    assert isinstance(message, ChangePropagation)
    given = ((int(PropId.Q_LABEL), prop(PropId.Q_LABEL, label)),)
    changes = tuple(replace(change, properties=given) for change in message.changes)
    return replace(message, changes=changes)


def two_changes_on_their_way(enterprise: Enterprise) -> tuple[Parcel, Parcel]:
    """The PSC closes the queue, and closes it for good; the PEC has heard of neither."""
    labels = ("closed", "closed for good")
    stop = enterprise.lose(lambda parcel: parcel.machine in ("pec", "psc"))
    for label in labels:
        enterprise.label(enterprise.nodes["psc"], "app\\one", label)
        enterprise.run(5)
    stop()
    first, second = (
        next(parcel for parcel in enterprise.lost if carries_label(parcel, label))
        for label in labels
    )
    enterprise.lose(lambda parcel: parcel.sender == "pec")
    return first, second


def deleted(enterprise: Enterprise, directory: Path) -> PlannedObject:
    """Deletes the queue, and makes the plan of the PEC."""
    pec = enterprise.nodes["pec"]
    found = pec.find(QUEUE, "app\\one")
    assert found is not None
    assert found.value(PropId.Q_LABEL) == "closed for good", "the server itself is not deceived"
    enterprise.delete(enterprise.nodes["psc"], QUEUE, "app\\one")
    enterprise.run(30)
    (planned,) = plan(pec, directory, type="queue")
    return planned


@pytest.mark.req("SEC-12-04")
@pytest.mark.parametrize("early", [True, False])
def test_a_refused_message_does_not_say_what_comes_back(
    enterprise: Enterprise, tmp_path: Path, *, early: bool
) -> None:
    """The journal has the message, and the number is that of a change that waits for its turn."""
    first, second = two_changes_on_their_way(enterprise)
    forgery = forged(second, "open to all again")
    if early:
        enterprise.inject("third", "pec", forgery)
    enterprise.deliver(second)
    if not early:
        enterprise.inject("third", "pec", forgery)
    refusals = enterprise.nodes["pec"].refusals()
    assert any("third" in refusal for refusal in refusals), refusals
    enterprise.deliver(first)
    assert label_of(deleted(enterprise, tmp_path)) == "closed for good"


@pytest.mark.req("SEC-12-04")
def test_a_change_that_cannot_be_found_leaves_no_older_content(
    enterprise: Enterprise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have sent more messages than a search remembers."""
    monkeypatch.setattr(folding, "MAX_WAITING", 0)
    first, second = two_changes_on_their_way(enterprise)
    enterprise.deliver(second)
    enterprise.deliver(first)
    planned = deleted(enterprise, tmp_path)
    assert (planned.lost.obj, planned.entry.state) == (None, "conflict")


def write(node: Node, journal: Journal) -> int:
    Appender(node.store, journal).flush()
    return next(journal.directory.glob("segment-*")).stat().st_size


@pytest.mark.req("SEC-12-04")
def test_what_was_taken_away_stays_away_where_the_journal_is_damaged(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """Without the change that is missing, the object would come back as it was before it."""
    psc = enterprise.nodes["psc"]
    journal = Journal(tmp_path, "psc", psc.server.id)
    begin = write(psc, journal)
    enterprise.label(psc, "app\\one", "closed")
    end = write(psc, journal)
    enterprise.create_queue(psc, "app\\two")
    for name in ("one", "two"):
        enterprise.delete(psc, QUEUE, f"app\\{name}")
    write(psc, journal)
    journal.close()
    segment = next(tmp_path.glob("segment-*"))
    data = bytearray(segment.read_bytes())
    data[(begin + end) // 2] ^= 0xFF
    segment.write_bytes(data)
    found = {planned.lost.id: planned for planned in plan(psc, tmp_path, type="queue")}
    lost, intact = found[guid_of("app\\one")], found[guid_of("app\\two")]
    assert (lost.lost.obj, lost.entry.state) == (None, "conflict")
    assert "no copy of its properties" in lost.entry.reason
    assert intact.entry.state == "ready"


def delete_as(enterprise: Enterprise, node: Node, path: str, by: str) -> None:
    def operation(events: DirectoryEvents) -> None:
        own = replace(events, by=by)
        obj = own.transaction.find(QUEUE, path)
        assert obj is not None
        own.delete_directory_object(obj)

    enterprise.change(node, operation)


@pytest.mark.req("SEC-12-03")
def test_a_user_who_deletes_without_end_does_not_fill_the_memory_of_a_search(
    enterprise: Enterprise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_SEARCHED", 3)
    psc = enterprise.nodes["psc"]
    for number in range(4):
        enterprise.create_queue(psc, f"app\\junk{number}")
        delete_as(enterprise, psc, f"app\\junk{number}", "LAB\\bob")
    delete_as(enterprise, psc, "app\\one", "LAB\\alice")
    for conditions in ({}, {"type": "queue", "name": "app\\one"}, {"by": "bob"}):
        with pytest.raises(DirectoryError, match="choose fewer with --at") as caught:
            plan(psc, tmp_path, **conditions)
        assert caught.value.hresult == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    (planned,) = plan(psc, tmp_path, type="queue", name="app\\one", by="alice")
    assert planned.lost.path == "app\\one"


@pytest.mark.req("SEC-12-02")
def test_an_administrator_of_a_backup_brings_no_site_and_no_server_back(
    enterprise: Enterprise, tmp_path: Path
) -> None:
    """A plan there takes the rights of that server; the authority judges what it asks for."""
    for name in ("bsc", "spare"):
        enterprise.add_bsc(name, "psc")
    bsc, psc, pec = (enterprise.nodes[name] for name in ("bsc", "psc", "pec"))
    enterprise.crash("spare")
    enterprise.delete(psc, ObjectType.MACHINE, "spare")
    enterprise.delete(pec, ObjectType.SITE, "C")
    enterprise.run(30)
    found = {one.lost.path: one for one in plan(bsc, tmp_path)}
    assert found["spare"].entry.power == "a server: its role and its key count again"
    for path in ("spare", "C"):
        obj = found[path].lost.obj
        assert obj is not None
        enterprise.change(bsc, partial(DirectoryEvents.restore_directory_object, obj=obj))
        enterprise.run(30)
    denied = HResult.MQ_ERROR_ACCESS_DENIED & 0xFFFFFFFF
    assert set(bsc.answers().values()) == {denied}
    assert pec.find(ObjectType.SITE, "C") is None
    assert psc.find(ObjectType.MACHINE, "spare") is None
