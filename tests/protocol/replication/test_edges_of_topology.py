"""Sites, machines and enterprise objects that hardly ever come, and changes that are undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, Partition, PurgeState, Scope
from mqis.protocol.replication import rounds
from mqis.protocol.replication.effects import Refusal
from mqis.protocol.replication.outgoing_changes import deletion
from mqis.protocol.replication.topology_changes import follow_psc
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, Sync0, SyncReply, SyncRequest
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.builders import site
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    guid_of,
    machine_properties,
    number,
    site_properties,
)

SITE_A, SITE_B, SITE_C, SITE_N = (guid_of(name) for name in "ABCN")
MIN = SequenceNumber.MIN


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.run(130)
    made.sent.clear()
    for node in made.nodes.values():
        node.told.clear()
    return made


def neighbors(node: Node) -> dict[str, Guid]:
    return {n.name: n.site for n in node.machine.memory.neighbors.values()}


def of_the_enterprise(
    node: Node,
    ahead: int,
    command: Command,
    guid: Guid,
    *properties: tuple[int, PropVariant],
) -> DirectoryChange:
    """A change of the enterprise partition, ``ahead`` of what a node has."""
    seq = node.last(ENTERPRISE_PARTITION) + ahead
    return DirectoryChange(
        command, None, guid, ENTERPRISE_PARTITION, number(seq - 1), number(seq), MIN, properties
    )


def tell(enterprise: Enterprise, sender: str, machine: str, change: DirectoryChange) -> None:
    """Propagate it, as the one change of a message."""
    before = enterprise.nodes[machine].last(ENTERPRISE_PARTITION)
    site = enterprise.nodes[sender].server.site
    enterprise.inject(sender, machine, ChangePropagation(site, (change,)))
    assert enterprise.nodes[machine].last(ENTERPRISE_PARTITION) == before + 1


def site_deleted(node: Node, ahead: int, site: Guid) -> DirectoryChange:
    properties = deletion(ObjectType.SITE, Scope.ENTERPRISE)
    return of_the_enterprise(node, ahead, Command.DELETE, site, *properties)


# --- sites ----------------------------------------------------------------------------------------


def test_the_deletion_of_a_site_without_an_identifier_does_not_take_the_enterprise_with_it(
    enterprise: Enterprise,
) -> None:
    """The null identifier is that of the enterprise partition."""
    psc = enterprise.nodes["psc"]
    before = neighbors(psc)
    tell(enterprise, "pec", "psc", site_deleted(psc, 1, Guid.NULL))
    assert psc.partition(ENTERPRISE_PARTITION).owner == "pec"
    assert psc.find(ObjectType.SITE, "A") is not None
    assert neighbors(psc) == before


def test_who_is_named_as_the_psc_of_another_site_takes_no_office_there(
    enterprise: Enterprise,
) -> None:
    """A server decides about its own site: of the other one it neither asks nor decides."""
    pec, psc = enterprise.nodes["pec"], enterprise.nodes["psc"]
    before = neighbors(psc)
    enterprise.create(pec, ObjectType.SITE, site_properties("N", "psc"))
    enterprise.run(5)
    assert psc.partition(SITE_N).owner == "psc"
    assert neighbors(psc) == before
    assert SITE_N not in psc.machine.memory.recoveries
    assert [
        r for r in enterprise.messages(SyncRequest, sender="psc") if r.partition == SITE_N
    ] == []
    asked = enterprise.create(psc, ObjectType.MACHINE, machine_properties("m", "N", 0))
    assert asked is not None
    assert psc.answers() == {asked: HResult.MQDS_UNKNOWN_SOURCE}


def test_a_deleted_site_leaves_nothing_set_aside(enterprise: Enterprise) -> None:
    """An object whose name another site holds still waits for a site that is no more."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_C)
    bad = DirectoryChange(
        Command.SYNC, None, guid_of("bad"), SITE_C, number(last), number(last + 1), MIN, ()
    )
    ahead = replace(bad, previous_seq=number(last + 4), seq=number(last + 5))
    enterprise.inject("far", "psc", ChangePropagation(SITE_C, (ahead,)))
    reply = SyncReply(SITE_C, SITE_C, number(last), number(last + 1), MIN, Sync0.NONE, (bad,))
    for _ in range(3):
        enterprise.inject("far", "psc", reply)
    with psc.store.read() as view:
        assert [key for key, _ in view.states("quarantine")] == [SITE_C.raw + guid_of("bad").raw]
    tell(enterprise, "pec", "psc", site_deleted(psc, 1, SITE_C))
    with psc.store.read() as view:
        assert view.states("quarantine") == []


