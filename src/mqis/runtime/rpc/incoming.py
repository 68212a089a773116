"""Incoming calls, as their handlers see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from mqis.protocol.authentication import Addresses, AuthLevel, CallerTicket, Identity, has_name
from mqis.protocol.budget import Caller
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.groups import AssociationGroup
from mqis.protocol.rpc.server_calls import Call
from mqis.runtime.peers import source_of
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import SyntaxId


@dataclass(slots=True)
class IncomingCall:
    """One call: the request, the caller, and the means to call back."""

    call: Call
    group: AssociationGroup
    #: The caller; None if unknown, or if protected below the server's minimum level.
    identity: Identity | None
    addresses: Addresses
    _call_back: Callable[[Call, int, bytes], Awaitable[tuple[bytes, bool]]]
    #: What a shortcut did not know the answer to; None: no answer is to be remembered.
    question: Hashable = None
    #: True if a shortcut has found that it takes longer than a turn of the event loop.
    tried_at_once: bool = False
    #: Called with the stub of the answer, to remember it.
    keep: Callable[[bytes], None] | None = None
    _caller: Caller | None = None

    @property
    def peer(self) -> str:
        """The address of the client."""
        return self.addresses.peer

    @property
    def caller(self) -> Caller:
        """The caller that this call's handles and lookups are charged to."""
        if self._caller is None:
            self._caller = Caller(self.group, source_of(self.peer), self.identity)
        return self._caller

    def create_handle(self, value: object, rundown: Callable[[], None] | None = None) -> Guid:
        """Creates a context handle that is charged to this caller; a fault if it has too many."""
        return self.group.create_handle(value, self.interface, rundown, identity=self.identity)

    @property
    def opnum(self) -> int:
        return self.call.opnum

    @property
    def interface(self) -> Interface:
        return self.call.context.interface

    @property
    def transfer(self) -> SyntaxId:
        return self.call.context.transfer

    @property
    def big_endian(self) -> bool:
        return self.call.big_endian

    @property
    def target(self) -> Guid | None:
        """The object UUID of the request."""
        return self.call.object

    @property
    def level(self) -> int:
        """The authentication level that protects this call."""
        channel = self.call.channel
        return AuthLevel.NONE if channel is None else channel.level

    @property
    def ticket(self) -> CallerTicket | None:
        """What this server may act as the caller with; None for a caller without an identity."""
        channel = self.call.channel
        return channel.context.ticket if channel is not None and has_name(self.identity) else None

    async def call_back(self, opnum: int, stub: bytes) -> tuple[bytes, bool]:
        """Calls the waiting client; returns its answer, and True if that is big-endian.

        Raises ``RpcFault`` if it answers with a fault, ``RpcConnectionError`` if it disconnects.
        """
        return await self._call_back(self.call, opnum, stub)


class Service(Protocol):
    """An interface and its implementation.

    ``dispatch`` returns the stub of the answer, or an awaitable of it; it raises
    ``RpcFault`` to fail the call. An immediate answer costs no task.
    """

    @property
    def interface(self) -> Interface: ...

    def dispatch(self, incoming: IncomingCall) -> bytes | Awaitable[bytes]: ...
