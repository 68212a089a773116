"""The security contexts of one server connection.

A client negotiates any number of them, each under an auth_context_id of its choice, in legs that
travel in bind, alter_context and auth3. A request names the one that protects it; one that names
none runs as the latest connect-level context, until a context has been named once.
"""

from __future__ import annotations

from mqis.protocol.authentication import (
    Addresses,
    AuthenticationError,
    Authenticator,
    AuthLevel,
    AuthType,
    Identity,
    LogonEnd,
    has_name,
)
from mqis.protocol.rpc.channel import PROTECTED, Channel
from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.groups import Principal
from mqis.protocol.rpc.server_endpoint import SECURITY_CONTEXT_BYTES, RpcLimits
from mqis.wire.rpc.pdu import Pdu
from mqis.wire.rpc.pdu_bodies import NakReason
from mqis.wire.rpc.trailer import AuthTrailer

_LEVELS = PROTECTED | {AuthLevel.CONNECT}


class LegRefusedError(Exception):
    """A leg is refused with this bind_nak or this fault."""

    def __init__(self, nak: NakReason, fault: FaultStatus) -> None:
        super().__init__(nak, fault)
        self.nak = nak
        self.fault = fault


class SecurityContexts:
    """All channels of a connection."""

    def __init__(
        self,
        authenticator: Authenticator | None,
        limits: RpcLimits,
        addresses: Addresses,
        min_level: int,
    ) -> None:
        """``min_level``: an identity is valid for calls protected at this level or above."""
        self._authenticator = authenticator
        self._addresses = addresses
        self._min_level = min_level
        self._max = limits.max_security_contexts
        self._max_strangers = limits.max_strangers_security_contexts
        self._max_unfinished = limits.max_unfinished_security_contexts
        self._channels: dict[int, Channel] = {}
        #: Channels between two legs, with the bytes of their tokens so far.
        self._unfinished: dict[int, int] = {}
        #: The first channel that was completed; one with a name takes the place of one without.
        self._first: Channel | None = None
        self._latest_connect: Channel | None = None
        self._trailer_seen = False
        self.header_signing = False
        #: True after an authentication failed that could not be answered; all requests are refused.
        self.spoiled = False
        #: The first caller with a name that has logged on; None: all are strangers.
        self.name: Identity | None = None

    @property
    def negotiating(self) -> bool:
        """True while a channel is between two legs."""
        return bool(self._unfinished)

    @property
    def held(self) -> int:
        """The bytes of all contexts, and of the tokens of those between two legs."""
        return SECURITY_CONTEXT_BYTES * len(self._channels) + sum(self._unfinished.values())

    @property
    def principal(self) -> Principal | None:
        """The identity and level of the first channel, by preference of one with a name."""
        first = self._first
        return None if first is None else (self.identity(first), first.level)

    @property
    def names(self) -> tuple[Identity, ...]:
        """The callers with a name whose logons are valid, each once."""
        found = (self.identity(channel) for channel in self._channels.values())
        return tuple(dict.fromkeys(each for each in found if has_name(each)))

    @property
    def any_ended(self) -> bool:
        """True if the logon of one of the channels has ended."""
        return any(channel.context.ended is not None for channel in self._channels.values())

    def leg(self, auth: AuthTrailer) -> bytes | None:
        """Handles one leg in bind or alter_context; returns the token of the answer."""
        channel = self._channels.get(auth.context_id)
        if channel is None:
            channel = self._open(auth)
        elif channel.complete:
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.ACCESS_DENIED)
        self._check_same(channel, auth)
        token = self._step(channel, auth.token)
        if channel.complete:
            self._completed(channel)
        return token

    def auth3(self, auth: AuthTrailer) -> bool:
        """Handles the last leg of NTLM, which is not answered; returns whether it was accepted."""
        channel = self._channels.get(auth.context_id)
        if channel is None or channel.id not in self._unfinished:
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.PROTO_ERROR)
        self._check_same(channel, auth)
        try:
            if channel.type == AuthType.SPNEGO:  # which has to end with an answer
                raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.ACCESS_DENIED)
            self._step(channel, auth.token)
        except LegRefusedError:
            self.spoiled = True  # the first request is refused
            self._unfinished.pop(channel.id, None)
            return False
        if channel.complete:
            self._completed(channel)
        return True

    def _open(self, auth: AuthTrailer) -> Channel:
        most = self._max if has_name(self.name) else self._max_strangers
        if len(self._channels) >= most or len(self._unfinished) >= self._max_unfinished:
            raise LegRefusedError(NakReason.LOCAL_LIMIT_EXCEEDED, FaultStatus.PROTO_ERROR)
        if auth.level not in _LEVELS and auth.level != AuthLevel.CALL:
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.ACCESS_DENIED)
        unknown = NakReason.AUTHENTICATION_TYPE_NOT_RECOGNIZED
        if self._authenticator is None:
            raise LegRefusedError(unknown, FaultStatus.ACCESS_DENIED)
        try:
            context = self._authenticator.acceptor(auth.type, auth.level, self._addresses)
        except AuthenticationError:
            raise LegRefusedError(unknown, FaultStatus.ACCESS_DENIED) from None
        if auth.level == AuthLevel.CALL:  # MS-RPCE would raise it to packet; peers refuse it
            raise LegRefusedError(NakReason.INVALID_CHECKSUM, FaultStatus.ACCESS_DENIED)
        channel = Channel(auth.context_id, auth.type, auth.level, context)
        self._channels[channel.id] = channel
        self._unfinished[channel.id] = 0
        return channel

    def _check_same(self, channel: Channel, auth: AuthTrailer) -> None:
        if auth.type not in (channel.type, AuthType.NONE):
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.SEC_PKG_ERROR)
        if auth.type != channel.type or auth.level != channel.level:
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.ACCESS_DENIED)

    def _step(self, channel: Channel, token: bytes) -> bytes | None:
        self._unfinished[channel.id] += len(token)
        try:
            return channel.context.step(token)
        except AuthenticationError:
            raise LegRefusedError(NakReason.INVALID_CHECKSUM, FaultStatus.SEC_PKG_ERROR) from None

    def _completed(self, channel: Channel) -> None:
        self._unfinished.pop(channel.id, None)
        identity = self.identity(channel)
        if not has_name(self.name) and has_name(identity):
            self.name, self._first = identity, channel
        self._first = self._first or channel
        if channel.level == AuthLevel.CONNECT:
            self._latest_connect = channel

    def identity(self, channel: Channel | None) -> Identity | None:
        """The identity of a channel's calls; None if they are protected below the minimum."""
        if channel is None or channel.level < self._min_level:
            return None
        return channel.context.identity

    @staticmethod
    def ended(channel: Channel | None) -> LogonEnd | None:
        """The reason that the caller of a channel has to log on again."""
        return None if channel is None else channel.context.ended

    def channel_for(self, auth: AuthTrailer | None) -> Channel | None:
        """The channel of a request; ``LegRefusedError`` if its trailer does not fit."""
        if auth is None:
            return None if self._trailer_seen else self._latest_connect
        channel = self._channels.get(auth.context_id)
        if channel is None or (auth.type, auth.level) != (channel.type, channel.level):
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.ACCESS_DENIED)
        self._trailer_seen = True
        return channel

    def usual_channel(self, auth_type: int, level: int, context_id: int) -> Channel | None:
        """The channel of a signed request, if it fits and nothing else is under way."""
        channel = self._channels.get(context_id)
        if channel is None or channel.type != auth_type or channel.level != level:
            return None
        if self.spoiled or self._unfinished or not channel.protects:
            return None
        self._trailer_seen = True
        return channel

    def unprotect(self, channel: Channel, pdu: Pdu) -> bytes:
        """The stub of a request, verified and without its padding."""
        try:
            return channel.unprotect(pdu, sign_header=self.header_signing)
        except AuthenticationError:
            raise LegRefusedError(NakReason.NOT_SPECIFIED, FaultStatus.SEC_PKG_ERROR) from None
