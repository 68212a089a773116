"""Calls: fragments put together on the way in, cut up on the way out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.negotiation import PresentationContext
from mqis.wire.guid import Guid
from mqis.wire.rpc.bodies import Request, Response
from mqis.wire.rpc.header import HEADER_SIZE, Header, PfcFlags
from mqis.wire.rpc.pdu import call_prefix
from mqis.wire.rpc.trailer import PAD_TO


@dataclass(slots=True)
class Call:
    """A request, from its first fragment to its answer."""

    id: int
    context: PresentationContext
    opnum: int
    object: Guid | None
    big_endian: bool
    channel: Channel | None
    stub: bytearray = field(default_factory=bytearray)
    #: When the first fragment came.
    began: float = 0.0
    cancelled: bool = False
    orphaned: bool = False
    #: Callbacks that the handler of this call has under way, innermost last.
    callbacks: int = 0


def fragments(
    body: Request | Response,
    *,
    call_id: int,
    max_frag: int,
    channel: Channel | None = None,
    sign_header: bool = False,
) -> Iterator[bytes]:
    """The PDUs that carry ``body``, each signed on its own if ``channel`` protects."""
    guard = channel if channel is not None and channel.protects else None
    prefix_size = len(call_prefix(body))
    room = max_frag - HEADER_SIZE - prefix_size
    if guard is not None:
        room -= guard.overhead
        room -= room % PAD_TO  # cut where no padding is needed
    total = len(body.stub)
    for at in range(0, total or 1, room):
        part = body.stub[at : at + room]
        flags = PfcFlags.FIRST if at == 0 else PfcFlags(0)
        if at + room >= total:
            flags |= PfcFlags.LAST
        if isinstance(body, Request) and body.object is not None:
            flags |= PfcFlags.OBJECT_UUID
        prefix = call_prefix(replace(body, alloc_hint=total - at))
        size = HEADER_SIZE + prefix_size + len(part)
        if guard is None:
            yield Header(body.TYPE, flags, call_id, size).encode() + prefix + part
            continue
        size += -len(part) % PAD_TO + guard.overhead
        header = Header(body.TYPE, flags, call_id, size, guard.signature_size)
        yield guard.protect(header.encode() + prefix, part, sign_header=sign_header)
