"""Context handles of the directory service: what they stand for, and how many are open.

Three kinds: server authentications (MS-MQDS 2.2.5), lookups (2.2.6) and delete notifications
(2.2.7). They are valid on both interfaces of an association group. When the last connection of a
group is gone, all of them are run down, which frees what they stand for (3.1.6.1, 3.1.6.2,
3.3.6.1).
"""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from mqis.protocol.directory.retrieval import LookupState, end_directory_lookup
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.hresult import HResult
from mqis.wire.ndr import ContextHandle

V = TypeVar("V")


class HandleTable:
    """All that the clients of one directory server hold open."""

    def __init__(self) -> None:
        self._open: Counter[type] = Counter()
        #: Rows that open lookups hold.
        self.rows = 0

    def count(self, kind: type) -> int:
        return self._open[kind]

    def open(self, call: IncomingCall, value: object) -> ContextHandle:
        """A new handle for ``value``; a fault if the client has too many, or is gone."""
        uuid = call.group.create_handle(value, call.interface, lambda: self._release(value))
        self._open[type(value)] += 1
        if isinstance(value, LookupState):
            self.rows += len(value.rows)
        return ContextHandle(uuid)

    def find(self, call: IncomingCall, handle: ContextHandle, kind: type[V]) -> V:
        """What a handle stands for; a fault for one that is none, closed, or somebody else's."""
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
        value = self.find(call, handle, kind)
        call.group.close_handle(handle.uuid, call.interface)
        self._release(value)

    def check_lookups(self, call: IncomingCall, most: int) -> None:
        """Refuse one more lookup of a client that has ``most`` of them open."""
        handles = call.group.handles.values()
        open_now = sum(isinstance(handle.value, LookupState) for handle in handles)
        if open_now >= most:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, f"{open_now} lookups are open already"
            )

    def check_rows(self, more: int, most: int) -> None:
        """Refuse ``more`` rows if open lookups would then hold over ``most``."""
        if self.rows + more > most:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"open lookups hold {self.rows} objects, {more} more are too many",
            )

    def _release(self, value: object) -> None:
        self._open[type(value)] -= 1
        if isinstance(value, LookupState):
            self.rows -= len(value.rows)
            end_directory_lookup(value)
