"""The PEC in the place of a PSC: what it may change, and how it hears that there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.machine_services import ServiceBits
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PurgeState
from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import SyncReply
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    Parcel,
    guid_of,
    machine_properties,
    site_properties,
)

SITE_N = guid_of("N")
QUEUE = ObjectType.QUEUE


def built(*, bsc: bool = False, psc: bool = False) -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    if bsc:
        made.add_bsc("bsc", "pec")
    if psc:
        made.add_psc("psc", "B")
    made.run(130)
    return made


def restored(enterprise: Enterprise, *, deletions: bool = False) -> Enterprise:
    """After its backup a PSC has joined and has queues; the PEC knows of neither."""
    backup = enterprise.backup("pec")
    new = enterprise.add_psc("new", "N")
    enterprise.run(130)
    for n in range(3):
        enterprise.create_queue(new, rf"new\q{n}")
    quota: dict[int, PropVariant] = props({PropId.QM_QUOTA: 5})
    enterprise.update(new, ObjectType.MACHINE, "new", quota)
    if deletions:
        enterprise.delete(new, QUEUE, r"new\q1")
    enterprise.run(130)
    enterprise.check_converged()
    enterprise.restore("pec", backup, authority=True)
    return enterprise


def without_its_last_site() -> Enterprise:
    """After its backup the PEC has created a site, whose PSC has not joined yet."""
    enterprise = built(psc=True)
    backup = enterprise.backup("pec")
    enterprise.create(enterprise.nodes["pec"], ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(5)
    enterprise.restore("pec", backup, authority=True)
    return enterprise


# --- what it may change ---------------------------------------------------------------------------


@pytest.mark.departs("MQDSRP-3.1.7.1.2-01", "MQDSRP-3.1.7.2.5-01")
def test_it_makes_the_machine_of_the_psc_and_nothing_else() -> None:
    enterprise = built(psc=True)
    pec = enterprise.nodes["pec"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    with pytest.raises(DirectoryError, match="create machine new first") as refused:
        enterprise.create(pec, ObjectType.MACHINE, machine_properties("other", "N", 0))
    assert refused.value.hresult == HResult.MQ_ERROR_DS_ERROR
    assert pec.last(SITE_N) == 0
    enterprise.create(pec, ObjectType.MACHINE, machine_properties("new", "N", ServiceBits.PSC))
    assert pec.last(SITE_N) == 1


@pytest.mark.departs("MQDSRP-3.2.7.2-01")
def test_it_decides_no_more_for_another_server() -> None:
    enterprise = built(psc=True)
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(5)
    properties = machine_properties("other", "N", 0)
    request = enterprise.create(psc, ObjectType.MACHINE, properties)
    assert request is not None
    enterprise.run(5)
    assert psc.answers()[request] == HResult.MQ_ERROR_DS_ERROR & 0xFFFFFFFF
    assert pec.find(ObjectType.MACHINE, "other") is None


def test_it_makes_no_server_for_another_server() -> None:
    """A PSC is not believed about who the authority of another site is (``trust``)."""
    enterprise = built(psc=True)
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    enterprise.run(5)
    properties = machine_properties("NEW", "N", ServiceBits.PSC)
    request = enterprise.create(psc, ObjectType.MACHINE, properties)
    assert request is not None
    enterprise.run(5)
    assert psc.answers()[request] == HResult.MQ_ERROR_ACCESS_DENIED & 0xFFFFFFFF
    assert pec.find(ObjectType.MACHINE, "NEW") is None


# --- restored, it hears of a PSC that it does not know --------------------------------------------


@pytest.mark.parametrize("deletions", [False, True])
@pytest.mark.parametrize("witness", ["bsc", "psc"])
def test_whoever_knows_the_psc_tells_the_restored_pec(witness: str, deletions: bool) -> None:
    enterprise = restored(built(bsc=witness == "bsc", psc=witness == "psc"), deletions=deletions)
    pec, new = enterprise.nodes["pec"], enterprise.nodes["new"]
    before = new.last(SITE_N)
    enterprise.run(20)
    assert pec.find(ObjectType.MACHINE, "new") is not None
    assert SITE_N not in pec.machine.memory.recoveries
    assert str(SITE_N) not in {told.partition for told in pec.recovered()}
    request = enterprise.create(pec, ObjectType.MACHINE, machine_properties("m", "N", 0))
    assert request is not None, "the new PSC decides"
    enterprise.run(200)
    assert pec.answers()[request] == HResult.MQ_OK
    assert new.last(SITE_N) == before + 1, "no number was given out by anybody else"
    enterprise.check_converged()
    assert pec.tombstones(SITE_N) == new.tombstones(SITE_N)


def test_a_copy_without_tombstones_is_followed_by_a_full_synchronisation() -> None:
    """A BSC has none: from its copy alone the PEC would miss that something was deleted."""
    enterprise = restored(built(bsc=True), deletions=True)
    pec = enterprise.nodes["pec"]
    silence = enterprise.lose(lambda parcel: parcel.sender == "new")
    enterprise.run(20)
    assert pec.partition(SITE_N).purge_state is PurgeState.IN_SYNC0
    assert pec.find(ObjectType.MACHINE, "new") is not None
    silence()
    enterprise.run(200)
    assert pec.partition(SITE_N).purge_state is PurgeState.NORMAL
    enterprise.check_converged()


def test_a_copy_without_gaps_serves_at_once() -> None:
    """The PSC waits for the PEC's copy before it takes office; neither waits for the other."""
    enterprise = built(bsc=True)
    pec = enterprise.nodes["pec"]
    backup = enterprise.backup("pec")
    silence = enterprise.lose(lambda parcel: parcel.sender == "new")
    new = enterprise.add_psc("new", "N")
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(20)
    assert pec.partition(SITE_N).purge_state is PurgeState.NORMAL
    assert pec.last(SITE_N) == 1
    assert pec.holds(SITE_N) == enterprise.nodes["bsc"].holds(SITE_N)
    silence()
    enterprise.run(200)
    assert str(SITE_N) in {told.partition for told in new.recovered()}
    enterprise.check_converged()


