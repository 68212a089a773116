"""Descriptions of the parameters of calls, by interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from mqis.protocol.capture.plain import field_names
from mqis.protocol.capture.row import Meaning
from mqis.texts import counted, some
from mqis.wire.cmp.boxcar import BoxcarReader
from mqis.wire.cmp.packet import PACKET_SIZE, MsgTag, Packet
from mqis.wire.cmpo import ixnremote as oletx
from mqis.wire.cmpo.codes import SessionRank, TeardownType, result_name
from mqis.wire.errors import WireError
from mqis.wire.hresult import name_of
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.rpc.tower import Tower

_LISTED = 3


class Explained(NamedTuple):
    """The description of a request or response; ``inner`` are the messages inside it."""

    summary: str
    detail: Any
    machines: tuple[str, ...] = ()
    #: Length and description of each.
    inner: tuple[tuple[int, Meaning], ...] = ()
    error: str | None = None


Explain = Callable[[Any], Explained]


def _code_name(codes: type[IntEnum], number: int) -> str:
    try:
        return codes(number).name.lower()
    except ValueError:
        return str(number)


# --- dscomm, dscomm2 ------------------------------------------------------------------------------


def directory(value: Any) -> Explained:
    """Describes the fields that the directory calls share: an object, properties, a result."""
    detail = {name: getattr(value, name) for name in field_names(type(value))}
    if "ids" in detail:
        detail["ids"] = [_property(propid) for propid in detail["ids"]]
    return Explained(", ".join(_directory(detail)), detail, _machines(detail))


def _directory(detail: dict[str, Any]) -> Iterator[str]:
    kind = [_object_type(detail["object_type"])] if "object_type" in detail else []
    names = [str(detail[key]) for key in ("path", "guid") if detail.get(key)]
    if kind or names:
        yield " ".join(kind + names)
    if "ids" in detail:
        yield some(detail["ids"], _LISTED)
    elif "values" in detail:
        yield counted(len(detail["values"]), "value")
    if "port" in detail:
        yield f"port {detail['port']}"
    if "result" in detail:
        yield name_of(detail["result"])


def _machines(detail: dict[str, Any]) -> tuple[str, ...]:
    path = detail.get("path")
    if path and detail.get("object_type") in (ObjectType.QUEUE, ObjectType.MACHINE):
        return (path.partition("\\")[0],)
    return ()


def _object_type(number: int) -> str:
    try:
        return ObjectType(number).label
    except ValueError:
        return f"type {number}"


def _property(propid: int) -> str:
    return PROPERTIES[propid].name if propid in PROPERTIES else str(propid)


# --- IXnRemote, and the boxcars in it -------------------------------------------------------------


def partner(value: Any) -> Explained:
    if isinstance(value, oletx.SendReceive):
        return _boxcar(value)
    if isinstance(value, oletx.Poke | oletx.BuildContext):
        rank = _code_name(SessionRank, value.rank)
        summary = f"{value.host_name} ({rank}) {value.caller} to {value.callee}"
        return Explained(summary, value, (value.host_name,))
    if isinstance(value, oletx.NegotiateResources):
        return Explained(f"{value.requested} connections wanted", value)
    if isinstance(value, oletx.TearDownContext | oletx.BeginTearDown):
        return Explained(_code_name(TeardownType, value.teardown), value)
    summary = result_name(value.result)
    if isinstance(value, oletx.ResourcesNegotiated):
        summary = f"{value.accepted} connections granted, {summary}"
    return Explained(summary, value)


def _boxcar(value: oletx.SendReceive) -> Explained:
    detail = {"handle": value.handle, "messages": value.messages, "bytes": len(value.boxcar)}
    try:
        boxcar = BoxcarReader(value.boxcar, value.messages)
    except WireError as error:
        return Explained("a boxcar", detail, error=f"in the boxcar: {error}")
    inner = tuple((PACKET_SIZE + len(packet.data), _packet(packet)) for packet in boxcar)
    summary = f"{len(value.boxcar)} bytes with {counted(len(inner), 'message')}"
    dropped = boxcar.remainder
    if dropped is None:
        return Explained(summary, detail, (), inner)
    reason = f"in the boxcar: {dropped.reason} at offset {dropped.offset}"
    return Explained(summary, detail, (), inner, f"{reason}, {dropped.messages} messages dropped")


def _packet(packet: Packet) -> Meaning:
    tag = MsgTag(packet.tag)
    summary = f"connection {packet.connection_id}"
    if tag is MsgTag.USER_MESSAGE:
        summary += f", type 0x{packet.user_msg_type:x}, {len(packet.data)} bytes"
    elif tag is MsgTag.CONNECTION_REQ_DENIED and packet.reason is not None:
        summary += f", reason 0x{packet.reason:08x}"
    elif packet.user_msg_type:
        summary += f", type 0x{packet.user_msg_type:x}"
    detail = {
        "is_master": packet.is_master,
        "connection_id": packet.connection_id,
        "user_msg_type": packet.user_msg_type,
        "data": bytes(packet.data),
    }
    return Meaning("cmp", tag.name, summary, detail)


# --- the endpoint mapper and the management interface ---------------------------------------------


def mapper(value: Any, names: dict[SyntaxId, str]) -> Explained:
    """Describes calls of the endpoint mapper: the interfaces in towers, and their addresses."""
    if isinstance(value, epmapper.MapAsked):
        return Explained(_towers([value.tower], names), value)
    if isinstance(value, epmapper.MapFound):
        return Explained(_towers(value.towers, names) or _status(value.status), value)
    if isinstance(value, epmapper.LookupFound):
        found = _towers([entry.tower for entry in value.entries], names)
        return Explained(found or _status(value.status), value)
    return Explained("", value)


def _towers(towers: Any, names: dict[SyntaxId, str]) -> str:
    texts = [_tower(tower.octets, names) for tower in towers if tower is not None]
    return some(texts, _LISTED)


def _tower(octets: bytes, names: dict[SyntaxId, str]) -> str:
    try:
        tower = Tower.from_bytes(octets)
    except WireError as error:
        return f"a tower that cannot be read ({error})"
    interface = tower.interface
    name = "?" if interface is None else names.get(interface, str(interface))
    return f"{name} at {tower.address}:{tower.port}" if tower.port else name


def _status(status: int) -> str:
    return _code_name(epmapper.EpmStatus, status)


def management(value: Any) -> Explained:
    return Explained("", value)
