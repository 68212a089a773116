"""3.1.7.2.9: the limits of a purge at the authority."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    DeletedObject,
    PurgeState,
    Scope,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import PscAck
from tests.protocol.replication.enterprise import Enterprise, Node, guid_of, number

SITE_A, SITE_B = guid_of("A"), guid_of("B")
OLD = (10, 400, 600)


def with_old_tombstones(node: Node, partition: Guid, **state: object) -> None:
    """Puts the partition at number 3000, with deletions that are older than the buffer."""
    with node.store.write() as tx:
        for seq in OLD:
            record = DeletedObject(
                guid_of(str(seq)), partition, number(seq), ObjectType.QUEUE, Scope.ENTERPRISE
            )
            tx.bury(record)
        known = tx.partition(partition)
        assert known is not None
        tx.put_partition(replace(known, last_seq=number(3000), **state))  # type: ignore[arg-type]


@pytest.mark.req("MQDSRP-3.1.7.2.9-02")
@pytest.mark.parametrize(
    ("purge_state", "purged"), [(PurgeState.IN_SYNC0, 0), (PurgeState.NORMAL, 2500)]
)
def test_nothing_is_purged_in_sync0_or_below_the_purged_number(
    purge_state: PurgeState, purged: int
) -> None:
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    with_old_tombstones(pec, SITE_A, purge_state=purge_state, purged_seq=number(purged))
    enterprise.create_queue(pec, "pec\\q")
    assert pec.tombstones(SITE_A) == list(OLD)
    assert pec.partition(SITE_A).purged_seq == number(purged)


@pytest.mark.req("MQDSRP-3.1.7.2.9-03", "MQDSRP-3.1.7.2.9-05")
def test_the_enterprise_is_purged_as_far_as_it_is_acknowledged() -> None:
    """The acknowledged number of the site does not count for the enterprise."""
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    enterprise.add_psc("psc", "B")
    enterprise.run(70)
    enterprise.crash("psc")
    with_old_tombstones(pec, ENTERPRISE_PARTITION)
    ack = PscAck(SITE_B, SITE_B, ENTERPRISE_PARTITION, number(400), "psc")
    enterprise.inject("psc", "pec", ack)
    enterprise.create(pec, ObjectType.CN, props({PropId.CN_NAME: "net"}))
    assert pec.tombstones(ENTERPRISE_PARTITION) == [600]
    assert pec.partition(ENTERPRISE_PARTITION).purged_seq == number(400)


@pytest.mark.req("MQDSRP-3.1.7.2.9-03", "MQDSRP-3.2.7.4-02")
@pytest.mark.parametrize(("enterprise_seq", "site_seq"), [(400, 600), (600, 400)])
def test_each_partition_of_the_pec_is_purged_as_far_as_it_is_acknowledged(
    enterprise_seq: int, site_seq: int
) -> None:
    """A PSC that has all of one partition may lack deletions of the other."""
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    enterprise.add_psc("psc", "B")
    enterprise.run(70)
    enterprise.crash("psc")
    acked = {ENTERPRISE_PARTITION: enterprise_seq, SITE_A: site_seq}
    for partition, seq in acked.items():
        with_old_tombstones(pec, partition)
        enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, partition, number(seq), "psc"))
    enterprise.create(pec, ObjectType.CN, props({PropId.CN_NAME: "net"}))
    enterprise.create_queue(pec, "pec\\q")
    for partition, seq in acked.items():
        assert pec.partition(partition).purged_seq == number(seq)
        assert pec.tombstones(partition) == [old for old in OLD if old > seq]
