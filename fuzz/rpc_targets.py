"""Targets for RPC: decoders, stubs, and the association machines of both sides.

    python -m fuzz.rpc_targets        write the corpus of these targets again

A machine accepts any bytes without an exception, stays within its limits, and is closed after
garbage. The bytes themselves determine how they are split, and how calls are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from random import Random

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import Bound, CalledBack, ClientConnection
from mqis.protocol.rpc.client_side import Event as ClientEvent
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import RpcFault
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.negotiation import MAX_FRAG
from mqis.protocol.rpc.server_calls import Call, fragments
from mqis.protocol.rpc.server_endpoint import RpcLimits, ServerEndpoint
from mqis.protocol.rpc.server_side import CallReceived, Event, ServerConnection
from mqis.testing.rpc import MachinePair, encode_verification, feature_syntax, header_command
from mqis.testing.security import SharedSecret
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.rpc import epmapper, mgmt, pdu_bodies
from mqis.wire.rpc.interfaces import NDR20, NDR64, InterfaceDescription, SyntaxId
from mqis.wire.rpc.pdu import Body, decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_header import FIRST_LAST, HEADER_SIZE, Header, PfcFlags
from mqis.wire.rpc.tower import Tower
from mqis.wire.rpc.verification import Verification, find_verification

ECHO = Interface("echo", SyntaxId(Guid.parse("11111111-0000-0000-0000-000000000001"), 1), 4)
OTHER = Interface("other", SyntaxId(Guid.parse("22222222-0000-0000-0000-000000000001"), 1), 4)
LIMITS = RpcLimits(max_calls=4, max_stub=20_000, max_contexts=8, max_security_contexts=4)
#: Completes any unfinished PDU, and begins an invalid one.
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
    """A server's connection; calls are answered now, later, with a fault, or after a callback."""

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
            with suppress(ValueError, RpcFault):  # one is pending, or they nest too deep
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
    """A client's association with a few calls; callbacks are answered in different ways."""

    def __init__(self, rng: Random, auth_type: int | None) -> None:
        self.machine = ClientConnection(max_stub=20_000)
        self._rng = rng
        channel = None if auth_type is None else _channel(auth_type)
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
        elif isinstance(event, CalledBack):
            if rng.random() < 0.2:
                machine.fault_callback(event.call_id, 5)
            else:
                machine.answer_callback(event.call_id, bytes(rng.randrange(8000)))


def _channel(auth_type: int) -> Channel:
    context = SharedSecret().initiator(auth_type, AuthLevel.PRIVACY, "host/server")
    return Channel(1, auth_type, AuthLevel.PRIVACY, context)


def _answered_type(data: bytes) -> int | None:
    """The authentication type that the first PDU answers, so that the client can use the same."""
    with suppress(WireError):
        auth = decode_pdu(data[: Header.decode(data).frag_length]).auth
        if auth is not None and auth.type in (AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS):
            return auth.type
    return None


def run_client(data: bytes) -> None:
    rng = Random(data)
    client = _Client(rng, _answered_type(data))
    for _ in range(2):  # the answers to the bind come first: calls are made after them
        size = Header.decode(data).frag_length if len(data) >= HEADER_SIZE else 0
        client.feed(data[:size])
        data = data[size:]
    for piece in _pieces(data, rng):
        client.feed(piece)
    client.feed(GARBAGE)
    _check(client.machine.closed is not None, "garbage did not end the association")
    _check(not client.machine.receive(b"more"), "a closed association had an event")


# --- stubs ----------------------------------------------------------------------------------------

_GIVEN = {"max_entries": 500, "max_towers": 500, "size": 4096}


_FORMS = ((Syntax.NDR20, False), (Syntax.NDR20, True), (Syntax.NDR64, False))


def _stubs(description: InterfaceDescription) -> Callable[[bytes], None]:
    """Returns a target that decodes every operation's request and response, in every form."""

    def run(data: bytes) -> None:
        for operation in description.operations:
            for part in (operation.request, operation.response):
                for syntax, swapped in _FORMS:
                    with suppress(WireError):
                        part.decode(
                            data, syntax, big_endian=swapped, given=_GIVEN, allow_surplus=True
                        )

    return run


#: Name, function, and the errors that it may raise.
RPC_TARGETS: tuple[tuple[str, Callable[[bytes], object], tuple[type[Exception], ...]], ...] = (
    ("pdu", decode_pdu, (WireError,)),
    ("tower", Tower.from_bytes, (WireError,)),
    ("verification", find_verification, (WireError,)),
    ("ndr-epmapper", _stubs(epmapper.EPMAPPER), ()),
    ("ndr-mgmt", _stubs(mgmt.MGMT), ()),
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
    authenticated = conversations[2][0]
    yield "pdu", authenticated[: Header.decode(authenticated).frag_length]
    yield "tower", Tower.tcp(ECHO.syntax, 2105, "192.0.2.10").to_bytes()
    yield "tower", Tower.tcp(epmapper.SYNTAX, 0, "0.0.0.0", NDR64).to_bytes()
    verification = Verification(True, ECHO.syntax, NDR20, header_command(7, 0, 1))
    yield "verification", b"stub" + encode_verification(verification)
    yield "verification", encode_verification(Verification(False))
    yield from _stub_seeds()


def _bodies() -> Iterator[Body]:
    element = pdu_bodies.ContextElement(0, ECHO.syntax, (NDR20, NDR64))
    result = pdu_bodies.ContextResult(0, 0, NDR20)
    yield pdu_bodies.Bind(5840, 5840, 0, (element, element))
    yield pdu_bodies.AlterContext(5840, 5840, 1, (element,))
    yield pdu_bodies.BindAck(5840, 5840, 1, "135", (result, pdu_bodies.ContextResult(2, 1)))
    yield pdu_bodies.AlterContextResp(5840, 5840, 1, "", (result,))
    yield pdu_bodies.BindNak(4)
    yield pdu_bodies.Auth3()
    yield pdu_bodies.Request(0, 1, b"stub", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), 4)
    yield pdu_bodies.Response(0, b"stub", 4)
    yield pdu_bodies.Fault(0, 0x1C010002)
    yield pdu_bodies.Shutdown()


