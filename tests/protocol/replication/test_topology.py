"""3.1.7.2.5 to 3.1.7.2.12: what objects mean for partitions and neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition
from mqis.protocol.replication.acknowledging import acks_of
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import BscAck, ChangePropagation, PscAck, SyncRequest
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    carries,
    guid_of,
    machine_properties,
    number,
    site_properties,
)

SITE_A, SITE_B, SITE_N = guid_of("A"), guid_of("B"), guid_of("N")


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.sent.clear()
    return made


def neighbors(enterprise: Enterprise, name: str) -> dict[str, object]:
    memory = enterprise.nodes[name].machine.memory
    return {neighbor.name: neighbor.site for neighbor in memory.neighbors.values()}


@pytest.mark.req(
    "MQDSRP-3.1.7.2.5-04",
    "MQDSRP-3.1.7.2.5-05",
    "MQDSRP-3.1.7.2.5-06",
    "MQDSRP-3.1.1.2.3-01",
    "MQDSRP-4.1-01",
)
def test_a_new_site_is_a_partition_and_a_neighbour(enterprise: Enterprise) -> None:
    """Asked is the PEC as long as nobody knows the new machine (see ``authority_of``)."""
    pec = enterprise.nodes["pec"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(1)
    for name in ("pec", "psc", "bsc"):
        assert enterprise.nodes[name].partition(SITE_N) == Partition(SITE_N, "new")
    assert neighbors(enterprise, "pec") == {"psc": SITE_B, "new": SITE_N}
    assert neighbors(enterprise, "psc") == {"pec": SITE_A, "bsc": SITE_B, "new": SITE_N}
    assert neighbors(enterprise, "bsc") == {}
    with pec.store.read() as view:
        assert acks_of(view, "new").site == acks_of(view, "new").enterprise == SequenceNumber.MIN
    asked = {p.sender for p in enterprise.sent if isinstance(p.message, SyncRequest)}
    assert asked == {"psc", "bsc"}
    greeted = enterprise.messages(ChangePropagation, to="new", sender="psc")
    assert [r.partition for r in greeted[0].heartbeat.partitions] == [SITE_B]


@pytest.mark.req("MQDSRP-3.1.7.2.5-08", "MQDSRP-3.1.7.2.3-07")
def test_a_new_site_reaches_the_bscs_at_once(enterprise: Enterprise) -> None:
    """A PSC that relays to its BSC does not wait for a timer, so a flush is nothing special."""
    enterprise.lose(carries(SyncRequest, sender="psc"))  # so that only the change itself is relayed
    enterprise.create(enterprise.nodes["pec"], ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(0)
    assert enterprise.nodes["bsc"].knows(SITE_N)


@pytest.mark.req("MQDSRP-3.1.7.2.5-03", "MQDSRP-3.1.7.2.5-04", "MQDSRP-3.1.7.2.8-03")
def test_a_create_that_comes_again_keeps_the_partition(enterprise: Enterprise) -> None:
    """The replica keeps its objects of the partition, and its numbers (E61)."""
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    enterprise.create_queue(pec, "pec\\q")
    enterprise.run(1)
    before = psc.partition(SITE_A)
    site = psc.find(ObjectType.SITE, "A")
    assert site is not None
    with psc.store.write() as tx:
        state = tx.partition(ENTERPRISE_PARTITION)
        assert state is not None
        tx.put_partition(replace(state, last_seq=SequenceNumber.MIN))
    enterprise.crash("psc")
    enterprise.sent.clear()
    enterprise.restart("psc")
    asked = {r.partition: r.from_seq for r in enterprise.messages(SyncRequest, sender="psc")}
    assert asked[SITE_A] == before.last_seq
    enterprise.run(5)
    assert psc.partition(SITE_A) == before
    assert psc.find(ObjectType.QUEUE, "pec\\q") is not None
    assert neighbors(enterprise, "psc") == {"pec": SITE_A, "bsc": SITE_B}


@pytest.mark.req(
    "MQDSRP-3.1.7.2.5-09", "MQDSRP-3.1.7.2.12-02", "MQDSRP-3.1.7.1.2-02", "MQDSRP-3.1.7.2.12-01"
)
@pytest.mark.parametrize("bits", [ServiceBits.BSC, ServiceBits.BSC | ServiceBits.ROUTING])
def test_a_bsc_of_the_own_site_is_a_neighbour(enterprise: Enterprise, bits: int) -> None:
    """Whatever else it does (E71); one of another site is not."""
    psc = enterprise.nodes["psc"]
    enterprise.create(psc, ObjectType.MACHINE, machine_properties("second", "B", bits))
    enterprise.run(1)
    assert neighbors(enterprise, "psc") == {"pec": SITE_A, "bsc": SITE_B, "second": SITE_B}
    assert neighbors(enterprise, "pec") == {"psc": SITE_B}
    greeted = enterprise.messages(ChangePropagation, to="second", sender="psc")
    told = {record.partition for record in greeted[0].heartbeat.partitions}
    assert told == {ENTERPRISE_PARTITION, SITE_A, SITE_B}, "as one within the site"
    with psc.store.read() as view:
        assert acks_of(view, "second").seen_unix == 0


@pytest.mark.departs("MQDSRP-3.1.7.2.5-10")
@pytest.mark.req("MQDSRP-3.1.7.2.5-09")
def test_other_machines_and_queues_are_no_neighbours(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    before = neighbors(enterprise, "psc")
    both = ServiceBits.BSC | ServiceBits.PSC
    for name, bits in (("plain", 0), ("router", ServiceBits.ROUTING), ("odd", both)):
        enterprise.create(psc, ObjectType.MACHINE, machine_properties(name, "B", bits))
    enterprise.create_queue(psc, "plain\\q")
    enterprise.run(0.1)  # far less than the timer of two seconds
    assert neighbors(enterprise, "psc") == before
    assert set(enterprise.nodes["bsc"].copy_of(SITE_B)) >= {guid_of("plain\\q")}


@pytest.mark.req("MQDSRP-3.1.7.2.6-04", "MQDSRP-3.1.7.2.12-01", "MQDSRP-3.1.7.2.12-03")
def test_a_machine_that_becomes_a_bsc_and_stops_being_one(enterprise: Enterprise) -> None:
    """By GUID: the name comes from the object (E36)."""
    psc = enterprise.nodes["psc"]
    enterprise.create(psc, ObjectType.MACHINE, machine_properties("second", "B", 0))
    enterprise.update(psc, ObjectType.MACHINE, "second", props({PropId.QM_QUOTA: 1}))
    assert "second" not in neighbors(enterprise, "psc")
    for bits, there in ((ServiceBits.BSC, True), (ServiceBits.ROUTING, False)):
        service = int(bits)
        enterprise.update(psc, ObjectType.MACHINE, "second", props({PropId.QM_SERVICE: service}))
        assert ("second" in neighbors(enterprise, "psc")) is there


@pytest.mark.req("MQDSRP-3.1.7.2.7-03")
def test_a_deleted_bsc_is_no_neighbour(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.inject("bsc", "psc", BscAck(SITE_B, guid_of("bsc"), "bsc"))
    enterprise.delete(psc, ObjectType.MACHINE, "bsc")
    assert neighbors(enterprise, "psc") == {"pec": SITE_A}
    with psc.store.read() as view:
        assert view.states("neighbor") == [
            (key, value) for key, value in view.states("neighbor") if key != b"bsc"
        ]
        assert acks_of(view, "bsc").seen_unix == 0


@pytest.mark.req("MQDSRP-3.1.7.2.10-01", "MQDSRP-3.1.7.2.6-03")
def test_the_enterprise_names_its_pec(enterprise: Enterprise) -> None:
    pec, psc, bsc = (enterprise.nodes[name] for name in ("pec", "psc", "bsc"))
    enterprise.update(pec, ObjectType.ENTERPRISE, "E", props({PropId.E_LONG_LIVE: 5}))
    enterprise.run(1)
    assert psc.partition(ENTERPRISE_PARTITION).owner == "pec"
    enterprise.update(pec, ObjectType.ENTERPRISE, "E", props({PropId.E_PECNAME: "other"}))
    enterprise.run(1)
    for node in (pec, psc, bsc):
        assert node.partition(ENTERPRISE_PARTITION).owner == "other"


@pytest.mark.departs("MQDSRP-3.1.7.2.11-01")
@pytest.mark.req("MQDSRP-3.1.7.2.6-02", "MQDSRP-3.1.7.2.6-05")
def test_a_site_update_without_a_psc_changes_no_authority(enterprise: Enterprise) -> None:
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    before = neighbors(enterprise, "pec")
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_INTERVAL1: 9}))
    enterprise.run(0)
    relayed = enterprise.nodes["bsc"].find(ObjectType.SITE, "B")
    assert relayed is not None
    assert relayed.value(PropId.S_INTERVAL1) == 9, "sent at once, though nothing asked for it"
    assert pec.partition(SITE_B).owner == psc.partition(SITE_B).owner == "psc"
    assert neighbors(enterprise, "pec") == before
    site = psc.find(ObjectType.SITE, "B")
    assert site is not None
    assert site.value(PropId.S_INTERVAL1) == 9


@pytest.mark.req("MQDSRP-3.1.7.2.11-03", "MQDSRP-3.1.7.2.11-04", "MQDSRP-3.1.7.2.8-04")
def test_sites_that_come_by_synchronisation(enterprise: Enterprise) -> None:
    """Partitions and neighbours of a server that was away, and its own site among them."""
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    for name in "XY":
        enterprise.create(pec, ObjectType.SITE, site_properties(name, f"psc{name}"))
    enterprise.run(1)
    enterprise.restart("psc")
    enterprise.run(5)
    assert neighbors(enterprise, "psc") == {
        "pec": SITE_A,
        "bsc": SITE_B,
        "pscX": guid_of("X"),
        "pscY": guid_of("Y"),
    }
    asked = {r.partition for r in enterprise.messages(SyncRequest, sender="psc")}
    assert asked >= {guid_of("X"), guid_of("Y")}
    new = enterprise.add_psc("new", "N")
    enterprise.run(130)
    assert new.partition(SITE_N).owner == "new"
    assert enterprise.create_queue(new, "new\\q") is None, "it decides about its own site"


@pytest.mark.req("MQDSRP-3.1.7.2.11-05")
def test_an_update_of_an_unknown_site_is_asked_for_whole(enterprise: Enterprise) -> None:
    """It does nothing by itself; the synchronisation it causes brings the site (E56)."""
    psc = enterprise.nodes["psc"]
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    last = psc.partition(ENTERPRISE_PARTITION).last_seq
    change = DirectoryChange(
        Command.UPDATE,
        None,
        SITE_N,
        ENTERPRISE_PARTITION,
        last,
        last + 1,
        SequenceNumber.MIN,
        (pair(PropId.S_PSC, "newer"), pair(PropId.S_PATHNAME, "N")),
    )
    enterprise.inject("pec", "psc", ChangePropagation(SITE_A, (change,)))
    assert not psc.knows(SITE_N)
    assert "newer" not in neighbors(enterprise, "psc")
    [request] = enterprise.messages(SyncRequest, to="pec")
    assert (request.partition, request.from_seq) == (ENTERPRISE_PARTITION, last)


@pytest.mark.req("MQDSRP-3.2.7.4-01", "MQDSRP-3.1.1.2.4-02", "MQDSRP-3.2.7.4-02")
def test_acknowledgements_of_pscs_for_the_enterprise_and_for_our_site(
    enterprise: Enterprise,
) -> None:
    """Each raises its own number, and the numbers of the two partitions differ."""
    pec = enterprise.nodes["pec"]
    for index in range(9):
        enterprise.create_queue(pec, f"pec\\q{index}")
    site, whole = pec.last(SITE_A), pec.last(ENTERPRISE_PARTITION)
    assert site != whole
    for partition, seq in ((ENTERPRISE_PARTITION, whole), (SITE_A, site)):
        with pec.store.read() as view:
            before = acks_of(view, "psc")
        enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, partition, number(seq), "psc"))
        with pec.store.read() as view:
            acks = acks_of(view, "psc")
        if partition == ENTERPRISE_PARTITION:
            assert (acks.enterprise, acks.site) == (number(whole), before.site)
        else:
            assert (acks.enterprise, acks.site) == (number(whole), number(site))
    refused = len(pec.refusals())
    enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, SITE_A, number(2), "nobody"))
    enterprise.inject("psc", "bsc", PscAck(SITE_B, SITE_B, SITE_A, number(2), "psc"))
    assert len(pec.refusals()) == refused + 1
    assert "nobody is no neighbour" in pec.refusals()[-1]
    assert "no neighbour" in enterprise.nodes["bsc"].refusals()[-1]


@pytest.mark.req("MQDSRP-3.2.7.5-01", "MQDSRP-3.1.1.2.4-02")
def test_acknowledgements_of_bscs_are_remembered(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.run(10)
    enterprise.inject("bsc", "psc", BscAck(SITE_B, guid_of("bsc"), "bsc"))
    with psc.store.read() as view:
        assert acks_of(view, "bsc").seen_unix == enterprise.at.unix
    refused = len(psc.refusals())
    enterprise.inject("bsc", "psc", BscAck(SITE_B, guid_of("bsc"), "unknown"))
    assert len(psc.refusals()) == refused + 1
