"""3.2.7.3, 3.2.7.7, 3.2.7.8: what a sync request is answered with."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, PurgeState
from mqis.protocol.replication.replicated import FILLERS, REPLICATED
from mqis.protocol.replication.settings import ReplicationSettings
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES, pair, prop, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import AlreadyPurged, Message, Sync0, SyncReply, SyncRequest
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.replication.enterprise import Enterprise, guid_of, number

SITE_A, SITE_B, SITE_C = guid_of("A"), guid_of("B"), guid_of("C")
MIN, MAX = SequenceNumber.MIN, SequenceNumber.MAX
#: A purged number that no partition reaches: whoever knows it is never told to start over.
ALL = 1 << 60
TABLE = Path(__file__).parents[2] / "data" / "mqdsrp" / "sync-props.csv"


@pytest.fixture
def enterprise() -> Enterprise:
    made = Enterprise(ReplicationSettings(max_changes=5))
    made.add_pec("pec", "A")
    made.add_psc("psc", "B")
    made.add_bsc("bsc", "psc")
    made.run(70)
    made.sent.clear()
    return made


def ask(
    enterprise: Enterprise,
    partition: Guid = SITE_B,
    from_seq: int = 0,
    *,
    to_seq: SequenceNumber = MAX,
    known: int = 0,
    sync0: bool = False,
    scope: int = 1,
    server: str = "psc",
    asker: str = "pec",
) -> list[Message]:
    enterprise.sent.clear()
    site = enterprise.nodes[asker].server.site
    enterprise.inject(
        asker,
        server,
        SyncRequest(site, partition, number(from_seq), to_seq, number(known), sync0, scope, asker),
    )
    return [p.message for p in enterprise.sent if p.sender == server and p.machine == asker]


def reply(enterprise: Enterprise, *args: object, **options: object) -> SyncReply:
    [message] = ask(enterprise, *args, **options)  # type: ignore[arg-type]
    assert isinstance(message, SyncReply)
    return message


def fill(enterprise: Enterprise, count: int = 3) -> None:
    for index in range(count):
        enterprise.create_queue(enterprise.nodes["psc"], f"psc\\q{index}")
    enterprise.run(1)


@pytest.mark.req("MQDSRP-3.2.7.3-07", "MQDSRP-3.2.7.3-08", "MQDSRP-3.2.7.3-09")
def test_changes_ascend_and_name_the_one_before(enterprise: Enterprise) -> None:
    fill(enterprise)
    psc = enterprise.nodes["psc"]
    last = psc.last(SITE_B)
    with psc.store.write() as tx:
        tx.put_partition(replace(psc.partition(SITE_B), purged_seq=number(1)))
    answer = reply(enterprise, SITE_B, last - 3)
    assert [c.seq.value for c in answer.changes] == [last - 2, last - 1, last]
    assert [c.previous_seq.value for c in answer.changes] == [last - 3, last - 2, last - 1]
    assert (answer.site, answer.partition) == (SITE_B, SITE_B)
    assert (answer.from_seq, answer.to_seq) == (number(last - 3), number(last))
    assert answer.purged_seq == number(1)
    assert answer.complete_sync0 is Sync0.NONE
    assert reply(enterprise, SITE_B, last - 3, sync0=True).complete_sync0 is Sync0.COMPLETE


@pytest.mark.req("MQDSRP-3.2.7.3-03", "MQDSRP-2.2.6.4-03")
@pytest.mark.parametrize("to_seq", [MIN, number(3), MAX])
def test_to_is_no_bound(enterprise: Enterprise, to_seq: SequenceNumber) -> None:
    """From is served from behind, To not at all; the reply says where the server is (E03, E08)."""
    fill(enterprise)
    last = enterprise.nodes["psc"].last(SITE_B)
    answer = reply(enterprise, SITE_B, last - 1, to_seq=to_seq)
    assert [c.seq.value for c in answer.changes] == [last]
    assert answer.to_seq == number(last)


@pytest.mark.req(
    "MQDSRP-3.2.7.3-02", "MQDSRP-3.1.1.5.3-02", "MQDSRP-3.2.7.7-01", "MQDSRP-3.2.7.8-06"
)
@pytest.mark.parametrize(
    ("from_seq", "known", "purged"), [(4, 4, True), (5, 0, False), (0, 5, False), (4, 0, True)]
)
def test_who_lacks_purged_tombstones_is_told_so(
    enterprise: Enterprise, from_seq: int, known: int, purged: bool
) -> None:
    with enterprise.nodes["psc"].store.write() as tx:
        state = tx.partition(SITE_B)
        assert state is not None
        tx.put_partition(replace(state, purged_seq=number(5)))
    [message] = ask(enterprise, SITE_B, from_seq, known=known)
    if purged:
        assert message == AlreadyPurged(SITE_B, SITE_B, number(5))
    else:
        assert isinstance(message, SyncReply)
        assert message.purged_seq == number(5)
        assert {c.purged_seq for c in message.changes} == {number(5)}


@pytest.mark.req("MQDSRP-3.2.7.3-01", "MQDSRP-3.1.1.5.3-04", "MQDSRP-3.1.1.5.3-02")
def test_what_is_unknown_or_in_sync0_is_not_answered(enterprise: Enterprise) -> None:
    assert ask(enterprise, guid_of("nowhere")) == []
    with enterprise.nodes["psc"].store.write() as tx:
        state = tx.partition(SITE_B)
        assert state is not None
        tx.put_partition(replace(state, purge_state=PurgeState.IN_SYNC0))
    assert ask(enterprise) == []


@pytest.mark.departs("MQDSRP-3.2.7.3-10")
@pytest.mark.req("MQDSRP-3.1.1.5.3-05")
def test_what_does_not_fit_follows_in_further_replies(enterprise: Enterprise) -> None:
    """Completion says whether there is more; without sync0 a literal peer ignores that (E54)."""
    fill(enterprise, 10)
    last = enterprise.nodes["psc"].last(SITE_B)
    for sync0, done in ((True, Sync0.COMPLETE), (False, Sync0.NONE)):
        seen, from_seq = [], 0
        for _ in range(10):
            answer = reply(enterprise, SITE_B, from_seq, sync0=sync0, known=ALL)
            seen += [c.seq.value for c in answer.changes]
            from_seq = answer.to_seq.value
            if answer.complete_sync0 is not Sync0.MORE:
                break
            assert answer.to_seq == answer.changes[-1].seq
            assert len(answer.changes) == 5
        assert answer.complete_sync0 is done
        assert from_seq == last
        assert seen == sorted(set(seen))
        assert len(seen) == 12  # ten queues, PSC and BSC


@pytest.mark.req("MQDSRP-3.2.7.3-04", "MQDSRP-3.2.7.3-05", "MQDSRP-3.2.7.8-05")
def test_a_partition_has_its_types_whoever_owns_it(enterprise: Enterprise) -> None:
    pec = enterprise.nodes["pec"]
    link: dict[int, PropVariant] = props(
        {
            PropId.L_NEIGHBOR1: SITE_A,
            PropId.L_NEIGHBOR2: SITE_B,
            PropId.L_COST: 7,
        }
    )
    enterprise.create(pec, ObjectType.ROUTINGLINK, link)
    enterprise.create(pec, ObjectType.CN, props({PropId.CN_NAME: "net"}))
    user: dict[int, PropVariant] = props(
        {
            PropId.U_SIGN_CERT: b"",
            PropId.U_DIGEST: (guid_of("d"),),
        }
    )
    enterprise.create(pec, ObjectType.USER, user)
    fill(enterprise, 1)
    enterprise.run(5)
    for server in ("pec", "psc"):
        for partition, expected in (
            (ENTERPRISE_PARTITION, {3, 5, 6, 7, 8}),
            (SITE_B, {1, 2}),
        ):
            types, from_seq = set(), 0
            while True:
                answer = reply(
                    enterprise,
                    partition,
                    from_seq,
                    server=server,
                    asker="bsc" if server == "psc" else "psc",
                    scope=0,
                    known=ALL,
                )
                types |= {c.properties[0][0] % 1000 // 100 for c in answer.changes}
                from_seq = answer.to_seq.value
                if answer.complete_sync0 is not Sync0.MORE:
                    break
            assert types == expected, server


@pytest.mark.req("MQDSRP-3.2.7.3-06", "MQDSRP-3.2.7.8-06")
def test_objects_and_tombstones_as_changes(enterprise: Enterprise) -> None:
    psc = enterprise.nodes["psc"]
    fill(enterprise, 2)
    enterprise.delete(psc, ObjectType.QUEUE, "psc\\q0")
    last = psc.last(SITE_B)
    there, gone = reply(enterprise, SITE_B, last - 2).changes
    assert (there.command, there.path, there.guid) == (Command.SYNC, None, guid_of("psc\\q1"))
    assert (gone.command, gone.path, gone.guid) == (Command.DELETE, None, guid_of("psc\\q0"))
    assert gone.properties == (
        pair(PropId.D_SCOPE, 1),
        pair(PropId.D_OBJTYPE, 1),
    )
    assert [propid for propid, _ in there.properties] == list(REPLICATED[ObjectType.QUEUE])


@pytest.mark.req("MQDSRP-3.2.7.3-05", "MQDSRP-3.2.7.8-02", "MQDSRP-3.2.7.8-03", "MQDSRP-3.2.7.8-08")
def test_queues_of_a_site_are_for_that_site(enterprise: Enterprise) -> None:
    """A PSC's request leaves them out, a BSC's does not; machines have no scope."""
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\local", scope=PropVariant(VarType.UI1, 0))
    enterprise.create_queue(psc, "psc\\global", scope=PropVariant(VarType.UI1, 1))
    last = psc.last(SITE_B)
    outside = reply(enterprise, SITE_B, last - 2, scope=1)
    assert [c.guid for c in outside.changes] == [guid_of("psc\\global")]
    assert outside.to_seq == number(last)
    inside = reply(enterprise, SITE_B, last - 2, scope=0, asker="bsc")
    assert [c.guid for c in inside.changes] == [guid_of("psc\\local"), guid_of("psc\\global")]
    assert guid_of("psc") in [c.guid for c in reply(enterprise, SITE_B, known=ALL).changes]


@pytest.mark.req("MQDSRP-3.2.7.8-08")
def test_a_server_of_another_site_does_not_get_queues_of_one_site_by_asking_for_all(
    enterprise: Enterprise,
) -> None:
    """The directory decides which site a server is of, not the request (E58)."""
    enterprise.add_bsc("distant", "pec")
    enterprise.run(70)
    psc = enterprise.nodes["psc"]
    enterprise.create_queue(psc, "psc\\local", scope=PropVariant(VarType.UI1, 0))
    enterprise.run(70)
    last = psc.last(SITE_B)
    assert reply(enterprise, SITE_B, last - 1, scope=0, asker="distant").changes == ()
    for asker, server, sync0 in (
        ("distant", "pec", False),  # its own PSC, which has the queue by propagation
        ("bsc", "pec", False),  # another PSC, about its own site
        ("pec", "psc", True),  # being restored, in the place of the PSC
    ):
        answer = reply(
            enterprise, SITE_B, last - 1, scope=0, asker=asker, server=server, sync0=sync0
        )
        assert [c.guid for c in answer.changes] == [guid_of("psc\\local")], asker


@pytest.mark.req("MQDSRP-3.2.7.8-01", "MQDSRP-3.2.7.8-04")
def test_the_lists_are_those_of_the_table() -> None:
    rows = list(csv.DictReader(TABLE.open()))
    for object_type, listed in REPLICATED.items():
        name = f"MQDS_{object_type.name}"
        mine = [r for r in rows if r["object_type"] == name and r["list"].startswith("Dir")]
        assert [int(r["propid"]) for r in mine] == list(listed)
        for row in mine:
            assert str(PROPERTIES[int(row["propid"])].vt) == row["variant_type"]
            assert (row["note"] == "filler") == (int(row["propid"]) in FILLERS)


@pytest.mark.req("MQDSRP-3.2.7.8-07", "MQDSRP-3.2.7.8-06")
def test_a_property_without_meaning_has_its_type_and_zero(enterprise: Enterprise) -> None:
    fill(enterprise, 1)
    last = enterprise.nodes["psc"].last(SITE_B)
    [change] = reply(enterprise, SITE_B, last - 1).changes
    sent = dict(change.properties)
    assert sent[PropId.Q_PATHNAME] == prop(PropId.Q_PATHNAME, "psc\\q0")
    assert sent[PropId.Q_HASHKEY] == prop(PropId.Q_HASHKEY, 0)
    assert sent[PropId.Q_LABEL_HASHKEY] == prop(PropId.Q_LABEL_HASHKEY, 0)
    assert all(variant.vt is PROPERTIES[propid].vt for propid, variant in change.properties)
    stored = enterprise.nodes["pec"].find(ObjectType.QUEUE, "psc\\q0")
    assert stored is not None
    assert not FILLERS & set(stored.properties)


def test_a_bsc_serves_nobody(enterprise: Enterprise) -> None:
    bsc = enterprise.nodes["bsc"]
    assert ask(enterprise, SITE_A, server="bsc", asker="pec") == []
    assert bsc.refusals()[-1] == "a backup controller serves nobody"
