"""Builds the changes that travel (MC-MQDSRP 2.2.4) from objects."""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Scope,
    name_key,
)
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.ports import Change
from mqis.protocol.replication.replicated import changed_properties, whole_object
from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.propertylist import Listed, PropertyList
from mqis.wire.seqnum import SequenceNumber

_MIN = SequenceNumber.MIN


def propagated(change: OwnChange, purged_seq: SequenceNumber) -> DirectoryChange:
    """A change that the authority made, as its neighbours are told (3.1.7.1.2).

    A create goes by path with the identifier among the properties, all else by GUID (E17).
    """
    seq = change.obj.seq if change.tombstone is None else change.tombstone.seq
    command, path, guid, properties = _parts(change)
    if _needs_all(change):
        properties = whole_object(change.obj)
    return DirectoryChange(
        command,
        path,
        guid,
        change.obj.partition,
        seq.decrement(),
        seq,
        purged_seq,
        properties,
    )


def requested(change: OwnChange, stamp: SequenceNumber) -> DirectoryChange:
    """The same for the authority to decide: it has no number yet (3.1.7.1.1, E16).

    ``stamp`` is in its place: when the request was made (``replays``).
    """
    command, path, guid, properties = _parts(change)
    return DirectoryChange(command, path, guid, change.obj.partition, _MIN, stamp, _MIN, properties)


def _parts(change: OwnChange) -> tuple[Command, str | None, Guid | None, Listed]:
    obj = change.obj
    if change.kind is ChangeKind.CREATE:
        identifier, whole = IDENTIFIER_PROPERTY[obj.type], whole_object(obj)
        listed = PropertyList((identifier, *whole.ids), (obj.id.raw, *whole.packed))
        return Command.CREATE, obj.path or "", None, listed
    if change.kind is ChangeKind.UPDATE:
        return Command.UPDATE, None, obj.id, changed_properties(obj, change.changed)
    return Command.DELETE, None, obj.id, deletion(obj.type, scope_of(obj))


def _needs_all(change: OwnChange) -> bool:
    """Returns whether other sites may hold an old copy of a queue that is now its site's own (E58).

    They get all of it, so that a copy under a number is what the authority had under it.
    """
    if change.kind is not ChangeKind.UPDATE or change.before is None:
        return False
    return scope_of(change.before) is Scope.SITE


def synchronized(
    change: Change, previous_seq: SequenceNumber, purged_seq: SequenceNumber
) -> DirectoryChange:
    """An object or a tombstone as a sync reply holds it (3.2.7.3, 3.2.7.8)."""
    if isinstance(change, DeletedObject):
        command = Command.DELETE
        properties = deletion(change.object_type, change.scope)
    else:
        command = Command.SYNC
        properties = whole_object(change)
    return DirectoryChange(
        command,
        None,
        change.id,
        change.partition,
        previous_seq,
        change.seq,
        purged_seq,
        properties,
    )


def deletion(object_type: ObjectType, scope: Scope) -> Listed:
    """The properties of a deletion as every receiver reads them (E14): the scope, then the type."""
    return (
        pair(PropId.D_SCOPE, int(scope)),
        pair(PropId.D_OBJTYPE, int(object_type)),
    )


def scope_of(obj: DirectoryObject) -> Scope:
    """A queue may be known in its site alone; everything else the enterprise knows."""
    if obj.type is ObjectType.QUEUE and obj.value(PropId.Q_SCOPE) == Scope.SITE:
        return Scope.SITE
    return Scope.ENTERPRISE


# --- The names that logs give to a change ---------------------------------------------------------
# The same at all servers, so that it can be followed.
#
# The authority numbers a change, and that number travels with it: partition and number name it at
# every server. A server that forwards one does not know the number yet, but the request's own names
# travel too (E46), and the authority knows both.


def change_id(partition: Guid, seq: SequenceNumber) -> str:
    """``2b0d...-0c11:0000000000000042``"""
    return f"{partition}:{seq}"


def request_id(requester: str, number: int) -> str:
    """``ber-dir2:0000a1b2``: a change request, by RequesterName and RequestIdentifier."""
    return f"{name_key(requester)}:{number:08x}"


def parse_change_id(text: str) -> tuple[Guid, SequenceNumber] | None:
    """None for what is no such name."""
    partition, _, number = text.rpartition(":")
    try:
        return Guid.parse(partition), SequenceNumber.parse(number)
    except ValueError:
        return None


def parse_request_id(text: str) -> tuple[str, int] | None:
    """None for what is no such name."""
    requester, _, number = text.rpartition(":")
    if not requester or len(number) != 8:
        return None
    try:
        return name_key(requester), int(number, 16)
    except ValueError:
        return None


# --------------------------------------------------------------------------------------------------
# The journal record of a change that this server made as the authority (docs/journal.md).


def local_record(change: OwnChange, outgoing: DirectoryChange, time_us: int) -> JournalRecord:
    """Returns the record of ``change``; ``outgoing`` is the change as neighbours receive it."""
    return JournalRecord(
        time_us,
        RecordKind.CHANGE,
        RecordState.LOCAL,
        peer=change.by,
        operation=outgoing.command,
        partition=outgoing.partition,
        seq=outgoing.seq,
        previous_seq=outgoing.previous_seq,
        object_type=change.obj.type,
        object_id=change.obj.id,
        body=_body(change, outgoing),
    )


def _body(change: OwnChange, outgoing: DirectoryChange) -> bytes:
    """Every property that was set, also those that do not travel.

    A deletion sets none: its record holds the scope and the type that travel (E14).
    """
    held = change.obj.properties
    properties = tuple((propid, held[propid]) for propid in change.changed if propid in held)
    if not properties or PropertyList.of(properties) == PropertyList.of(outgoing.properties):
        return outgoing.encoded
    return replace(outgoing, properties=properties).encoded


def unsent_record(change: OwnChange, time_us: int) -> JournalRecord:
    """Returns the record of a change that a command makes while the server does not run."""
    return local_record(change, propagated(change, SequenceNumber.MIN), time_us)
