"""Calls on the server, and the fragmentation of stubs on either side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.negotiation import PresentationContext
from mqis.wire.guid import Guid
from mqis.wire.rpc.pdu import (
    STUB_OFFSET,
    call_head,
    call_stub_offset,
    whole_response,
    whole_response_head,
)
from mqis.wire.rpc.pdu_bodies import Request, Response
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import PAD_TO, TRAILER_SIZE


@dataclass(slots=True, eq=False)
class Call:
    """A request, from its last fragment to its answer. Calls compare by identity."""

    id: int
    context: PresentationContext
    opnum: int
    object: Guid | None
    big_endian: bool
    channel: Channel | None
    stub: bytes = b""
    cancelled: bool = False
    orphaned: bool = False
    #: The answer to a callback so far; None while no callback is under way.
    returning: bytearray | None = None


def whole_answer(call: Call, stub: bytes, max_frag: int, *, sign_header: bool) -> bytes | None:
    """The response to a call in one PDU, as nearly all are; None if it does not fit in one."""
    channel, total, context_id = call.channel, len(stub), call.context.id & 0xFF
    if channel is None or not channel.protects:
        fits = STUB_OFFSET + total <= max_frag
        return whole_response(call.id, context_id, stub) if fits else None
    signature = channel.signature_size
    size = STUB_OFFSET + total + -total % PAD_TO + TRAILER_SIZE + signature
    if size > max_frag:
        return None
    head = whole_response_head(call.id, context_id, total, size, signature)
    return channel.protect(head, stub, sign_header=sign_header)


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
    stub, total = body.stub, len(body.stub)
    stub_at = call_stub_offset(body)
    if guard is None and stub_at + total <= max_frag:
        yield call_head(body, FIRST_LAST, call_id, total, size=stub_at + total) + stub
        return
    room = max_frag - stub_at
    if guard is not None:
        room -= guard.overhead
        room -= room % PAD_TO  # cut where no padding is needed
    for at in range(0, total or 1, room):
        part = stub[at : at + room]
        flags = 0 if at else PfcFlags.FIRST
        if at + room >= total:
            flags |= PfcFlags.LAST
        size = stub_at + len(part)
        if guard is None:
            yield call_head(body, flags, call_id, total - at, size=size) + part
            continue
        size += -len(part) % PAD_TO + guard.overhead
        signature = guard.signature_size
        head = call_head(body, flags, call_id, total - at, size=size, auth_length=signature)
        yield guard.protect(head, part, sign_header=sign_header)
