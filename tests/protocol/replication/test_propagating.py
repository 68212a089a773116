"""3.1.7.1.2, 3.3.7.2, 3.3.6.1: what an authority tells its neighbours, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.errors import DirectoryError
from mqis.protocol.queueing.events import Dropped, Written
from mqis.protocol.queueing.queued_message import QueuedMessage as Envelope
from mqis.protocol.replication.delivery_reports import TransportEvent
from mqis.protocol.replication.propagation import BUSY
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, props
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
    PscAck,
    SyncReply,
    SyncRequest,
)
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    guid_of,
    machine_properties,
    number,
    site_properties,
    text,
)

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")


def built(settings: ReplicationSettings | None = None) -> Enterprise:
    made = Enterprise(settings)
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(70)
    made.sent.clear()
    return made


@pytest.fixture
def enterprise() -> Enterprise:
    return built()


def told(enterprise: Enterprise, machine: str) -> list[DirectoryChange]:
    found = enterprise.messages(ChangePropagation, to=machine, sender="psc")
    return [change for message in found for change in message.changes]


@pytest.mark.req("MQDSRP-3.1.7.1.2-06", "MQDSRP-3.1.7.1.2-07", "MQDSRP-3.1.7.1.2-08")
def test_how_the_commands_name_their_object(enterprise: Enterprise) -> None:
    """A create by path with its identifier inside, the others by GUID (E17)."""
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        state = tx.partition(SITE_B)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(3)))
    last = psc.last(SITE_B)
    enterprise.create_queue(psc, "psc\\q", label=text("l"))
    enterprise.label(psc, "psc\\q", "m")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\q")
    enterprise.run(1)
    create, update, delete = told(enterprise, "far")
    identity = guid_of("psc\\q")
    assert (create.command, create.path, create.guid) == (Command.CREATE, "psc\\q", None)
    assert dict(create.properties)[PropId.Q_INSTANCE].value == identity
    assert dict(create.properties)[PropId.Q_LABEL].value == "l"
    assert (update.command, update.path, update.guid) == (Command.UPDATE, None, identity)
    assert dict(update.properties) == props({PropId.Q_LABEL: "m"})
    assert (delete.command, delete.guid) == (Command.DELETE, identity)
    for index, change in enumerate((create, update, delete)):
        assert change.previous_seq == number(last + index)
        assert change.seq == number(last + index + 1)
        assert change.purged_seq == number(3)
        assert change.partition == SITE_B


@pytest.mark.req("MQDSRP-3.1.7.1.2-04", "MQDSRP-2.2.4-09")
def test_a_deletion_carries_scope_and_type(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        state = tx.partition(SITE_B)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(1), allowed_purge_seq=number(2)))
    enterprise.create_queue(psc, "psc\\q", scope=PropVariant(VarType.UI1, 0))
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\q")
    enterprise.run(1)
    delete = told(enterprise, "far")[-1]
    assert delete.purged_seq == number(1)
    assert delete.properties == (
        pair(PropId.D_SCOPE, 0),
        pair(PropId.D_OBJTYPE, int(ObjectType.QUEUE)),
    )


@pytest.mark.req("MQDSRP-3.1.7.1.2-09")
def test_all_neighbours_are_told_and_only_the_owner_tells(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    enterprise.create_queue(psc, "psc\\q")
    assert psc.last(SITE_B) == last + 1
    enterprise.run(1)
    assert len(told(enterprise, "far")) == len(told(enterprise, "pec")) == 1
    assert len(told(enterprise, "bsc")) == 1
    for other in ("pec", "far", "bsc"):
        found = enterprise.messages(ChangePropagation, sender=other)
        assert not any(message.changes for message in found)


@pytest.mark.req("MQDSRP-3.1.7.1.2-02", "MQDSRP-3.1.7.1.2-03", "MQDSRP-3.2.7.2-06")
def test_a_change_is_told_once_and_a_refused_one_not_at_all(enterprise: Enterprise) -> None:
    """Made here or for somebody else: bookkeeping and propagation happen once (E30)."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    before = len(psc.refusals())
    first = enterprise.create_queue(bsc, "psc\\forwarded")
    second = enterprise.create_queue(bsc, "psc\\forwarded")
    enterprise.run(1)
    assert len(told(enterprise, "far")) == 1
    assert bsc.answers() == {first: HResult.MQ_OK, second: HResult.MQ_ERROR_QUEUE_EXISTS}
    assert len(psc.refusals()) == before


