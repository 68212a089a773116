"""Association groups and the context handles that belong to them.

A group is the connections of one client to one server. Handles made on one of them are valid on
all, outlive the connection that made them, and are run down when the last one closes.

The connection that makes a group decides whose it is: its identity and level. Another connection
of the same address that names the group shares it only in calls of the same identity and level; in
all others, and before it has logged on, it has a group apart with the same id. So a stranger who
learns the id of a user's group neither uses up its handles, nor keeps it alive, nor ends it by
failed logons.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from mqis.protocol.authentication import Identity
from mqis.protocol.budget import Budget, Caller, Quota
from mqis.protocol.ports import Entropy
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
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


#: The identity and the authentication level of calls.
Principal = tuple[Identity | None, int]


@dataclass(slots=True, eq=False)
class AssociationGroup:
    """One client's connections and handles. Budgets count by the group itself, not by its id."""

    id: int
    #: The peer that may join: its address and transport.
    peer: Hashable
    #: The address that its handles are charged to, besides the group itself.
    address: Hashable
    budget: Budget
    entropy: Entropy
    connections: int = 0
    #: The callers that share the group; None until the first connection has said who it is.
    principal: Principal | None = None
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
        caller = Caller(self, self.address, identity)
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

    def __len__(self) -> int:
        return len(self._groups)

    def create(self, peer: Hashable) -> AssociationGroup:
        """A new group, with its first connection."""
        group = self._new(self._new_id(), peer)
        self._groups[group.id] = group
        return group

    def find(self, id: int, peer: Hashable) -> AssociationGroup | None:  # noqa: A002
        """The group of that id, for its own peer."""
        found = self._groups.get(id)
        return found if found is not None and found.peer == peer else None

    def apart(self, group: AssociationGroup) -> AssociationGroup:
        """A group with the same id for a connection that does not share that one."""
        return self._new(group.id, group.peer)

    def _new(self, id: int, peer: Hashable) -> AssociationGroup:  # noqa: A002
        return AssociationGroup(
            id, peer, self._address_of(peer), self.budget, self._entropy, connections=1
        )

    def _new_id(self) -> int:
        """A random id, which nobody can guess from another one, and not 0."""
        found = int.from_bytes(self._entropy.guid().raw[:4], "little")
        while not found or found in self._groups:
            found = found % 0xFFFF_FFFF + 1
        return found

    def leave(self, group: AssociationGroup) -> list[Handle]:
        """Removes a connection; after the last one, returns the handles to run down."""
        group.connections -= 1
        if group.connections:
            return []
        if self._groups.get(group.id) is group:
            del self._groups[group.id]
        orphans = list(group.handles.values())
        for handle in orphans:
            self.budget.give_back(handle.caller)
        group.handles.clear()
        return orphans
