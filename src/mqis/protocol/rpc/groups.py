"""Association groups and the context handles that belong to them.

A group is the connections of one client to one server. Handles made on one of them are valid on
all, outlive the connection that made them, and are run down when the last one closes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Caller, Quota
from mqis.protocol.ports import Entropy
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.protocol.rpc.interface import Interface
from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class Handle:
    """The object behind a context handle; ``rundown`` frees it when its client is gone."""

    value: object
    interface: Interface
    #: The caller that the handle is charged to.
    caller: Caller
    rundown: Callable[[], None] | None = None


#: The default for servers that set no budget.
DEFAULT_HANDLES = Quota(connection=4096, address=16_384, anonymous=32_768, process=65_536)


@dataclass(slots=True)
class AssociationGroup:
    """One client's connections and handles."""

    id: int
    #: The peer that may join: its address and transport.
    peer: Hashable
    #: The address that its handles are charged to, besides the group itself.
    address: Hashable
    budget: Budget
    entropy: Entropy
    connections: int = 0
    handles: dict[Guid, Handle] = field(default_factory=dict)
    #: Logons that failed on any of the connections, those of S_DSValidateServer included.
    failed_logons: int = 0

    def create_handle(
        self,
        value: object,
        interface: Interface,
        rundown: Callable[[], None] | None = None,
        *,
        identity: Identity | None = None,
    ) -> Guid:
        """Creates a handle for a caller."""
        if not self.connections:  # a call that outlived its client: nobody would run this down
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "the client is gone")
        caller = Caller(self.id, self.address, identity)
        shortage = self.budget.take(caller)
        if shortage is not None:
            raise RpcFault(
                FaultStatus.REMOTE_NO_MEMORY, f"too many context handles: {shortage}; close some"
            )
        id = self.entropy.guid()  # noqa: A001
        self.handles[id] = Handle(value, interface, caller, rundown)
        return id

    def handle(self, id: Guid, interface: Interface) -> object:  # noqa: A002
        """The object behind a handle, if ``interface`` may use it."""
        found = self.handles.get(id)
        if found is None:
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, f"no context handle {id}")
        strict = interface.strict_context_handles or found.interface.strict_context_handles
        if strict and found.interface is not interface:
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, f"handle {id} of another interface")
        return found.value

    def close_handle(self, id: Guid, interface: Interface) -> object:  # noqa: A002
        """Removes a handle without rundown and returns its object, which the caller frees."""
        value = self.handle(id, interface)
        self.budget.give_back(self.handles.pop(id).caller)
        return value


class AssociationGroups:
    """All groups of one server."""

    def __init__(
        self,
        entropy: Entropy,
        budget: Budget | None = None,
        address_of: Callable[[Hashable], Hashable] = lambda peer: peer,
    ) -> None:
        """``address_of`` returns the address that the handles of a peer are charged to."""
        self._entropy = entropy
        self.budget = budget or Budget(DEFAULT_HANDLES)
        self._address_of = address_of
        self._groups: dict[int, AssociationGroup] = {}
        # A random start makes it unlikely that an id from before a restart is valid now.
        self._next = int.from_bytes(entropy.guid().raw[:3], "little")

    def __len__(self) -> int:
        return len(self._groups)

    def join(self, id: int, peer: Hashable) -> AssociationGroup | None:  # noqa: A002
        """A new group for 0, the group of that id for its own peer, None for any other peer."""
        if id == 0:
            address = self._address_of(peer)
            group = AssociationGroup(self._new_id(), peer, address, self.budget, self._entropy)
            self._groups[group.id] = group
        else:
            found = self._groups.get(id)
            if found is None or found.peer != peer:
                return None
            group = found
        group.connections += 1
        return group

    def _new_id(self) -> int:
        self._next = self._next % 0xFFFF_FFFF + 1
        while self._next in self._groups:
            self._next = self._next % 0xFFFF_FFFF + 1
        return self._next

    def leave(self, group: AssociationGroup) -> list[Handle]:
        """Removes a connection; after the last one, returns the handles to run down."""
        group.connections -= 1
        if group.connections:
            return []
        del self._groups[group.id]
        orphans = list(group.handles.values())
        for handle in orphans:
            self.budget.give_back(handle.caller)
        group.handles.clear()
        return orphans
