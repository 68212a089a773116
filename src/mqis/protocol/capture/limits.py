"""What a capture may take. Whoever made the packets could drive every one of these up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one decoder."""

    #: Connections and UDP flows that are remembered; those silent for longest go first.
    max_conversations: int = 20_000
    #: What a connection keeps while something before it is missing.
    max_pending_bytes: int = 4 << 20
    max_pending_segments: int = 4096
    #: After so many packets of a connection whose handshake was not captured, it begins with the
    #: lowest number seen: packets may be out of order in a file.
    settle_packets: int = 16
    #: How much of a stream is looked at for something known if it does not begin with it.
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
