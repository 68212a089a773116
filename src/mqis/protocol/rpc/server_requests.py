"""Requests on the server: checks, verifies and reassembles fragments to calls.

A client sends one call at a time, first fragment to last. The first fragment determines the
operation and the security context; those fields of later ones are ignored, as peers expect.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from mqis.protocol.authentication import AuthenticationError
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.faults import FaultAnswer, FaultStatus, denied
from mqis.protocol.rpc.server_bind import Binding
from mqis.protocol.rpc.server_calls import Call
from mqis.protocol.rpc.server_security import LegRefusedError
from mqis.wire.errors import WireError
from mqis.wire.rpc.interfaces import NDR64
from mqis.wire.rpc.pdu import STUB_OFFSET, Pdu, signed_request, whole_request
from mqis.wire.rpc.pdu_bodies import Request, Response
from mqis.wire.rpc.pdu_header import Header, PacketType, PfcFlags
from mqis.wire.rpc.verification import SIGNATURE as VERIFICATION
from mqis.wire.rpc.verification import Verification, drep_of, find_verification

_FIRST, _LAST, _PENDING_CANCEL = PfcFlags.FIRST, PfcFlags.LAST, PfcFlags.PENDING_CANCEL


@dataclass(slots=True)
class _Incoming:
    """A call whose last fragment has not arrived."""

    call: Call
    stub: bytearray
    began: float


class Requests:
    """The requests of one connection."""

    def __init__(self, binding: Binding, max_stub: int) -> None:
        self._binding = binding
        self._max_stub = max_stub
        self._incoming: _Incoming | None = None

    @property
    def began(self) -> float | None:
        """The time of the first fragment of the call under way."""
        return None if self._incoming is None else self._incoming.began

    @property
    def held(self) -> int:
        """The bytes of the call under way."""
        return 0 if self._incoming is None else len(self._incoming.stub)

    @property
    def under_way(self) -> Call | None:
        """The call whose last fragment has not arrived."""
        return None if self._incoming is None else self._incoming.call

    def forget(self) -> None:
        self._incoming = None

    def whole(self, data: bytes) -> Call | None:
        """The call in ``data`` by the short way, which nearly all calls can take.

        None for all others, and for errors: nothing has happened to these; they are decoded and go
        through ``receive``. If a signature is wrong, its security context is spoiled and the
        refusal is the same as there.
        """
        if self._incoming is not None:
            return None
        call = self._whole_unsigned(data)
        return self._whole_signed(data) if call is None else call

    def _whole_unsigned(self, data: bytes) -> Call | None:
        whole = whole_request(data)
        if whole is None:
            return None
        call_id, context_id, opnum, stub = whole
        context, security = self._binding.contexts.get(context_id), self._binding.security
        if context is None or opnum >= context.interface.operations or VERIFICATION in stub:
            return None
        if security.spoiled or security.negotiating:
            return None
        channel = security.channel_for(None)
        return Call(call_id, context, opnum, None, False, channel, stub)

    def _whole_signed(self, data: bytes) -> Call | None:
        signed = signed_request(data)
        if signed is None:
            return None
        call_id, context_id, opnum, trailer_at, auth_type, level, auth_context, pad = signed
        context, security = self._binding.contexts.get(context_id), self._binding.security
        if context is None or opnum >= context.interface.operations:
            return None
        end = trailer_at - pad
        if trailer_at % 4 or end < STUB_OFFSET:
            return None
        # The last check: from here on a sequence number is used up.
        channel = security.usual_channel(auth_type, level, auth_context)
        if channel is None:
            return None
        try:
            body = channel.open(data, trailer_at, sign_header=security.header_signing)
        except AuthenticationError:
            raise _forged(context_id) from None
        call = Call(call_id, context, opnum, None, False, channel)
        call.stub = self._without_trailer(call, body[: end - STUB_OFFSET])
        return call

    def receive(self, pdu: Pdu, body: Request, now: float) -> Call | None:
        """Handles one fragment; returns the call if this was its last."""
        flags = pdu.header.flags
        if flags & _FIRST:
            call, stub = self._first(pdu, body)
            if not flags & _LAST:
                self._incoming = _Incoming(call, bytearray(stub), now)
                return None
        else:
            incoming = self._next(pdu, body)
            if not flags & _LAST:
                return None
            self._incoming = None
            call, stub = incoming.call, bytes(incoming.stub)
        if call.opnum >= call.context.interface.operations:
            raise FaultAnswer(FaultStatus.OP_RNG_ERROR, context_id=call.context.id, final=False)
        call.stub = self._without_trailer(call, stub)
        return call

    def _first(self, pdu: Pdu, body: Request) -> tuple[Call, bytes]:
        header, binding = pdu.header, self._binding
        if header.flags & _PENDING_CANCEL:
            raise FaultAnswer(FaultStatus.NO_CALL_ACTIVE)
        if self._incoming is not None:
            self._check_interrupted(pdu, self._incoming.call)
            raise self._interleaved(header, self._incoming.call)
        if binding.security.negotiating:
            raise FaultAnswer(FaultStatus.PROTO_ERROR)
        context = binding.contexts.get(body.context_id)
        if context is None:
            raise self._unknown_context(pdu, body)
        channel = self._channel(pdu, context.id)
        if header.big_endian and context.transfer == NDR64:  # MS-RPCE 2.2.5: little-endian only
            raise FaultAnswer(FaultStatus.PROTO_ERROR, context_id=context.id)
        if body.alloc_hint > self._max_stub and not header.flags & _LAST:
            raise denied(context.id)
        call = Call(header.call_id, context, body.opnum, body.object, header.big_endian, channel)
        return call, self.stub_of(pdu, body, channel, context.id)

    def _unknown_context(self, pdu: Pdu, body: Request) -> FaultAnswer:
        """The fault for an unknown context; the signature is consumed, since they are numbered.

        Peers answer the same if it is wrong; its security context is then unusable.
        """
        if pdu.auth is not None:
            with suppress(FaultAnswer):
                self.stub_of(pdu, body, self._channel(pdu, 0), 0)
        return FaultAnswer(FaultStatus.UNK_IF, final=False)

    def _check_interrupted(self, pdu: Pdu, before: Call) -> None:
        """Verifies a call that begins again like the one that it interrupts."""
        if before.id == pdu.header.call_id and pdu.auth is not None:
            assert isinstance(pdu.body, Request)
            self.stub_of(pdu, pdu.body, before.channel, before.context.id)

    def _interleaved(self, header: Header, before: Call) -> FaultAnswer:
        """The fault for a call that began before the previous one was complete."""
        if self._binding.multiplexed and header.call_id != before.id:
            return FaultAnswer(FaultStatus.PROTO_ERROR, executed=True)
        return FaultAnswer(
            FaultStatus.PROTO_ERROR,
            context_id=before.context.id,
            executed=True,
            call_id=before.id,
        )

    def _next(self, pdu: Pdu, body: Request) -> _Incoming:
        incoming = self._incoming
        if incoming is None or incoming.call.id != pdu.header.call_id:
            raise self._without_first(pdu, body)
        call, channel = incoming.call, incoming.call.channel
        unsigned = pdu.auth is None and channel is not None and channel.protects
        if unsigned or (pdu.auth is not None and channel is None):
            raise FaultAnswer(FaultStatus.PROTO_ERROR, context_id=call.context.id, executed=True)
        incoming.stub += self.stub_of(pdu, body, channel, call.context.id)
        if len(incoming.stub) > self._max_stub:
            raise denied(call.context.id)
        return incoming

    def _without_first(self, pdu: Pdu, body: Request) -> FaultAnswer:
        """The fault for a fragment that continues no call."""
        if self._incoming is not None:
            return self._interleaved(pdu.header, self._incoming.call)
        if not self._binding.multiplexed:
            return FaultAnswer(FaultStatus.PROTO_ERROR, executed=True)
        if body.context_id not in self._binding.contexts:
            return self._unknown_context(pdu, body)
        self._channel(pdu, body.context_id)
        return FaultAnswer(FaultStatus.PROTO_ERROR, context_id=body.context_id, executed=True)

    def _channel(self, pdu: Pdu, context_id: int) -> Channel | None:
        security = self._binding.security
        if security.spoiled:
            raise denied(context_id)
        try:
            return security.channel_for(pdu.auth)
        except LegRefusedError as refused:
            raise FaultAnswer(refused.fault, context_id=context_id, executed=True) from None

    def stub_of(
        self, pdu: Pdu, body: Request | Response, channel: Channel | None, context_id: int
    ) -> bytes:
        """The stub of one fragment, verified as the security context of its call requires."""
        auth = pdu.auth
        if channel is None or (auth is None and not channel.protects):
            return body.stub
        # The text requires an alignment of sixteen; peers use four and eight. Less is refused.
        if auth is None or pdu.trailer_at % 4:
            raise denied(context_id)
        try:
            return self._binding.security.unprotect(channel, pdu)
        except LegRefusedError as refused:
            raise FaultAnswer(refused.fault, context_id=context_id, executed=True) from None

    def _without_trailer(self, call: Call, stub: bytes) -> bytes:
        """The stub without its verification trailer, which has to match the PDU."""
        try:
            found = find_verification(stub)
        except WireError:
            raise denied(call.context.id) from None
        if found is None:
            return stub
        start, verification = found
        if not _confirms(verification, call, header_signing=self._binding.security.header_signing):
            raise denied(call.context.id)
        return stub[:start]


def _forged(context_id: int) -> FaultAnswer:
    return FaultAnswer(FaultStatus.SEC_PKG_ERROR, context_id=context_id, executed=True)


def _confirms(verification: Verification, call: Call, *, header_signing: bool) -> bool:
    """Returns whether the signed verification trailer in the stub matches the PDU."""
    context = call.context
    if verification.unknown or (verification.client_header_signing and not header_signing):
        return False
    if verification.interface is not None:
        same = (
            context.interface.offers(verification.interface)
            and verification.transfer == context.transfer
        )
        if not same:
            return False
    if verification.header is None:
        return True
    drep = drep_of(big_endian=call.big_endian)
    return verification.header == (PacketType.REQUEST, drep, call.id, context.id, call.opnum)