@pytest.mark.req("MQDSRP-3.1.7.2.7-02")
def test_a_deleted_site_leaves_no_open_round(enterprise: Enterprise) -> None:
    """Its copy was between two parts of a reply; if the site comes back, its copy is a new one."""
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_C)
    ahead = DirectoryChange(
        Command.SYNC, None, guid_of("q"), SITE_C, number(last + 4), number(last + 5), MIN, ()
    )
    enterprise.inject("far", "psc", ChangePropagation(SITE_C, (ahead,)))
    part = SyncReply(SITE_C, SITE_C, number(last), number(last + 1), MIN, Sync0.MORE, ())
    enterprise.inject("far", "psc", part)
    with psc.store.read() as view:
        assert rounds.is_open(view, SITE_C)
    tell(enterprise, "pec", "psc", site_deleted(psc, 1, SITE_C))
    enterprise.crash("psc")
    enterprise.restart("psc")
    with psc.store.read() as view:
        assert view.states(rounds.FAMILY) == []
    assert not psc.machine.memory.progress(SITE_C).incomplete


def test_a_site_that_a_crash_left_to_be_forgotten_is_not_asked_for(enterprise: Enterprise) -> None:
    """The sweep of the enterprise partition goes on at the start, and takes its partition (E40)."""
    psc = enterprise.nodes["psc"]
    enterprise.crash("psc")
    with psc.store.write() as tx:
        site, state = tx.find(ObjectType.SITE, "C"), tx.partition(ENTERPRISE_PARTITION)
        assert site is not None
        assert state is not None
        tx.update(site, replace(site, seq=MIN))
        tx.put_partition(replace(state, purge_state=PurgeState.COMPLETING_SYNC0))
    enterprise.restart("psc")
    assert not psc.knows(SITE_C)
    assert psc.find(ObjectType.MACHINE, "far") is None
    assert neighbors(psc) == {"pec": SITE_A}
    asked = [request.partition for request in enterprise.messages(SyncRequest, sender="psc")]
    assert sorted(asked) == sorted([ENTERPRISE_PARTITION, SITE_A])
    assert psc.partition(ENTERPRISE_PARTITION).purge_state is PurgeState.NORMAL


# --- the enterprise -------------------------------------------------------------------------------


