"""The bind: agreement of client and server on contexts, sizes, group and identity.

bind opens an association, alter_context adds to it, auth3 ends an authentication of three legs
(MS-RPCE 3.3.1.5.3, 3.3.1.5.2). Each takes a PDU and returns the bytes of its answer; a refusal
is raised.
"""

from __future__ import annotations

from collections.abc import Hashable

from mqis.protocol.authentication import NOWHERE, Addresses, AuthLevel, AuthType
from mqis.protocol.errors import ProtocolError
from mqis.protocol.rpc.faults import FaultAnswer, FaultStatus, Nak
from mqis.protocol.rpc.groups import AssociationGroup, Handle, Principal
from mqis.protocol.rpc.negotiation import (
    PresentationContext,
    fragment_size,
    negotiate,
)
from mqis.protocol.rpc.server_endpoint import PRESENTATION_CONTEXT_BYTES, ServerEndpoint
from mqis.protocol.rpc.server_security import LegRefusedError, SecurityContexts
from mqis.wire.rpc.pdu import STUB_OFFSET, Pdu, encode_pdu
from mqis.wire.rpc.pdu_bodies import AlterContext, AlterContextResp, Bind, BindAck, NakReason
from mqis.wire.rpc.pdu_header import FIRST_LAST, PfcFlags
from mqis.wire.rpc.trailer import AuthTrailer


