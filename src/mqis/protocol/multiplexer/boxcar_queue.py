"""The Boxcar Queue of a session (MS-CMP 3.1.1, 3.1.7.1)."""

from __future__ import annotations

from collections import deque

from mqis.protocol.multiplexer.events import SendBoxcar
from mqis.protocol.multiplexer.multiplexed import MultiplexedConnection
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import MsgTag, Packet

_ANSWERS = frozenset({MsgTag.CONNECTION_REQ_DENIED, MsgTag.DISCONNECTED})


class Car:
    """A boxcar, the cost of its user messages by connection, and the number of its answers."""

    __slots__ = ("answers", "builder", "costs")

    def __init__(self) -> None:
        self.builder = BoxcarBuilder()
        self.costs: dict[MultiplexedConnection, int] = {}
        self.answers = 0


class BoxcarQueue:
    """Boxcars in order. The one in flight is closed and no longer queued (E-CMP-21)."""

    def __init__(self) -> None:
        self._cars: deque[Car] = deque()
        self._in_flight: Car | None = None
        #: Answers to the partner's requests that are not sent yet.
        self.answers = 0

    def __len__(self) -> int:
        """The number of boxcars that wait, without the one in flight."""
        return len(self._cars)

    @property
    def in_flight(self) -> bool:
        return self._in_flight is not None

    def add_user_message(
        self,
        owner: MultiplexedConnection,
        connection_id: int,
        message_type: int,
        data: bytes,
        cost: int,
    ) -> None:
        """Queues a user message; fIsMaster is 1 if this side opened the connection (3.1.4.1)."""
        cars, is_master = self._cars, owner.outgoing
        car = cars[-1] if cars else self._append()
        if not car.builder.add_user_message(connection_id, message_type, data, is_master):
            car = self._append()
            car.builder.add_user_message(connection_id, message_type, data, is_master)
        costs = car.costs
        costs[owner] = costs.get(owner, 0) + cost

    def add(self, packet: Packet) -> None:
        """Queues a packet in the last boxcar if its limits allow it, else in a new one."""
        car = self._cars[-1] if self._cars else self._append()
        if not car.builder.has_room(len(packet.data)):
            car = self._append()
        car.builder.add(packet)
        if packet.tag in _ANSWERS:
            car.answers += 1
            self.answers += 1

    def _append(self) -> Car:
        car = Car()
        self._cars.append(car)
        return car

    def depart(self) -> SendBoxcar | None:
        """The first boxcar as bytes; None if one is in flight or none waits."""
        if self._in_flight is not None or not self._cars:
            return None
        car = self._in_flight = self._cars.popleft()
        self.answers -= car.answers
        builder, car.builder = car.builder, BoxcarBuilder()  # its data is not needed twice
        return SendBoxcar(builder.to_bytes(), builder.count)

    def arrived(self) -> Car:
        car, self._in_flight = self._in_flight, None
        if car is None:
            raise ValueError("no boxcar is in flight")
        return car

    def clear(self) -> None:
        self._cars.clear()
        self._in_flight = None
        self.answers = 0
