"""Calls: fragments put together on the way in, cut up on the way out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mqis.protocol.rpc.negotiation import PresentationContext
from mqis.protocol.rpc.security import Channel, SecurityContexts
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
    security: SecurityContexts | None = None,
    channel: Channel | None = None,
) -> Iterator[bytes]:
    """The PDUs that carry ``body``, each signed on its own if ``channel`` protects."""
    protects = channel is not None and channel.protects and security is not None
    overhead = security.overhead(channel) if protects and security and channel else 0
    prefix_size = len(call_prefix(body))
    room = max_frag - HEADER_SIZE - prefix_size - overhead
    if protects:
        room -= room % PAD_TO  # fragments are cut where no padding is needed
    stub, total = body.stub, len(body.stub)
    for at in range(0, max(total, 1), room):
        part = stub[at : at + room]
        flags = (PfcFlags.FIRST if at == 0 else 0) | (PfcFlags.LAST if at + room >= total else 0)
        if isinstance(body, Request):
            if body.object is not None:
                flags |= PfcFlags.OBJECT_UUID
            prefix = call_prefix(Request(body.context_id, body.opnum, b"", body.object, total - at))
        else:
            prefix = call_prefix(Response(body.context_id, b"", total - at, body.cancel_count))
        if not (protects and security and channel):
            size = HEADER_SIZE + prefix_size + len(part)
            yield Header(body.TYPE, flags, call_id, size).encode() + prefix + part
            continue
        token = channel.context.signature_size(channel.level)
        padded = len(part) + -len(part) % PAD_TO
        size = HEADER_SIZE + prefix_size + padded + overhead
        head = Header(body.TYPE, flags, call_id, size, token).encode() + prefix
        yield security.protect(channel, head, part)
