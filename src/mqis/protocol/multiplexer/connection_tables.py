"""The two connection tables of a session, with the counts of allocated connections (3.1.1)."""

from __future__ import annotations

from collections import deque

from mqis.protocol.multiplexer.limits import MAX_REQUEST, SessionLimits
from mqis.protocol.multiplexer.multiplexed import ConnectionState, MultiplexedConnection
from mqis.wire.cmp.packet import Packet

_LAST_ID = 0xFFFFFFFF


class OutgoingTable:
    """Connections opened here, and those that wait for a slot.

    Refused and disconnecting connections keep slot and id: the partner silently drops the requests
    of an opener that does not count them (E-CMP-13). An id is free again only when
    DISCONNECTED has come, for a late one would end the connection that has the id by then
    (E-CMP-14).
    """

    def __init__(self) -> None:
        self.connections: dict[int, MultiplexedConnection] = {}
        #: Count of Allocated Outgoing Connections.
        self.granted = 0
        #: Connections that wait for a slot, in order.
        self.waiting: dict[MultiplexedConnection, None] = {}
        #: Slots requested by the negotiation under way; 0 if there is none.
        self._requested = 0
        self._ahead = True
        self._free_ids: deque[int] = deque()
        self._highest_id = 0

    @property
    def free(self) -> int:
        return self.granted - len(self.connections)

    def holds(self, connection: MultiplexedConnection) -> bool:
        if connection.id is None:
            return connection in self.waiting
        return self.connections.get(connection.id) is connection

    def request(self, limits: SessionLimits) -> int | None:
        """The slots to request now, if any: for waiting connections, or a few in advance.

        A partner that has refused is asked again only when a connection waits.
        """
        scarce = self._ahead and self.granted > 0 and self.free < limits.slots_ahead
        if self._requested or not (self.waiting or scarce):
            return None
        self._requested = min(MAX_REQUEST, max(limits.request_slots, len(self.waiting)))
        return self._requested

    def answered(self, count: int) -> bool:
        """Adds granted slots; returns False if there are none, which is a refusal (E-CMP-24)."""
        requested, self._requested = self._requested, 0
        if not requested:
            raise ValueError("no request for connections is under way")
        self._ahead = count > 0
        self.granted += min(max(0, count), requested)
        return self._ahead

    def open_next(self) -> MultiplexedConnection:
        """Gives the first waiting connection a slot and an id."""
        connection = next(iter(self.waiting))
        del self.waiting[connection]
        connection.id = self._unused_id()
        connection.state = ConnectionState.OPEN
        self.connections[connection.id] = connection
        return connection

    def remove(self, connection: MultiplexedConnection) -> None:
        assert connection.id is not None
        del self.connections[connection.id]
        self._free_ids.append(connection.id)
        connection.state = ConnectionState.GONE

    def _unused_id(self) -> int:
        """A free id, from 1 on: PINGs have id 0."""
        if self._free_ids:
            return self._free_ids.popleft()
        if self._highest_id == _LAST_ID:
            raise AssertionError("more connections than ids")
        self._highest_id += 1
        return self._highest_id


class IncomingTable:
    """Connections that the partner opened; messages of undecided ones are held back.

    A refused connection stays with its slot until it is disconnected (E-CMP-15).
    """

    def __init__(self) -> None:
        self.connections: dict[int, MultiplexedConnection] = {}
        #: Count of Allocated Incoming Connections: what was granted, not what was asked for
        #: (E-CMP-12).
        self.granted = 0
        #: Messages held back, by id alone, as the text groups them (3.1.5, E-CMP-11).
        self.held: dict[int, list[Packet]] = {}

    @property
    def full(self) -> bool:
        return len(self.connections) >= self.granted

    def holds(self, connection: MultiplexedConnection) -> bool:
        return connection.id is not None and self.connections.get(connection.id) is connection

    def add(self, connection_id: int, connection_type: int) -> MultiplexedConnection:
        connection = MultiplexedConnection(
            connection_type, ConnectionState.UNDECIDED, outgoing=False, connection_id=connection_id
        )
        self.connections[connection_id] = connection
        self.held[connection_id] = []
        return connection

    def decide(self, connection: MultiplexedConnection, state: ConnectionState) -> list[Packet]:
        """Sets the state; returns the messages that waited for the decision."""
        assert connection.id is not None
        connection.state = state
        return self.held.pop(connection.id)

    def remove(self, connection: MultiplexedConnection) -> None:
        assert connection.id is not None
        del self.connections[connection.id]
        connection.state = ConnectionState.GONE
