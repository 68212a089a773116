"""Initialization (3.1.3, 3.3.3): what a server is and does before anything has happened to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, PurgeState
from mqis.protocol.queueing.queued_message import REPLICATION_LIFETIME_S, REQUEST_LIFETIME_S
from mqis.protocol.replication import work
from mqis.protocol.replication.acknowledging import acks_of
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.server_identity import Role, Server
from mqis.protocol.replication.settings import DEFAULTS
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    BscAck,
    ChangePropagation,
    PscAck,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")


def alone(role: Role, psc: str = "") -> tuple[Enterprise, Node]:
    """A server with an empty store, just started."""
    enterprise = Enterprise()
    server = Server("me", guid_of("me"), SITE_B, role, "pec", psc)
    node = enterprise.nodes["me"] = Node(server, enterprise.settings)
    enterprise.start(node)
    return enterprise, node


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(70)
    made.sent.clear()
    return made


@pytest.mark.req("MQDSRP-3.1.3.1-01", "MQDSRP-1.9-04", "MQDSRP-1.5-01")
@pytest.mark.parametrize(
    ("role", "owner"), [(Role.PEC, "me"), (Role.PSC, "pec"), (Role.BSC, "pec")]
)
def test_an_empty_store_gets_the_enterprise_partition(role: Role, owner: str) -> None:
    _, node = alone(role, psc="psc")
    assert node.partition(ENTERPRISE_PARTITION) == Partition(
        ENTERPRISE_PARTITION,
        owner,
        SequenceNumber.MIN,
        SequenceNumber.MIN,
        SequenceNumber.MIN,
        PurgeState.NORMAL,
    )
    assert ENTERPRISE_PARTITION.raw == bytes(16)


@pytest.mark.req("MQDSRP-3.1.3.1-01")
def test_a_stored_enterprise_partition_keeps_its_numbers(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    before = psc.partition(ENTERPRISE_PARTITION)
    assert before.last_seq > SequenceNumber.MIN
    enterprise.crash("psc")
    enterprise.restart("psc")
    assert psc.partition(ENTERPRISE_PARTITION) == before


@pytest.mark.req("MQDSRP-3.3.3-05", "MQDSRP-3.3.3-04", "MQDSRP-3.3.3-01")
def test_the_first_start_of_a_psc_asks_the_pec_alone() -> None:
    enterprise, _ = alone(Role.PSC)
    assert [(p.machine, type(p.message)) for p in enterprise.sent] == [("pec", SyncRequest)]
    [request] = enterprise.messages(SyncRequest)
    assert (request.partition, request.from_seq) == (ENTERPRISE_PARTITION, SequenceNumber.MIN)


@pytest.mark.req("MQDSRP-3.1.3.1-05")
def test_a_bsc_without_its_site_takes_its_psc_from_the_configuration() -> None:
    enterprise, node = alone(Role.BSC, psc="primary")
    assert node.machine.memory.psc == "primary"
    assert [p.machine for p in enterprise.sent] == ["primary"]
    with pytest.raises(ValueError, match="has to know its PSC"):
        alone(Role.BSC)


@pytest.mark.req("MQDSRP-3.1.7.2.5-07", "MQDSRP-3.1.1.1-01")
def test_a_bsc_takes_its_psc_from_its_site_when_that_arrives() -> None:
    """The configuration spells the name in another way, which shows where it comes from."""
    enterprise = Enterprise()
    seeds = {guid_of("primary"): "primary"}
    server = Server("me", guid_of("me"), SITE_B, Role.BSC, "pec", "PRIMARY", seeds=seeds)
    node = enterprise.nodes["me"] = Node(server, enterprise.settings)
    enterprise.start(node)
    first, none = SequenceNumber(1), SequenceNumber.MIN
    properties = (pair(PropId.S_PATHNAME, "B"), pair(PropId.S_PSC, "primary"))
    site = DirectoryChange(
        Command.SYNC, None, SITE_B, ENTERPRISE_PARTITION, none, first, none, properties
    )
    reply = SyncReply(SITE_B, ENTERPRISE_PARTITION, none, first, none, Sync0.NONE, (site,))
    enterprise.inject("primary", "me", reply)
    enterprise.run(6)
    assert len(enterprise.messages(BscAck, to="primary")) == 1


@pytest.mark.req("MQDSRP-3.1.3.1-04", "MQDSRP-3.1.1.1-01")
def test_a_bsc_takes_the_owner_of_its_site_as_its_psc(enterprise: Enterprise) -> None:
    bsc = enterprise.nodes["bsc"]
    bsc.server = replace(bsc.server, psc="outdated")
    enterprise.restart("bsc")
    assert bsc.machine.memory.psc == "psc"


@pytest.mark.req(
    "MQDSRP-3.1.3.1-03",
    "MQDSRP-3.1.3.1-04",
    "MQDSRP-3.1.1.1-01",
    "MQDSRP-3.1.1.1-02",
    "MQDSRP-1.3.1.1-01",
)
def test_who_owns_what(enterprise: Enterprise) -> None:
    """The PEC the enterprise and its own site, a PSC its site, a BSC nothing."""
    owned = {
        name: {p for p in (ENTERPRISE_PARTITION, SITE_A, SITE_B, SITE_C) if _owns(node, p)}
        for name, node in enterprise.nodes.items()
    }
    assert owned == {
        "pec": {ENTERPRISE_PARTITION, SITE_A},
        "psc": {SITE_B},
        "far": {SITE_C},
        "bsc": set(),
    }


def _owns(node: Node, partition: object) -> bool:
    with node.store.read() as view:
        state = next(s for s in view.partitions() if s.id == partition)
        return owns(view, node.server, state.id)


@pytest.mark.req("MQDSRP-3.1.3-01", "MQDSRP-3.1.3.2-01", "MQDSRP-3.2.3-01")
def test_a_server_starts_with_its_state_and_its_neighbours(enterprise: Enterprise) -> None:
    """After a restart it numbers on, and tells its next change to each neighbour, once."""
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\before")
    last = psc.last(SITE_B)
    enterprise.crash("psc")
    enterprise.restart("psc")
    enterprise.sent.clear()
    enterprise.create_queue(psc, "psc\\after")
    enterprise.run(15)
    assert psc.last(SITE_B) == last + 1
    for name in ("pec", "far", "bsc"):
        heard = enterprise.messages(ChangePropagation, to=name, sender="psc")
        numbers = [change.seq.value for message in heard for change in message.changes]
        assert numbers == [last + 1], name


@pytest.mark.req("MQDSRP-3.1.1.1-01")
def test_what_a_server_is_follows_from_its_start_not_from_the_directory(
    enterprise: Enterprise,
) -> None:
    """The copies of PSC and BSC are the same; what they do with it is not."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    assert psc.copy_of(SITE_B) == bsc.copy_of(SITE_B)
    assert set(psc.machine.memory.neighbors) == {"pec", "far", "bsc"}
    assert bsc.machine.memory.neighbors == {}


