"""Sites, partitions, neighbours, types and properties that a mixed-up server would exchange.

Three sites, so that the partition in question need not be that of the server that answers.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import DeletedObject, Scope
from mqis.protocol.replication.replicated import REPLICATED
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair, prop
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.messages import AlreadyPurged, PscAck, SyncReply, SyncRequest
from mqis.wire.propvariant import PropVariant, Value, VarType
from tests import distinct
from tests.protocol.replication.enterprise import (
    Enterprise,
    Node,
    guid_of,
    machine_properties,
    number,
)

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
MAX = number(0xFFFF_FFFF_FFFF_FFFF)


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise()
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_psc("far", "C")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.sent.clear()
    return made


def ask(enterprise: Enterprise, partition: Guid, from_seq: int) -> SyncReply | AlreadyPurged:
    """What psc answers to far."""
    enterprise.sent.clear()
    known = number(0)
    request = SyncRequest(SITE_C, partition, number(from_seq), MAX, known, False, 1, "far")
    enterprise.inject("far", "psc", request)
    [parcel] = [p for p in enterprise.sent if (p.sender, p.machine) == ("psc", "far")]
    assert isinstance(parcel.message, SyncReply | AlreadyPurged)
    return parcel.message


def set_numbers(node: Node, partition: Guid, **numbers: int) -> None:
    with node.store.write() as tx:
        state = tx.partition(partition)
        assert state is not None
        given = {name: number(value) for name, value in numbers.items()}
        tx.put_partition(replace(state, **given))  # type: ignore[arg-type]


@pytest.mark.req("MQDSRP-3.2.7.3-09")
def test_a_reply_about_another_site_names_the_senders(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    for name in ("pec\\one", "pec\\two"):
        enterprise.create_queue(pec, name)
    enterprise.run(20)
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_A)
    set_numbers(psc, SITE_A, purged_seq=1, allowed_purge_seq=2)
    answer = ask(enterprise, SITE_A, last - 1)
    assert isinstance(answer, SyncReply)
    assert (answer.site, answer.partition) == (SITE_B, SITE_A)
    assert (answer.from_seq, answer.to_seq) == (number(last - 1), number(last))
    assert answer.purged_seq == number(1)
    assert [change.guid for change in answer.changes] == [guid_of("pec\\two")]


@pytest.mark.req("MQDSRP-3.2.7.7-01")
def test_what_is_purged_is_told_of_the_partition_in_question(enterprise: Enterprise) -> None:
    set_numbers(enterprise.nodes["psc"], SITE_A, purged_seq=3, allowed_purge_seq=4, last_seq=5)
    assert ask(enterprise, SITE_A, 1) == AlreadyPurged(SITE_B, SITE_A, number(3))


@pytest.mark.req("MQDSRP-3.3.7.3-04")
@pytest.mark.parametrize(
    ("name", "destinations"),
    [("psc", {SITE_A: "pec", SITE_C: "far"}), ("bsc", {SITE_A: "psc", SITE_C: "psc"})],
)
def test_each_partition_is_asked_for_where_it_is_made(
    enterprise: Enterprise, name: str, destinations: dict[Guid, str]
) -> None:
    enterprise.restart(name)
    asked = {
        parcel.message.partition: parcel.machine
        for parcel in enterprise.sent
        if parcel.sender == name and isinstance(parcel.message, SyncRequest)
    }
    assert {site: asked[site] for site in destinations} == destinations


@pytest.mark.req("MQDSRP-3.1.7.2.9-03")
@pytest.mark.parametrize(("psc", "far", "left"), [(400, 600, [600]), (600, 400, [600])])
def test_the_neighbour_that_is_behind_limits_the_purge(
    enterprise: Enterprise, psc: int, far: int, left: list[int]
) -> None:
    pec = enterprise.nodes["pec"]
    for name in ("psc", "far", "bsc"):
        enterprise.crash(name)
    with pec.store.write() as tx:
        for seq in (10, 400, 600):
            gone = guid_of(str(seq))
            tx.bury(DeletedObject(gone, SITE_A, number(seq), ObjectType.QUEUE, Scope.ENTERPRISE))
    set_numbers(pec, SITE_A, last_seq=3000)
    enterprise.inject("psc", "pec", PscAck(SITE_B, SITE_B, SITE_A, number(psc), "psc"))
    enterprise.inject("far", "pec", PscAck(SITE_C, SITE_C, SITE_A, number(far), "far"))
    enterprise.create_queue(pec, "pec\\q")
    assert pec.tombstones(SITE_A) == left
    assert pec.partition(SITE_A).purged_seq == number(400)


@pytest.mark.req(
    "MQDSRP-3.2.7.3-06",
    "MQDSRP-3.1.7.1.2-10",
    "MQDSRP-3.1.7.2.7-04",
    "MQDSRP-3.1.1.2.2-01",
)
def test_a_deletion_keeps_its_type_and_its_scope(enterprise: Enterprise) -> None:
    """Of a machine and of a queue that only its site knows: neither is type 1 with scope 1."""
    psc = enterprise.nodes["psc"]
    enterprise.create(psc, ObjectType.MACHINE, machine_properties("m", "B", 0))
    enterprise.create_queue(psc, "psc\\local", scope=PropVariant(VarType.UI1, 0))
    enterprise.run(20)
    enterprise.delete(psc, ObjectType.MACHINE, "m")
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\local")
    enterprise.run(20)
    last = psc.last(SITE_B)
    answer = ask(enterprise, SITE_B, last - 2)
    assert isinstance(answer, SyncReply)
    kinds = [(ObjectType.MACHINE, Scope.ENTERPRISE), (ObjectType.QUEUE, Scope.SITE)]
    assert [change.properties for change in answer.changes] == [
        (pair(PropId.D_SCOPE, int(scope)), pair(PropId.D_OBJTYPE, int(kind)))
        for kind, scope in kinds
    ]
    gone = [guid_of("m"), guid_of("psc\\local")]
    for name in ("psc", "far"):
        with enterprise.nodes[name].store.read() as view:
            records = [record for id_ in gone for record in view.tombstones(id_)]
        assert records == [
            DeletedObject(id_, SITE_B, number(last - 1 + at), *kinds[at])
            for at, id_ in enumerate(gone)
        ]


@pytest.mark.req("MQDSRP-3.2.7.8-01", "MQDSRP-3.2.7.8-07")
def test_every_property_of_a_machine_travels_as_itself(enterprise: Enterprise) -> None:
    """No two of its values are alike."""
    psc = enterprise.nodes["psc"]
    values: dict[PropId, Value] = {
        PropId.QM_FOREIGN: 1,
        PropId.QM_QUOTA: 11,
        PropId.QM_JOURNAL_QUOTA: 12,
        PropId.QM_CNS: (guid_of("net"),),
        PropId.QM_MACHINE_TYPE: "version",
        PropId.QM_OS: 0x400,
        PropId.QM_ADDRESS: AddressList((TaAddress.ip("10.1.2.3"),)).to_bytes(),
        PropId.QM_CREATE_TIME: distinct.created_at(1),
        PropId.QM_MODIFY_TIME: distinct.modified_at(1),
        PropId.QM_INFRS: (guid_of("in"),),
        PropId.QM_OUTFRS: (guid_of("out"), guid_of("other")),
        PropId.QM_SERVICE: 0x11,
        PropId.QM_SECURITY: distinct.descriptor(ObjectType.MACHINE, 1).to_bytes(),
    }
    keys: dict[PropId, Value] = {
        PropId.QM_ENCRYPT_PKS: distinct.encryption_keys(1),
        PropId.QM_SIGN_PKS: distinct.signing_keys(1),
    }
    own = {int(propid): prop(propid, value) for propid, value in (values | keys).items()}
    given: dict[int, PropVariant] = {**machine_properties("m", "B", 0x11), **own}
    enterprise.create(psc, ObjectType.MACHINE, given)
    answer = ask(enterprise, SITE_B, psc.last(SITE_B) - 1)
    assert isinstance(answer, SyncReply)
    [change] = answer.changes
    assert change.guid == guid_of("m")
    sent = dict(change.properties)
    expected = {
        **values,
        PropId.QM_PATHNAME: "m",
        PropId.QM_SITE_ID: SITE_B,
        PropId.QM_ENCRYPT_PK: keys[PropId.QM_ENCRYPT_PKS],
        PropId.QM_SIGN_PK: keys[PropId.QM_SIGN_PKS],
        PropId.QM_HASHKEY: 0,
    }
    assert sent == {propid: prop(propid, value) for propid, value in expected.items()}
    assert tuple(propid for propid, _ in change.properties) == REPLICATED[ObjectType.MACHINE]
