"""The export format: a directory as JSON Lines, for import, export, backup and the pipeline.

Line 1 is the header, the last line has the digest, every other line is one object or tombstone:

    {"format":"mqis-directory","version":2,"server":{"id":GUID,"name":"ams-dir1"},
     "enterprise":"Meridian","partitions":[...],"lines":84}
    {"type":"queue","id":GUID,"partition":GUID,"seq":HEX,"path":"ams-app1\\orders",
     "props":{"103":{"vt":"VT_LPWSTR","value":"ams-app1\\orders"},...}}
    {"type":"deleted","id":GUID,"partition":GUID,"seq":HEX,"object_type":"queue","scope":"site"}
    {"type":"end","sha256":HEX}

Order: by type as in ``ORDER``, so that whatever an object refers to stands before it, within a type
ascending by the bytes of the identifier, which is how stores list objects; then tombstones by
partition and number. Properties ascend by number. Equal stores thus give equal bytes.

Values: text and integers as they are, GUIDs as text, VT_BLOB and VT_UI1|VT_VECTOR as base64, lists
as lists, VT_EMPTY and VT_NULL as null. Everything outside ASCII is escaped, which also carries the
lone surrogates that Windows names may hold. ``lines`` counts the lines after the first one, so that
a file that was cut off is found out; a file made by hand may leave it away.

``server`` is the server whose store was exported, null if nobody knows. The digest is that of all
lines before, each with a line feed, so that an editor that writes other line ends or a byte order
mark changes nothing. Version 1 has neither; it is read, and is what people write by hand.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from mqis.protocol.directory.objects import (
    NAME_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Partition,
    PurgeState,
    Scope,
)
from mqis.protocol.ports import Change
from mqis.texts import shortened
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import MAX_VARIANT_DEPTH, PropVariant, Value, VarType
from mqis.wire.seqnum import SequenceNumber

FORMAT = "mqis-directory"
VERSION = 2
#: Version 1 has no server and no digest.
_WITHOUT_DIGEST = 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Bytes of a line, its end included. No object of a directory comes near.
MAX_LINE = 16 << 20
TOO_LONG = f"a line has at most {MAX_LINE:,} bytes"

#: Sites before what lies in them, machines before their queues.
ORDER: tuple[ObjectType, ...] = (
    ObjectType.ENTERPRISE,
    ObjectType.SITE,
    ObjectType.CN,
    ObjectType.ROUTINGLINK,
    ObjectType.USER,
    ObjectType.MACHINE,
    ObjectType.QUEUE,
)


class ExportError(MqisError):
    """A line is wrong: where, under which key, and why."""

    def __init__(self, reason: str, line: int, key: str = "", source: str = "") -> None:
        where = ", ".join(part for part in (f"line {line}", key) if part)
        super().__init__(": ".join(part for part in (source, where, reason) if part))
        self.reason = reason
        self.line = line
        self.key = key
        self.source = source

    def __reduce__(self) -> tuple[type[ExportError], tuple[str, int, str, str]]:
        return type(self), (self.reason, self.line, self.key, self.source)


@dataclass(frozen=True, slots=True)
class ExportedServer:
    """The server whose store was exported: its queue manager's identifier and name."""

    id: Guid
    name: str


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """Line 1, which describes the whole file."""

    enterprise: str | None
    partitions: tuple[Partition, ...]
    #: How many lines follow, that of the digest included; None where the file does not tell.
    lines: int | None = None
    server: ExportedServer | None = None
    version: int = VERSION

    @property
    def has_digest(self) -> bool:
        return self.version > _WITHOUT_DIGEST


# --- writing --------------------------------------------------------------------------------------

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False).encode


def format_header(header: ExportHeader) -> str:
    """Line 1, without its line end."""
    server = header.server
    content: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "server": None if server is None else {"id": str(server.id), "name": server.name},
        "enterprise": header.enterprise,
        "partitions": [_partition_to_json(partition) for partition in header.partitions],
    }
    if header.lines is not None:
        content["lines"] = header.lines
    return _encode(content)