@pytest.mark.req("MQDSRP-3.3.3-04", "MQDSRP-3.2.3-01", "MQDSRP-3.3.3-01")
@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("pec", {(SITE_B, "psc"), (SITE_C, "far")}),
        ("psc", {(ENTERPRISE_PARTITION, "pec"), (SITE_A, "pec"), (SITE_C, "far")}),
        (
            "bsc",
            {(ENTERPRISE_PARTITION, "psc"), (SITE_A, "psc"), (SITE_B, "psc"), (SITE_C, "psc")},
        ),
    ],
)
def test_a_start_asks_for_every_partition_of_others(
    enterprise: Enterprise, name: str, asks: set[tuple[object, str]]
) -> None:
    enterprise.crash(name)
    enterprise.restart(name)
    sent = {
        (p.message.partition, p.machine)
        for p in enterprise.sent
        if isinstance(p.message, SyncRequest) and p.sender == name
    }
    assert sent == asks


@pytest.mark.departs("MQDSRP-3.1.3.1-02")
@pytest.mark.req(
    "MQDSRP-3.1.1.2.3-04", "MQDSRP-3.1.1.2.3-06", "MQDSRP-3.1.3.2-01", "MQDSRP-3.1.1.2.4-03"
)
def test_what_is_not_stored_starts_empty(enterprise: Enterprise) -> None:
    """Pending changes and outgoing lists that were there before a crash are gone after it."""
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    stop = enterprise.lose(lambda parcel: parcel.machine == "psc")
    for index in range(3):
        enterprise.create_queue(pec, f"pec\\q{index}")
    stop()
    last = next(p for p in reversed(enterprise.lost) if p.machine == "psc")
    enterprise.create_queue(pec, "pec\\last")
    enterprise.run(1)
    memory = psc.machine.memory
    assert memory.partitions[SITE_A].pending
    assert memory.partitions[SITE_A].asked is not None
    enterprise.crash("psc")
    enterprise.restart("psc")
    memory = psc.machine.memory
    assert memory.partitions[SITE_A].pending == {}
    assert memory.partitions[SITE_A].purge_looked_at == SequenceNumber.MIN
    assert all(not n.available for n in memory.neighbors.values())
    assert last.machine == "psc"


