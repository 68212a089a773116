"""Aspects of rules that the other tests of this folder prove in part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import PurgeState
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import (
    ChangePropagation,
    Heartbeat,
    PartitionSeqNumbers,
    Sync0,
    SyncReply,
    SyncRequest,
)
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, guid_of, number, site_properties

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX


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


def queue(name: str, host: str, partition: object, seq: int) -> DirectoryChange:
    properties = (
        pair(PropId.Q_QMID, guid_of(host)),
        pair(PropId.Q_PATHNAME, f"{host}\\{name}"),
    )
    site = next(site for site in (SITE_A, SITE_C) if site == partition)
    return DirectoryChange(
        Command.SYNC, None, guid_of(name), site, number(seq - 1), number(seq), MIN, properties
    )


@pytest.mark.req("MQDSRP-3.1.1.2.3-04", "MQDSRP-3.1.1.2.3-06")
def test_a_partition_that_is_created_again_remembers_nothing(enterprise: Enterprise) -> None:
    """Its site was deleted while changes waited, and has come back."""
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    ahead = queue("q", "far", SITE_C, psc.last(SITE_C) + 9)
    enterprise.lose(lambda parcel: parcel.machine == "far")
    enterprise.inject("far", "psc", ChangePropagation(SITE_C, (ahead,)))
    progress = psc.machine.memory.partitions[SITE_C]
    assert list(progress.pending) == [ahead.seq]
    progress.purge_looked_at = number(7)
    enterprise.delete(pec, ObjectType.SITE, "C")
    enterprise.run(1)
    assert not psc.knows(SITE_C)
    enterprise.create(pec, ObjectType.SITE, site_properties("C", "far"))
    enterprise.run(1)
    assert psc.knows(SITE_C)
    progress = psc.machine.memory.partitions[SITE_C]
    assert progress.pending == {}
    assert progress.purge_looked_at == MIN


@pytest.mark.req("MQDSRP-3.3.7.5-02")
def test_the_changes_of_the_last_reply_come_before_the_end_of_a_full_synchronisation(
    enterprise: Enterprise,
) -> None:
    psc = enterprise.nodes["psc"]
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    with psc.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, purge_state=PurgeState.IN_SYNC0, last_seq=MIN))
    enterprise.restart("psc")
    changes = (queue("one", "pec", SITE_A, 4), queue("two", "pec", SITE_A, 6))
    reply = SyncReply(SITE_A, SITE_A, MIN, number(8), MIN, Sync0.COMPLETE, changes)
    enterprise.inject("pec", "psc", reply)
    assert psc.partition(SITE_A).purge_state is PurgeState.NORMAL
    for name in ("one", "two"):
        assert psc.find(ObjectType.QUEUE, f"pec\\{name}") is not None


@pytest.mark.req("MQDSRP-3.2.7.3-07")
def test_deletions_stand_among_the_objects_by_their_numbers(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    for name in ("a", "b", "c"):
        enterprise.create_queue(psc, f"psc\\{name}")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\b")
    enterprise.create_queue(psc, "psc\\d")
    enterprise.sent.clear()
    request = SyncRequest(SITE_A, SITE_B, number(last), MAX, MIN, False, 1, "pec")
    enterprise.inject("pec", "psc", request)
    [reply] = enterprise.messages(SyncReply, to="pec")
    assert [change.seq.value - last for change in reply.changes] == [1, 3, 4, 5]
    sync, delete = Command.SYNC, Command.DELETE
    assert [change.command for change in reply.changes] == [sync, sync, delete, sync]


@pytest.mark.req("MQDSRP-1.3.2.3-01")
@pytest.mark.parametrize(
    ("asker", "teller", "asked"),
    [("psc", "far", "far"), ("pec", "far", "far"), ("bsc", "psc", "psc")],
)
def test_who_is_asked_for_a_change_that_did_not_come(
    enterprise: Enterprise, asker: str, teller: str, asked: str
) -> None:
    """A PSC asks the owner of the partition, a BSC its PSC."""
    last = enterprise.nodes[asker].last(SITE_C)
    numbers = PartitionSeqNumbers(SITE_C, number(last + 2), MIN)
    site = enterprise.nodes[teller].server.site
    message = ChangePropagation(site, (), Heartbeat(teller, (numbers,)))
    enterprise.inject(teller, asker, message)
    [parcel] = [p for p in enterprise.sent if isinstance(p.message, SyncRequest)]
    assert (parcel.sender, parcel.machine) == (asker, asked)
    assert isinstance(parcel.message, SyncRequest)
    assert (parcel.message.partition, parcel.message.from_seq) == (SITE_C, number(last))
