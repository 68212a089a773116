"""Scenario 17: messages from those who may not send them change nothing; each is counted once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    BscAck,
    ChangePropagation,
    ChangeReply,
    ChangeRequest,
    Heartbeat,
    Message,
    PartitionSeqNumbers,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    Parcel,
    guid_of,
    machine_properties,
)

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX


@pytest.fixture(scope="module")
def enterprise() -> Enterprise:
    """Nothing may change in it, so all tests share one."""
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(70)
    made.check_converged()
    return made


def everything(node: Node) -> object:
    """Objects, tombstones, partitions and what replication keeps, as the store has them."""
    with node.store.read() as view:
        objects = [list(view.objects(object_type)) for object_type in ObjectType]
        states = [view.states(f) for f in ("neighbor", "authority", "reply", "quarantine")]
        memory = node.machine.memory
        neighbors = [(n.name, len(n.available)) for n in memory.neighbors.values()]
        return view.partitions(), objects, states, neighbors, memory.psc


def queue_change(partition: Guid, seq: int, previous: int) -> DirectoryChange:
    properties = (
        pair(PropId.Q_INSTANCE, guid_of("evil")),
        pair(PropId.Q_PATHNAME, "psc\\evil"),
    )
    return DirectoryChange(
        Command.CREATE,
        "psc\\evil",
        None,
        partition,
        SequenceNumber(previous),
        SequenceNumber(seq),
        MIN,
        properties,
    )


def propagation(partition: Guid, ahead: int = 1) -> Callable[[Node], Message]:
    def make(node: Node) -> Message:
        last = node.last(partition)
        return ChangePropagation(SITE_B, (queue_change(partition, last + ahead, last),))

    return make


def heartbeat(partition: Guid, last: int, purged: int = 0) -> Callable[[Node], Message]:
    numbers = PartitionSeqNumbers(partition, SequenceNumber(last), SequenceNumber(purged))
    return lambda _node: ChangePropagation(SITE_B, (), Heartbeat("stranger", (numbers,)))


def always(message: Message) -> Callable[[Node], Message]:
    return lambda _node: message


REPLY = SyncReply(SITE_C, SITE_B, MIN, SequenceNumber(5), MIN, Sync0.COMPLETE)
REQUEST = SyncRequest(SITE_C, SITE_B, MIN, MAX, MIN, False, 1, "stranger")
CHANGE_REQUEST = ChangeRequest(SITE_C, SITE_B, 7, "far", None, queue_change(SITE_B, 0, 0))

FORGERIES = {
    "a heartbeat of a stranger": ("stranger", "psc", heartbeat(SITE_A, 99)),
    "a heartbeat of a server that is not the authority": ("far", "psc", heartbeat(SITE_A, 99)),
    "a heartbeat for our own partition": ("far", "psc", heartbeat(SITE_B, 99, 98)),
    "a heartbeat from the far future": ("pec", "psc", heartbeat(SITE_A, 1 << 60)),
    "a heartbeat that purges more than there is": ("pec", "psc", heartbeat(SITE_A, 0, 1 << 60)),
    "a change of a stranger": ("stranger", "psc", propagation(SITE_A)),
    "a change for a partition of somebody else": ("far", "psc", propagation(SITE_A)),
    "a change for our own partition": ("far", "psc", propagation(SITE_B)),
    "a change to a BSC from another than its PSC": ("pec", "bsc", propagation(SITE_A)),
    "a change for an unknown partition": (
        "pec",
        "psc",
        always(ChangePropagation(SITE_A, (queue_change(guid_of("?"), 2, 1),))),
    ),
    "a number from the future": ("pec", "psc", propagation(SITE_A, 1 << 60)),
    "a reply that nobody asked for": ("far", "psc", always(replace(REPLY, partition=SITE_C))),
    "a reply for our own partition": ("far", "psc", always(REPLY)),
    "a purge that nobody asked about": (
        "far",
        "psc",
        always(AlreadyPurged(SITE_C, SITE_C, SequenceNumber(1 << 21))),
    ),
    "a purge of our own partition": (
        "far",
        "psc",
        always(AlreadyPurged(SITE_C, SITE_B, SequenceNumber(1 << 21))),
    ),
    "a sync request of a stranger": ("stranger", "psc", always(REQUEST)),
    "a sync request in another's name": (
        "far",
        "psc",
        always(replace(REQUEST, requester="pec")),
    ),
    "a change request of a stranger": ("stranger", "psc", always(CHANGE_REQUEST)),
    "a change request in another's name": (
        "far",
        "psc",
        always(replace(CHANGE_REQUEST, requester="pec")),
    ),
    "an answer that nobody waits for": ("far", "psc", always(ChangeReply(SITE_C, 9, 0, "psc"))),
    "an acknowledgement of a stranger": (
        "stranger",
        "psc",
        always(PscAck(SITE_C, SITE_C, SITE_B, SequenceNumber(1), "far")),
    ),
    "an acknowledgement from the future": (
        "far",
        "psc",
        always(PscAck(SITE_C, SITE_C, SITE_B, SequenceNumber(1 << 60), "far")),
    ),
    "an acknowledgement of another site": (
        "far",
        "psc",
        always(PscAck(SITE_C, SITE_A, SITE_B, SequenceNumber(1), "far")),
    ),
    "a sign of life in a BSC's name": ("far", "psc", always(BscAck(SITE_B, guid_of("b"), "bsc"))),
}


@pytest.mark.req("MQDSRP-1.3.1.2-02", "MQDSRP-3.1.5.2-04")
@pytest.mark.parametrize(("sender", "machine", "make"), FORGERIES.values(), ids=list(FORGERIES))
def test_scenario_17_a_forged_message_changes_nothing(
    enterprise: Enterprise, sender: str, machine: str, make: Callable[[Node], Message]
) -> None:
    node = enterprise.nodes[machine]
    before, refused, sent = everything(node), len(node.refusals()), len(enterprise.sent)
    enterprise.inject(sender, machine, make(node))
    assert everything(node) == before
    assert len(node.refusals()) == refused + 1
    assert len(enterprise.sent) == sent, "nothing is sent to whoever forges"


@pytest.mark.req("MQDSRP-3.1.5.1-01", "MQDSRP-3.1.5.1-03", "MQDSRP-3.1.5.1-08", "MQDSRP-1.7-01")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x01" + bytes(40),  # another version
        bytes(17) + b"\x08" + bytes(40),  # no such operation
        bytes(18) + b"\x00\xff\xff",  # 65,535 changes in no bytes
        bytes(17) + b"\x03" + b"\xff" * 60,
    ],
)
def test_scenario_17_bytes_that_are_no_message(enterprise: Enterprise, body: bytes) -> None:
    node = enterprise.nodes["psc"]
    before, refused = everything(node), len(node.refusals())
    enterprise.deliver(
        Parcel("pec", "psc", MessageIdentifier(guid_of("pec"), 1), body, authenticated=True)
    )
    assert everything(node) == before
    assert len(node.refusals()) == refused + 1


#: What tells that each operation has reached the handler that is meant for it.
REACTIONS: dict[str, tuple[Message, str]] = {
    "0": (ChangePropagation(SITE_C, (queue_change(SITE_A, 9, 8),)), "takes the partition from"),
    "1": (replace(CHANGE_REQUEST, requester="pec"), "asks in the name of pec"),
    "2": (replace(REQUEST, requester="pec"), "asks in the name of pec"),
    "6": (PscAck(SITE_C, SITE_C, SITE_A, MIN, "far"), "a partition that is not ours"),
    "7": (BscAck(SITE_C, guid_of("far"), "far"), "no backup controller of this site"),
    "3": (replace(REPLY, partition=SITE_C), "a reply that nobody asked for"),
    "4": (ChangeReply(SITE_C, 9, 0, "psc"), "an answer that nobody waits for"),
    "5": (AlreadyPurged(SITE_C, SITE_C, MAX), "a purge that nobody asked about"),
}


@pytest.mark.req("MQDSRP-3.1.5.1-02", "MQDSRP-3.1.5.1-03")
@pytest.mark.parametrize("operation", REACTIONS)
def test_each_operation_has_its_handler(enterprise: Enterprise, operation: str) -> None:
    message, reason = REACTIONS[operation]
    assert int(operation) == message.OPERATION
    psc = enterprise.nodes["psc"]
    enterprise.inject("far", "psc", message)
    assert reason in psc.refusals()[-1]


@pytest.mark.req("MQDSRP-3.2.7.1-05")
def test_a_new_authority_makes_itself_known_by_its_signature() -> None:
    """The same heartbeat, signed by a machine that the directory has as PSC of that site."""
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.run(70)
    pec = made.nodes["pec"]
    with pec.store.write() as tx:
        state = tx.partition(SITE_C)
        assert state is not None
        tx.put_partition(replace(state, owner="nobody"))
    numbers = PartitionSeqNumbers(SITE_C, SequenceNumber(made.nodes["far"].last(SITE_C) + 1), MIN)
    beat = ChangePropagation(SITE_C, (), Heartbeat("far", (numbers,)))
    made.inject("far", "pec", beat)
    assert pec.partition(SITE_C).owner == "nobody"
    made.inject("far", "pec", beat, authenticated=True)
    assert pec.partition(SITE_C).owner == "far"
    assert pec.partition(ENTERPRISE_PARTITION).owner == "pec"


@pytest.mark.req("MQDSRP-3.2.7.1-05")
def test_a_backup_follows_a_new_psc_by_its_signature() -> None:
    made = Enterprise()
    made.add_pec("pec", "A")
    psc = made.add_psc("psc", "B")
    bsc = made.add_bsc("bsc", "psc")
    made.run(70)
    made.create(psc, ObjectType.MACHINE, machine_properties("new", "B", ServiceBits.PSC))
    made.run(1)
    numbers = PartitionSeqNumbers(SITE_B, SequenceNumber(psc.last(SITE_B) + 1), MIN)
    beat = ChangePropagation(SITE_B, (), Heartbeat("new", (numbers,)))
    made.inject("new", "bsc", beat)
    assert bsc.machine.memory.psc == "psc"
    made.inject("new", "bsc", beat, authenticated=True)
    assert bsc.machine.memory.psc == "new"