@pytest.mark.req("MQDSRP-3.1.1.2.3-06", "MQDSRP-3.1.3.2-01", "MQDSRP-3.1.1.2.4-03")
def test_a_start_after_a_failed_commit_forgets_what_is_not_stored(enterprise: Enterprise) -> None:
    """The same machine starts again: nothing waits in it, and no change goes out from its lists."""
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    enterprise.lose_next(lambda parcel: parcel.machine == "psc")
    enterprise.create_queue(pec, "pec\\lost")
    enterprise.run(1)
    enterprise.create_queue(pec, "pec\\ahead")
    enterprise.run(1)
    for name in ("first", "second"):
        enterprise.create_queue(psc, f"psc\\{name}")
    assert psc.machine.memory.partitions[SITE_A].pending
    assert psc.machine.memory.neighbors["far"].available
    enterprise.sent.clear()
    enterprise.start(psc)
    assert psc.machine.memory.partitions[SITE_A].pending == {}
    enterprise.run(15)
    told = enterprise.messages(ChangePropagation, sender="psc")
    assert told
    assert not any(message.changes for message in told)


@pytest.mark.req("MQDSRP-3.3.3-02", "MQDSRP-3.3.2.2-01", "MQDSRP-3.3.6.2-01")
def test_a_bsc_says_after_five_seconds_and_then_every_twelve_hours_that_it_is_there(
    enterprise: Enterprise,
) -> None:
    enterprise.crash("bsc")
    enterprise.restart("bsc")
    enterprise.sent.clear()
    enterprise.run(4.9)
    assert enterprise.messages(BscAck) == []
    enterprise.run(0.2)
    bsc = enterprise.nodes["bsc"].server
    assert enterprise.messages(BscAck, to="psc") == [BscAck(SITE_B, bsc.id, "bsc")]
    enterprise.run(12 * 3600 - 1)
    assert len(enterprise.messages(BscAck)) == 1
    enterprise.run(2)
    assert len(enterprise.messages(BscAck)) == 2


@pytest.mark.req("MQDSRP-3.3.3-03", "MQDSRP-3.3.6.1-02")
def test_a_start_tells_every_neighbour_where_we_are(enterprise: Enterprise) -> None:
    """The first message to each carries the numbers: of our own, or in our site of everything."""
    enterprise.crash("psc")
    enterprise.restart("psc")
    told = {
        p.machine: {r.partition for r in p.message.heartbeat.partitions}
        for p in enterprise.sent
        if isinstance(p.message, ChangePropagation) and p.sender == "psc"
    }
    everything = {ENTERPRISE_PARTITION, SITE_A, SITE_B, SITE_C}
    assert told == {"pec": {SITE_B}, "far": {SITE_B}, "bsc": everything}


