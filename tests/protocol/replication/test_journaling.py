"""The journal record of a local change holds all that was set, and what travels if nothing was."""

from __future__ import annotations

from mqis.lab.demo import SeededEntropy
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject, Scope
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.replication.outgoing_changes import deletion, local_record, propagated
from mqis.storage.memory_store import MemoryStore
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.seqnum import SequenceNumber


def life_of_a_site() -> tuple[list[OwnChange], DirectoryObject]:
    """A site is created, changed and deleted."""
    changes: list[OwnChange] = []
    with MemoryStore().write() as tx:
        events = DirectoryEvents(tx, 0, SeededEntropy(1), observe=changes.append)
        name = "Delft"
        site = events.create_directory_object(ObjectType.SITE, props({PropId.S_PATHNAME: name}))
        site = events.update_directory_object(site, props({PropId.S_INTERVAL1: 7}))
        events.delete_directory_object(site)
    return changes, site


def body_of(record: JournalRecord) -> DirectoryChange:
    body = decode_body(record)
    assert isinstance(body, DirectoryChange)
    return body


def test_records_name_the_object_and_hold_what_was_set() -> None:
    changes, site = life_of_a_site()
    records = [local_record(c, propagated(c, SequenceNumber.MIN), 5) for c in changes]
    created, updated, _ = records
    assert {(r.time_us, r.kind, r.state) for r in records} == {
        (5, RecordKind.CHANGE, RecordState.LOCAL)
    }
    assert {(r.object_type, r.object_id) for r in records} == {(ObjectType.SITE, site.id)}
    assert [r.operation for r in records] == [Command.CREATE, Command.UPDATE, Command.DELETE]
    assert {propid for propid, _ in body_of(created).properties} >= {PropId.S_PATHNAME}
    assert pair(PropId.S_INTERVAL1, 7) in body_of(updated).properties


def test_the_record_of_a_deletion_holds_scope_and_type() -> None:
    """A deletion sets no property, so the record keeps those that travel."""
    deleted = life_of_a_site()[0][-1]
    record = local_record(deleted, propagated(deleted, SequenceNumber.MIN), 5)
    assert body_of(record).properties == deletion(ObjectType.SITE, Scope.ENTERPRISE)
