"""Journal records as text, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from typing import Any

from mqis.protocol.capture.plain import json_integer
from mqis.texts import iso_moment
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.journal import Corrupt, JournalRecord, RecordKind, Whole
from mqis.wire.journal.record import decode_body
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.describing import operation_name
from mqis.wire.mqdsrp.propertylist import PropertyList
from mqis.wire.propvariant import VarType
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber


def what(record: JournalRecord) -> str:
    """The name of a record's message, or of its change: ``create queue``."""
    if record.kind is RecordKind.MESSAGE:
        return operation_name(record.operation).replace("_", " ")
    command = _command_name(record.operation)
    try:
        return f"{command} {ObjectType(record.object_type).label}"
    except ValueError:
        return f"{command} type {record.object_type}"


def _command_name(value: int) -> str:
    try:
        return Command(value).name.lower()
    except ValueError:
        return f"command {value}"


def record_summary(entry: Whole | Corrupt) -> dict[str, object]:
    """A record as plain values, without its body."""
    if isinstance(entry, Corrupt):
        return {"corrupt": True, "offset": entry.offset, "reason": entry.reason}
    record = entry.record
    return {
        "lsn": entry.lsn,
        "time": iso_moment(record.time_us),
        "time_us": record.time_us,
        "kind": record.kind.name.lower(),
        "state": record.state.name.lower(),
        "what": what(record),
        "operation": record.operation,
        "peer": record.peer,
        "message": None if record.message is None else str(record.message),
        "session": record.session,
        "partition": str(record.partition),
        "seq": str(record.seq),
        "previous_seq": str(record.previous_seq),
        "object_type": record.object_type,
        "object_id": None if record.object_id == Guid.NULL else str(record.object_id),
        "reason": record.reason,
        "body_bytes": len(record.body),
    }


def everything(entry: Whole) -> dict[str, object]:
    """A record as plain values, with its decoded body; hexadecimal if it cannot be decoded."""
    content = record_summary(entry)
    try:
        content["body"] = as_json(decode_body(entry.record))
    except WireError as error:
        content["body"] = entry.record.body.hex()
        content["body_error"] = str(error)
    return content


def as_json(value: Any) -> Any:
    """Converts a value: dataclasses to objects, bytes to hexadecimal, codes to names."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if is_dataclass(value):
        shown = (field.name for field in fields(value) if field.repr)
        return {name: as_json(getattr(value, name)) for name in shown}
    return value


#: Conversions by type; the first match counts, as a flag is an enumeration and an integer too.
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((Guid, Sid, SequenceNumber, VarType), str),
    (Flag, lambda value: [flag.name for flag in type(value) if flag in value]),
    (Enum, lambda value: value.name),
    (bool, bool),
    (int, json_integer),
    (bytes, bytes.hex),
    (dict, lambda value: {str(key): as_json(item) for key, item in value.items()}),
    ((tuple, list, PropertyList), lambda value: [as_json(item) for item in value]),
)
