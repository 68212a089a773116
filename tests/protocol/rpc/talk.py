"""A server machine to talk to in PDUs, and its answers in a few words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from mqis.protocol.authentication import Authenticator, AuthLevel, AuthType
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import status_name
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.server_calls import Call, fragments
from mqis.protocol.rpc.server_endpoint import RpcLimits, ServerEndpoint
from mqis.protocol.rpc.server_side import CallReceived, Event, ServerConnection
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.pdu import Pdu, decode_pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import (
    AlterContext,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    ContextElement,
    Fault,
    Request,
    Response,
)
from mqis.wire.rpc.pdu_header import FIRST_LAST, Header, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer


class Counting:
    """``Entropy`` that counts."""

    def __init__(self) -> None:
        self._next = 0

    def guid(self) -> Guid:
        self._next += 1
        return Guid(self._next.to_bytes(16, "little"))


ECHO = Interface("echo", SyntaxId(Guid.parse("11111111-0000-0000-0000-000000000001"), 1, 2), 4)
OTHER = Interface("other", SyntaxId(Guid.parse("22222222-0000-0000-0000-000000000001"), 2), 4)
#: Speaks NDR20 alone, and keeps its context handles to itself.
STRICT = Interface(
    "strict",
    SyntaxId(Guid.parse("33333333-0000-0000-0000-000000000001"), 1),
    4,
    (NDR20,),
    strict_context_handles=True,
)
UNKNOWN = SyntaxId(Guid.parse("99999999-0000-0000-0000-000000000001"), 1)
STRANGE = SyntaxId(Guid.parse("99999999-0000-0000-0000-000000000002"), 1)

FIRST, LAST, MPX = PfcFlags.FIRST, PfcFlags.LAST, PfcFlags.CONC_MPX
SIGN = PfcFlags.SUPPORT_HEADER_SIGN


def make_endpoint(
    authenticator: Authenticator | None = None,
    *,
    min_level: int = AuthLevel.CONNECT,
    **limits: Any,
) -> ServerEndpoint:
    """Identities count at every level, so that tests can see whose context a call ran under."""
    return ServerEndpoint(
        (ECHO, OTHER, STRICT),
        AssociationGroups(Counting()),
        authenticator,
        secondary_address="135",
        limits=RpcLimits(**limits),
        min_level=min_level,
    )


def element(
    context_id: int = 0, abstract: SyntaxId = ECHO.syntax, *transfers: SyntaxId
) -> ContextElement:
    return ContextElement(context_id, abstract, transfers or (NDR20,))


def bind_pdu(  # noqa: PLR0917
    contexts: Sequence[ContextElement] = (element(),),
    flags: int = FIRST_LAST,
    auth: AuthTrailer | None = None,
    group: int = 0,
    frag: int = 5840,
    call_id: int = 1,
) -> bytes:
    body = Bind(frag, frag, group, tuple(contexts))
    return encode_pdu(body, call_id=call_id, flags=flags, auth=auth)


def alter_pdu(
    contexts: Sequence[ContextElement] = (element(),),
    flags: int = FIRST_LAST,
    auth: AuthTrailer | None = None,
    call_id: int = 2,
) -> bytes:
    body = AlterContext(5840, 5840, 0, tuple(contexts))
    return encode_pdu(body, call_id=call_id, flags=flags, auth=auth)


def overpadded(pdu: bytes, pad_length: int) -> bytes:
    """The PDU with a trailer that speaks of more padding than there is."""
    header = Header.decode(pdu)
    at = len(pdu) - header.auth_length - 8 + 2
    return pdu[:at] + bytes([pad_length]) + pdu[at + 1 :]


def auth3_pdu(auth: AuthTrailer | None) -> bytes:
    return encode_pdu(Auth3(), call_id=1, flags=FIRST_LAST, auth=auth)


def request_pdu(  # noqa: PLR0917
    stub: bytes = b"stub",
    call_id: int = 7,
    flags: int = FIRST_LAST,
    context_id: int = 0,
    opnum: int = 1,
    hint: int = 0,
    auth: AuthTrailer | None = None,
) -> bytes:
    body = Request(context_id, opnum, stub, alloc_hint=hint)
    return encode_pdu(body, call_id=call_id, flags=flags, auth=auth)


def bare_pdu(ptype: int, body: bytes = b"", call_id: int = 7, **header: Any) -> bytes:
    """A header that may say anything, and what follows it."""
    length = header.pop("frag_length", 16 + len(body))
    return Header(ptype, FIRST_LAST, call_id, length, **header).encode() + body


def signed(channel: Channel, body: Request | Response, call_id: int = 7, **kw: Any) -> list[bytes]:
    kw.setdefault("max_frag", 5840)
    return list(fragments(body, call_id=call_id, channel=channel, **kw))


def described(pdu: Pdu) -> str:
    """An answer in words; + marks a call that was not executed, as in the notes of peers."""
    body, header = pdu.body, pdu.header
    if isinstance(body, BindNak):
        return f"nak {body.reason}"
    if isinstance(body, Fault):
        plus = "+" if header.flags & PfcFlags.DID_NOT_EXECUTE else ""
        of = f"context {body.context_id} call {header.call_id}"
        return f"fault{plus} {status_name(body.status)} {of}"
    if isinstance(body, BindAck):
        results = " ".join(f"{r.result}/{r.reason}" for r in body.results)
        kind = "ack" if type(body) is BindAck else "resp"
        return f"{kind} {header.flags:02x} {results}"
    if isinstance(body, Response):
        return f"response {body.stub.decode('latin-1')} call {header.call_id}"
    return type(body).__name__


def split(data: bytes) -> list[Pdu]:
    pdus = []
    while data:
        size = Header.decode(data).frag_length
        pdus.append(decode_pdu(data[:size]))
        data = data[size:]
    return pdus


class Talk:
    """One connection. Calls are answered with their stubs in upper case, unless ``respond``."""

    def __init__(
        self,
        endpoint: ServerEndpoint | None = None,
        *,
        peer: Hashable = "peer",
        respond: Callable[[Call], bytes | None] | None = None,
    ) -> None:
        self.endpoint = endpoint or make_endpoint()
        self.server = ServerConnection(self.endpoint, peer, 0.0)
        self.now = 0.0
        self.events: list[Event] = []
        self.respond_to = respond or (lambda call: call.stub.upper())

    def pdus(self, *data: bytes) -> list[Pdu]:
        """Send bytes; all that comes back."""
        for piece in data:
            self.take(self.server.receive(piece, self.now))
            self.go_on()
        self.go_on()
        return split(self.server.data_to_send())

    def go_on(self) -> None:
        while self.server.stalled and self.server.wants_data:
            self.take(self.server.receive(b"", self.now))

    def say(self, *data: bytes) -> list[str]:
        """As ``pdus``, in words; ``closed`` in the end if the connection is over."""
        words = [described(pdu) for pdu in self.pdus(*data)]
        return [*words, "closed"] if self.server.closing else words

    def take(self, events: list[Event]) -> None:
        queue = list(events)
        while queue:
            event = queue.pop(0)
            self.events.append(event)
            if isinstance(event, CallReceived):
                answer = self.respond_to(event.call)
                if answer is not None:
                    queue.extend(self.server.respond(event.call, answer, self.now))

    def respond(self, call: Call, stub: bytes) -> list[str]:
        self.take(self.server.respond(call, stub, self.now))
        return self.say()

    def bound(self, flags: int = FIRST_LAST, **bind: Any) -> Talk:
        contexts = bind.pop("contexts", (element(),))
        assert self.say(bind_pdu(contexts, flags, **bind))[0].startswith("ack")
        return self

    @property
    def calls(self) -> list[Call]:
        """Everything that was handed out to run, in that order."""
        return [event.call for event in self.events if isinstance(event, CallReceived)]


def authenticated(
    talk: Talk,
    level: int,
    auth_type: int = AuthType.NTLM,
    *,
    context_id: int = 5,
    flags: int = FIRST_LAST,
    first: bool = True,
    name: str = "somebody",
    group: int = 0,
) -> Channel:
    """Negotiate a security context, in bind and auth3 or alter; the client's end of it."""
    provider = SharedSecret(name=name)
    channel = Channel(
        context_id, auth_type, level, provider.initiator(auth_type, level, "host/server")
    )
    token = channel.context.step(None) or b""
    trailer = channel.trailer(0, token)
    proposal = (
        bind_pdu((element(),), flags, trailer, group=group)
        if first
        else alter_pdu((element(),), flags, trailer)
    )
    answers = talk.pdus(proposal)
    while not talk.server.closing and not channel.complete:
        asked = answers[0].auth
        assert asked is not None
        token = channel.context.step(asked.token) or b""
        if auth_type == AuthType.NTLM:
            answers = talk.pdus(auth3_pdu(channel.trailer(0, token)))
        elif token:
            answers = talk.pdus(alter_pdu((element(),), flags, channel.trailer(0, token)))
    assert not talk.server.closing
    return channel
