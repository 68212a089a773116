"""Recoveries that get no answer, a useless one, or one that takes their partition away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.memory import Survivor
from mqis.protocol.replication.remains import INCOMPLETE
from mqis.storage.memory_store import MemoryStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Sync0, SyncReply, SyncRequest
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import (
    Enterprise,
    Parcel,
    guid_of,
    machine_properties,
    site_properties,
)

SITE_A, SITE_B, SITE_N = (guid_of(name) for name in "ABN")
MIN = SequenceNumber.MIN


def built() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.run(130)
    made.sent.clear()
    return made


def test_a_new_psc_waits_for_the_pec_however_long_that_takes() -> None:
    """Its empty copy would make all others forget the partition; the PEC has its machine."""
    enterprise = built()

    def copies(parcel: Parcel) -> bool:
        message = parcel.message
        return isinstance(message, SyncReply) and message.partition == SITE_N

    silence = enterprise.lose(copies)
    new = enterprise.add_psc("new", "N")
    enterprise.run(10 * new.settings.recovery_wait_s)
    assert new.recovered() == []
    with pytest.raises(DirectoryError) as refused:
        enterprise.create(new, ObjectType.MACHINE, machine_properties("client", "N", 0))
    assert refused.value.hresult == HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE
    enterprise.sent.clear()
    enterprise.run(2 * new.settings.recovery_retry_s)
    asked = enterprise.messages(SyncRequest, to="pec", sender="new")
    assert SITE_N in {request.partition for request in asked}, "it goes on asking"
    silence()
    enterprise.run(130)
    assert [told.partition for told in new.recovered()] == [str(SITE_N)]
    assert new.find(ObjectType.MACHINE, "new") is not None
    assert enterprise.create_queue(new, "new\\q") is None


def asking() -> tuple[Enterprise, Callable[[], None], Survivor]:
    """A restored PSC has asked the PEC for its copy, which the test answers; how to end that."""
    enterprise = built()
    silence = enterprise.lose(lambda parcel: parcel.machine == "psc")
    enterprise.restore("psc", enterprise.backup("psc"), authority=True)
    survivor = enterprise.nodes["psc"].machine.memory.recoveries[SITE_B].survivors["pec"]
    probe = SyncReply(SITE_A, SITE_B, survivor.from_seq, survivor.from_seq, MIN, Sync0.COMPLETE)
    enterprise.inject("pec", "psc", probe)
    return enterprise, silence, survivor


@pytest.mark.parametrize("what", ["another partition", "no identifier"])
def test_a_copy_with_changes_that_it_cannot_have_is_not_taken(what: str) -> None:
    """The server that sent it counts as silent until it has sent a sound one."""
    enterprise, silence, survivor = asking()
    psc = enterprise.nodes["psc"]
    assert not survivor.probing
    name = pair(PropId.Q_PATHNAME, "psc\\odd")
    last = psc.partition(SITE_B).last_seq
    odd = DirectoryChange(Command.SYNC, None, guid_of("odd"), SITE_B, last, last + 1, MIN, (name,))
    if what == "another partition":
        odd = replace(odd, partition=SITE_A)
    else:
        odd = replace(odd, command=Command.CREATE, path="psc\\odd", guid=None)
    copy = SyncReply(SITE_A, SITE_B, MIN, last + 1, MIN, Sync0.COMPLETE, (odd,))
    enterprise.inject("pec", "psc", copy)
    assert psc.refusals()[-1] == "a copy has changes without identity"
    assert not survivor.complete
    silence()
    enterprise.run(130)
    assert psc.recovered()[-1].silent == ()
    assert psc.find(ObjectType.QUEUE, "psc\\odd") is None
    enterprise.run(130)
    enterprise.check_converged()


def test_a_copy_with_something_that_is_nothing_is_taken_without_it() -> None:
    """By its number we had it and deleted it, and a deletion names the type."""
    enterprise, silence, survivor = asking()
    psc = enterprise.nodes["psc"]
    last = psc.partition(SITE_B).last_seq
    odd = DirectoryChange(Command.SYNC, None, guid_of("odd"), SITE_B, MIN, last, MIN, ())
    enterprise.inject(
        "pec", "psc", SyncReply(SITE_A, SITE_B, MIN, last, MIN, Sync0.COMPLETE, (odd,))
    )
    assert psc.refusals()[-1] == "a copy has changes without a type"
    assert survivor.complete
    assert guid_of("odd") not in survivor.holds
    silence()
    enterprise.run(130)
    assert psc.recovered()[-1].silent == ()
    enterprise.run(130)
    enterprise.check_converged()


def test_a_restored_pec_that_learns_of_a_deleted_site_forgets_its_partition() -> None:
    """It stood in for the site's PSC, so the partition was being restored as well."""
    enterprise = built()
    pec = enterprise.nodes["pec"]
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "nobody"))
    enterprise.run(5)
    backup = enterprise.backup("pec")
    enterprise.delete(pec, ObjectType.SITE, "N")
    enterprise.run(5)
    enterprise.restore("pec", backup, authority=True)
    assert SITE_N in pec.machine.memory.recoveries
    enterprise.run(130)
    assert pec.machine.memory.recoveries == {}
    restored = {told.partition for told in pec.recovered()}
    assert restored == {str(ENTERPRISE_PARTITION), str(SITE_A)}
    assert not pec.knows(SITE_N)
    enterprise.run(130)
    enterprise.check_converged()


@pytest.mark.parametrize("incomplete", [False, True])
def test_an_incomplete_copy_does_not_prove_deletions(incomplete: bool) -> None:
    """A complete one that is past an object and lacks it does (E73)."""
    enterprise, silence, _ = asking()
    psc = enterprise.nodes["psc"]
    last = psc.partition(SITE_B).last_seq
    purged = INCOMPLETE if incomplete else MIN
    copy = SyncReply(SITE_A, SITE_B, MIN, last + 5, purged, Sync0.COMPLETE)
    enterprise.inject("pec", "psc", copy)
    assert psc.recovered()
    assert (psc.find(ObjectType.MACHINE, "psc") is not None) is incomplete
    silence()


def test_a_late_message_of_a_former_authority_leaves_nothing_behind() -> None:
    """All have sent their copies to an empty authority when what it said before its end arrives."""
    enterprise = built()
    psc, pec = enterprise.nodes["psc"], enterprise.nodes["pec"]
    late: list[Parcel] = []

    def is_late(parcel: Parcel) -> bool:
        if isinstance(parcel.message, ChangePropagation):
            late.append(parcel)
        return parcel in late

    delay = enterprise.lose(is_late)
    enterprise.create_queue(psc, "psc\\lost")
    enterprise.run(5)
    delay()
    enterprise.restore("psc", MemoryStore(), authority=True)
    silence = enterprise.lose(
        lambda p: p.sender == "psc" and not isinstance(p.message, SyncRequest)
    )
    enterprise.run(5)
    assert [told.silent for told in psc.recovered()][1:] == [()]
    for parcel in late:
        enterprise.deliver(parcel)
    assert pec.find(ObjectType.QUEUE, "psc\\lost") is not None
    silence()
    enterprise.run(2 * psc.settings.heartbeat_s)
    assert pec.find(ObjectType.QUEUE, "psc\\lost") is None
    enterprise.check_converged()
