"""A backup controller becomes a PSC, and a PSC a backup controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication import number_recovery
from mqis.protocol.replication.server_identity import Role
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import AlreadyPurged, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, guid_of

SITE_A, SITE_B = guid_of("A"), guid_of("B")


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.add_bsc("other", "psc")
    made.run(70)
    return made


def becomes(enterprise: Enterprise, name: str, role: Role, psc: str = "") -> None:
    """Starts a server with another configuration."""
    enterprise.crash(name)
    node = enterprise.nodes[name]
    node.server = replace(node.server, role=role, psc=psc)
    enterprise.restart(name)


def asked(enterprise: Enterprise, partition: Guid, after: int) -> None:
    """The other backup asks the promoted one for the changes after a number."""
    above, end, purged = SequenceNumber(after), SequenceNumber.MAX, SequenceNumber.MIN
    enterprise.sent.clear()
    request = SyncRequest(SITE_B, partition, above, end, purged, False, 1, "other")
    enterprise.inject("other", "bsc", request)


def answers(enterprise: Enterprise) -> list[SyncReply | AlreadyPurged]:
    replies = enterprise.messages(SyncReply, to="other")
    return [*replies, *enterprise.messages(AlreadyPurged, to="other")]


def test_a_promoted_backup_does_not_claim_deletions_that_it_has_no_tombstones_of(
    enterprise: Enterprise,
) -> None:
    """Another backup lacks a deletion that only the promoted one has heard of (E75)."""
    pec = enterprise.nodes["pec"]
    enterprise.create_queue(pec, "pec\\q")
    enterprise.run(70)
    behind = enterprise.nodes["other"].last(SITE_A)
    enterprise.crash("other")
    enterprise.delete(pec, ObjectType.QUEUE, "pec\\q")
    enterprise.run(70)
    enterprise.crash("psc")
    assert enterprise.nodes["bsc"].last(SITE_A) > behind
    enterprise.lose(lambda parcel: getattr(parcel.message, "partition", None) == SITE_A)
    becomes(enterprise, "bsc", Role.PSC)
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "bsc"}))
    enterprise.run(70)
    asked(enterprise, SITE_A, behind)
    (answer,) = enterprise.messages(AlreadyPurged, to="other")
    assert answer.purged_seq > SequenceNumber(behind)
    assert enterprise.messages(SyncReply, to="other") == []


@pytest.mark.parametrize("partition", [ENTERPRISE_PARTITION, SITE_A])
def test_a_promoted_backup_answers_nobody_before_the_directory_names_it(
    enterprise: Enterprise, partition: Guid
) -> None:
    """Its copies still name the PSC before it; the others would turn back to that one (E75)."""
    pec = enterprise.nodes["pec"]
    enterprise.crash("psc")
    becomes(enterprise, "bsc", Role.PSC)
    enterprise.run(70)
    asked(enterprise, partition, 1)
    assert answers(enterprise) == []
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "bsc"}))
    enterprise.run(200)
    asked(enterprise, partition, 1)
    assert len(answers(enterprise)) == 1


def test_a_psc_that_became_a_backup_asks_first_when_it_is_promoted_again(
    enterprise: Enterprise,
) -> None:
    """Its old office is none: another server has given out numbers since."""
    psc = enterprise.nodes["psc"]
    with psc.store.read() as view:
        assert number_recovery.is_serving(view, SITE_B)
    becomes(enterprise, "psc", Role.BSC, "bsc")
    with psc.store.read() as view:
        assert not number_recovery.has_served(view, SITE_B)
    enterprise.lose(lambda parcel: parcel.machine == "psc")
    becomes(enterprise, "psc", Role.PSC)
    with pytest.raises(DirectoryError, match="being restored"):
        enterprise.create_queue(psc, "psc\\early")


def test_a_backup_that_was_promoted_for_a_short_time_is_told_of_changes_again(
    enterprise: Enterprise,
) -> None:
    """It was lost before it could publish its role: its machine says backup all the time."""
    pec = enterprise.nodes["pec"]
    for name in ("psc", "bsc", "other"):
        enterprise.crash(name)
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "bsc"}))
    becomes(enterprise, "other", Role.PSC)
    enterprise.run(5)
    other = enterprise.nodes["other"]
    assert other.partition(SITE_B).owner == "bsc"
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "other"}))
    enterprise.run(5)
    assert other.partition(SITE_B).owner == "other"
    told = other.machine.memory.neighbor("bsc")
    assert told is not None
    assert not told.intersite
