"""Reassembly of fragmented IP packets (RFC 791 3.2)."""

from __future__ import annotations

from mqis.protocol.capture.limits import CaptureLimits
from mqis.protocol.capture.row import PacketPosition
from mqis.wire.pcap.ip_layer import NetworkPacket
from mqis.wire.pcap.tcp_udp import Fragment

#: Bytes of an IP packet, header included.
_MAX_PACKET = 65_535

Key = tuple[bytes, bytes, int, int]


class _Parts:
    """The fragments of one packet so far."""

    __slots__ = ("bytes", "end", "parts", "place")

    def __init__(self, place: PacketPosition) -> None:
        self.place = place
        self.parts: dict[int, bytes] = {}
        self.bytes = 0
        #: Known once the last fragment is there.
        self.end: int | None = None

    def add(self, at: int, data: bytes) -> int:
        """Keeps the longest fragment at each offset; returns the bytes by which this grew."""
        grown = max(0, len(data) - len(self.parts.get(at, b"")))
        if grown:
            self.parts[at] = data
            self.bytes += grown
        return grown

    def whole(self) -> bytes | None:
        if self.end is None or self.bytes < self.end:
            return None
        found = bytearray()
        for at in sorted(self.parts):
            if at > len(found):
                return None
            found += self.parts[at][len(found) - at :]
        return bytes(found[: self.end]) if len(found) >= self.end else None


class Fragments:
    """Incomplete packets by addresses, protocol and identification."""

    def __init__(self, limits: CaptureLimits) -> None:
        self._limits = limits
        self._under_way: dict[Key, _Parts] = {}
        self._bytes = 0
        #: Packets given up, with the reason, until the decoder has reported them.
        self.given_up: list[tuple[Key, PacketPosition, str]] = []

    def add(self, fragment: Fragment, place: PacketPosition) -> tuple[NetworkPacket, bytes] | None:
        """Adds a fragment; returns the whole packet if this completes it."""
        key = fragment[:4]
        if fragment.lost:
            self._forget(key)
            self.given_up.append((key, place, "a fragment was cut by the snap length"))
            return None
        if fragment.at + len(fragment.data) > _MAX_PACKET:
            self.given_up.append((key, place, "a fragment lies outside of any packet"))
            return None
        kept = self._under_way.get(key)
        if kept is None:
            self._make_room()
            kept = self._under_way[key] = _Parts(place)
        self._bytes += kept.add(fragment.at, fragment.data)
        if not fragment.more:
            kept.end = fragment.at + len(fragment.data)
        whole = kept.whole()
        if whole is None:
            self._enforce_limits(key, kept)
            return None
        self._forget(key)
        source, destination, protocol, _ = key
        return NetworkPacket(source, destination, protocol, 0, len(whole)), whole

    def _enforce_limits(self, key: Key, kept: _Parts) -> None:
        """Gives up a packet of too many fragments, and the oldest ones beyond the byte limit."""
        if len(kept.parts) > self._limits.max_fragments:
            self._give_up(key, f"more than {self._limits.max_fragments} fragments")
        while self._bytes > self._limits.max_fragment_bytes:
            self._give_up(next(iter(self._under_way)))

    def _make_room(self) -> None:
        if len(self._under_way) >= self._limits.max_fragmented:
            self._give_up(next(iter(self._under_way)))

    def finish(self) -> None:
        """Gives up all incomplete packets."""
        for key in list(self._under_way):
            self._give_up(key)

    def _give_up(
        self, key: Key, reason: str = "other fragments of this packet are missing"
    ) -> None:
        self.given_up.append((key, self._under_way[key].place, reason))
        self._forget(key)

    def _forget(self, key: Key) -> None:
        kept = self._under_way.pop(key, None)
        if kept is not None:
            self._bytes -= kept.bytes
