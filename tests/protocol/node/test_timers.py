"""A node's time: its own transport's, and replication's."""

from __future__ import annotations

import pytest

from mqis.protocol.clock import Instant
from mqis.protocol.node.node import Node
from mqis.protocol.queueing.events import Close, Connect
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.replication.effects import Send
from mqis.protocol.replication.machine import Replication
from mqis.protocol.replication.server_identity import Role, Server
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqqb.identifier import MessageIdentifier
from tests.protocol.queueing.wires import PSC1, manager
from tests.protocol.replication.enterprise import CountedEntropy

AT = Instant(1000.0, 1_700_000_000.0)
CONNECT_TIMEOUT_S = 60.0


def backup(limits: QueueingLimits | None = None) -> Node:
    entropy = CountedEntropy("node")
    me = Server("bsc", PSC1, Guid(b"s" * 16), Role.BSC, "pec", "psc")
    return Node(Replication(me, entropy), manager(PSC1, "bsc", limits), entropy)


def test_a_node_that_waits_for_nothing_has_no_timer() -> None:
    assert backup().next_timer() is None


@pytest.mark.parametrize(("timeout_s", "first"), [(3.0, "transport"), (60.0, "replication")])
def test_the_next_timer_is_the_earlier_one(timeout_s: float, first: str) -> None:
    """The transport gives up connecting, replication acknowledges after five seconds."""
    node, store = backup(QueueingLimits(connect_timeout_s=timeout_s)), MemoryStore()
    node.committed([Send("far", MessageIdentifier(PSC1, 1), QueuedMessage(b"x"))], AT)
    given_up = AT.monotonic + timeout_s
    assert node.next_timer() == given_up, "replication has none before its start"
    with store.write() as tx:
        node.start(AT)(tx)
    acknowledged = AT.monotonic + node.replication.settings.first_bsc_ack_s
    assert node.next_timer() == (given_up if first == "transport" else acknowledged)


def test_the_transports_timers_ring_by_themselves() -> None:
    """A connection that takes too long is given up, without any operation on the store."""
    node = backup()
    node.committed([Send("far", MessageIdentifier(PSC1, 1), QueuedMessage(b"x"))], AT)
    [connect] = node.queue.effects()
    assert isinstance(connect, Connect)
    node.handle_timer(AT.monotonic + CONNECT_TIMEOUT_S - 1)
    assert node.queue.effects() == []
    node.handle_timer(AT.monotonic + CONNECT_TIMEOUT_S)
    assert node.queue.effects() == [Close(connect.connection)]
    assert node.operations(AT) == []
