"""Timers and acknowledgements that arrive after the end, or at a queue that does not take them."""

from __future__ import annotations

import pytest

from mqis.protocol.queueing.direct_messages import Receiver
from mqis.protocol.queueing.events import Connect, Nacked, Refused
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.message_tables import DuplicateTable, SentMessage, SentTable
from mqis.protocol.queueing.queued_message import QueuedMessage
from mqis.protocol.queueing.replication_queue import MQIS_QUEUE_ID
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.wire.mqcn import NOTIFY_QUEUE_ID
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.mqqb.packet import UserMessage
from mqis.wire.mqqb.properties import MessageClass, MessageProperties
from mqis.wire.mqqb.queuename import QueueName
from mqis.wire.mqqb.userheader import UserHeader
from tests.protocol.queueing.wires import PSC1, PSC2, UNIX_TIME, manager


@pytest.mark.parametrize("closed", [True, False])
def test_after_the_end_no_timer_connects_again(closed: bool) -> None:
    one = manager(PSC1, "psc1")
    one.send("psc2", QueuedMessage(b"x"), 0.0, UNIX_TIME)
    [connect] = one.effects()
    assert isinstance(connect, Connect)
    one.connect_failed(connect.connection, "refused", 0.0)
    due = one.next_timer()
    assert due is not None
    if closed:
        one.close()
    one.handle_timer(due)
    assert [type(effect) for effect in one.effects()] == ([] if closed else [Connect])


@pytest.mark.parametrize("number", [NOTIFY_QUEUE_ID, MQIS_QUEUE_ID])
def test_the_notification_queue_takes_no_acknowledgements(number: int) -> None:
    """Nothing is sent from there; what the replication queue sent, that one hears of."""
    sent = SentTable(QueueingLimits())
    sent.add(5, SentMessage("psc1", QueuedMessage(b"request"), PSC1, 100.0), 0.0)
    receiver = Receiver(
        PSC2,
        "psc2",
        duplicates=DuplicateTable(QueueingLimits()),
        sent=sent,
        policy=SigningPolicy.ACCEPT,
        signer=None,
    )
    subject = MessageIdentifier(PSC2, 5)
    nack = UserMessage(
        UserHeader(PSC1, 7, QueueName.at_destination(number), PSC2),
        MessageProperties(
            b"", MessageClass.NACK_REACH_QUEUE_TIMEOUT, correlation_id=subject.to_bytes()
        ),
    )
    verdict = receiver.judge(nack, PSC1, 1, 0.0)
    if number == MQIS_QUEUE_ID:
        assert isinstance(verdict, Nacked)
        assert verdict.identifier == subject
    else:
        assert isinstance(verdict, Refused)
        assert verdict.reason == "not for the replication queue of this machine"
        assert sent.get(5, 0.0) is not None
