"""Recognition of a stream's protocol: by its first bytes, by bytes further on, or by port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mqis.protocol.capture.flow import Flow
from mqis.protocol.capture.framing import Dissector
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import DecodedRow, Meaning, PacketPosition
from mqis.wire.errors import WireError

_SHOWN = 16


class StreamProtocol(NamedTuple):
    """An entry of the registry."""

    dissector: type[Dissector]
    ports: frozenset[int]


class _Event(NamedTuple):
    """Data or a gap, kept for the dissector until one is chosen."""

    side: int
    data: bytes
    missing: int
    place: PacketPosition
    reason: str


class Recognition:
    """Stands in for the dissector until one is chosen, which ``dissector`` then holds."""

    def __init__(
        self,
        flow: Flow,
        protocols: Sequence[StreamProtocol],
        limits: CaptureLimits,
        emit: Callable[[DecodedRow], None],
    ) -> None:
        self._protocols = protocols
        self._flow = flow
        self._limits = limits
        self._emit = emit
        self._heads = (bytearray(), bytearray())
        #: By side: the beginning was not captured; the same, or there was a gap since.
        self._begins_out_of_sync = [False, False]
        self._out_of_sync = [False, False]
        self._events: list[_Event] = []
        #: The offset from which to search on, by protocol and side.
        self._from: dict[tuple[type[Dissector], int], int] = {}
        self._bytes = [0, 0]
        #: True if no known protocol fits.
        self.given_up = False
        self.dissector: Dissector | None = None

    def begin_out_of_sync(self, side: int) -> None:
        self._begins_out_of_sync[side] = self._out_of_sync[side] = True

    def count(self, side: int, size: int) -> None:
        """Counts bytes of a stream that was given up."""
        self._bytes[side] += size

    def data(self, side: int, data: bytes, place: PacketPosition) -> None:
        self._bytes[side] += len(data)
        if self.given_up:
            return
        self._heads[side].extend(data)
        self._events.append(_Event(side, data, 0, place, ""))
        self._choose(side)

    def gap(self, side: int, size: int, place: PacketPosition, reason: str) -> None:
        self._bytes[side] += size
        if self.given_up:
            return
        self._events.append(_Event(side, b"", size, place, reason))
        self._out_of_sync[side] = True

    def end(self, place: PacketPosition) -> None:
        if self.dissector is None and not self.given_up and self._events:
            self._choose_by_port()
        if self.dissector is not None:
            self.dissector.end(place)
        elif any(self._bytes):
            self._unrecognised(place)

    def _choose(self, side: int) -> None:
        head = self._heads[side]
        unsure = False
        for protocol in self._protocols:
            begins = self._begins(protocol.dissector, side, head)
            if begins:
                self._use(protocol.dissector)
                return
            unsure |= begins is None
        if not unsure or len(head) >= self._limits.max_search:
            self._choose_by_port()

    def _begins(self, dissector: type[Dissector], side: int, head: bytearray) -> bool | None:
        """Returns whether the stream is of this protocol; None if that takes more bytes.

        Bytes searched in vain are not searched again when more come.
        """
        searched = self._from.get((dissector, side), 0)
        at = dissector.find(head, searched)
        while at >= 0:
            if at and not self._out_of_sync[side]:
                return False
            start = bytes(head[at : at + dissector.HEAD])
            if len(start) < dissector.HEAD:
                self._from[dissector, side] = at
                return None
            try:
                dissector.length(start)
            except WireError:
                at = dissector.find(head, at + 1)
            else:
                return True
        if not self._out_of_sync[side]:
            return None if len(head) < dissector.HEAD else False
        self._from[dissector, side] = max(searched, len(head) - dissector.HEAD + 1)
        return None

    def _choose_by_port(self) -> None:
        for protocol in self._protocols:
            if not protocol.ports.isdisjoint(self._flow.ports):
                self._use(protocol.dissector)
                return
        self.given_up = True
        self._events = []

    def _use(self, kind: type[Dissector]) -> None:
        flow, emit, name = self._flow, self._emit, kind.NAME

        def tell(side: int, place: PacketPosition, length: int, meaning: Meaning) -> None:
            emit(flow.row(side, place, length, name, meaning))

        dissector = kind(tell, self._limits)
        dissector.opened_by = flow.opened_by
        for side in (0, 1):
            if self._begins_out_of_sync[side]:
                dissector.begin_out_of_sync(side)
        for event in self._events:
            if event.data:
                dissector.data(event.side, event.data, event.place)
            else:
                dissector.gap(event.side, event.missing, event.place, event.reason)
        self._events = []
        self.dissector = dissector

    def _unrecognised(self, place: PacketPosition) -> None:
        """Emits one row for a connection of an unknown protocol."""
        flow = self._flow
        side = flow.client
        beginning = bytes(self._heads[side][:_SHOWN] or self._heads[1 - side][:_SHOWN])
        sent, answered = self._bytes[side], self._bytes[1 - side]
        shown = f", beginning with {beginning.hex()}" if beginning else ", of which none is there"
        summary = f"{sent} bytes sent, {answered} received{shown}"
        meaning = Meaning(flow.transport, "unrecognised", summary)
        self._emit(flow.row(side, place, sent + answered, flow.transport, meaning))
