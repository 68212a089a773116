"""3.1.7.2.3 to 3.1.7.2.9: what one change does to a replica."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Scope,
)
from mqis.protocol.errors import DirectoryError
from mqis.protocol.replication.applying import Applied, apply, find, type_of
from mqis.protocol.replication.outgoing_changes import deletion, synchronized
from mqis.protocol.replication.replicated import content
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import pair, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, guid_of, number

SITE = guid_of("A")
MIN = SequenceNumber.MIN
TYPES = [t for t in ObjectType if t is not ObjectType.DELETEDOBJECT]


def clsid(value: Guid) -> PropVariant:
    return PropVariant(VarType.CLSID, value)


#: One object of each type as another server would send it.
EXAMPLES: dict[ObjectType, tuple[tuple[int, PropVariant], ...]] = {
    ObjectType.QUEUE: (pair(PropId.Q_PATHNAME, "m\\q"), pair(PropId.Q_QMID, guid_of("m"))),
    ObjectType.MACHINE: (pair(PropId.QM_PATHNAME, "m"), pair(PropId.QM_SITE_ID, SITE)),
    ObjectType.SITE: (pair(PropId.S_PATHNAME, "A"), pair(PropId.S_PSC, "m")),
    ObjectType.CN: (pair(PropId.CN_NAME, "net"),),
    ObjectType.ENTERPRISE: (pair(PropId.E_NAME, "E"), pair(PropId.E_PECNAME, "m")),
    ObjectType.USER: (pair(PropId.U_SID, b"sid"),),
    ObjectType.ROUTINGLINK: (
        pair(PropId.L_COST, 3),
        pair(PropId.L_NEIGHBOR1, SITE),
        pair(PropId.L_NEIGHBOR2, guid_of("B")),
    ),
}


def partition_of(object_type: ObjectType) -> Guid:
    site_types = (ObjectType.QUEUE, ObjectType.MACHINE)
    return SITE if object_type in site_types else ENTERPRISE_PARTITION


def change(
    command: Command, object_type: ObjectType, *, path: str | None = None, seq: int = 5
) -> DirectoryChange:
    guid = None if path is not None else guid_of(object_type.name)
    return DirectoryChange(
        command,
        path,
        guid,
        partition_of(object_type),
        number(seq - 1),
        number(seq),
        MIN,
        EXAMPLES[object_type],
    )


def delete(object_type: ObjectType, *, path: str | None = None, seq: int = 9) -> DirectoryChange:
    made = change(Command.DELETE, object_type, path=path, seq=seq)
    return replace(made, properties=deletion(object_type, Scope.ENTERPRISE))


def applied(store: MemoryStore, wanted: DirectoryChange, *, psc: bool = True) -> Applied:
    with store.write() as tx:
        return apply(tx, wanted, keep_tombstones=psc)


def stored(store: MemoryStore, object_type: ObjectType) -> list[DirectoryObject]:
    with store.read() as view:
        return list(view.objects(object_type))


@pytest.mark.req(
    "MQDSRP-3.1.7.2.8-01", "MQDSRP-3.1.7.2.8-02", "MQDSRP-3.1.7.2.8-03", "MQDSRP-3.1.7.2.3-02"
)
@pytest.mark.parametrize("object_type", TYPES, ids=lambda t: t.name)
def test_a_sync_creates_and_then_overwrites(object_type: ObjectType) -> None:
    """By GUID, of every type: the identity is not among the properties (E18, E19)."""
    store = MemoryStore()
    first = applied(store, change(Command.SYNC, object_type))
    assert first.before is None
    [obj] = stored(store, object_type)
    assert obj == first.after
    assert (obj.id, obj.seq) == (guid_of(object_type.name), number(5))
    assert obj.partition == partition_of(object_type)
    again = applied(store, change(Command.SYNC, object_type, seq=7))
    assert again.before == obj
    [obj] = stored(store, object_type)
    assert obj.seq == number(7)
    assert {p: v for p, v in content(obj).items() if p in dict(EXAMPLES[object_type])} == dict(
        EXAMPLES[object_type]
    )


@pytest.mark.req("MQDSRP-3.1.7.2.5-02", "MQDSRP-3.1.7.2.5-03", "MQDSRP-3.1.7.2.3-02")
@pytest.mark.parametrize("object_type", TYPES, ids=lambda t: t.name)
def test_a_create_by_path_has_its_identity_inside(object_type: ObjectType) -> None:
    store = MemoryStore()
    bare = change(Command.CREATE, object_type, path="")
    with pytest.raises(DirectoryError, match="no GUID"):
        applied(store, bare)
    identity = (IDENTIFIER_PROPERTY[object_type], clsid(guid_of("id")))
    applied(store, replace(bare, properties=(*bare.properties, identity)))
    [obj] = stored(store, object_type)
    assert (obj.id, obj.seq, obj.partition) == (guid_of("id"), bare.seq, bare.partition)
    assert IDENTIFIER_PROPERTY[object_type] not in obj.properties
    applied(store, replace(bare, properties=(*bare.properties, identity), seq=number(6)))
    assert [o.seq for o in stored(store, object_type)] == [number(6)]


@pytest.mark.req(
    "MQDSRP-3.1.7.2.3-01", "MQDSRP-3.1.7.2.3-02", "MQDSRP-3.1.7.2.3-03", "MQDSRP-3.1.7.2.7-01"
)
@pytest.mark.parametrize(
    ("object_type", "scope"),
    [(ObjectType.QUEUE, Scope.SITE), (ObjectType.SITE, Scope.ENTERPRISE)],
)
@pytest.mark.parametrize("by_path", [True, False])
def test_a_delete_by_path_or_guid(object_type: ObjectType, scope: Scope, by_path: bool) -> None:
    """Scope and type are its two properties, in this order (E59)."""
    store = MemoryStore()
    made = applied(store, change(Command.SYNC, object_type)).after
    assert made is not None
    wanted = delete(object_type, path=made.path if by_path else None)
    wanted = replace(wanted, properties=deletion(object_type, scope))
    assert type_of(wanted) is object_type
    assert applied(store, wanted) == Applied(made, None)
    assert stored(store, object_type) == []
    with store.read() as view:
        assert view.tombstones(made.id) == [
            DeletedObject(made.id, made.partition, number(9), object_type, scope)
        ]


@pytest.mark.req("MQDSRP-3.1.7.2.7-01", "MQDSRP-3.1.7.2.7-04")
@pytest.mark.parametrize("psc", [True, False])
def test_what_is_not_there_is_deleted_already(psc: bool) -> None:
    """It is no error (E11); a PSC keeps the tombstone for its BSCs, a BSC needs none (E12)."""
    store = MemoryStore()
    assert applied(store, delete(ObjectType.QUEUE), psc=psc) == Applied(None, None)
    with store.read() as view:
        assert bool(view.tombstones(guid_of("QUEUE"))) is psc


ELSEWHERE = guid_of("elsewhere")


def foreign_delete() -> DirectoryChange:
    return replace(delete(ObjectType.QUEUE), partition=ELSEWHERE, seq=number(70))


def graves(store: MemoryStore) -> dict[Guid, SequenceNumber]:
    """The numbers of the queue's tombstones, by partition."""
    with store.read() as view:
        return {gone.partition: gone.seq for gone in view.tombstones(guid_of("QUEUE"))}


