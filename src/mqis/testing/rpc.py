"""An RPC client and server connected without a socket, and parts of PDUs that mqis only reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mqis.protocol.rpc.client_side import CalledBack, ClientConnection
from mqis.protocol.rpc.client_side import Event as ClientEvent
from mqis.protocol.rpc.server_calls import Call
from mqis.protocol.rpc.server_endpoint import ServerEndpoint
from mqis.protocol.rpc.server_side import CallReceived, ServerConnection
from mqis.protocol.rpc.server_side import Event as ServerEvent
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import FEATURES, SyntaxId
from mqis.wire.rpc.pdu_header import DREP
from mqis.wire.rpc.verification import (
    END,
    MUST_PROCESS,
    SIGNATURE,
    Verification,
    VerificationCommand,
)
from mqis.wire.writer import Writer

#: Answers a call at once; None leaves the answer to the test.
Responder = Callable[[Call], bytes | None]
#: Answers a callback at once: from (opnum, stub) to the answer's stub.
CallbackResponder = Callable[[int, bytes], bytes]


class MachinePair:
    """A client and a server machine; bytes between them go in pieces of ``chunk`` bytes."""

    def __init__(
        self,
        endpoint: ServerEndpoint,
        respond: Responder,
        *,
        callbacks: CallbackResponder | None = None,
        chunk: int = 1 << 16,
        peer: Hashable = "peer",
        client: ClientConnection | None = None,
    ) -> None:
        self.client = client or ClientConnection()
        self.server = ServerConnection(endpoint, peer, 0.0)
        self._respond = respond
        self._callbacks = callbacks
        self._chunk = chunk
        self.now = 0.0
        #: All bytes sent in each direction.
        self.to_server = bytearray()
        self.to_client = bytearray()
        #: All events on either side.
        self.client_events: list[ClientEvent] = []
        self.server_events: list[ServerEvent] = []

    def run(self) -> list[ClientEvent]:
        """Carries bytes both ways until there are none; returns the client's new events."""
        before = len(self.client_events)
        while self._to_server() or self._to_client():
            pass
        return self.client_events[before:]

    def answer(self, call: Call, stub: bytes) -> None:
        """Answers a call that the responder left open."""
        self._take(self.server.respond(call, stub, self.now))

    def fault(self, call: Call, status: int) -> None:
        self._take(self.server.fault(call, status, self.now))

    def _to_server(self) -> bool:
        data = self.client.data_to_send()
        self.to_server += data
        for piece in self._pieces(data):
            self._take(self.server.receive(piece, self.now))
        while self.server.stalled and self.server.wants_data:
            self._take(self.server.receive(b"", self.now))
        return bool(data)

    def _to_client(self) -> bool:
        data = self.server.data_to_send()
        self.to_client += data
        for piece in self._pieces(data):
            for event in self.client.receive(piece):
                self.client_events.append(event)
                if isinstance(event, CalledBack) and self._callbacks is not None:
                    answer = self._callbacks(event.opnum, event.stub)
                    self.client.answer_callback(event.call_id, answer)
        return bool(data)

    def _take(self, events: list[ServerEvent]) -> None:
        queue = list(events)
        while queue:
            event = queue.pop(0)
            self.server_events.append(event)
            if isinstance(event, CallReceived):
                stub = self._respond(event.call)
                if stub is not None:
                    queue.extend(self.server.respond(event.call, stub, self.now))

    def _pieces(self, data: bytes) -> list[bytes]:
        return [data[at : at + self._chunk] for at in range(0, len(data), self._chunk)]


def feature_syntax(bits: int) -> SyntaxId:
    return SyntaxId(Guid(FEATURES + bits.to_bytes(8, "little")), 1)


def header_command(call_id: int, context_id: int, opnum: int) -> tuple[int, bytes, int, int, int]:
    """The contents of HEADER2 for a request that mqis sends."""
    return (0, DREP, call_id, context_id, opnum)


def encode_verification(found: Verification) -> bytes:
    """Encodes the trailer as a client sends it, with commands that must be processed."""
    commands: list[tuple[VerificationCommand, bytes]] = []
    if found.client_header_signing is not None:
        flag = int(found.client_header_signing).to_bytes(4, "little")
        commands.append((VerificationCommand.BITMASK_1, flag))
    if found.interface is not None and found.transfer is not None:
        writer = Writer()
        found.interface.encode(writer)
        found.transfer.encode(writer)
        commands.append((VerificationCommand.PCONTEXT, writer.getvalue()))
    if found.header is not None:
        ptype, drep, call_id, context_id, opnum = found.header
        writer = Writer()
        writer.u32(ptype)
        writer.bytes(drep)
        writer.u32(call_id)
        writer.u16(context_id)
        writer.u16(opnum)
        commands.append((VerificationCommand.HEADER2, writer.getvalue()))
    result = Writer()
    result.bytes(SIGNATURE)
    for number, (command, value) in enumerate(commands, 1):
        last = END if number == len(commands) else 0
        result.u16(
            command | last | (0 if command is VerificationCommand.BITMASK_1 else MUST_PROCESS)
        )
        result.u16(len(value))
        result.bytes(value)
    return result.getvalue()
