"""The reader of capture files in either format."""

from __future__ import annotations

from collections.abc import Iterator

from mqis.wire.errors import WireError
from mqis.wire.pcap.captured import Buffer, Captured, Unreadable
from mqis.wire.pcap.classic import is_pcap, walk_pcap
from mqis.wire.pcap.pcapng import is_pcapng, walk_pcapng


def walk_capture(data: Buffer) -> Iterator[Captured | Unreadable]:
    """Yields packets and unreadable parts in file order; raises nothing."""
    try:
        if is_pcapng(data):
            yield from walk_pcapng(data)
        elif is_pcap(data):
            yield from walk_pcap(data)
        else:
            yield Unreadable(0, "this is neither a pcap nor a pcapng file")
    except WireError as error:
        yield Unreadable(error.offset, error.reason)