@pytest.mark.parametrize("moment", ["before the object", "while it exists", "behind its deletion"])
def test_the_deletion_of_another_partition_leaves_the_object_and_its_tombstone(moment: str) -> None:
    """Else whoever still has the object would never hear that its authority has deleted it."""
    store = MemoryStore()
    made = change(Command.SYNC, ObjectType.QUEUE)
    changes = [made, delete(ObjectType.QUEUE)]
    place = ["before the object", "while it exists", "behind its deletion"].index(moment)
    for wanted in changes[:place]:
        applied(store, wanted)
    before = stored(store, ObjectType.QUEUE)
    assert applied(store, foreign_delete()) == Applied(None, None)
    assert stored(store, ObjectType.QUEUE) == before
    for wanted in changes[place:]:
        applied(store, wanted)
    assert graves(store) == {made.partition: number(9), ELSEWHERE: number(70)}


def test_an_object_that_comes_back_leaves_the_tombstone_of_another_partition() -> None:
    """Who asks for the changes of that partition may still have the object in it."""
    store = MemoryStore()
    applied(store, foreign_delete())
    applied(store, change(Command.SYNC, ObjectType.QUEUE))
    assert graves(store) == {ELSEWHERE: number(70)}
    assert store.check() == [
        f"queue {obj.path} is in partition {obj.partition}, which does not exist"
        for obj in stored(store, ObjectType.QUEUE)
    ]


