"""Context handles of the directory service: their objects and their budgets.

Three kinds: server authentications (MS-MQDS 2.2.5), lookups (2.2.6) and delete notifications
(2.2.7). They are valid on both interfaces of an association group. When the last connection of a
group is gone, all of them are run down, which frees their objects (3.1.6.1, 3.1.6.2,
3.3.6.1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from mqis.protocol.budget import Charge, Shortage
from mqis.protocol.directory.lookup_walk import LookupState, end_directory_lookup
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.budgets import Budgets
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.hresult import HResult
from mqis.wire.ndr import ContextHandle

V = TypeVar("V")

#: The memory of a lookup besides its rows.
LOOKUP_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Charges:
    """The charges of one handle to the budgets, besides that for the handle itself."""

    memory: Charge
    #: The charge for one lookup, or for none.
    lookup: Charge

    def __enter__(self) -> Charges:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Ends the charges if the block raises, that is, if no handle holds them."""
        if kind is not None:
            self.end()

    def end(self) -> None:
        self.memory.end()
        self.lookup.end()


class HandleTable:
    """The open handles of one directory server."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._open: Counter[type] = Counter()

    def count(self, kind: type) -> int:
        return self._open[kind]

    def memory(self, call: IncomingCall) -> Charge:
        """A charge to the memory budget, empty at first, for the caller of ``call``."""
        return Charge(self._budgets.memory, call.caller)

    def charged(self, call: IncomingCall, size: int) -> Charges:
        """Charges memory for the object of a handle; raises if there is not enough."""
        caller = call.caller
        charges = Charges(
            Charge(self._budgets.memory, caller), Charge(self._budgets.lookups, caller)
        )
        _refuse_shortage(charges.memory.change(size), "bytes of memory")
        return charges

    def lookup(self, call: IncomingCall, size: int = 0) -> Charges:
        """Charges for one more lookup, of ``size``; raises if a budget has no room for it."""
        lacking = call.group.budget.lack(call.caller)
        _refuse_shortage(lacking, "context handles")  # before the walk, not after it
        charges = self.charged(call, LOOKUP_BYTES + size)
        shortage = charges.lookup.change(1)
        if shortage is not None:
            charges.end()
        _refuse_shortage(shortage, "open lookups")
        return charges

    def open(self, call: IncomingCall, value: object, charges: Charges) -> ContextHandle:
        """Creates a handle for ``value``; a fault if there are too many, or the client is gone.

        The charges end with the handle, or at once if it cannot be created.
        """
        self._open[type(value)] += 1

        def release() -> None:
            self._open[type(value)] -= 1
            charges.end()
            if isinstance(value, LookupState):
                end_directory_lookup(value)

        try:
            uuid = call.create_handle(value, release)
        except RpcFault:
            release()
            raise
        return ContextHandle(uuid)

    def find(self, call: IncomingCall, handle: ContextHandle, kind: type[V]) -> V:
        """The object of a handle; a fault for one that is null, closed, or another client's."""
        try:
            value = call.group.handle(handle.uuid, call.interface)
        except RpcFault:
            if not handle:
                raise RpcFault(FaultStatus.IN_NULL_CONTEXT, "the context handle is null") from None
            raise
        if not isinstance(value, kind):
            raise RpcFault(FaultStatus.CONTEXT_MISMATCH, "a context handle of another kind")
        return value

    def close(self, call: IncomingCall, handle: ContextHandle, kind: type[V]) -> None:
        """Closes a handle and frees its object, as its rundown would."""
        self.find(call, handle, kind)
        release = call.group.handles[handle.uuid].rundown
        call.group.close_handle(handle.uuid, call.interface)
        assert release is not None
        release()


def _refuse_shortage(shortage: Shortage | None, what: str) -> None:
    if shortage is not None:
        raise DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"no more {what}: {shortage}; end lookups and close handles that are not needed",
        )
