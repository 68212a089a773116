"""The journal record of a change that this server made as the authority (docs/journal.md)."""

from __future__ import annotations

from dataclasses import replace

from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.replication.changes import propagated
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from mqis.wire.mqdsrp.change import DirectoryChange
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.seqnum import SequenceNumber


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