def test_an_object_that_comes_back_has_no_tombstone() -> None:
    store = MemoryStore()
    applied(store, change(Command.SYNC, ObjectType.QUEUE))
    applied(store, delete(ObjectType.QUEUE))
    applied(store, change(Command.SYNC, ObjectType.QUEUE, seq=12))
    with store.read() as view:
        assert view.tombstones(guid_of("QUEUE")) == []


@pytest.mark.req("MQDSRP-3.1.7.2.3-02")
def test_an_update_can_take_a_value_away() -> None:
    """Empty means that the authority has none, where a type has no default."""
    store = MemoryStore()
    applied(store, change(Command.SYNC, ObjectType.USER))
    digests = PropVariant(VarType.VECTOR_CLSID, (guid_of("d"),))
    for value in (digests, PropVariant(VarType.VECTOR_CLSID, ())):
        wanted = replace(
            change(Command.UPDATE, ObjectType.USER, seq=8), properties=((PropId.U_DIGEST, value),)
        )
        applied(store, wanted)
        [user] = stored(store, ObjectType.USER)
        assert content(user)[PropId.U_DIGEST] == value
        assert user.value(PropId.U_SID) == b"sid"


@pytest.mark.parametrize("object_type", [ObjectType.QUEUE, ObjectType.MACHINE])
def test_an_authority_does_not_reach_objects_of_another(object_type: ObjectType) -> None:
    """Neither an update nor a deletion in its own partition touches them."""
    store = MemoryStore()
    applied(store, change(Command.SYNC, object_type))
    [before] = stored(store, object_type)
    foreign = replace(change(Command.UPDATE, object_type, seq=9), partition=guid_of("B"))
    with pytest.raises(DirectoryError, match="to update is not here"):
        applied(store, foreign)
    gone = replace(delete(object_type), partition=guid_of("B"))
    assert applied(store, gone) == Applied(None, None)
    assert stored(store, object_type) == [before]


def test_there_is_one_enterprise() -> None:
    """Another GUID takes the place of the one that is there (E19)."""
    store = MemoryStore()
    applied(store, change(Command.SYNC, ObjectType.ENTERPRISE))
    other = replace(change(Command.SYNC, ObjectType.ENTERPRISE, seq=8), guid=guid_of("other"))
    applied(store, other)
    assert [o.id for o in stored(store, ObjectType.ENTERPRISE)] == [guid_of("other")]
    with store.read() as view:
        anything = replace(other, guid=guid_of("whatever"))
        found = find(view, ObjectType.ENTERPRISE, anything)
    assert found is not None
    assert found.id == guid_of("other")


def test_a_name_that_the_authority_has_given_to_another_object() -> None:
    """In one partition the new holder wins; between partitions nobody can say yet."""
    store = MemoryStore()
    applied(store, change(Command.SYNC, ObjectType.MACHINE))
    heir = replace(change(Command.SYNC, ObjectType.MACHINE, seq=8), guid=guid_of("heir"))
    applied(store, heir)
    assert [o.id for o in stored(store, ObjectType.MACHINE)] == [guid_of("heir")]
    elsewhere = replace(heir, guid=guid_of("third"), partition=guid_of("B"))
    with pytest.raises(DirectoryError, match="is taken in partition"):
        applied(store, elsewhere)


@pytest.mark.req("MQDSRP-3.1.7.2.3-01")
@pytest.mark.parametrize(
    "properties",
    [(), (pair(PropId.D_SCOPE, 1),)],
)
def test_a_change_that_does_not_tell_its_type(
    properties: tuple[tuple[int, PropVariant], ...],
) -> None:
    wanted = replace(change(Command.SYNC, ObjectType.QUEUE), properties=properties)
    with pytest.raises(DirectoryError, match="does not tell what it is about"):
        type_of(wanted)


@pytest.mark.req("MQDSRP-3.1.7.2.3-01")
def test_the_first_property_tells_the_type() -> None:
    both = (pair(PropId.QM_QUOTA, 1), pair(PropId.Q_LABEL, "l"))
    wanted = replace(change(Command.SYNC, ObjectType.MACHINE), properties=both)
    assert type_of(wanted) is ObjectType.MACHINE


