"""Scenarios 12 and 14: backups, full synchronisation, and crashes in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import PurgeState
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.jumps import jumps_of
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.storage.memory_store import MemoryStore
from mqis.wire.hresult import HResult
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import (
    AlreadyPurged,
    ChangePropagation,
    SyncReply,
    SyncRequest,
)
from tests.protocol.replication.enterprise import Enterprise, Parcel, carries, guid_of

SITE_A, SITE_B = guid_of("A"), guid_of("B")
#: Purging and multi-part replies after dozens of changes instead of thousands.
SMALL = ReplicationSettings(purge_buffer=8, purge_step=4, max_changes=20)


Purged = tuple[Enterprise, MemoryStore, MemoryStore]


@pytest.fixture
def purged(long_ago: Purged) -> Purged:
    return long_ago[0].clone(), *long_ago[1:]


@pytest.fixture(scope="module")
def long_ago() -> Purged:
    """Site B's tombstones are purged beyond what two backups, of a PSC and of a BSC, know."""
    enterprise = Enterprise(SMALL)
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.add_bsc("bsc", "psc")
    enterprise.add_psc("far", "C")
    enterprise.add_bsc("farbsc", "far")
    for index in range(30):
        enterprise.create_queue(psc, f"psc\\ghost{index}")
    enterprise.run(70)
    backups = enterprise.backup("far"), enterprise.backup("farbsc")
    for index in range(30):
        enterprise.delete(psc, ObjectType.QUEUE, f"psc\\ghost{index}")
    for index in range(300):
        enterprise.create_queue(psc, f"psc\\q{index}")
        enterprise.run(0.1)
    enterprise.run(3000)
    enterprise.check_converged()
    limit = psc.partition(SITE_B).purged_seq.value
    with backups[0].read() as view:
        state = view.partition(SITE_B)
        assert state is not None
        assert state.last_seq.value < limit - 30
    return enterprise, *backups


@pytest.mark.req("MQDSRP-1.3.2.5-01", "MQDSRP-1.3.2.5-02", "MQDSRP-3.3.7.11-05")
def test_scenario_12_a_psc_restored_from_before_the_purge(purged: Purged) -> None:
    enterprise, backup, _ = purged
    enterprise.restore("far", backup)
    assert enterprise.nodes["far"].find(ObjectType.QUEUE, "psc\\ghost7") is not None
    enterprise.run(70)
    assert any(isinstance(p.message, AlreadyPurged) for p in enterprise.sent)
    assert enterprise.nodes["far"].find(ObjectType.QUEUE, "psc\\ghost7") is None
    enterprise.check_converged()


@pytest.mark.untraced
@pytest.mark.req("MQDSRP-4.5-01")
def test_scenario_12_then_its_bsc(purged: Purged) -> None:
    """Its PSC, which was rebuilt itself, tells it to start over."""
    enterprise, psc_backup, bsc_backup = purged
    enterprise.restore("far", psc_backup)
    enterprise.run(70)
    enterprise.restore("farbsc", bsc_backup)
    enterprise.run(70)
    told = [p for p in enterprise.sent if isinstance(p.message, AlreadyPurged)]
    assert {p.machine for p in told} == {"far", "farbsc"}
    enterprise.check_converged()


@pytest.mark.untraced
@pytest.mark.req("MQDSRP-3.1.3.1-06")
@pytest.mark.parametrize("state", list(PurgeState)[1:])
def test_scenario_12_a_crash_in_each_sync0_state(purged: Purged, state: PurgeState) -> None:
    """The partition goes on from wherever the crash left it (E40)."""
    enterprise, backup, _ = purged
    stop = enterprise.lose(carries(SyncReply, to="far"))
    enterprise.restore("far", backup)
    enterprise.run(70)
    far = enterprise.nodes["far"]
    assert far.partition(SITE_B).purge_state is PurgeState.IN_SYNC0
    if state is not PurgeState.IN_SYNC0:
        with far.store.write() as tx:
            found = tx.partition(SITE_B)
            assert found is not None
            tx.put_partition(replace(found, purge_state=state))
    if state is PurgeState.COMPLETING_SYNC0:
        # What a crash between the last reply and the sweep leaves: all of it is there.
        far.store = enterprise.backup("psc")
        with far.store.write() as tx:
            found = tx.partition(SITE_B)
            assert found is not None
            tx.put_partition(replace(found, purge_state=state))
    stop()
    enterprise.crash("far")
    enterprise.restart("far")
    enterprise.run(200)
    assert far.partition(SITE_B).purge_state is PurgeState.NORMAL
    enterprise.check_converged()