class Binding:
    """The negotiated state of one connection."""

    def __init__(
        self, endpoint: ServerEndpoint, peer: Hashable, addresses: Addresses = NOWHERE
    ) -> None:
        self._endpoint = endpoint
        self._peer = peer
        #: The group that this connection made, or the one apart; None until a bind was accepted.
        self._own: AssociationGroup | None = None
        #: The group of other connections that the bind named, and whether this one has joined it.
        self._named: AssociationGroup | None = None
        self._joined = False
        self._unauthenticated = False
        self.contexts: dict[int, PresentationContext] = {}
        self.security = SecurityContexts(
            endpoint.authenticator, endpoint.limits, addresses, endpoint.min_level
        )
        self.frag = endpoint.limits.max_frag
        self.multiplexed = False
        self.features: int | None = None

    def bind(self, pdu: Pdu, body: Bind) -> bytes:
        flags = pdu.header.flags
        if self._own is not None or not body.contexts:
            raise Nak(NakReason.NOT_SPECIFIED)
        if _padding_reaches_header(pdu):
            raise Nak(NakReason.PROTOCOL_VERSION_NOT_SUPPORTED)
        try:
            agreed = negotiate(body.contexts, self._endpoint.interfaces, {})
        except ProtocolError:
            raise Nak(NakReason.NOT_SPECIFIED) from None
        if flags & PfcFlags.SUPPORT_HEADER_SIGN:
            self.security.header_signing = True
        try:
            token = None if pdu.auth is None else self.security.leg(pdu.auth)
        except LegRefusedError as refused:
            raise Nak(refused.nak) from None
        self._unauthenticated = pdu.auth is None
        group = self._enter(body.assoc_group_id)
        if self.worn_out:
            raise Nak(NakReason.NOT_SPECIFIED)
        at_most = self._endpoint.limits.max_frag
        self.frag = fragment_size(body.max_xmit_frag, body.max_recv_frag, at_most=at_most)
        self.multiplexed = bool(flags & PfcFlags.CONC_MPX)
        self.features = agreed.features
        self.contexts = {context.id: context for context in agreed.accepted}
        address = self._endpoint.secondary_address
        ack = BindAck(self.frag, self.frag, group.id, address, agreed.results)
        return _answer(ack, pdu, token, PfcFlags.SUPPORT_HEADER_SIGN | PfcFlags.CONC_MPX)

    def alter(self, pdu: Pdu, body: AlterContext) -> bytes:
        group = self.group
        assert group is not None
        if not body.contexts or _padding_reaches_header(pdu):
            raise FaultAnswer(FaultStatus.PROTO_ERROR)
        if pdu.auth is not None and pdu.auth.type == AuthType.NONE:
            raise FaultAnswer(FaultStatus.ACCESS_DENIED)
        try:
            agreed = negotiate(body.contexts, self._endpoint.interfaces, self.contexts)
        except ProtocolError:
            raise FaultAnswer(FaultStatus.PROTO_ERROR) from None
        contexts = self.contexts | {context.id: context for context in agreed.accepted}
        if len(contexts) > self._endpoint.limits.max_contexts:
            raise FaultAnswer(FaultStatus.PROTO_ERROR)
        if pdu.header.flags & PfcFlags.SUPPORT_HEADER_SIGN:
            self.security.header_signing = True
        try:
            token = None if pdu.auth is None else self.security.leg(pdu.auth)
        except LegRefusedError as refused:
            group.failed_logons += 1
            raise FaultAnswer(refused.fault) from None
        self.contexts = contexts
        self._agree_on_group()
        resp = AlterContextResp(self.frag, self.frag, group.id, "", agreed.results)
        return _answer(resp, pdu, token, PfcFlags.SUPPORT_HEADER_SIGN)

    def auth3(self, pdu: Pdu) -> None:
        group = self.group
        assert group is not None
        if pdu.auth is None:
            raise FaultAnswer(FaultStatus.PROTO_ERROR)
        if pdu.auth.pad_length:
            raise FaultAnswer(FaultStatus.REMOTE_NO_MEMORY)
        try:
            if not self.security.auth3(pdu.auth):
                group.failed_logons += 1
        except LegRefusedError as refused:
            raise FaultAnswer(refused.fault) from None
        self._agree_on_group()

    # --- the group --------------------------------------------------------------------------------

    @property
    def group(self) -> AssociationGroup | None:
        """The group of this connection's usual calls; None before a bind is accepted."""
        return self._named if self._joined else self._own

    @property
    def is_shared(self) -> bool:
        """True if the bind named a group of other connections."""
        return self._named is not None

    def group_of(self, principal: Principal) -> AssociationGroup | None:
        """The group whose handles a call uses."""
        named = self._named
        if named is not None and not self._joined:
            self._agree_on_group()  # it may be decided by now whose group it is
        if named is None or not self._joined or named.principal == principal:
            return self.group
        if self._own is None:
            self._own = self._endpoint.groups.apart(named)
        return self._own

    def leave(self) -> list[Handle]:
        """Leaves the groups; returns the handles to run down."""
        left = [self._own] if self._own is not None else []
        if self._joined and self._named is not None:
            left.append(self._named)
        self._own = self._named = None
        self._joined = False
        return [handle for group in left for handle in self._endpoint.groups.leave(group)]

    def _enter(self, id: int) -> AssociationGroup:  # noqa: A002
        """Makes a group for id 0, else joins the one of that id, now or when a logon is done."""
        groups = self._endpoint.groups
        if id == 0:
            self._own = groups.create(self._peer)
        else:
            self._named = groups.find(id, self._peer)
            if self._named is None:
                raise Nak(NakReason.NOT_SPECIFIED)
            self._own = groups.apart(self._named)
        self._agree_on_group()
        group = self.group
        assert group is not None
        return group

    def _agree_on_group(self) -> None:
        """Says whose group this connection has made, or joins the one that it named."""
        principal, named = self.security.principal, self._named
        if principal is None and self._unauthenticated:
            principal = None, AuthLevel.NONE
        if named is None:
            assert self._own is not None
            self._own.principal = principal
        elif self._may_join(named, principal):
            assert self._own is not None
            self._endpoint.groups.leave(self._own)
            self._own, self._joined = None, True
            named.connections += 1

    def _may_join(self, named: AssociationGroup, principal: Principal | None) -> bool:
        if self._joined or not named.connections or principal is None:
            return False
        return named.principal == principal and self._own is not None and not self._own.handles

    @property
    def held(self) -> int:
        """The bytes of all contexts."""
        return self.security.held + PRESENTATION_CONTEXT_BYTES * len(self.contexts)

    @property
    def worn_out(self) -> bool:
        """True if too many logons of the association have failed, so that it ends."""
        group = self.group
        return group is not None and group.failed_logons >= self._endpoint.limits.max_failed_logons

    @property
    def unfinished(self) -> bool:
        """True while no call can be made: not bound, or between two legs of authentication."""
        return self.group is None or self.security.negotiating


def _padding_reaches_header(pdu: Pdu) -> bool:
    return pdu.auth is not None and pdu.trailer_at - pdu.auth.pad_length < STUB_OFFSET


def _answer(body: BindAck | AlterContextResp, pdu: Pdu, token: bytes | None, echo: int) -> bytes:
    """The answer to a bind or alter: grants flags by echoing them; has the client's trailer."""
    client_auth, auth = pdu.auth, None
    if client_auth is not None:
        auth = AuthTrailer(
            client_auth.type, client_auth.level, client_auth.context_id, token or b""
        )
    flags = FIRST_LAST | pdu.header.flags & echo
    return encode_pdu(body, call_id=pdu.header.call_id, flags=flags, auth=auth)