def format_entry(entry: Change) -> str:
    """The line of an object or a tombstone, without its line end."""
    if isinstance(entry, DeletedObject):
        return _encode(
            {
                "type": ObjectType.DELETEDOBJECT.label,
                "id": str(entry.id),
                "partition": str(entry.partition),
                "seq": str(entry.seq),
                "object_type": entry.object_type.label,
                "scope": entry.scope.name.lower(),
            }
        )
    properties = entry.properties
    return _encode(
        {
            "type": entry.type.label,
            "id": str(entry.id),
            "partition": str(entry.partition),
            "seq": str(entry.seq),
            "path": entry.path,
            "props": {str(int(p)): variant_to_json(properties[p]) for p in sorted(properties)},
        }
    )


def format_end(digest: bytes) -> str:
    """The last line, without its line end; ``digest`` is the SHA-256 of all lines before it."""
    return _encode({"type": "end", "sha256": digest.hex()})


#: The beginning of the line with the digest, also as other programs write JSON.
_END = re.compile(rb'\s*\{\s*"type"\s*:\s*"end"')


def is_end(line: bytes) -> bool:
    """Returns whether a line is the last one of an export, with its digest."""
    return _END.match(line) is not None


def sealed(lines: Iterable[str]) -> Iterator[str]:
    """The lines of an export, and the last one with their digest."""
    digest = sha256()
    for line in lines:
        digest.update(f"{line}\n".encode("ascii"))
        yield line
    yield format_end(digest.digest())


def variant_to_json(variant: PropVariant) -> dict[str, object]:
    return {"vt": _VT_TEXT[variant.vt], "value": value_to_json(variant.value)}


def value_to_json(value: Value | PropVariant) -> object:
    """A bare value in the form that the format gives it."""
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Guid):
        return str(value)
    if isinstance(value, tuple):
        return [value_to_json(element) for element in value]
    if isinstance(value, PropVariant):
        return variant_to_json(value)
    return value


def _partition_to_json(partition: Partition) -> dict[str, object]:
    return {
        "id": str(partition.id),
        "owner": partition.owner,
        "last_seq": str(partition.last_seq),
        "purged_seq": str(partition.purged_seq),
        "allowed_purge_seq": str(partition.allowed_purge_seq),
        "purge_state": partition.purge_state.name.lower(),
    }


_VT_TEXT = {vt: str(vt) for vt in VarType}


# --- reading --------------------------------------------------------------------------------------