def test_objects_lie_where_they_belong() -> None:
    store = MemoryStore()
    for object_type, wrong in ((ObjectType.QUEUE, ENTERPRISE_PARTITION), (ObjectType.SITE, SITE)):
        wanted = replace(change(Command.SYNC, object_type), partition=wrong)
        with pytest.raises(DirectoryError, match="does not lie in"):
            applied(store, wanted)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    st.integers(0, 0xFFFFFFFF),
    st.binary(max_size=60),
    st.sampled_from([0, 1]),
)
def test_what_is_sent_is_what_is_there(label: str, quota: int, security: bytes, scope: int) -> None:
    """A replica that takes a whole object agrees with where it came from on all that travels."""
    store = MemoryStore()
    applied(store, change(Command.SYNC, ObjectType.QUEUE))
    [first] = stored(store, ObjectType.QUEUE)
    original = first.with_properties(
        props(
            {
                PropId.Q_LABEL: label,
                PropId.Q_QUOTA: quota,
                PropId.Q_SECURITY: security,
                PropId.Q_SCOPE: scope,
            }
        ),
        number(44),
    )
    replica = MemoryStore()
    applied(replica, synchronized(original, MIN, MIN))
    [copy] = stored(replica, ObjectType.QUEUE)
    assert content(copy) == content(original)
    assert copy.seq == number(44)


# --- purging on a replica -------------------------------------------------------------------------


def _with_tombstones(role: str) -> Enterprise:
    enterprise = Enterprise()
    enterprise.add_pec("pec", "A")
    enterprise.add_psc("psc", "B")
    enterprise.add_bsc("bsc", "psc")
    enterprise.run(70)
    node = enterprise.nodes[role]
    with node.store.write() as tx:
        for seq in (10, 20, 30):
            tx.bury(DeletedObject(guid_of(str(seq)), SITE, number(seq), ObjectType.QUEUE, Scope(1)))
        state = tx.partition(SITE)
        assert state is not None
        tx.put_partition(replace(state, last_seq=number(1280), allowed_purge_seq=number(20)))
    return enterprise


def _one_more(enterprise: Enterprise, name: str) -> None:
    sender = "pec" if name == "psc" else "psc"
    wanted = replace(delete(ObjectType.QUEUE, seq=1281), previous_seq=number(1280))
    enterprise.inject(sender, name, ChangePropagation(SITE, (wanted,)))


@pytest.mark.req("MQDSRP-3.1.7.2.9-04", "MQDSRP-3.1.7.2.3-08")
def test_a_replica_purges_up_to_what_the_authority_allows() -> None:
    """256 numbers have passed; below last - 1024 = 257 the authority allows 20."""
    enterprise = _with_tombstones("psc")
    _one_more(enterprise, "psc")
    psc = enterprise.nodes["psc"]
    assert psc.tombstones(SITE) == [30, 1281]
    assert psc.partition(SITE).purged_seq == number(20)
    assert psc.machine.memory.partitions[SITE].purge_looked_at == number(1281)
    with psc.store.write() as tx:
        state = tx.partition(SITE)
        assert state is not None
        tx.put_partition(replace(state, allowed_purge_seq=number(30)))
    wanted = replace(
        delete(ObjectType.QUEUE, seq=1282), previous_seq=number(1281), purged_seq=number(20)
    )
    enterprise.inject("pec", "psc", ChangePropagation(SITE, (wanted,)))
    assert psc.tombstones(SITE) == [30, 1282], "one number later is too early"


@pytest.mark.req("MQDSRP-3.1.7.2.9-04", "MQDSRP-3.1.7.2.3-08")
def test_a_replica_that_may_purge_nothing_new_purges_nothing() -> None:
    enterprise = _with_tombstones("psc")
    psc = enterprise.nodes["psc"]
    with psc.store.write() as tx:
        state = tx.partition(SITE)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(25)))
    wanted = replace(
        delete(ObjectType.QUEUE, seq=1281), previous_seq=number(1280), purged_seq=number(25)
    )
    enterprise.inject("pec", "psc", ChangePropagation(SITE, (wanted,)))
    assert psc.tombstones(SITE) == [10, 20, 30, 1281]
    assert psc.machine.memory.partitions[SITE].purge_looked_at == number(1281)


def test_a_bsc_forgets_tombstones_but_does_not_overtake_its_psc() -> None:
    """Its purged number stays, or it would refuse what its PSC sends (E23)."""
    enterprise = _with_tombstones("bsc")
    _one_more(enterprise, "bsc")
    bsc = enterprise.nodes["bsc"]
    assert bsc.tombstones(SITE) == [30]
    assert bsc.partition(SITE).purged_seq == MIN
