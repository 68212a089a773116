"""Flows: pairs of endpoints as keys, as text, and as shares of work."""

from __future__ import annotations

from ipaddress import ip_address
from zlib import crc32

from mqis.protocol.capture.plain import as_text
from mqis.protocol.capture.row import DecodedRow, Meaning, PacketPosition

#: Protocol number, then both endpoints, the smaller first.
FlowKey = tuple[int, tuple[bytes, int], tuple[bytes, int]]

_NAMES = {6: "tcp", 17: "udp"}


def flow_key(
    protocol: int, source: bytes, source_port: int, destination: bytes, destination_port: int
) -> tuple[FlowKey, int]:
    """The key, which is the same for both directions, and the index of the sending endpoint."""
    one, other = (source, source_port), (destination, destination_port)
    return ((protocol, one, other), 0) if one <= other else ((protocol, other, one), 1)


def share_of(key: tuple[object, ...], shares: int) -> int:
    """The worker that decodes a conversation; the same result in every process."""
    return crc32(repr(key).encode("ascii")) % shares


class Flow:
    """A conversation's endpoints in words. ``client`` is the side that opened it, if known."""

    __slots__ = ("_ends", "_longest", "_sure", "client", "number", "transport")

    def __init__(self, key: FlowKey, side: int, first: PacketPosition, longest: int | None) -> None:
        """``side`` sent first. ``longest``: bytes shown of a byte string; None for no details."""
        protocol, *ends = key
        self.transport = _NAMES[protocol]
        self.number = first.number
        self._ends = [(str(ip_address(address)), port) for address, port in ends]
        self._longest = longest
        self._sure = False
        #: Until a handshake or message shows it: the side with the higher port.
        one, other = self.ports
        self.client = side if one == other else int(one < other)

    @property
    def ports(self) -> tuple[int, int]:
        return self._ends[0][1], self._ends[1][1]

    def opened_by(self, side: int, *, sure: bool = False) -> None:
        """Sets the client; ``sure`` (from a handshake) overrides a guess from the first message."""
        if sure or not self._sure:
            self.client, self._sure = side, sure

    def row(
        self, side: int, place: PacketPosition, length: int, carrier: str, meaning: Meaning
    ) -> DecodedRow:
        source, destination = self._ends[side], self._ends[1 - side]
        detail = ""
        if self._longest is not None and meaning.detail is not None:
            detail = as_text(meaning.detail, self._longest)
        return DecodedRow(
            place.time_ns,
            place.number,
            place.offset,
            *source,
            *destination,
            side == self.client,
            self.transport,
            carrier,
            meaning.protocol,
            meaning.kind,
            self.number,
            meaning.call_id,
            length,
            meaning.summary,
            detail,
            meaning.partition,
            meaning.seq,
            meaning.queue_manager,
            meaning.machines,
            meaning.error,
        )
