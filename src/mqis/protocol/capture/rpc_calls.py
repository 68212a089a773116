"""Calls without an answer yet, and the decoding of their stubs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from mqis.protocol.authentication import AuthLevel
from mqis.protocol.capture.explaining import (
    Explain,
    Explained,
    directory,
    management,
    mapper,
    partner,
)
from mqis.protocol.capture.plain import field_names
from mqis.wire.cmpo.ixnremote import IXN_REMOTE
from mqis.wire.errors import WireError
from mqis.wire.mqds.dscomm import DSCOMM
from mqis.wire.mqds.dscomm2 import DSCOMM2
from mqis.wire.ndr import Parameters, Syntax
from mqis.wire.rpc.epmapper import EPMAPPER
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId
from mqis.wire.rpc.mgmt import MGMT
from mqis.wire.rpc.pdu import Pdu
from mqis.wire.rpc.pdu_bodies import Request, Response

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