class _LineError(Exception):
    """A fault under a key; the caller that knows the line adds it."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        self.reason = reason


def parse_header(text: str) -> ExportHeader:
    """Line 1; any other line 1 than of this format and of a known version is refused."""
    try:
        content = _load(text)
        if content.get("format") != FORMAT:
            raise _LineError("format", f"this is not an export of mqis, which has {FORMAT!r} here")
        version = content.get("version")
        if version not in (_WITHOUT_DIGEST, VERSION):
            versions = f"{_WITHOUT_DIGEST} or {VERSION}"
            raise _LineError(
                "version", f"{version!r} is not version {versions}, which this mqis reads"
            )
        named = frozenset({"server"}) if version == VERSION else frozenset()
        _check_keys(content, _HEADER_KEYS | named, optional=frozenset({"lines"}))
        return ExportHeader(
            _optional_text(content["enterprise"], "enterprise"),
            _partitions(content["partitions"]),
            _count(content.get("lines"), "lines"),
            _server(content.get("server")),
            version,
        )
    except _LineError as fault:
        raise ExportError(fault.reason, 1, fault.key) from None


def parse_entry(text: str, line: int) -> Change:
    """An object or a tombstone from its line; ``line`` is its number, for errors."""
    try:
        content = _load(text)
        kind = content.get("type")
        if kind == "deleted":
            return _tombstone(content)
        return _object(content, _parsed(_object_type, kind, "type"))
    except _LineError as fault:
        raise ExportError(fault.reason, line, fault.key) from None


def parse_end(text: str, line: int) -> bytes:
    """The digest in the last line."""
    try:
        content = _load(text)
        _check_keys(content, _END_KEYS)
        return _parsed(_digest, content["sha256"], "sha256")  # type: ignore[no-any-return]
    except _LineError as fault:
        raise ExportError(fault.reason, line, fault.key) from None


def parse_properties(text: str) -> dict[int, PropVariant]:
    """The properties of an object from their part of its line, which has been read before."""
    return _properties(_decode(text))


def check_against_catalogue(obj: DirectoryObject, line: int) -> None:
    """Refuse what no directory could hold: a property of another type, or of a wrong variant type.

    The format itself does not ask, so that a reader of exports can show damaged ones.
    """
    for propid, variant in obj.properties.items():
        entry = PROPERTIES.get(propid)
        if entry is None or entry.object_type is not obj.type:
            reason = f"{propid} is not a property of a {obj.type.label}"
            raise ExportError(reason, line, f"props.{int(propid)}")
        if entry.vt is not variant.vt:
            reason = f"{entry.name} is {entry.vt}, not {variant.vt}"
            raise ExportError(reason, line, f"props.{int(propid)}.vt")
    name = NAME_PROPERTY.get(obj.type)
    if name is not None and name not in obj.properties:
        raise ExportError(f"a {obj.type.label} needs {PROPERTIES[name].name}", line, "props")
    if not obj.id:
        raise ExportError("the null GUID identifies nothing", line, "id")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        counted = Counter(key for key, _ in pairs)
        raise _LineError("", f"the key {next(k for k in counted if counted[k] > 1)!r} stands twice")
    return content


_decode = json.JSONDecoder().decode
_decode_strictly = json.JSONDecoder(object_pairs_hook=_unique).decode


def _load(text: str) -> dict[str, Any]:
    if not text.strip():
        raise _LineError("", "the line is empty")
    try:
        content = _decode(text)
        # A key that stands twice has a colon that is not accounted for. Colons in strings look
        # like that too, so then each object is looked at, which takes half as long again.
        if text.count(":") != _colons(content):
            content = _decode_strictly(text)
    except json.JSONDecodeError as error:
        raise _LineError(f"column {error.colno}", f"not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        raise _LineError("", f"not JSON that can be read: {error}") from None
    if not isinstance(content, dict):
        raise _LineError("", f"wants an object in braces, got {_short(content)}")
    return content


def _colons(content: Any) -> int:
    """Returns the number of colons of an object or a tombstone whose values are plain."""
    props = content.get("props") if isinstance(content, dict) else None
    return len(content) + 3 * len(props) if isinstance(props, dict) else 6


_HEADER_KEYS = frozenset({"format", "version", "enterprise", "partitions"})
_PARTITION_KEYS = frozenset(
    {"id", "owner", "last_seq", "purged_seq", "allowed_purge_seq", "purge_state"}
)
_OBJECT_KEYS = frozenset({"type", "id", "partition", "seq", "path", "props"})
_TOMBSTONE_KEYS = frozenset({"type", "id", "partition", "seq", "object_type", "scope"})
_VARIANT_KEYS = frozenset({"vt", "value"})
_SERVER_KEYS = frozenset({"id", "name"})
_END_KEYS = frozenset({"type", "sha256"})


def _check_keys(
    content: Mapping[str, Any],
    wanted: frozenset[str],
    where: str = "",
    optional: frozenset[str] = frozenset(),
) -> None:
    if content.keys() == wanted:
        return
    prefix = f"{where}." if where else ""
    for key in sorted(wanted - content.keys()):
        raise _LineError(f"{prefix}{key}", "is missing")
    for key in content:
        if key not in wanted and key not in optional:
            known = ", ".join(sorted(wanted | optional))
            raise _LineError(f"{prefix}{key}", f"is not a key of this line ({known})")


def _object(content: dict[str, Any], object_type: ObjectType) -> DirectoryObject:
    _check_keys(content, _OBJECT_KEYS)
    props = content["props"]
    if not isinstance(props, dict):
        raise _LineError("props", f"wants an object in braces, got {_short(props)}")
    obj = DirectoryObject(
        object_type,
        _parsed(_guid, content["id"], "id"),
        _parsed(_guid, content["partition"], "partition"),
        _parsed(SequenceNumber.parse, content["seq"], "seq"),
        _properties(props),
    )
    path = _optional_text(content["path"], "path")
    if path != obj.path:
        raise _LineError("path", f"{path!r} disagrees with the name in props, {obj.path!r}")
    return obj


def _tombstone(content: dict[str, Any]) -> DeletedObject:
    _check_keys(content, _TOMBSTONE_KEYS)
    return DeletedObject(
        _parsed(_guid, content["id"], "id"),
        _parsed(_guid, content["partition"], "partition"),
        _parsed(SequenceNumber.parse, content["seq"], "seq"),
        _parsed(_object_type, content["object_type"], "object_type"),
        _word(Scope, content["scope"], "scope"),
    )


def _server(content: object) -> ExportedServer | None:
    if content is None:
        return None
    if not isinstance(content, dict):
        raise _LineError("server", f"wants an object in braces or null, got {_short(content)}")
    _check_keys(content, _SERVER_KEYS, "server")
    return ExportedServer(
        _parsed(_guid, content["id"], "server.id"), _parsed(str, content["name"], "server.name")
    )


def _partitions(content: object) -> tuple[Partition, ...]:
    found: dict[Guid, Partition] = {}
    for index, entry in enumerate(_list(content, "partitions")):
        where = f"partitions[{index}]"
        partition = _partition(entry, where)
        if partition.id in found:
            raise _LineError(f"{where}.id", f"partition {partition.id} stands twice")
        found[partition.id] = partition
    return tuple(found.values())


def _partition(content: object, where: str) -> Partition:
    if not isinstance(content, dict):
        raise _LineError(where, f"wants an object in braces, got {_short(content)}")
    _check_keys(content, _PARTITION_KEYS, where)
    return Partition(
        _parsed(_guid, content["id"], f"{where}.id"),
        _parsed(str, content["owner"], f"{where}.owner"),
        _parsed(SequenceNumber.parse, content["last_seq"], f"{where}.last_seq"),
        _parsed(SequenceNumber.parse, content["purged_seq"], f"{where}.purged_seq"),
        _parsed(SequenceNumber.parse, content["allowed_purge_seq"], f"{where}.allowed_purge_seq"),
        _word(PurgeState, content["purge_state"], f"{where}.purge_state"),
    )


# --- values ---------------------------------------------------------------------------------------


def _properties(props: dict[str, Any]) -> dict[int, PropVariant]:
    """Most values of a directory are the same few, so what was right once is remembered."""
    try:
        if sum(map(len, props.values())) == 2 * len(props):
            return {_propid(k): _remembered(p["vt"], p["value"]) for k, p in props.items()}
    except (TypeError, KeyError, ValueError):  # a list, which cannot be, or a fault to be named
        pass
    return {_propid(key): _variant(variant, f"props.{key}") for key, variant in props.items()}


@lru_cache(maxsize=1024)
def _propid(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) <= 10) or (key[0] == "0" and key != "0"):
        raise _LineError(f"props.{key}", "a property is named by its number")
    number = int(key)
    if number >= 1 << 32:
        raise _LineError(f"props.{key}", "a property number has 32 bits")
    return number


@lru_cache(maxsize=8192, typed=True)
def _remembered(vt: str, value: Any) -> PropVariant:
    return _plain(_VT_OF_TEXT[vt], value)


def _plain(vt: VarType, value: Any) -> PropVariant:
    read = _READ.get(vt)
    if read is None:
        return PropVariant(vt, value)
    try:
        given = read(value)
    except ValueError as error:
        raise ValueError(f"{vt}: {error}") from None
    return PropVariant(vt, given)


def _variant(content: object, where: str, depth: int = 0) -> PropVariant:
    if not isinstance(content, dict):
        raise _LineError(where, f'wants {{"vt": ..., "value": ...}}, got {_short(content)}')
    _check_keys(content, _VARIANT_KEYS, where)
    text, value = content["vt"], content["value"]
    vt = _VT_OF_TEXT.get(text) if isinstance(text, str) else None
    if vt is None:
        raise _LineError(f"{where}.vt", f"{_short(text)} is not a variant type (VT_UI4, ...)")
    where = f"{where}.value"
    if vt is VarType.VECTOR_VARIANT:
        if depth >= MAX_VARIANT_DEPTH:
            raise _LineError(where, f"variants nest deeper than {MAX_VARIANT_DEPTH}")
        items = enumerate(_list(value, where))
        return PropVariant(vt, tuple(_variant(v, f"{where}[{i}]", depth + 1) for i, v in items))
    try:
        return _plain(vt, value)
    except ValueError as error:
        raise _LineError(where, str(error)) from None


def _octets(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"wants base64 text, got {_short(value)}")
    try:
        return b64decode(value, validate=True)
    except ValueError as error:
        raise ValueError(f"wants base64 text: {error}") from None


@lru_cache(maxsize=4096)
def _guid(text: str) -> Guid:
    """Cached, because whole directories name the same few sites and machines."""
    return Guid.parse(text)


def _clsid(value: object) -> Guid:
    if not isinstance(value, str):
        raise ValueError(f"wants a GUID as text, got {_short(value)}")
    return _guid(value)


def _items(read: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def convert(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"wants a list, got {_short(value)}")
        return tuple(value if read is None else map(read, value))

    return convert


_VT_OF_TEXT = {str(vt): vt for vt in VarType}
#: How the types that JSON does not have are written; the others are taken as they are.
_READ: dict[VarType, Callable[[Any], Any]] = {
    VarType.BLOB: _octets,
    VarType.VECTOR_UI1: _octets,
    VarType.CLSID: _clsid,
    VarType.VECTOR_CLSID: _items(_clsid),
    VarType.VECTOR_I4: _items(None),
    VarType.VECTOR_UI2: _items(None),
    VarType.VECTOR_UI4: _items(None),
    VarType.VECTOR_UI8: _items(None),
    VarType.VECTOR_LPWSTR: _items(None),
}


def _digest(text: str) -> bytes:
    if len(text) != 2 * sha256().digest_size:
        raise ValueError("a SHA-256 has 64 hexadecimal digits")
    return bytes.fromhex(text)


def _object_type(text: str) -> ObjectType:
    found = ObjectType.parse(text)
    if found not in ORDER:
        raise ValueError(f"{text!r} is not the type of an object")
    return found


def _parsed(parse: Callable[[str], Any], value: object, key: str) -> Any:
    if not isinstance(value, str):
        raise _LineError(key, f"wants text, got {_short(value)}")
    try:
        return parse(value)
    except ValueError as error:
        raise _LineError(key, str(error)) from None


def _word(words: type[Scope | PurgeState], value: object, key: str) -> Any:
    known = {member.name.lower(): member for member in words}
    if not isinstance(value, str) or value not in known:
        raise _LineError(key, f"{_short(value)} is none of {', '.join(known)}")
    return known[value]


def _optional_text(value: object, key: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _LineError(key, f"wants text or null, got {_short(value)}")
    return value


def _count(value: object, key: str) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise _LineError(key, f"wants a number of lines, got {_short(value)}")
    return value


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise _LineError(key, f"wants a list, got {_short(value)}")
    return value


def _short(value: object) -> str:
    return shortened(repr(value), 60)