@pytest.mark.req("MQDSRP-3.1.7.1.2-03")
@pytest.mark.parametrize("asker", ["pec", "psc"])
def test_a_change_that_the_bookkeeping_refuses_is_told_to_nobody(
    enterprise: Enterprise, asker: str
) -> None:
    """The PEC holds a new site until its PSC is there, and creates that machine alone (E84)."""
    pec, node = enterprise.nodes["pec"], enterprise.nodes[asker]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(1)
    enterprise.sent.clear()
    other = machine_properties("other", "N", 0)
    if asker == "pec":
        with pytest.raises(DirectoryError, match="decides about this site"):
            enterprise.create(pec, ObjectType.MACHINE, other)
    else:
        local = enterprise.create(node, ObjectType.MACHINE, other)
        enterprise.run(1)
        assert node.answers()[local or 0] == HResult.MQ_ERROR_DS_ERROR
    enterprise.run(15)
    assert pec.find(ObjectType.MACHINE, "other") is None
    messages = enterprise.messages(ChangePropagation, sender="pec")
    assert not any(message.changes for message in messages)


@pytest.mark.departs("MQDSRP-3.3.2.1-01", "MQDSRP-3.3.6.1-01")
@pytest.mark.req("MQDSRP-3.3.7.2-05", "MQDSRP-3.3.7.2-06")
def test_changes_in_quick_succession_share_a_message(enterprise: Enterprise) -> None:
    """The first goes at once, the others together; afterwards nothing more is said."""
    psc = enterprise.nodes["psc"]
    for index in range(20):
        enterprise.create_queue(psc, f"psc\\q{index}")
    found = enterprise.messages(ChangePropagation, to="far", sender="psc")
    assert [len(m.changes) for m in found] == [1]
    enterprise.run(0.06)
    found = enterprise.messages(ChangePropagation, to="far", sender="psc")
    assert [len(m.changes) for m in found] == [1, 19]
    assert [c.seq for m in found for c in m.changes] == sorted(
        c.seq for m in found for c in m.changes
    )
    assert all(m.flush == 0 and m.heartbeat == Heartbeat() for m in found)
    enterprise.run(60)
    assert len(enterprise.messages(ChangePropagation, to="far", sender="psc")) == 2


@pytest.mark.req("MQDSRP-3.3.2.1-02")
@pytest.mark.parametrize(("machine", "period"), [("far", 10), ("bsc", 2)])
def test_a_neighbour_that_does_not_keep_up_gets_one_message_a_period(
    enterprise: Enterprise, machine: str, period: int
) -> None:
    """Ten seconds between sites, two within; the Site object has the same numbers (E62)."""
    psc = enterprise.nodes["psc"]
    enterprise.crash(machine)
    enterprise.run(1)
    enterprise.sent.clear()
    for index in range(400):
        enterprise.create_queue(psc, f"psc\\q{index}")
        enterprise.run(0.1)
    sent = [p for p in enterprise.sent if p.machine == machine]
    after_that = (40 - BUSY / 10) // period
    assert BUSY + after_that - 1 <= len(sent) <= BUSY + after_that + 1


@pytest.mark.req("MQDSRP-3.3.7.2-04", "MQDSRP-3.3.7.2-05")
def test_our_own_site_hears_of_every_partition(enterprise: Enterprise) -> None:
    """With the purged number of what we own, and for the others what may be purged (E23)."""
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        for partition, purged in ((SITE_A, 0), (SITE_B, 1)):
            state = tx.partition(partition)
            assert state is not None
            tx.put_partition(replace(state, purged_seq=number(purged), allowed_purge_seq=number(2)))
    enterprise.run(1300)
    beats = enterprise.messages(ChangePropagation, to="bsc", sender="psc")
    records = {r.partition: r for r in beats[-1].heartbeat.partitions}
    assert set(records) == {ENTERPRISE_PARTITION, SITE_A, SITE_B, SITE_C}
    assert records[SITE_A].purged_seq == number(2)
    assert records[SITE_B].purged_seq == number(1)
    assert records[SITE_B].last_seq == number(psc.last(SITE_B))
    assert beats[-1].heartbeat.machine == "psc"