@pytest.mark.untraced
@pytest.mark.req("MQDSRP-3.1.1.5.3-04", "MQDSRP-3.1.1.5.3-05")
@pytest.mark.parametrize("kind", [AlreadyPurged, SyncRequest, SyncReply])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_scenario_12_each_sync0_message_lost(
    purged: Purged, kind: type[AlreadyPurged | SyncRequest | SyncReply], which: int
) -> None:
    """In whatever part of the round it is lost, the round ends."""
    enterprise, backup, _ = purged
    count = 0

    def wanted(parcel: Parcel) -> bool:
        nonlocal count
        message = parcel.message
        if not isinstance(message, kind) or "far" not in (parcel.machine, parcel.sender):
            return False
        if message.partition != SITE_B:
            return False
        count += 1
        return count == which + 1

    enterprise.lose(wanted)
    enterprise.restore("far", backup)
    enterprise.run(400)
    assert enterprise.lost or (kind is AlreadyPurged and which)
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.3.7.5-03")
def test_scenario_12_one_object_fails_in_the_middle_of_a_reply(purged: Purged) -> None:
    """Nothing of that reply counts, the sweep does not come early; then it works (E43)."""
    enterprise, backup, _ = purged
    far = enterprise.nodes["far"]
    failing = guid_of("psc\\q5")
    failed = 0

    def damage(parcel: Parcel) -> bool:
        """Cut the properties off that tell what the object is."""
        nonlocal failed
        message = parcel.message
        if failed or parcel.machine != "far" or not isinstance(message, SyncReply):
            return False
        if not any(change.guid == failing for change in message.changes):
            return False
        failed += 1
        changes = tuple(
            replace(c, properties=()) if c.guid == failing else c for c in message.changes
        )
        enterprise.inject(parcel.sender, "far", replace(message, changes=changes))
        return True

    enterprise.lose(damage)
    enterprise.restore("far", backup)
    enterprise.run(1)
    assert failed
    assert far.partition(SITE_B).purge_state is PurgeState.IN_SYNC0
    assert far.find(ObjectType.QUEUE, "psc\\q4") is None
    enterprise.run(200)
    enterprise.check_converged()


# --- a restored authority -------------------------------------------------------------------------


def test_a_restored_authority_asks_before_it_serves() -> None:
    """It gets back what the others have, skips numbers, and tells what nobody else has."""
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.add_bsc("bsc", "psc")
    enterprise.run(70)
    enterprise.create_queue(psc, "psc\\before")
    enterprise.create_queue(psc, "psc\\deleted")
    enterprise.run(5)
    backup = enterprise.backup("psc")
    enterprise.create_queue(psc, "psc\\after")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\deleted")
    enterprise.label(psc, "psc\\before", "changed")
    enterprise.run(5)
    highest = psc.last(SITE_B)
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", backup, authority=True)
    with pytest.raises(DirectoryError) as refused:
        enterprise.create_queue(psc, "psc\\early")
    assert refused.value.hresult == HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE
    silence()
    enterprise.run(70)
    assert psc.last(SITE_B) >= highest + (1 << 20)
    with psc.store.read() as view:
        ((before, after),) = jumps_of(view, SITE_B)
        records = [record for _, record in view.outbox(0, 10**6)]
    skipped = after.value - before.value
    assert before.value == highest
    assert 1 << 20 <= skipped < psc.settings.max_jump, "not so many changes"
    (told,) = (record for record in records if record.state is RecordState.SKIPPED)
    assert (told.kind, told.partition) == (RecordKind.CHANGE, SITE_B)
    assert (told.previous_seq, told.seq) == (before, after), "its journal says so too"
    assert psc.find(ObjectType.QUEUE, "psc\\after") is not None
    assert psc.find(ObjectType.QUEUE, "psc\\deleted") is None
    recovered = psc.recovered()[-1]
    assert recovered.unique == ()
    assert set(recovered.asked) == {"pec", "bsc"}
    enterprise.create_queue(psc, "psc\\late")
    enterprise.run(70)
    enterprise.check_converged()