def _stub_seeds() -> Iterator[tuple[str, bytes]]:
    tower = epmapper.TowerOctets(Tower.tcp(ECHO.syntax, 2105, "192.0.2.10").to_bytes())
    handle = ContextHandle(Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"))
    wanted = mgmt.InterfaceId(ECHO.syntax.uuid, 1, 0)
    entry = epmapper.EndpointEntry(Guid.NULL, tower, "annotation")
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


def _conversations() -> Iterator[tuple[bytes, bytes]]:
    """The bytes to a server and to a client, for a bind and three calls as above."""
    for auth_type in (None, AuthType.NTLM, AuthType.SPNEGO, AuthType.KERBEROS):
        for ask in (False, True):
            link = _conversation(auth_type, ask=ask)
            yield bytes(link.to_server), bytes(link.to_client)
    yield _to_server_by_hand(), _to_client_by_hand()


def _conversation(auth_type: AuthType | None, *, ask: bool) -> MachinePair:
    def respond(call: Call) -> bytes | None:
        if not ask:
            return call.stub.upper() * (1600 if call.opnum == 0 else 1)
        link.server.callback(call, 1, b"question")
        return None

    link = MachinePair(_endpoint(), respond, callbacks=lambda _opnum, stub: stub.upper())
    channel = None if auth_type is None else _channel(auth_type)
    link.client.bind([ECHO.syntax], transfers=[NDR20], channel=channel)
    (bound,) = link.run()
    assert isinstance(bound, Bound)
    for opnum in range(3):
        link.client.request(bound.contexts[0], opnum, b"stub")
    link.run()
    for event in link.server_events:
        if isinstance(event, CallReceived) and ask:
            link.answer(event.call, b"done")
    link.run()
    return link


def _to_server_by_hand() -> bytes:
    """Bytes that mqis' client never sends: features, more contexts and cancels."""
    element = pdu_bodies.ContextElement(0, ECHO.syntax, (NDR20, NDR64))
    features = pdu_bodies.ContextElement(1, ECHO.syntax, (feature_syntax(3),))
    other = pdu_bodies.ContextElement(2, OTHER.syntax, (NDR64,))
    said = Verification(None, ECHO.syntax, NDR64, header_command(7, 0, 1))
    stub = b"stub" + encode_verification(said)
    cut = fragments(pdu_bodies.Request(0, 1, bytes(6000) + stub), call_id=7, max_frag=2048)
    conversation: list[Body] = [
        pdu_bodies.Bind(2048, 2048, 0, (element, features)),
        pdu_bodies.AlterContext(2048, 2048, 0, (other,)),
        pdu_bodies.Request(2, 3, b"stub", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"), 4),
        pdu_bodies.CoCancel(),
        pdu_bodies.Orphaned(),
        pdu_bodies.Request(9, 3, b"stub"),
        pdu_bodies.Request(0, 99, b"stub"),
    ]
    flags = FIRST_LAST | PfcFlags.CONC_MPX
    return b"".join(chain((encode_pdu(b, call_id=7, flags=flags) for b in conversation), cut))


def _to_client_by_hand() -> bytes:
    """Answers out of order, a callback in fragments, a fault, and the wish to close."""
    accepted = pdu_bodies.ContextResult(0, 0, NDR20)
    first, last = PfcFlags.FIRST, PfcFlags.LAST
    conversation: list[tuple[int, int, Body]] = [
        (1, FIRST_LAST | PfcFlags.CONC_MPX, pdu_bodies.BindAck(4280, 4280, 1, "135", (accepted,))),
        (4, first, pdu_bodies.Response(0, b"an")),
        (2, first, pdu_bodies.Request(0, 1, b"call")),
        (4, last, pdu_bodies.Response(0, b"swer")),
        (2, last, pdu_bodies.Request(0, 1, b"back")),
        (3, FIRST_LAST, pdu_bodies.Fault(0, 0xC00E0006)),
        (0, FIRST_LAST, pdu_bodies.Shutdown()),
        (2, FIRST_LAST, pdu_bodies.Response(0, b"done")),
    ]
    return b"".join(encode_pdu(b, call_id=c, flags=flags) for c, flags, b in conversation)


def write_corpus(corpus: Path) -> None:
    numbers: dict[str, int] = {}
    for target, data in seeds():
        numbers[target] = numbers.get(target, 0) + 1
        path = corpus / target / f"seed-{numbers[target]:02}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write_corpus(Path(__file__).parent / "corpus")