@pytest.mark.req("MQDSRP-3.3.7.2-02")
def test_other_sites_hear_of_what_we_own(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        tx.put_partition(replace(psc.partition(SITE_B), purged_seq=number(1)))
    enterprise.run(1300)
    [record] = enterprise.messages(ChangePropagation, "far", "psc")[-1].heartbeat.partitions
    assert (record.last_seq, record.purged_seq) == (number(psc.last(SITE_B)), number(1))
    for sender, partitions in (("psc", [SITE_B]), ("pec", [ENTERPRISE_PARTITION, SITE_A])):
        beats = enterprise.messages(ChangePropagation, to="far", sender=sender)
        assert [r.partition for r in beats[-1].heartbeat.partitions] == partitions


def test_a_message_is_no_longer_than_a_thousand_changes_or_a_mebibyte() -> None:
    """E53; what does not fit follows."""
    enterprise = built(ReplicationSettings(max_changes=7))
    psc = enterprise.nodes["psc"]
    for index in range(20):
        enterprise.create_queue(psc, f"psc\\q{index}")
    enterprise.run(1)
    sizes = [len(m.changes) for m in enterprise.messages(ChangePropagation, "far", "psc")]
    assert sizes == [1, 7, 7, 5]
    enterprise.check_converged()


def test_a_list_that_grows_too_long_becomes_a_hint() -> None:
    """The neighbour is told the numbers and asks for the rest."""
    enterprise = built(ReplicationSettings(max_available=30))
    psc, far = enterprise.nodes["psc"], enterprise.nodes["far"]
    enterprise.crash("far")
    for index in range(100):
        enterprise.create_queue(psc, f"psc\\q{index}")
    assert len(psc.machine.memory.neighbors["far"].available) <= 30
    enterprise.restart("far")
    enterprise.run(70)
    assert far.find(ObjectType.QUEUE, "psc\\q99") is not None
    enterprise.check_converged()


# --- envelopes ------------------------------------------------------------------------------------

QUIET = Envelope(b"", priority=3, lifetime_s=1200, acknowledge=False)
NACKED = Envelope(b"", priority=3, lifetime_s=1200, acknowledge=True)
URGENT = Envelope(b"", priority=7, lifetime_s=10, acknowledge=True)


@pytest.mark.parametrize(
    ("kind", "envelope"),
    [
        pytest.param(ChangePropagation, QUIET, marks=pytest.mark.req("MQDSRP-3.3.7.2-06")),
        pytest.param(SyncReply, QUIET, marks=pytest.mark.req("MQDSRP-3.2.7.3-11")),
        pytest.param(AlreadyPurged, QUIET, marks=pytest.mark.req("MQDSRP-3.2.7.7-01")),
        pytest.param(SyncRequest, NACKED, marks=pytest.mark.req("MQDSRP-3.3.7.3-05")),
        pytest.param(PscAck, NACKED, marks=pytest.mark.req("MQDSRP-3.3.7.4-02")),
        pytest.param(BscAck, NACKED, marks=pytest.mark.req("MQDSRP-3.3.6.2-02")),
        pytest.param(ChangeRequest, URGENT, marks=pytest.mark.req("MQDSRP-3.3.7.1-03")),
        pytest.param(ChangeReply, URGENT, marks=pytest.mark.req("MQDSRP-3.2.7.6-03")),
    ],
)
def test_lifetime_priority_and_acknowledgement_of_each_message(
    enterprise: Enterprise, kind: type, envelope: Envelope
) -> None:
    """To the right machine, with the options that the text gives, priority 8 as 7 (E49)."""
    psc, bsc = enterprise.nodes["psc"], enterprise.nodes["bsc"]
    with psc.store.write() as tx:
        state = tx.partition(SITE_B)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(2)))
    enterprise.create_queue(bsc, "far\\q")
    enterprise.restart("bsc")
    for site in (SITE_B, SITE_C):
        asks = SyncRequest(
            SITE_C,
            site,
            SequenceNumber.MIN,
            SequenceNumber.MAX,
            SequenceNumber.MIN,
            False,
            1,
            "far",
        )
        enterprise.inject("far", "psc", asks)
    enterprise.crash("far")
    enterprise.create_queue(psc, "psc\\r")
    enterprise.run(1)
    enterprise.restart("far")
    enterprise.run(1300)
    sent = [p for p in enterprise.sent if isinstance(p.message, kind)]
    assert sent, "the scenario has each of them"
    for parcel in sent:
        assert parcel.envelope == replace(envelope, body=parcel.body)
        if isinstance(parcel.message, PscAck):
            owners = {SITE_B: "psc", SITE_C: "far"}
            assert parcel.machine == owners.get(parcel.message.partition, "pec")


def test_what_the_transport_gives_up_frees_the_way(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.crash("far")
    enterprise.create_queue(psc, "psc\\q")
    neighbor = psc.machine.memory.neighbors["far"]
    assert neighbor.in_flight == 1
    parcel = next(p for p in enterprise.sent if p.machine == "far")
    assert parcel.envelope is not None
    events: list[TransportEvent] = [
        Written(parcel.identifier, "far", 3),
        Dropped(parcel.identifier, "far", parcel.envelope, 0x8002),
    ]
    with psc.store.write() as tx:
        psc.machine.transported(tx, events, enterprise.at)
    assert neighbor.in_flight == 0
