"""RPC under hostile bytes: decoders, stubs, and the association machines of both sides.

    python -m fuzz.rpc_targets        write the corpus of these targets anew

A machine takes anything without an exception, keeps no more than it is allowed to, and is closed
after garbage. In which pieces bytes come, and what is done with calls, follows from the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from random import Random

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.calls import Call, fragments
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client import Bound, CalledBack, ClientConnection
from mqis.protocol.rpc.client import Event as ClientEvent
from mqis.protocol.rpc.endpoint import ServerEndpoint
from mqis.protocol.rpc.faults import RpcFault
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.interface import Interface
from mqis.protocol.rpc.limits import Limits
from mqis.protocol.rpc.negotiation import MAX_FRAG
from mqis.protocol.rpc.server import CallReceived, Event, ServerConnection
from mqis.testing.rpc import Link
from mqis.testing.security import SharedSecret
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Parameters, Syntax
from mqis.wire.rpc import bodies, epmapper, mgmt
from mqis.wire.rpc.header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.pdu import Body, decode_pdu, encode_pdu
from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId, feature_syntax
from mqis.wire.rpc.tower import Tower
from mqis.wire.rpc.verification import Verification, find_verification, header_command

ECHO = Interface("echo", SyntaxId(Guid.parse("11111111-0000-0000-0000-000000000001"), 1), 4)
OTHER = Interface("other", SyntaxId(Guid.parse("22222222-0000-0000-0000-000000000001"), 1), 4)
LIMITS = Limits(max_calls=4, max_stub=20_000, max_contexts=8, max_security_contexts=4)
#: Ends every PDU that has begun, and begins one that cannot be.
GARBAGE = b"\xff" * (MAX_FRAG + 16)


class _NoEntropy:
    def guid(self) -> Guid:
        return Guid.NULL


def _endpoint() -> ServerEndpoint:
    groups = AssociationGroups(_NoEntropy())
    return ServerEndpoint((ECHO, OTHER), groups, SharedSecret(), "135", LIMITS)


def _pieces(data: bytes, rng: Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = rng.choice((1, 3, 16, 60, 500, 10_000))
        yield data[at : at + size]
        at += size


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


# --- the server machine ---------------------------------------------------------------------------


class _Server:
    """A connection whose calls are answered now, later, with a fault, or after a callback."""

    def __init__(self, rng: Random) -> None:
        self.machine = ServerConnection(_endpoint(), "peer", 0.0)
        self._rng = rng
        self._open: list[Call] = []
        self._now = 0.0

    def feed(self, data: bytes) -> None:
        self._now += 0.001
        self._take(self.machine.receive(data, self._now))
        while self.machine.stalled and self.machine.wants_data:
            self._take(self.machine.receive(b"", self._now))
        deadline = self.machine.next_timer()
        _check(deadline is None or deadline >= 0, "a deadline before the start")
        most = LIMITS.max_calls + LIMITS.max_callback_depth
        _check(len(self._open) <= most, f"{len(self._open)} calls are open")
        self.machine.data_to_send()

    def answer_all(self) -> None:
        while self._open:
            self._take(self.machine.respond(self._open.pop(), b"done", self._now))
            self.feed(b"")

    def _take(self, events: list[Event]) -> None:
        queue = list(events)
        while queue:
            event = queue.pop(0)
            if isinstance(event, CallReceived):
                self._open.append(event.call)
            queue.extend(self._act())

    def _act(self) -> list[Event]:
        if not self._open:
            return []
        action, call = self._rng.randrange(6), self._rng.choice(self._open)
        if action == 0:
            return []
        if action == 1:
            with suppress(ValueError, RpcFault):  # one is under way, or they nest too deep
                self.machine.callback(call, 1, bytes(self._rng.randrange(8000)))
            return []
        self._open.remove(call)
        if action == 2:
            return self.machine.fault(call, 0xC00E0006, self._now)
        return self.machine.respond(call, bytes(self._rng.randrange(8000)), self._now)


def run_server(data: bytes) -> None:
    rng = Random(data)
    server = _Server(rng)
    for piece in _pieces(data, rng):
        server.feed(piece)
    server.feed(GARBAGE)
    server.answer_all()
    _check(server.machine.closing, "garbage did not end the connection")
    _check(not server.machine.receive(b"more", 1.0), "a closed connection had an event")
    server.machine.connection_lost()
    _check(len(server.machine.endpoint.groups) == 0, "a group was left behind")


# --- the client machine ---------------------------------------------------------------------------


class _Client:
    """An association with a few calls on it; callbacks are answered in some way."""

    def __init__(self, rng: Random, *, authenticate: bool) -> None:
        self.machine = ClientConnection(max_stub=20_000)
        self._rng = rng
        channel = None
        if authenticate:
            context = SharedSecret().initiator(AuthType.NTLM, AuthLevel.PRIVACY, "host/server")
            channel = Channel(1, AuthType.NTLM, AuthLevel.PRIVACY, context)
        self.machine.bind([ECHO.syntax], transfers=[NDR20], channel=channel)

    def feed(self, data: bytes) -> None:
        for event in self.machine.receive(data):
            if self.machine.closed is None:
                self._handle(event)
        self.machine.data_to_send()

    def _handle(self, event: ClientEvent) -> None:
        machine, rng = self.machine, self._rng
        if isinstance(event, Bound) and event.contexts:
            calls = [machine.request(event.contexts[0], n, b"stub") for n in range(3)]
            if rng.random() < 0.2:
                machine.orphan(rng.choice(calls))
            if rng.random() < 0.2:
                machine.cancel(rng.choice(calls))
        elif isinstance(event, CalledBack):
            if rng.random() < 0.2:
                machine.fault_callback(event.call_id, 5)
            else:
                machine.answer_callback(event.call_id, bytes(rng.randrange(8000)))


def run_client(data: bytes) -> None:
    rng = Random(data)
    client = _Client(rng, authenticate=b"challenge" in data)
    for piece in _pieces(data, rng):
        client.feed(piece)
    client.feed(GARBAGE)
    _check(client.machine.closed is not None, "garbage did not end the association")
    _check(not client.machine.receive(b"more"), "a closed association had an event")


# --- stubs ----------------------------------------------------------------------------------------

_GIVEN = {"max_entries": 500, "max_towers": 500, "size": 4096}


def _stubs(parameters: list[Parameters[object]]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        for each in parameters:
            for syntax, swapped in ((Syntax.NDR20, False), (Syntax.NDR20, True), (Syntax.NDR64, False)):
                with suppress(WireError):
                    each.decode(
                        data, syntax, big_endian=swapped, given=_GIVEN, allow_surplus=True
                    )

    return run


def _both_ways(*descriptions: tuple[object, ...]) -> list[Parameters[object]]:
    return [p for ops in descriptions for op in ops for p in (op.request, op.response)]  # type: ignore[attr-defined]


#: Name, function, and the errors that are an answer.
RPC_TARGETS: tuple[tuple[str, Callable[[bytes], object], tuple[type[Exception], ...]], ...] = (
    ("pdu", decode_pdu, (WireError,)),
    ("tower", Tower.from_bytes, (WireError,)),
    ("verification", find_verification, (WireError,)),
    ("ndr-epmapper", _stubs(_both_ways(epmapper.EPMAPPER.operations)), ()),
    ("ndr-mgmt", _stubs(_both_ways(mgmt.MGMT.operations)), ()),
    ("rpc-server", run_server, ()),
    ("rpc-client", run_client, ()),
)


# --- corpus ---------------------------------------------------------------------------------------


def seeds() -> Iterator[tuple[str, bytes]]:
    """Valid inputs by target."""
    conversations = list(_conversations())
    for to_server, to_client in conversations:
        yield "rpc-server", to_server
        yield "rpc-client", to_client
    for body in _bodies():
        yield "pdu", encode_pdu(body, call_id=7, flags=FIRST_LAST)
    signed = conversations[1][0]
    yield "pdu", signed[: int.from_bytes(signed[8:10], "little")]
    yield "tower", Tower.tcp(ECHO.syntax, 2105, "192.0.2.10").to_bytes()
    yield "tower", Tower.tcp(epmapper.SYNTAX, 0, "0.0.0.0", NDR64).to_bytes()
    said = Verification(True, ECHO.syntax, NDR20, header_command(7, 0, 1))
    yield "verification", b"stub" + said.encode()
    yield "verification", Verification(False).encode()
    yield from _stub_seeds()


def _bodies() -> Iterator[Body]:
    element = bodies.ContextElement(0, ECHO.syntax, (NDR20, NDR64))
    result = bodies.ContextResult(0, 0, NDR20)
    yield bodies.Bind(5840, 5840, 0, (element, element))
    yield bodies.AlterContext(5840, 5840, 1, (element,))
    yield bodies.BindAck(5840, 5840, 1, "135", (result, bodies.ContextResult(2, 1)))
    yield bodies.AlterContextResp(5840, 5840, 1, "", (result,))
    yield bodies.BindNak(4)
    yield bodies.Auth3()
    yield bodies.Request(0, 1, b"stub", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), 4)
    yield bodies.Response(0, b"stub", 4)
    yield bodies.Fault(0, 0x1C010002)
    yield bodies.Shutdown()


def _stub_seeds() -> Iterator[tuple[str, bytes]]:
    tower = epmapper.TowerOctets(Tower.tcp(ECHO.syntax, 2105, "192.0.2.10").to_bytes())
    handle = ContextHandle(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"))
    wanted = mgmt.InterfaceId(ECHO.syntax.uuid, 1, 0)
    entry = epmapper.Entry(Guid.NULL, tower, "annotation")
    for syntax in Syntax:
        lookup = epmapper.LookupAsked(3, ECHO.syntax.uuid, wanted, 1, handle, 5)
        yield "ndr-epmapper", epmapper.EPT_LOOKUP.request.encode(lookup, syntax)
        mapped = epmapper.MapAsked(Guid.NULL, tower, handle, 4)
        yield "ndr-epmapper", epmapper.EPT_MAP.request.encode(mapped, syntax)
        found = epmapper.LookupFound(handle, (entry, entry), 0)
        yield "ndr-epmapper", epmapper.EPT_LOOKUP.response.encode(found, syntax, given=_GIVEN)
        towers = epmapper.MapFound(handle, (tower, None, tower), 0)
        yield "ndr-epmapper", epmapper.EPT_MAP.response.encode(towers, syntax, given=_GIVEN)
        yield "ndr-mgmt", mgmt.INQ_STATS.request.encode(mgmt.StatisticsAsked(4), syntax)
        name = mgmt.Principal("host/server", 0)
        yield "ndr-mgmt", mgmt.INQ_PRINC_NAME.response.encode(name, syntax, given=_GIVEN)
        ids = mgmt.InqIfIds(mgmt.InterfaceIds((wanted, None, wanted)), 0)
        yield "ndr-mgmt", mgmt.INQ_IF_IDS.response.encode(ids, syntax)
        numbers = mgmt.StatisticsGiven((1, 2, 3, 4), 0)
        yield "ndr-mgmt", mgmt.INQ_STATS.response.encode(numbers, syntax)


class _Recorded(Link):
    """A link that keeps what went each way."""

    def __init__(self, callbacks: bool = False) -> None:
        super().__init__(_endpoint(), self._answer, callbacks=lambda _opnum, stub: stub)
        self.to_server, self.to_client = bytearray(), bytearray()
        self._ask = callbacks

    def _answer(self, call: Call) -> bytes | None:
        if not self._ask:
            return call.stub.upper()
        self.server.callback(call, 1, b"question")
        return None

    def _pieces(self, data: bytes) -> list[bytes]:
        pieces = super()._pieces(data)
        return pieces

    def _to_server(self) -> bool:
        before = self.client.data_to_send
        sent: list[bytes] = []
        self.client.data_to_send = lambda: sent.append(before()) or sent[-1]  # type: ignore[func-returns-value, method-assign]
        try:
            return super()._to_server()
        finally:
            self.client.data_to_send = before  # type: ignore[method-assign]
            self.to_server += b"".join(sent)