@pytest.mark.req("MQDSRP-3.1.1.3-01", "MQDSRP-3.1.1.2.4-01")
def test_partitions_neighbours_and_tombstones_outlive_a_crash(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    enterprise.create_queue(pec, "pec\\q")
    enterprise.delete(pec, ObjectType.QUEUE, "pec\\q")
    enterprise.run(2)
    before = [pec.partition(p) for p in (ENTERPRISE_PARTITION, SITE_A, SITE_B)]
    tombstones = pec.tombstones(SITE_A)
    neighbors = {(n.name, n.site) for n in pec.machine.memory.neighbors.values()}
    numbers = {p: SequenceNumber(pec.last(p)) for p in (ENTERPRISE_PARTITION, SITE_A)}
    for partition, seq in numbers.items():
        enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, partition, seq, "psc"))
    with pec.store.read() as view:
        acknowledged = acks_of(view, "psc")
    assert acknowledged.enterprise == numbers[ENTERPRISE_PARTITION]
    assert acknowledged.site == numbers[SITE_A] != acknowledged.enterprise
    enterprise.crash("pec")
    enterprise.restart("pec")
    assert [pec.partition(p) for p in (ENTERPRISE_PARTITION, SITE_A, SITE_B)] == before
    assert pec.tombstones(SITE_A) == tombstones != []
    assert {(n.name, n.site) for n in pec.machine.memory.neighbors.values()} == neighbors
    assert neighbors == {("psc", SITE_B), ("far", SITE_C)}
    with pec.store.read() as view:
        assert acks_of(view, "psc") == acknowledged


@pytest.mark.req("MQDSRP-6-02", "MQDSRP-3.3.2.1-02")
def test_the_defaults_are_those_of_the_product_notes() -> None:
    assert (DEFAULTS.intersite_s, DEFAULTS.intrasite_s) == (10, 2)
    assert (DEFAULTS.first_bsc_ack_s, DEFAULTS.bsc_ack_s) == (5, 12 * 3600)
    assert (DEFAULTS.reply_wait_s, DEFAULTS.relayed_wait_s) == (10, 20)
    assert DEFAULTS.heartbeat_s == 20 * 60
    assert (REQUEST_LIFETIME_S, REPLICATION_LIFETIME_S) == (10, 1200)


def test_message_numbers_of_a_restored_store_do_not_come_again(enterprise: Enterprise) -> None:
    """Peers remember what they have seen for half an hour."""
    pec = enterprise.nodes["pec"]
    enterprise.create_queue(pec, "pec\\before")
    enterprise.run(5)
    used = {p.identifier.ordinal for p in enterprise.sent if p.sender == "pec"}
    with pec.store.write() as tx:  # as a backup from before all of them has it
        tx.put_state("queueing", b"message-id", (min(used) - 1).to_bytes(4, "big"))
    enterprise.run(60)
    enterprise.crash("pec")
    enterprise.sent.clear()
    enterprise.restart("pec")
    again = {p.identifier.ordinal for p in enterprise.sent if p.sender == "pec"}
    assert again
    assert min(again) > max(used)


def test_message_numbers_before_a_crash_do_not_come_again(
    enterprise: Enterprise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More messages than one reserved block; the store's counter is ahead of the clock."""
    monkeypatch.setattr(work, "_BLOCK", 4)
    pec = enterprise.nodes["pec"]
    enterprise.crash("pec")
    with pec.store.write() as tx:
        ahead = ((int(enterprise.at.unix) + 3600) << 8) % 2**32
        tx.put_state("queueing", b"message-id", ahead.to_bytes(4, "big"))
    enterprise.sent.clear()
    enterprise.restart("pec")
    for number in range(6):
        enterprise.create_queue(pec, f"pec\\before{number}")
        enterprise.run(11)
    used = [p.identifier.ordinal for p in enterprise.sent if p.sender == "pec"]
    assert len(set(used)) == len(used) > 8
    enterprise.crash("pec")
    enterprise.sent.clear()
    enterprise.restart("pec")
    again = {p.identifier.ordinal for p in enterprise.sent if p.sender == "pec"}
    assert again
    assert min(again) > max(used)
