"""Targets for a whole queue manager with a hostile stream, at either end of a connection.

No error is allowed: the machine has to continue whatever arrives.
"""

from __future__ import annotations

from collections.abc import Callable

from mqis.protocol.queueing.events import Close, Connect, Effect
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.manager import QueueingMachine
from mqis.protocol.queueing.message_tables import MessageIdCounter
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.wire.guid import Guid

#: The names in the corpus.
HERE = Guid.parse("f0f1f2f3-0001-0002-0003-040506070809")
_PIECE = 61
#: A small window, which few messages fill, so that messages have to wait.
_LIMITS = QueueingLimits(max_buffered=1 << 16, window=8)


def _manager() -> QueueingMachine:
    return QueueingMachine(HERE, "PSC1", MessageIdCounter(0), limits=_LIMITS)


def _drain(manager: QueueingMachine) -> list[Effect]:
    while manager.next_event() is not None:
        pass
    return manager.effects()


def _feed(manager: QueueingMachine, connection: int, data: bytes) -> None:
    """Feeds the bytes in pieces, with timers between them, then a long silence."""
    now = 0.0
    for at in range(0, len(data), _PIECE):
        now += 0.1
        manager.receive(connection, data[at : at + _PIECE], now)
        manager.handle_timer(now)
        if Close(connection) in _drain(manager):
            break
    for silence in (10.0, 100.0, 1000.0, 10_000.0):
        manager.handle_timer(now + silence)
        _drain(manager)
    assert manager._buffered == 0
    assert not manager._links, "a session outlived its timers"


def acceptor(data: bytes) -> None:
    manager = _manager()
    connection = manager.accepted("there", 0.0)
    assert connection is not None
    _feed(manager, connection, data)


def initiator(data: bytes) -> None:
    manager = _manager()
    for number in range(12):
        manager.send(
            "PSC2", QueuedMessage(bytes(number), number % 8, 600, acknowledge=True), 0.0, 0
        )
    (connect,) = _drain(manager)
    assert isinstance(connect, Connect)
    manager.connected(connect.connection, "there", 0.0)
    _feed(manager, connect.connection, data)
    assert not manager._destinations, "a message outlived its lifetime"


def ping(data: bytes) -> None:
    answer = _manager().ping(data)
    assert answer is None or len(answer) == 24


#: Name, function, and the errors that it may raise: none.
QUEUEING_TARGETS: tuple[tuple[str, Callable[[bytes], None], tuple[type[Exception], ...]], ...] = (
    ("queueing-acceptor", acceptor, ()),
    ("queueing-initiator", initiator, ()),
    ("queueing-ping", ping, ()),
)