def test_an_enterprise_that_names_no_pec_keeps_its_authority(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    unnamed = pair(PropId.E_PECNAME, "")
    tell(enterprise, "pec", "psc", of_the_enterprise(psc, 1, Command.UPDATE, Guid.NULL, unnamed))
    found = psc.find(ObjectType.ENTERPRISE, "E")
    assert found is not None
    assert found.value(PropId.E_PECNAME) is None
    assert psc.partition(ENTERPRISE_PARTITION).owner == "pec"


def test_a_pec_that_gets_the_enterprise_back_asks_before_it_decides(
    enterprise: Enterprise,
) -> None:
    """The other one may have used numbers that it has not heard of."""
    pec = enterprise.nodes["pec"]
    enterprise.update(pec, ObjectType.ENTERPRISE, "E", props({PropId.E_PECNAME: "far"}))
    enterprise.run(5)
    assert ENTERPRISE_PARTITION not in pec.machine.memory.recoveries
    enterprise.sent.clear()
    named = pair(PropId.E_PECNAME, "pec")
    tell(enterprise, "far", "pec", of_the_enterprise(pec, 1, Command.UPDATE, Guid.NULL, named))
    assert pec.partition(ENTERPRISE_PARTITION).owner == "pec"
    assert ENTERPRISE_PARTITION in pec.machine.memory.recoveries
    asked = [p for p in enterprise.sent if isinstance(p.message, SyncRequest)]
    assert {p.machine for p in asked} == {"psc", "far"}
    enterprise.run(130)
    assert [told.partition for told in pec.recovered()] == [str(ENTERPRISE_PARTITION)]
    assert enterprise.create(pec, ObjectType.CN, props({PropId.CN_NAME: "n"})) is None


# --- what is undone -------------------------------------------------------------------------------


def undo(enterprise: Enterprise, *changes: DirectoryChange) -> None:
    """A reply of the PEC to the PSC of site B whose last change cannot be applied."""
    psc = enterprise.nodes["psc"]
    before = psc.last(ENTERPRISE_PARTITION)
    bad = of_the_enterprise(psc, 9, Command.SYNC, guid_of("bad"))
    reply = SyncReply(
        SITE_A, ENTERPRISE_PARTITION, number(before), bad.seq, MIN, Sync0.NONE, (*changes, bad)
    )
    enterprise.inject("pec", "psc", reply)
    assert psc.last(ENTERPRISE_PARTITION) == before
    assert psc.refusals()[-1] == "this change stops a whole reply"


@pytest.fixture
def asking(enterprise: Enterprise) -> Enterprise:
    """The PSC of site B has just asked; the test answers for the PEC."""
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    enterprise.crash("psc")
    enterprise.restart("psc")
    return enterprise


def test_a_neighbour_that_an_undone_reply_took_away_is_one_again(asking: Enterprise) -> None:
    psc = asking.nodes["psc"]
    before = neighbors(psc)
    kept = psc.machine.memory.neighbor("pec")
    undo(asking, site_deleted(psc, 1, SITE_C))
    assert neighbors(psc) == before == {"pec": SITE_A, "far": SITE_C}
    assert psc.machine.memory.neighbor("pec") is kept, "what was known of the others is not lost"
    assert psc.find(ObjectType.MACHINE, "far") is not None
    asking.create_queue(psc, "psc\\q")
    asking.run(1)
    assert asking.nodes["far"].find(ObjectType.QUEUE, "psc\\q") is not None


def test_an_undone_reply_announces_and_sends_nothing(asking: Enterprise) -> None:
    """Neither the site that it would have made known, nor a request to the site's PSC."""
    psc = asking.nodes["psc"]
    psc.machine.watched = True
    psc.told.clear()
    asking.sent.clear()
    named = pair(PropId.S_PATHNAME, "N"), pair(PropId.S_PSC, "new")
    undo(asking, of_the_enterprise(psc, 1, Command.SYNC, guid_of("N"), *named))
    assert {type(effect) for effect in psc.told} == {Refusal}
    assert [parcel for parcel in asking.sent if parcel.sender == "psc"] == []


def test_an_office_that_an_undone_reply_gave_is_not_taken(enterprise: Enterprise) -> None:
    """Its site names another PSC still, so nobody is to be asked for a copy."""
    psc = enterprise.nodes["psc"]
    pec = enterprise.nodes["pec"]
    enterprise.update(pec, ObjectType.SITE, "B", props({PropId.S_PSC: "other"}))
    enterprise.run(5)
    enterprise.lose(lambda parcel: parcel.machine == "pec")
    enterprise.crash("psc")
    enterprise.restart("psc")
    back = pair(PropId.S_PSC, "psc")
    undo(enterprise, of_the_enterprise(psc, 1, Command.UPDATE, SITE_B, back))
    assert psc.partition(SITE_B).owner == "other"
    assert psc.machine.memory.recoveries == {}
    enterprise.run(130)
    assert psc.recovered() == []


def test_a_recovery_goes_on_when_a_reply_is_undone(asking: Enterprise) -> None:
    psc = asking.nodes["psc"]
    asking.crash("psc")
    asking.restart("psc", restored=True)
    undo(asking)
    assert set(psc.machine.memory.recoveries) == {SITE_B}
    asking.run(130)
    assert [told.partition for told in psc.recovered()] == [str(SITE_B)]


@pytest.mark.parametrize("has_partition", [True, False])
def test_a_backup_follows_a_psc_that_it_cannot_hear_of(*, has_partition: bool) -> None:
    """The site keeps its number and loses the key of the former PSC."""
    store, held = MemoryStore(), site(7, psc="old1", seq=5, others={PropId.S_PSC_SIGNPK: b"key"})
    with store.write() as tx:
        tx.insert(held)
        if has_partition:
            tx.put_partition(Partition(held.id, "old1"))
        follow_psc(tx, held, "new1")
    with store.read() as view:
        found, state = view.get(ObjectType.SITE, held.id), view.partition(held.id)
    assert found is not None
    assert (found.value(PropId.S_PSC), found.seq) == ("new1", held.seq)
    assert PropId.S_PSC_SIGNPK not in found.properties
    assert (state.owner if state else None) == ("new1" if has_partition else None)


def test_a_site_that_names_no_psc_gets_one() -> None:
    store, held = MemoryStore(), site(7, seq=5)
    held = replace(held, properties={PropId.S_PATHNAME: held.properties[PropId.S_PATHNAME]})
    with store.write() as tx:
        tx.insert(held)
        follow_psc(tx, held, "new1")
    with store.read() as view:
        found = view.get(ObjectType.SITE, held.id)
    assert found is not None
    assert found.value(PropId.S_PSC) == "new1"


def test_a_backup_that_has_heard_of_its_psc_keeps_the_psc_s_key() -> None:
    """Else it would differ from all others at the same number, for ever."""
    store, held = MemoryStore(), site(7, psc="NEW1", seq=5, others={PropId.S_PSC_SIGNPK: b"key"})
    with store.write() as tx:
        tx.insert(held)
        tx.put_partition(Partition(held.id, "old1"))
        follow_psc(tx, held, "new1")
    with store.read() as view:
        state = view.partition(held.id)
        assert view.get(ObjectType.SITE, held.id) == held
    assert state is not None
    assert state.owner == "new1"
