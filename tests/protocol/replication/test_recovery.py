"""A restored authority puts its partition together again from what others hold."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Scope
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import ChangePropagation, Sync0, SyncReply, SyncRequest
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    carries,
    guid_of,
    site_properties,
)

SITE_B = guid_of("B")


def built(settings: ReplicationSettings | None = None, *, signed: bool = False) -> Enterprise:
    made = Enterprise(settings, signed=signed)
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_psc("far", "C")
    made.run(130)
    return made


def test_copies_in_many_parts_are_collected() -> None:
    enterprise = built(ReplicationSettings(max_changes=4))
    psc = enterprise.nodes["psc"]
    backup = enterprise.backup("psc")
    for index in range(30):
        enterprise.create_queue(psc, f"psc\\q{index}")
    enterprise.run(10)
    enterprise.sent.clear()
    enterprise.restore("psc", backup, authority=True)
    enterprise.run(5)
    first, *parts = [
        m for m in enterprise.messages(SyncReply, to="psc", sender="far") if m.partition == SITE_B
    ]
    assert first.changes == ()  # it only shows that nothing older is on its way
    assert [m.complete_sync0 for m in parts] == [Sync0.MORE] * (len(parts) - 1) + [Sync0.COMPLETE]
    assert len(parts) > 5
    assert psc.find(ObjectType.QUEUE, "psc\\q29") is not None
    enterprise.run(130)
    enterprise.check_converged()


@pytest.mark.parametrize("heard_by", ["pec", "bsc"])
def test_a_deletion_that_just_one_server_heard_of_counts(heard_by: str) -> None:
    """A PSC has its tombstone; a BSC lacks the object although it is further (E12)."""
    enterprise = built()
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\gone")
    enterprise.run(5)
    backup = enterprise.backup("psc")
    stop = enterprise.lose(lambda parcel: parcel.machine != heard_by)
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\gone")
    enterprise.run(1)
    stop()
    enterprise.restore("psc", backup, authority=True)
    assert psc.find(ObjectType.QUEUE, "psc\\gone") is not None
    enterprise.run(5)
    assert psc.find(ObjectType.QUEUE, "psc\\gone") is None
    enterprise.run(130)
    enterprise.check_converged()
    assert enterprise.nodes["far"].find(ObjectType.QUEUE, "psc\\gone") is None


def test_a_queue_of_the_site_is_not_taken_for_deleted() -> None:
    """Other PSCs may not hold it (E58); our own BSC does, and the backup."""
    enterprise = built()
    psc = enterprise.nodes["psc"]
    stop = enterprise.lose(carries(ChangePropagation, to="far"))
    enterprise.create_queue(psc, "psc\\local", scope=PropVariant(VarType.UI1, int(Scope.SITE)))
    enterprise.run(1)
    stop()
    enterprise.create_queue(psc, "psc\\global")
    enterprise.run(70)
    assert enterprise.nodes["far"].find(ObjectType.QUEUE, "psc\\local") is None
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    enterprise.run(130)
    assert psc.find(ObjectType.QUEUE, "psc\\local") is not None
    assert enterprise.nodes["bsc"].find(ObjectType.QUEUE, "psc\\local") is not None
    enterprise.check_converged()


def test_a_restored_pec_gets_back_the_sites_created_since() -> None:
    enterprise = built()
    pec = enterprise.nodes["pec"]
    backup = enterprise.backup("pec")
    enterprise.create(pec, ObjectType.SITE, site_properties("New", "nobody"))
    enterprise.update(pec, ObjectType.SITE, "C", props({PropId.S_INTERVAL1: 7}))
    enterprise.run(5)
    before = pec.last(ENTERPRISE_PARTITION)
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(130)
    assert pec.knows(guid_of("New"))
    assert pec.last(ENTERPRISE_PARTITION) > before
    site = pec.find(ObjectType.SITE, "C")
    assert site is not None
    assert site.value(PropId.S_INTERVAL1) == 7
    enterprise.run(130)
    enterprise.check_converged()
    enterprise.create(pec, ObjectType.SITE, site_properties("Later", "nobody"))


def test_a_copy_that_was_not_asked_for_is_refused() -> None:
    enterprise = built()
    psc = enterprise.nodes["psc"]
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    low = SequenceNumber.MIN
    reply = SyncReply(SITE_B, SITE_B, low, SequenceNumber(5), low, Sync0.COMPLETE)
    for sender in ("stranger", "far"):
        shifted = SyncReply(SITE_B, SITE_B, SequenceNumber(3), SequenceNumber(5), low, Sync0.NONE)
        enterprise.inject(sender, "psc", reply if sender == "stranger" else shifted)
        assert "was not asked for this" in psc.refusals()[-1]
    silence()
    enterprise.run(130)
    enterprise.check_converged()


def test_nobody_is_answered_about_a_partition_that_is_being_restored() -> None:
    enterprise = built()
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    enterprise.sent.clear()
    low, high = SequenceNumber.MIN, SequenceNumber.MAX
    asks = SyncRequest(guid_of("C"), SITE_B, low, high, low, False, 1, "far")
    enterprise.inject("far", "psc", asks)
    assert enterprise.messages(SyncReply, to="far") == []
    silence()
    enterprise.run(130)
    enterprise.inject("far", "psc", asks)
    assert enterprise.messages(SyncReply, to="far") or enterprise.sent


def test_a_replaced_psc_whose_site_comes_back_to_it_asks_first() -> None:
    """Its numbers may have been used by the other one. Its BSC, which has turned to that one,
    comes back with the first signed heartbeat (E37, E57)."""
    enterprise = built(signed=True)
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "other"}))
    enterprise.run(5)
    assert psc.partition(SITE_B).owner == "other"
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "psc"}))
    enterprise.run(130)
    assert psc.recovered()[-1].partition == str(SITE_B)
    assert enterprise.create_queue(psc, "psc\\again") is None
    enterprise.run(1300)
    enterprise.check_converged()


def test_a_pec_that_hands_over_asks_the_next_one() -> None:
    enterprise = built()
    pec = enterprise.nodes["pec"]
    enterprise.update(pec, ObjectType.ENTERPRISE, "E", props({PropId.E_PECNAME: "far"}))
    enterprise.run(5)
    assert pec.partition(ENTERPRISE_PARTITION).owner == "far"
    assert enterprise.create(pec, ObjectType.CN, props({PropId.CN_NAME: "n"})) is not None