def test_a_site_that_nobody_knows_a_psc_of_waits_for_its_machine() -> None:
    """The first number is its machine's again, as it was before the disk was lost."""
    enterprise = without_its_last_site()
    pec = enterprise.nodes["pec"]
    with pytest.raises(DirectoryError, match="being restored"):
        enterprise.create(pec, ObjectType.SITE, site_properties("M", "late"))
    enterprise.run(2)
    assert SITE_N in pec.machine.memory.recoveries
    with pytest.raises(DirectoryError, match="being restored"):
        enterprise.create(pec, ObjectType.MACHINE, machine_properties("new", "N", ServiceBits.PSC))
    enterprise.run(130)
    assert SITE_N not in pec.machine.memory.recoveries
    assert pec.last(SITE_N) == 0
    enterprise.create(pec, ObjectType.MACHINE, machine_properties("new", "N", ServiceBits.PSC))
    assert pec.last(SITE_N) == 1


def test_a_crash_while_it_asks_around_does_not_put_it_into_office() -> None:
    enterprise = without_its_last_site()
    pec = enterprise.nodes["pec"]
    enterprise.run(2)
    assert SITE_N in pec.machine.memory.recoveries
    enterprise.crash("pec")
    enterprise.restart("pec")
    assert SITE_N in pec.machine.memory.recoveries
    enterprise.run(130)
    assert SITE_N not in pec.machine.memory.recoveries


def test_a_copy_that_is_behind_shows_a_machine_that_was_deleted_since() -> None:
    """The PEC has seen the deletion, so it does not take the older copy for the truth."""
    enterprise = built(psc=True)
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    new = enterprise.add_psc("new", "N")
    enterprise.run(130)
    enterprise.lose(lambda parcel: parcel.machine == "psc" and parcel.sender == "new")
    enterprise.delete(new, ObjectType.MACHINE, "new")
    enterprise.run(5)
    assert pec.find(ObjectType.MACHINE, "new") is None
    assert psc.find(ObjectType.MACHINE, "new") is not None
    backup = enterprise.backup("pec")
    enterprise.crash("new")
    enterprise.restore("pec", backup, authority=True)
    enterprise.run(200)
    assert pec.find(ObjectType.MACHINE, "new") is None
    assert SITE_N not in pec.machine.memory.recoveries


def test_what_the_copy_no_longer_has_goes() -> None:
    """The backup is from an earlier attempt at the site, of which nothing is left."""
    enterprise = built(psc=True)
    pec = enterprise.nodes["pec"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "new"))
    backup = enterprise.backup("pec")
    with backup.write() as tx:
        state, like = tx.partition(SITE_N), tx.find(ObjectType.MACHINE, "pec")
        assert state is not None
        assert like is not None
        seq = SequenceNumber(1)
        named = like.with_properties(props({PropId.QM_PATHNAME: "old"}), seq)
        tx.insert(replace(named, id=guid_of("old"), partition=SITE_N))
        tx.put_partition(replace(state, last_seq=seq))
    enterprise.delete(pec, ObjectType.SITE, "N")
    enterprise.run(5)
    enterprise.add_psc("new", "N")
    enterprise.run(130)
    enterprise.restore("pec", backup, authority=True)
    assert pec.find(ObjectType.MACHINE, "old") is not None
    enterprise.run(200)
    assert pec.find(ObjectType.MACHINE, "old") is None
    enterprise.check_converged()


def test_what_cannot_be_taken_from_the_copy_is_set_aside_and_asked_for() -> None:
    """A machine has moved meanwhile, and its old place is all that the copy knows."""
    enterprise = built(psc=True)
    backup = enterprise.backup("pec")
    new = enterprise.add_psc("new", "N")
    enterprise.run(130)
    enterprise.create(new, ObjectType.MACHINE, machine_properties("taken", "N", 0))
    enterprise.run(130)
    enterprise.restore("pec", backup, authority=True)
    pec = enterprise.nodes["pec"]
    with pec.store.write() as tx:  # as if it had been made here under that name
        state, like = tx.partition(guid_of("A")), tx.find(ObjectType.MACHINE, "pec")
        assert state is not None
        assert like is not None
        seq = state.last_seq.increment()
        named = like.with_properties(props({PropId.QM_PATHNAME: "taken"}), seq)
        tx.insert(replace(named, id=guid_of("other")))
        tx.put_partition(replace(state, last_seq=seq))

    def sent_by_new(parcel: Parcel) -> bool:
        return parcel.sender == "new" and isinstance(parcel.message, SyncReply)

    silence = enterprise.lose(sent_by_new)
    enterprise.run(20)
    assert guid_of("taken") in pec.machine.memory.progress(SITE_N).quarantine
    assert pec.partition(SITE_N).last_seq > SequenceNumber.MIN
    silence()
    assert pec.partition(ENTERPRISE_PARTITION).owner == "pec"
