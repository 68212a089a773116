"""One protocol session, that is one TCP connection, from either end (MS-MQQB 3.1.1.3.1, 3.1.5).

    state        packet                 what happens                                  next state
    WAITING_ECR  EstablishConnection    learn the peer, send ConnectionParameters     WAITING_CPR
    WAITING_CPR  ConnectionParameters   learn its window                              OPEN
    WAITING_EC   EstablishConnection    answer                                        WAITING_CP
    WAITING_CP   ConnectionParameters   learn timeouts and window, answer             OPEN
    OPEN         UserMessage            count, pass on; read its session header       OPEN
    OPEN         SessionAck             free what is acknowledged                     OPEN

Everything else closes the session, and so do malformed bytes, a refusal, and the timers. There is
no packet for closing. Once a session is open both ends may send.

This departs from the text in three points. Messages are counted before duplicates are dropped, or
the last of the messages sent again would never be acknowledged. A peer that miscounts its own
messages is tolerated (MS-MQMQ note 14). An acknowledgement is sent after half a window, since the
timer alone would stop a sender for ten seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.outgoing import Outgoing
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqqb.baseheader import BASE_SIZE, BaseHeader
from mqis.wire.mqqb.internal import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)
from mqis.wire.mqqb.packet import Packet, UserMessage, decode_framed
from mqis.wire.reader import Reader

#: The longest internal packet, EstablishConnection.
_MAX_INTERNAL = 572
#: Bits in RecoverableMsgAckFlags.
_MAX_RECOVERABLE = 32


class QueueSessionState(Enum):
    """SessionState. An initiator waits for the responses, an acceptor for the requests."""

    WAITING_ECR = "waiting for the response to EstablishConnection"
    WAITING_CPR = "waiting for the response to ConnectionParameters"
    WAITING_EC = "waiting for EstablishConnection"
    WAITING_CP = "waiting for ConnectionParameters"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class SessionReady:
    """Set-up is complete."""


@dataclass(frozen=True, slots=True)
class Freed:
    """The peer has acknowledged these messages."""

    messages: tuple[Outgoing, ...]


SessionEvent = SessionReady | Freed | UserMessage

#: Returns the reason to refuse a session with a queue manager, or None to admit it.
Admission = Callable[[Guid], str | None]


class QueueSession:
    """One session: takes bytes, returns events and bytes. ``closed`` is the reason of its end."""

    def __init__(
        self,
        local: Guid,
        limits: QueueingLimits,
        now: float,
        *,
        initiator: bool,
        admission: Admission = lambda _peer: None,
        remote: Guid = Guid.NULL,
    ) -> None:
        """``remote`` has to answer an initiator; null: any peer may, as for direct names."""
        self._local = local
        self._remote = remote
        self._limits = limits
        self._admission = admission
        self.state = QueueSessionState.WAITING_ECR if initiator else QueueSessionState.WAITING_EC
        self.peer: Guid | None = None
        self.closed: str | None = None
        #: True if it was closed because this side refused the peer.
        self.refused = False
        self.opened = False
        #: Session headers whose count of the peer's own messages was wrong.
        self.miscounts = 0
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._events: list[SessionEvent] = []
        self._began = now
        self._ack_timeout_ms = limits.ack_timeout_ms
        self._recoverable_ack_timeout_ms = limits.min_recoverable_ack_timeout_ms
        # Messages sent by this side.
        self._window = 1
        self._sent = 0
        self._acked = 0
        self._unacked: deque[Outgoing] = deque()
        self._unacked_bytes = 0
        # Messages received by this side.
        self._received = 0
        self._received_recoverable = 0
        self._acked_recoverable = 0
        self._pending = 0
        self._pending_bytes = 0
        # The times at which the timers expire.
        first_s = limits.init_timeout_s if initiator else limits.silence_timeout_s
        self._init_due: float | None = now + min(first_s, limits.init_timeout_s)
        self._packet_due: float | None = None
        self._ack_send_due: float | None = None
        self._ack_wait_due: float | None = None
        self._peer_active = False
        self._active = now
        if initiator:
            stamp = int(now * 1000) & 0xFFFFFFFF
            self._out.append(EstablishConnection(local, remote, stamp).to_bytes())

    # --- the driver's side ------------------------------------------------------------------------

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    @property
    def room(self) -> bool:
        """True if one more message may be in flight."""
        return (
            self.state is QueueSessionState.OPEN
            and len(self._unacked) < self._window
            and self._unacked_bytes < self._limits.max_unacked_bytes
        )

    def receive(self, data: bytes, now: float) -> list[SessionEvent]:
        """Takes bytes from the peer; returns also the events before a malformed packet."""
        if self.closed is not None:
            return []
        self._buffer += data
        try:
            self._take_packets(now)
        except WireError as error:
            self.close(f"malformed packet: {error}")
        events, self._events = self._events, []
        return events

    def send(self, outgoing: Outgoing, now: float) -> None:
        """Puts a message on the wire; ``room`` has to be true."""
        if not self.room:
            raise ValueError("the session has no room for a message")
        self._out.append(outgoing.packet)
        self._unacked.append(outgoing)
        self._unacked_bytes += len(outgoing.packet)
        self._sent += 1
        self._active = now
        if self._ack_wait_due is None:
            self._start_ack_wait(now)

    def data_to_send(self) -> bytes:
        data = b"".join(self._out)
        self._out.clear()
        return data

    def close(self, reason: str) -> None:
        """Ends the session; data that was queued may still be sent."""
        if self.closed is None:
            self.closed = reason
            self.state = QueueSessionState.CLOSED
            self._buffer.clear()

    def close_orderly(self, reason: str) -> None:
        """Ends the session after a last acknowledgement, which saves the peer a retransmission."""
        if self.state is QueueSessionState.OPEN and self._pending:
            self._send_ack()
        self.close(reason)

    def oldest(self) -> float | None:
        """The time at which the oldest message in flight was queued."""
        return min((outgoing.since for outgoing in self._unacked), default=None)

    def unacknowledged(self) -> list[Outgoing]:
        """The messages that a closed session leaves for the next one, in the order sent."""
        left = list(self._unacked)
        self._unacked.clear()
        return left

    # --- time -------------------------------------------------------------------------------------

    def next_timer(self) -> float | None:
        if self.closed is not None:
            return None
        idle = (
            self._active + self._limits.idle_timeout_s
            if self.state is QueueSessionState.OPEN
            else None
        )
        due = (self._init_due, self._packet_due, self._ack_send_due, self._ack_wait_due, idle)
        return min(t for t in due if t is not None)

    def handle_timer(self, now: float) -> None:
        if self.closed is not None:
            return
        if _has_expired(self._init_due, now):
            self.close(f"{self.state.value} for too long")
        elif _has_expired(self._packet_due, now):
            self.close("a packet took too long")
        elif self.state is QueueSessionState.OPEN:
            if _has_expired(self._ack_send_due, now):
                self._send_ack()
            if _has_expired(self._ack_wait_due, now):
                self._check_ack_wait(now)
            if now >= self._active + self._limits.idle_timeout_s:
                self.close_orderly("idle")

    def _start_ack_wait(self, now: float) -> None:
        """Starts the Session Ack Wait Timer; a direct session waits for twice the timeout."""
        self._peer_active = False
        self._ack_wait_due = now + 2 * self._ack_timeout_ms / 1000

    def _check_ack_wait(self, now: float) -> None:
        """Closes the session if the peer has been silent while messages were in flight."""
        if self._peer_active:
            self._start_ack_wait(now)
        else:
            self.close("nothing was acknowledged")

    # --- packets ----------------------------------------------------------------------------------

    def _take_packets(self, now: float) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= BASE_SIZE and self.closed is None:
            base = BaseHeader.decode(Reader(bytes(buffer[at : at + BASE_SIZE])))
            self._check(base)
            length = base.length
            if self.closed is not None or len(buffer) - at < length:
                break
            packet = decode_framed(base, bytes(buffer[at : at + length]))
            at += length
            self._peer_active = True
            self._handle(packet, now)
        del buffer[:at]
        if not buffer:
            self._packet_due = None
        elif at or self._packet_due is None:
            self._packet_due = now + self._limits.packet_timeout_s

    def _check(self, base: BaseHeader) -> None:
        """Refuses a packet by its header, before its body is buffered."""
        if base.internal and base.length > _MAX_INTERNAL:
            raise WireError(f"an internal packet of {base.length} bytes", 8)
        if base.size > self._limits.max_packet:
            raise WireError(f"a packet of {base.size} bytes", 8)
        if not base.internal and self.state is not QueueSessionState.OPEN:
            self.close(f"a message while {self.state.value}")

    def _handle(self, packet: Packet, now: float) -> None:
        handler = _TABLE.get((self.state, type(packet)))
        if handler is None:
            self.close(f"{type(packet).__name__} while {self.state.value}")
        else:
            handler(self, packet, now)

    # --- set-up -----------------------------------------------------------------------------------

    def _connection_answered(self, packet: EstablishConnection, now: float) -> None:
        """Handles the response (3.1.5.3.2); any GUID may answer for a direct name."""
        if packet.refused:
            self.close("the peer refused the session")
        elif packet.client != self._local:
            self.close(f"an answer for {packet.client}")
        elif self._remote and packet.server != self._remote:
            self.close(f"{packet.server} answers for {self._remote}")
        elif (reason := self._objection(packet.server)) is not None:
            self.close(reason)
        else:
            self.peer = packet.server
            limits, round_trip_s = self._limits, now - self._began
            lowest, highest = limits.min_recoverable_ack_timeout_ms, limits.max_ack_timeout_ms
            self._recoverable_ack_timeout_ms = _clamp(round(8000 * round_trip_s), lowest, highest)
            self._send_parameters(self._recoverable_ack_timeout_ms, self._ack_timeout_ms)
            self.state = QueueSessionState.WAITING_CPR

    def _connection_requested(self, packet: EstablishConnection, _now: float) -> None:
        """Handles the request (3.1.5.3.1); a null ServerGuid, of a direct name, is valid."""
        wrong = packet.server not in (self._local, Guid.NULL)
        reason = f"asked for {packet.server}" if wrong else self._objection(packet.client)
        answer = EstablishConnection(
            packet.client,
            self._local,
            packet.timestamp,
            no_ping=packet.no_ping,
            refused=reason is not None,
        )
        self._out.append(answer.to_bytes())
        if reason is not None:
            self.refused = True
            self.close(f"refused: {reason}")
            return
        self.peer = packet.client
        self._init_due = self._began + self._limits.init_timeout_s
        self.state = QueueSessionState.WAITING_CP

    def _objection(self, peer: Guid) -> str | None:
        if not peer:
            return "the peer has no GUID"
        if peer == self._local:
            return "the peer is this queue manager itself"
        return self._admission(peer)

    def _parameters_answered(self, packet: ConnectionParameters, now: float) -> None:
        self._open(packet, now)

    def _parameters_requested(self, packet: ConnectionParameters, now: float) -> None:
        if not packet.refused:
            self._send_parameters(packet.recoverable_ack_timeout_ms, packet.ack_timeout_ms)
        limits, highest = self._limits, self._limits.max_ack_timeout_ms
        self._ack_timeout_ms = _clamp(packet.ack_timeout_ms, limits.min_ack_timeout_ms, highest)
        self._recoverable_ack_timeout_ms = _clamp(
            packet.recoverable_ack_timeout_ms, limits.min_recoverable_ack_timeout_ms, highest
        )
        self._open(packet, now)

    def _send_parameters(self, recoverable_ms: int, ack_ms: int) -> None:
        parameters = ConnectionParameters(recoverable_ms, ack_ms, self._limits.window)
        self._out.append(parameters.to_bytes())

    def _open(self, packet: ConnectionParameters, now: float) -> None:
        if packet.refused:
            self.close("the peer refused the session")
            return
        self._set_window(packet.window)
        self._init_due = None
        self._active = now
        self.state = QueueSessionState.OPEN
        self.opened = True
        self._events.append(SessionReady())

    def _set_window(self, window: int) -> None:
        """Sets the peer's window; 0, which would block for ever, means 1."""
        self._window = min(self._limits.window, max(1, window))

    # --- messages and acknowledgements ------------------------------------------------------------

    def _message(self, message: UserMessage, now: float) -> None:
        self._active = now
        if message.header.recoverable:
            self._count_recoverable(now)
        self._received += 1
        self._pending += 1
        self._pending_bytes += len(message.properties.body)
        if self._ack_send_due is None:
            self._ack_send_due = now + self._ack_timeout_ms / 2000
        self._events.append(message)
        if message.session is not None:
            self._acknowledged(message.session, now)
        half = max(1, self._window // 2)
        if self._pending >= half or self._pending_bytes >= self._limits.ack_bytes:
            self._send_ack()

    def _count_recoverable(self, now: float) -> None:
        """Counts a recoverable message as saved once it is passed on (3.1.5.8.7, no disk)."""
        if self._received_recoverable - self._acked_recoverable >= _MAX_RECOVERABLE:
            self._send_ack()
        self._received_recoverable += 1
        due = now + self._recoverable_ack_timeout_ms / 1000
        self._ack_send_due = due if self._ack_send_due is None else min(due, self._ack_send_due)

    def _send_ack(self) -> None:
        recoverable = self._received_recoverable - self._acked_recoverable
        header = SessionHeader(
            ack_seq=self._received & 0xFFFF,
            recoverable_ack_seq=(self._acked_recoverable + 1) & 0xFFFF if recoverable else 0,
            recoverable_ack_flags=(1 << recoverable) - 1,
            user_msg_seq=self._sent & 0xFFFF,
            window=self._limits.window,
        )
        self._out.append(SessionAck(header).to_bytes())
        self._acked_recoverable = self._received_recoverable
        self._pending = self._pending_bytes = 0
        self._ack_send_due = None

    def _session_ack(self, packet: SessionAck, now: float) -> None:
        self._acknowledged(packet.header, now)

    def _acknowledged(self, header: SessionHeader, now: float) -> None:
        """Handles an acknowledgement (3.1.5.5), modulo 65536. This side sends express only."""
        if header.user_msg_seq != self._received & 0xFFFF:
            self.miscounts += 1
        count = (header.ack_seq - self._acked) & 0xFFFF
        if count >= 0x8000:  # older than the last one
            return
        if count > len(self._unacked):
            self.close(f"{count} messages acknowledged, {len(self._unacked)} in flight")
            return
        self._set_window(header.window)
        if count:
            freed = tuple(self._unacked.popleft() for _ in range(count))
            self._acked += count
            self._unacked_bytes -= sum(len(outgoing.packet) for outgoing in freed)
            self._ack_wait_due = None
            if self._unacked:
                self._start_ack_wait(now)
            self._events.append(Freed(freed))


_Handler = Callable[[QueueSession, Any, float], None]

# The table in the module's docstring.
_TABLE: dict[tuple[QueueSessionState, type], _Handler] = {
    (QueueSessionState.WAITING_ECR, EstablishConnection): QueueSession._connection_answered,
    (QueueSessionState.WAITING_CPR, ConnectionParameters): QueueSession._parameters_answered,
    (QueueSessionState.WAITING_EC, EstablishConnection): QueueSession._connection_requested,
    (QueueSessionState.WAITING_CP, ConnectionParameters): QueueSession._parameters_requested,
    (QueueSessionState.OPEN, UserMessage): QueueSession._message,
    (QueueSessionState.OPEN, SessionAck): QueueSession._session_ack,
}


def _has_expired(due: float | None, now: float) -> bool:
    return due is not None and due <= now


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
