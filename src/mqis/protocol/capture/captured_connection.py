"""A captured TCP connection: delivers both directions in causal order.

A segment that acknowledges bytes of the other side was sent after they had arrived. So it waits
until they are delivered here too: an answer is never read before its request, whatever the order
of the packets in the file. If too much waits, or the capture ends, the missing bytes are reported
as missing and the rest is delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqis.protocol.capture.flow import Flow
from mqis.protocol.capture.framing import Dissector
from mqis.protocol.capture.halfstream import Chunk, HalfStream
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.recognition import Recognition, StreamProtocol
from mqis.protocol.capture.row import DecodedRow, PacketPosition
from mqis.wire.pcap.tcp_udp import TcpFlags, TcpSegment

_NOT_CAPTURED = "they were not captured"
_CUT = "the snap length cut them off"
#: An acknowledgement further ahead of the captured bytes than this is garbage, not a loss.
_PLAUSIBLE = 1 << 30
#: A segment in the middle of a connection has only ACK of these.
_STATE_FLAGS = TcpFlags.SYN | TcpFlags.FIN | TcpFlags.RST | TcpFlags.ACK


class CapturedConnection:
    """A TCP connection. Side 0 is the flow's first endpoint; rows go to ``emit``."""

    def __init__(
        self,
        flow: Flow,
        protocols: Sequence[StreamProtocol],
        limits: CaptureLimits,
        emit: Callable[[DecodedRow], None],
    ) -> None:
        self.flow = flow
        #: The position of its last packet in the file.
        self.last = PacketPosition(0, 0, None)
        self.over = False
        self._limits = limits
        self._halves = (HalfStream(), HalfStream())
        self._packets = 0
        self._settled = False
        self._reader: Dissector | Recognition = Recognition(flow, protocols, limits, emit)

    def receive(self, side: int, segment: TcpSegment, place: PacketPosition) -> bool:
        """Handles a segment; False if it begins another connection between the same ports."""
        flags, half = segment.flags, self._halves[side]
        if flags & TcpFlags.SYN:
            if not half.begins_at((segment.seq + 1) & 0xFFFFFFFF):
                return False
            self.flow.opened_by(1 - side if flags & TcpFlags.ACK else side, sure=True)
        if self.over:
            return True
        self.last = place
        self._packets += 1
        if isinstance(self._reader, Recognition) and self._reader.given_up:
            self._reader.count(side, len(segment.data) + segment.lost)
        elif not self._is_next(side, segment, place):
            self._add(side, segment, place)
            self._deliver_and_limit()
        if flags & TcpFlags.RST or (half.ended and self._halves[1 - side].ended):
            self.finish()
        return True

    def _is_next(self, side: int, segment: TcpSegment, place: PacketPosition) -> bool:
        """Handles a segment that is in order or empty; False if it takes the general path."""
        half, other = self._halves[side], self._halves[1 - side]
        is_plain = segment.flags & _STATE_FLAGS == TcpFlags.ACK and not segment.lost
        if not is_plain or not self._settled or other.pending:
            return False
        size = len(segment.data)
        if size and (
            not half.is_next(segment.seq)
            or (other.is_placed and other.position(segment.ack) > other.next)
        ):
            return False
        other.acknowledge(segment.ack)
        if size:
            half.skip(size)
            self._read(side, segment.data, 0, place)
        return True

    def _add(self, side: int, segment: TcpSegment, place: PacketPosition) -> None:
        half, flags = self._halves[side], segment.flags
        ack = segment.ack if flags & TcpFlags.ACK else None
        size = len(segment.data) + segment.lost
        seq = segment.seq + bool(flags & TcpFlags.SYN)
        if size:
            half.add(seq & 0xFFFFFFFF, Chunk(0, segment.data, segment.lost, ack, place))
            if self._settled:
                half.settle()
        if flags & TcpFlags.FIN:
            half.end_at((seq + size) & 0xFFFFFFFF)
        if ack is not None:
            self._halves[1 - side].acknowledge(ack)

    def finish(self) -> None:
        """Ends the connection; delivers all waiting bytes and reports the missing ones."""
        if self.over:
            return
        self._settle()
        self._deliver()
        while any(half.pending for half in self._halves):
            self._give_up()
            self._deliver()
        for side, half in enumerate(self._halves):
            # A FIN that was not captured looks like one byte.
            if half.is_placed and 1 < half.unseen < _PLAUSIBLE:
                self._reader.gap(side, half.unseen, self.last, _NOT_CAPTURED)
        self._reader.end(self.last)
        self.over = True

    def _deliver_and_limit(self) -> None:
        halves, limits = self._halves, self._limits
        if not self._settled:
            is_known = all(half.synchronised for half in halves)
            if not is_known and self._packets < limits.settle_packets:
                return
            self._settle()
        self._deliver()
        while (
            sum(half.pending_bytes for half in halves) > limits.max_pending_bytes
            or sum(len(half.pending) for half in halves) > limits.max_pending_segments
        ):
            self._give_up()
            self._deliver()

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        for side, half in enumerate(self._halves):
            half.settle()
            if not half.synchronised:
                self._reader.begin_out_of_sync(side)

    def _deliver(self) -> None:
        progressed = True
        while progressed:
            progressed = False
            for side, half in enumerate(self._halves):
                while (chunk := half.ready) is not None and not self._is_early(side, chunk):
                    data, lost = half.take()
                    self._read(side, data, lost, chunk.place)
                    progressed = True

    def _is_early(self, side: int, chunk: Chunk) -> bool:
        other = self._halves[1 - side]
        if chunk.ack is None or not other.is_placed:
            return False
        return other.position(chunk.ack) > other.next

    def _read(self, side: int, data: bytes, lost: int, place: PacketPosition) -> None:
        if data:
            self._reader.data(side, data, place)
            if isinstance(self._reader, Recognition) and self._reader.dissector is not None:
                self._reader = self._reader.dissector
        if lost:
            self._reader.gap(side, lost, place, _CUT)

    def _give_up(self) -> None:
        """Stops waiting for one thing: for missing bytes, else for an acknowledged segment."""
        waiting = [(side, half) for side, half in enumerate(self._halves) if half.pending]
        waiting.sort(key=lambda each: (not each[1].missing, each[1].pending[0].place.number))
        side, half = waiting[0]
        missing = half.missing
        if missing:
            half.skip(missing)
            self._reader.gap(side, missing, half.pending[0].place, _NOT_CAPTURED)
        else:
            half.ungate()
