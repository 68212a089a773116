"""Calls without an answer yet, and the decoding of their stubs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from mqis.protocol.authentication import AuthLevel
from mqis.protocol.capture.plain import field_names
from mqis.protocol.capture.row import Meaning
from mqis.texts import counted, host_port, some
from mqis.wire.cmp.boxcar import BoxcarReader
from mqis.wire.cmp.packet import PACKET_SIZE, MsgTag, Packet
from mqis.wire.cmpo import ixnremote as oletx
from mqis.wire.cmpo.codes import SessionRank, TeardownType, result_name
from mqis.wire.cmpo.ixnremote import IXN_REMOTE
from mqis.wire.errors import WireError
from mqis.wire.hresult import name_of
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.dscomm import DSCOMM
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.ndr import Parameters, Syntax
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.epmapper import EPMAPPER
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.rpc.mgmt import MGMT
from mqis.wire.rpc.pdu import Pdu
from mqis.wire.rpc.pdu_bodies import Request, Response
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
    return f"{name} at {host_port(tower.address or '?', tower.port)}" if tower.port else name


def _status(status: int) -> str:
    return _code_name(epmapper.EpmStatus, status)


def management(value: Any) -> Explained:
    return Explained("", value)


MISSING = "fragments are missing"


@dataclass(slots=True)
class UnansweredCall:
    """A request whose answer is still to come, and the side that sent it."""

    side: int
    protocol: str
    name: str
    interface: InterfaceProtocol | None = None
    operation: Operation[Any, Any] | None = None
    syntax: Syntax | None = None
    #: The reason that the interface is not known.
    unknown: str = ""
    is_callback: bool = False
    #: Sizes that decoding the answer needs; None if the request could not be decoded.
    given: dict[str, int] | None = field(default_factory=dict)


@dataclass(slots=True)
class Stub:
    """The fragments of a request or response so far."""

    first: Pdu
    #: The losses that its side had had when it began.
    losses: int = 0
    octets: bytearray = field(default_factory=bytearray)
    #: Bytes of all PDUs.
    length: int = 0
    encrypted: bool = False
    #: The reason that it cannot be reassembled.
    broken: str = ""

    @property
    def is_request(self) -> bool:
        return isinstance(self.first.body, Request)

    @property
    def call_id(self) -> int:
        return self.first.header.call_id

    def extend(self, pdu: Pdu, body: Request | Response, max_stub: int) -> None:
        self.length += len(pdu.data)
        octets = body.stub
        if pdu.auth is not None:
            self.encrypted |= pdu.auth.level == AuthLevel.PRIVACY
            octets = octets[: max(0, len(octets) - pdu.auth.pad_length)]
        if len(self.octets) + len(octets) > max_stub:
            self.broken = f"a stub of more than {max_stub} bytes"
        if not self.broken:
            self.octets += octets


def read(call: UnansweredCall, stub: Stub) -> Explained:
    """Decodes and describes a stub; keeps a request's sizes in ``call.given`` for the answer."""
    found = _unreadable(call, stub)
    value = None
    if found is None:
        value, found = _decoded(call, stub)
    if stub.is_request:
        call.given = None if value is None else _sizes(value)
    return found


def _unreadable(call: UnansweredCall, stub: Stub) -> Explained | None:
    """The reason that a stub cannot be decoded; None if it can."""
    is_big = stub.first.header.big_endian
    octets = bytes(stub.octets)
    checks: tuple[tuple[bool, str, str], ...] = (
        (bool(stub.broken), "", stub.broken),
        (stub.encrypted, "the stub is encrypted", ""),
        (call.interface is None, call.unknown, ""),
        (call.operation is None, "", "the interface has no such operation"),
        (call.syntax is None, "in a transfer syntax that is not known", ""),
        (call.given is None, "its request could not be read", ""),
        (is_big and call.syntax is Syntax.NDR64, "", "NDR64 is little-endian only"),
    )
    for applies, summary, error in checks:
        if applies:
            detail = {"encrypted" if stub.encrypted else "stub": octets}
            return Explained(summary, detail, error=error or None)
    return None


def _decoded(call: UnansweredCall, stub: Stub) -> tuple[Any, Explained]:
    assert call.interface is not None
    assert call.operation is not None
    assert call.syntax is not None
    operation, octets = call.operation, bytes(stub.octets)
    parameters: Parameters[Any] = operation.request if stub.is_request else operation.response
    try:
        value = parameters.decode(
            octets,
            call.syntax,
            big_endian=stub.first.header.big_endian,
            given=call.given or {},
            allow_surplus=True,
        )
    except WireError as error:
        return None, Explained("", {"stub": octets}, error=f"in the stub: {error}")
    return value, call.interface.explain(value)


def _sizes(value: Any) -> dict[str, int]:
    """The fields of a request that array sizes in the answer can refer to."""
    numbers = {name: getattr(value, name) for name in field_names(type(value))}
    given = {name: number for name, number in numbers.items() if isinstance(number, int)}
    if "ids" in numbers:
        given["cp"] = len(numbers["ids"])
    return given


# --- The RPC interfaces whose calls are decoded ---------------------------------------------------
# To add one, add a line.

#: Names of all interfaces, for descriptions of the endpoint mapper's calls.
_NAMES: dict[SyntaxId, str] = {}


class InterfaceProtocol(NamedTuple):
    description: InterfaceDescription
    explain: Explain

    @property
    def name(self) -> str:
        return self.description.name.lower()


INTERFACES: tuple[InterfaceProtocol, ...] = (
    InterfaceProtocol(DSCOMM, directory),
    InterfaceProtocol(DSCOMM2, directory),
    InterfaceProtocol(IXN_REMOTE, partner),
    InterfaceProtocol(EPMAPPER, partial(mapper, names=_NAMES)),
    InterfaceProtocol(MGMT, management),
)

BY_SYNTAX: dict[SyntaxId, InterfaceProtocol] = {
    each.description.syntax: each for each in INTERFACES
}
_NAMES.update({syntax: each.description.name for syntax, each in BY_SYNTAX.items()})
