"""Limits on the memory for a capture, since its packets may be crafted by an attacker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """The limits of one decoder."""

    #: Connections and UDP flows that are remembered; the least recently active ones go first.
    max_conversations: int = 20_000
    #: Data that a connection keeps while earlier data is missing.
    max_pending_bytes: int = 4 << 20
    max_pending_segments: int = 4096
    #: After so many packets of a connection whose handshake was not captured, it begins with the
    #: lowest number seen: packets may be out of order in a file.
    settle_packets: int = 16
    #: Bytes of a stream that are searched for a known protocol.
    max_search: int = 16 << 10
    #: Fragmented IP packets under way at a time.
    max_fragmented: int = 1024
    #: Fragments of one of them, and bytes of all: the oldest are given up.
    max_fragments: int = 256
    max_fragment_bytes: int = 64 << 20
    #: RPC: calls without an answer, and bytes of one call's stub.
    max_calls: int = 1024
    max_stub: int = 8 << 20
    #: Callbacks within callbacks of one call.
    max_nested: int = 16
    #: Longer runs of bytes are shortened in the details of a row.
    max_detail_bytes: int = 256
