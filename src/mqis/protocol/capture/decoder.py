"""The decoder of a capture: takes packets, returns rows; and the user's filter on these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from mqis.protocol.capture.captured_connection import CapturedConnection
from mqis.protocol.capture.flow import Flow, FlowKey, flow_key, share_of
from mqis.protocol.capture.fragments import Fragments
from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.recognition import StreamProtocol
from mqis.protocol.capture.registry import DATAGRAMS, PROTOCOLS, STREAMS, DatagramProtocol
from mqis.protocol.capture.row import DecodedRow, Meaning, PacketPosition, file_error
from mqis.wire.errors import WireError
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import Buffer, Captured, Unreadable
from mqis.wire.pcap.link_layer import KNOWN
from mqis.wire.pcap.tcp_udp import (
    TCP,
    UDP,
    Fragment,
    Frame,
    TcpSegment,
    UdpDatagram,
    decode_frame,
    decode_transport,
)

Network = IPv4Network | IPv6Network
_CUT = "the snap length cut the datagram"
_SHOWN = 16


class _UdpFlow:
    """Datagrams between two ports."""

    __slots__ = ("beginning", "bytes", "flow", "last", "unrecognised")

    #: The place of the last datagram.
    last: PacketPosition

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        #: Datagrams of no known protocol, their bytes, and the first bytes of the first of them.
        self.unrecognised = 0
        self.bytes = 0
        self.beginning = b""


class CaptureDecoder:
    """The decoder of one capture: ``receive`` from ``walk_capture``, ``take`` rows, ``finish``.

    ``share`` (index, count) selects a part of the conversations, so that several processes can
    decode one file; the first of them reports what belongs to no conversation.
    """

    def __init__(
        self,
        limits: CaptureLimits | None = None,
        *,
        share: tuple[int, int] = (0, 1),
        networks: Sequence[Network] = (),
        detail: bool = True,
        streams: Sequence[StreamProtocol] = STREAMS,
        datagrams: Sequence[DatagramProtocol] = DATAGRAMS,
    ) -> None:
        self._limits = limits or CaptureLimits()
        self._number, self._shares = share
        self._networks = tuple(networks)
        self._longest = self._limits.max_detail_bytes if detail else None
        self._streams = streams
        self._datagrams = datagrams
        self._fragments = Fragments(self._limits)
        self._connections: dict[FlowKey, CapturedConnection] = {}
        self._flows: dict[FlowKey, _UdpFlow] = {}
        self._is_mine: dict[FlowKey, bool] = {}
        self._strange_links: set[int] = set()
        self._rows: list[DecodedRow] = []

    def take(self) -> list[DecodedRow]:
        """The rows completed since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def receive(self, each: Captured | Unreadable) -> None:
        if isinstance(each, Unreadable):
            self._damaged(file_error(each.offset, each.reason, each.number))
            return
        place = PacketPosition(each.number, each.offset, each.time_ns)
        try:
            frame = decode_frame(each.link_type, each.data, each.original)
        except WireError as error:
            self._unreadable(each, error)
            return
        if frame is not None:
            self._frame(frame, place)

    def finish(self) -> None:
        """Ends the capture: completes all conversations."""
        self._fragments.finish()
        self._report_given_up()
        for connection in self._connections.values():
            connection.finish()
        for flow in self._flows.values():
            self._end_flow(flow)
        self._connections, self._flows = {}, {}

    # --- packets --------------------------------------------------------------------------------

    def _damaged(self, row: DecodedRow) -> None:
        if self._number == 0:
            self._rows.append(row)

    def _unreadable(self, packet: Captured, error: WireError) -> None:
        reason = str(error)
        if packet.link_type not in KNOWN:  # all packets of it are alike: one is enough
            if packet.link_type in self._strange_links:
                return
            self._strange_links.add(packet.link_type)
        elif packet.cut:
            reason += f": the snap length cut {packet.cut} bytes"
        self._damaged(file_error(packet.offset, reason, packet.number, packet.time_ns))

    def _frame(self, frame: Frame, place: PacketPosition) -> None:
        if isinstance(frame, TcpSegment):
            self._segment(frame, place)
        elif isinstance(frame, UdpDatagram):
            self._datagram(frame, place)
        else:
            self._fragment(frame, place)

    def _fragment(self, fragment: Fragment, place: PacketPosition) -> None:
        """Reassembles fragments; every share does so, as only first fragments have ports."""
        whole = self._fragments.add(fragment, place)
        self._report_given_up()
        if whole is None:
            return
        try:
            self._frame(decode_transport(*whole), place)
        except WireError as error:
            row = file_error(place.offset, f"put together: {error}", place.number, place.time_ns)
            self._damaged(row)

    def _report_given_up(self) -> None:
        for key, place, reason in self._fragments.given_up:
            if self._is_wanted(*key[:2]):
                ends = " to ".join(str(ip_address(address)) for address in key[:2])
                text = f"{ends}: {reason}"
                self._damaged(file_error(place.offset, text, place.number, place.time_ns))
        self._fragments.given_up = []

    def _is_ours(self, key: FlowKey) -> bool:
        """Returns whether a conversation is in this decoder's share and in the networks wanted."""
        mine = self._is_mine.get(key)
        if mine is None:
            mine = self._shares == 1 or share_of(key, self._shares) == self._number
            mine = mine and self._is_wanted(key[1][0], key[2][0])
            if len(self._is_mine) > 4 * self._limits.max_conversations:
                self._is_mine.clear()
            self._is_mine[key] = mine
        return mine

    def _is_wanted(self, one: bytes, other: bytes) -> bool:
        if not self._networks:
            return True
        ends = ip_address(one), ip_address(other)
        return any(end in network for network in self._networks for end in ends)

    # --- conversations --------------------------------------------------------------------------

    def _segment(self, segment: TcpSegment, place: PacketPosition) -> None:
        key, side = flow_key(TCP, segment[0], segment[2], segment[1], segment[3])
        if not self._is_ours(key):
            return
        connection = self._connections.get(key)
        if connection is not None:
            if connection.receive(side, segment, place):
                return
            connection.finish()
            del self._connections[key]
        self._make_room()
        flow = Flow(key, side, place, self._longest)
        connection = CapturedConnection(flow, self._streams, self._limits, self._emit)
        self._connections[key] = connection
        connection.receive(side, segment, place)

    def _emit(self, row: DecodedRow) -> None:
        self._rows.append(row)

    def _datagram(self, datagram: UdpDatagram, place: PacketPosition) -> None:
        key, side = flow_key(UDP, datagram[0], datagram[2], datagram[1], datagram[3])
        if not self._is_ours(key):
            return
        kept = self._flows.get(key)
        if kept is None:
            self._make_room()
            kept = self._flows[key] = _UdpFlow(Flow(key, side, place, self._longest))
        kept.last = place
        found = self._meaning(datagram)
        if found is None:
            kept.unrecognised += 1
            kept.bytes += len(datagram.data) + datagram.lost
            kept.beginning = kept.beginning or datagram.data[:_SHOWN]
        else:
            name, meaning = found
            length = len(datagram.data) + datagram.lost
            self._rows.append(kept.flow.row(side, place, length, name, meaning))

    def _meaning(self, datagram: UdpDatagram) -> tuple[str, Meaning] | None:
        """The protocol that decodes the datagram; else the error of the one that owns the port."""
        expected = None
        for protocol in self._datagrams:
            try:
                return protocol.name, protocol.decode(datagram.data)
            except WireError as error:
                if not protocol.ports.isdisjoint(datagram[2:4]):
                    reason = _CUT if datagram.lost else str(error)
                    failed = Meaning(protocol.name, "datagram", error=reason)
                    expected = expected or (protocol.name, failed)
        return expected

    def _end_flow(self, kept: _UdpFlow) -> None:
        if kept.unrecognised:
            flow = kept.flow
            summary = (
                f"{kept.unrecognised} datagrams, {kept.bytes} bytes, "
                f"the first beginning with {kept.beginning.hex()}"
            )
            meaning = Meaning("udp", "unrecognised", summary)
            self._rows.append(flow.row(flow.client, kept.last, kept.bytes, "udp", meaning))

    def _make_room(self) -> None:
        """Ends the least recently active quarter of the conversations if there are too many."""
        total = len(self._connections) + len(self._flows)
        if total < self._limits.max_conversations:
            return
        everything: list[tuple[FlowKey, CapturedConnection | _UdpFlow]] = [
            *self._connections.items(),
            *self._flows.items(),
        ]
        everything.sort(key=lambda each: each[1].last.number)
        for key, kept in everything[: max(1, total // 4)]:
            if isinstance(kept, CapturedConnection):
                kept.finish()
                del self._connections[key]
            else:
                self._end_flow(kept)
                del self._flows[key]


def decode_rows(data: Buffer, limits: CaptureLimits | None = None) -> Iterator[DecodedRow]:
    """All rows of a capture file."""
    decoder = CaptureDecoder(limits)
    for each in walk_capture(data):
        decoder.receive(each)
        yield from decoder.take()
    decoder.finish()
    yield from decoder.take()


def parse_network(text: str) -> Network:
    """An address, or a network as 10.0.0.0/8; ``ValueError`` for anything else."""
    return ip_network(text, strict=False)


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """A filter on rows; empty, it passes all. Errors of the file itself always pass."""

    protocols: frozenset[str] = frozenset()
    since_ns: int | None = None
    until_ns: int | None = None
    errors_only: bool = False

    def __post_init__(self) -> None:
        unknown = sorted(self.protocols.difference(PROTOCOLS))
        if unknown:
            known = ", ".join(PROTOCOLS)
            raise ValueError(f"unknown protocol {unknown[0]!r}; known are {known}")

    def wants(self, row: DecodedRow) -> bool:
        if not row.carrier:
            return True
        if self.protocols and self.protocols.isdisjoint((row.protocol, row.carrier)):
            return False
        if self.errors_only and row.error is None:
            return False
        if row.time_ns is None:
            return True
        is_late = self.since_ns is None or row.time_ns >= self.since_ns
        return is_late and (self.until_ns is None or row.time_ns < self.until_ns)