def test_a_restored_authority_keeps_and_lists_what_nobody_else_has() -> None:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.run(70)
    enterprise.lose_next(carries(ChangePropagation, to="pec"))
    enterprise.create_queue(psc, "psc\\unseen")
    backup = enterprise.backup("psc")
    enterprise.restore("psc", backup, authority=True)
    enterprise.run(70)
    assert list(psc.recovered()[-1].unique) == ["queue psc\\unseen"]
    enterprise.run(1300)
    enterprise.check_converged()
    assert enterprise.nodes["pec"].find(ObjectType.QUEUE, "psc\\unseen") is not None


def test_who_does_not_answer_does_not_hold_up_a_restored_authority() -> None:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.add_psc("far", "C")
    enterprise.run(70)
    enterprise.crash("far")
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    enterprise.run(130)
    assert psc.recovered()[-1].silent == ("far",)
    enterprise.create_queue(psc, "psc\\q")
    enterprise.restart("far")
    enterprise.run(1300)
    enterprise.check_converged()


def test_a_crash_while_being_restored_does_not_put_it_into_service() -> None:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.run(70)
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    enterprise.crash("psc")
    enterprise.restart("psc")
    with pytest.raises(DirectoryError):
        enterprise.create_queue(psc, "psc\\q")
    silence()
    enterprise.run(130)
    enterprise.create_queue(psc, "psc\\q")
    enterprise.run(130)
    enterprise.check_converged()


# --- scenario 14 ----------------------------------------------------------------------------------


@pytest.mark.req("MQDSRP-3.1.1.2.4-03")
def test_scenario_14_a_crash_after_the_commit_before_propagation() -> None:
    """The numbers in the first message after the restart tell the replicas (E26)."""
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    enterprise.run(70)
    stop = enterprise.lose(lambda parcel: parcel.sender == "psc")
    enterprise.create_queue(psc, "psc\\q")
    enterprise.crash("psc")
    stop()
    enterprise.restart("psc")
    enterprise.run(5)
    assert enterprise.nodes["pec"].find(ObjectType.QUEUE, "psc\\q") is not None
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.1.7.1.3-02", "MQDSRP-3.1.7.1.3-01")
def test_scenario_14_two_writers_get_two_numbers() -> None:
    """One by RPC here, one forwarded by a BSC, in transactions of their own."""
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    psc = enterprise.add_psc("psc", "B")
    bsc = enterprise.add_bsc("bsc", "psc")
    enterprise.run(70)
    before = psc.last(SITE_B)
    enterprise.create_queue(bsc, "psc\\forwarded")
    enterprise.create_queue(psc, "psc\\here")
    enterprise.run(5)
    numbers = {
        obj.seq.value
        for path in ("psc\\forwarded", "psc\\here")
        if (obj := psc.find(ObjectType.QUEUE, path)) is not None
    }
    assert numbers == {before + 1, before + 2}
    enterprise.check_converged()


@pytest.mark.req("MQDSRP-3.1.3.1-07", "MQDSRP-3.1.3-01", "MQDSRP-3.1.1.3-01")
def test_scenario_14_a_number_behind_its_objects_is_raised_at_the_start() -> None:
    """A store whose last number lags, as one that does not commit both together leaves it."""
    enterprise = Enterprise()
    pec = enterprise.add_pec("pec", "A")
    enterprise.add_psc("psc", "B")
    enterprise.run(70)
    enterprise.create_queue(pec, "pec\\q")
    with pec.store.write() as tx:
        state = tx.partition(SITE_A)
        assert state is not None
        tx.put_partition(replace(state, last_seq=state.last_seq - 1))
    enterprise.crash("pec")
    enterprise.restart("pec")
    enterprise.create_queue(pec, "pec\\r")
    enterprise.run(5)
    first, second = (pec.find(ObjectType.QUEUE, f"pec\\{name}") for name in "qr")
    assert first is not None
    assert second is not None
    assert second.seq == first.seq + 1
    enterprise.check_converged()
