"""Checkers see what they are there for, each shown something wrong."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    PartitionDigest,
    PurgeState,
    Scope,
)
from mqis.protocol.replication.change_requests import NO_RESPONSE
from mqis.protocol.replication.memory import Memory
from mqis.protocol.replication.outgoing_changes import synchronized
from mqis.protocol.replication.server_identity import Role, Server
from mqis.protocol.replication.settings import DEFAULTS
from mqis.sim.administrator import QueueScopes
from mqis.sim.checkers import CheckedEnterprise, check_announced, check_tombstones
from mqis.sim.complete_replicas import CompletenessCheck
from mqis.sim.equal_digests import DigestCheck, check_digests
from mqis.sim.history import Made, NumberHistory, Version
from mqis.sim.ledger import Ledger
from mqis.sim.memories import check_cached
from mqis.sim.restored_authorities import Witnesses
from mqis.sim.run_trace import Violation
from mqis.sim.runner import fewest
from mqis.sim.simulated_server import SimServer
from mqis.sim.sync_traffic import SyncTraffic
from mqis.sim.waits import Wait, describe_circle, find_circle
from mqis.storage.cache import QueryCache
from mqis.storage.memory_store import MemoryStore
from mqis.storage.sqlite import SqliteStore
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import pair, prop
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangeRequest, Sync0, SyncReply, SyncRequest, encode_message
from mqis.wire.seqnum import SequenceNumber
from tests.builders import SITE, guid, partition, queue, tombstone

PSC = Server("PSC", guid(1), SITE, Role.PSC, "PEC")
MIN = SequenceNumber.MIN
BSC = Server("BSC", guid(2), SITE, Role.BSC, "PEC", psc="PSC")


def store(*changes: object, last_seq: int = 10, purged_seq: int = 0) -> MemoryStore:
    made = MemoryStore()
    with made.write() as tx:
        state = partition(last_seq=last_seq)
        tx.put_partition(replace(state, purged_seq=SequenceNumber(purged_seq)))
        for change in changes:
            if hasattr(change, "properties"):
                tx.insert(change)  # type: ignore[arg-type]
            else:
                tx.bury(change)  # type: ignore[arg-type]
    return made


def look(history: NumberHistory, at: MemoryStore, me: Server) -> None:
    with at.read() as view:
        history.observe(view, me)
    history.keep()


def known(*changes: object) -> NumberHistory:
    history = NumberHistory()
    look(history, store(*changes), PSC)
    return history


def buried(at: MemoryStore, history: NumberHistory) -> None:
    server = SimpleNamespace(name="PEC", me=PSC, disk=SimpleNamespace(store=at))
    enterprise = SimpleNamespace(servers={0: server}, history=history)
    check_tombstones(cast("CheckedEnterprise", enterprise))


def test_tombstones_are_wanted_above_the_purged_number_and_up_to_the_last() -> None:
    """The PEC's backup may be older than a deletion, and the site's PSC may be gone for good."""
    history = known(tombstone(8, seq=6), tombstone(9, seq=7))
    buried(store(tombstone(8, seq=6), last_seq=6), history)
    buried(store(tombstone(9, seq=7), last_seq=7, purged_seq=6), history)
    with pytest.raises(Violation, match=r"no tombstone of deleted .* at 7"):
        buried(store(tombstone(8, seq=6), last_seq=7), history)


def test_an_equal_copy_is_fine() -> None:
    history = known(queue(7, label="a", seq=5), tombstone(8, seq=6))
    look(history, store(queue(7, label="a", seq=5), tombstone(8, seq=6)), BSC)


def test_another_value_under_the_same_number() -> None:
    history = known(queue(7, label="a", seq=5))
    with pytest.raises(Violation, match=f"replicas equal.*{int(PropId.Q_LABEL)}"):
        look(history, store(queue(7, label="b", seq=5)), BSC)


def test_a_number_that_nobody_made() -> None:
    history = known(queue(7, seq=5))
    with pytest.raises(Violation, match="which nobody made"):
        look(history, store(queue(7, seq=6)), BSC)


def test_a_number_that_is_made_twice() -> None:
    history = known(queue(7, seq=5))
    history.forget("PSC")
    with pytest.raises(Violation, match="one change for a number"):
        look(history, store(queue(9, seq=5)), PSC)
    history.drop()
    with pytest.raises(Violation, match="given out already"):
        look(history, store(queue(9, seq=4)), PSC)


def test_what_was_not_committed_does_not_count() -> None:
    history = NumberHistory()
    at = store(queue(7, seq=5))
    with at.read() as view:
        history.observe(view, PSC)
    history.drop()
    assert history.of(SITE).versions == {}
    look(history, at, PSC)
    assert list(history.of(SITE).versions) == [SequenceNumber(5)]


def test_a_copy_that_goes_back() -> None:
    history = known(queue(7, seq=5))
    look(history, store(last_seq=9), BSC)
    with pytest.raises(Violation, match="goes back from 9 to 8"):
        look(history, store(last_seq=8), BSC)


def test_a_replica_that_purges_more_than_its_authority() -> None:
    history = known(queue(7, seq=5))
    look(history, store(queue(7, seq=5)), BSC)
    with pytest.raises(Violation, match="goes ahead of the authority"):
        look(history, store(queue(7, seq=5), purged_seq=3), BSC)


def test_a_copy_that_has_purged_less_than_before_unless_it_began_anew() -> None:
    def copy(purged_seq: int, state: PurgeState) -> MemoryStore:
        made = store(queue(7, seq=5), purged_seq=purged_seq)
        with made.write() as tx:
            found = tx.partition(SITE)
            assert found is not None
            tx.put_partition(replace(found, purge_state=state))
        return made

    history = known(queue(7, seq=5))
    look(history, copy(4, PurgeState.NORMAL), BSC)
    with pytest.raises(Violation, match="has purged less than before"):
        look(history, copy(3, PurgeState.NORMAL), BSC)
    history.drop()
    look(history, copy(4, PurgeState.IN_SYNC0), BSC)
    look(history, copy(3, PurgeState.NORMAL), BSC)


def test_a_request_that_is_repeated_without_end() -> None:
    body = encode_message(
        SyncRequest(
            SITE, ENTERPRISE_PARTITION, SequenceNumber(1), SequenceNumber.MAX, SequenceNumber.MIN,
            False, 0, "BSC",
        )
    )  # fmt: skip
    traffic = SyncTraffic()
    for second in range(1000):  # one every ten seconds is no storm
        traffic.sent("BSC", "PSC", body, second * 10.0)
    traffic.progressed("BSC")
    for tenth in range(20):
        traffic.sent("BSC", "PSC", body, 10_000 + tenth / 10)
    with pytest.raises(Violation, match="bounded traffic"):
        traffic.sent("BSC", "PSC", body, 10_003)


def test_a_copy_in_many_parts_is_no_storm_and_asking_for_them_again_is() -> None:
    def asking(from_seq: int) -> bytes:
        seq, last = SequenceNumber(from_seq), SequenceNumber.MAX
        return encode_message(SyncRequest(SITE, SITE, seq, last, last, True, 0, "PEC"))

    traffic = SyncTraffic()

    def ask_for_all(at: float) -> None:
        for body in (asking(1 << 63), *(asking(2 * part) for part in range(50))):
            traffic.sent("PEC", "BSC", body, at)

    ask_for_all(0.0)
    with pytest.raises(Violation, match="PEC asks BSC 21 times"):
        ask_for_all(5.0)


def test_a_copy_that_went_with_its_site_may_begin_anew() -> None:
    history = known(queue(7, seq=5))
    look(history, store(queue(7, seq=5)), BSC)
    with pytest.raises(Violation, match="goes back from 10 to 0"):
        look(history, store(last_seq=0), BSC)
    history.drop()
    look(history, MemoryStore(), BSC)
    look(history, store(last_seq=0), BSC)


# --- who asked for it -----------------------------------------------------------------------------


#: Later than everything that was asked for.
NOW = 5000.0


def request(number: int = 1, *, label: str = "a") -> ChangeRequest:
    change = DirectoryChange(
        Command.UPDATE, None, guid(7), SITE, MIN, MIN, MIN,
        (pair(PropId.Q_LABEL, label),),
    )  # fmt: skip
    return ChangeRequest(SITE, SITE, number, "BSC", "PSC", change)


def made(seq: int, *, label: str = "a", quota: int = 1) -> list[Made]:
    def version(number: int, label: str, quota: int) -> Version:
        return Version.of(queue(7, label=label, seq=number, others={PropId.Q_QUOTA: quota}))

    return [Made(SITE, version(seq, label, quota), version(seq - 1, "", 1))]


def gone(seq: int) -> list[Made]:
    return [Made(SITE, Version.of(tombstone(7, seq=seq)), None)]


def test_a_change_that_nobody_asked_for() -> None:
    ledger = Ledger()
    ledger.asked(request(label="b"), 0.0)
    with pytest.raises(Violation, match=r"only what was asked for.*for nobody"):
        ledger.made("PSC", made(5), NOW)
    with pytest.raises(Violation, match="only what was asked for"):
        ledger.made("PSC", gone(5), NOW)


def test_a_request_that_is_executed_twice() -> None:
    ledger = Ledger()
    ledger.asked(request(1), 0.0)
    ledger.asked(request(1), 4.0)  # the same, since no answer came
    ledger.made("PSC", made(5), NOW)
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(6), NOW)
    ledger.asked(request(2), 8.0)
    ledger.made("PSC", made(6), NOW)


def test_only_the_author_asks_and_what_others_pass_on_is_no_second_request() -> None:
    ledger = Ledger()
    body = encode_message(request())
    ledger.sent("PSC", body, 0.0)
    with pytest.raises(Violation, match="for nobody"):
        ledger.made("PEC", made(5), NOW)
    ledger.sent("BSC", body, 0.0)
    ledger.made("PEC", made(5), NOW)


def test_what_was_rolled_back_was_not_made() -> None:
    ledger = Ledger()
    ledger.asked(request(), 0.0)
    ledger.made("PSC", made(5), NOW)
    ledger.drop()
    ledger.made("PSC", made(5), NOW)
    ledger.keep()
    ledger.drop()
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(6), NOW)


def test_a_lost_disk_takes_along_what_was_made_of_a_request() -> None:
    """Only for its author, who may ask again, and for what was on its way."""
    ledger = Ledger()
    ledger.asked(request(1), 0.0)
    ledger.made("PSC", made(5), 1.0)
    ledger.restored("PSC", 1000.0)
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(6), 1000.5)
    ledger.asked(request(1), 1001.0)
    ledger.made("PSC", made(6), 1002.0)
    ledger.restored("PSC", 1010.0)
    ledger.made("PSC", made(7), NOW)


def test_a_restored_authority_deletes_what_others_have_no_more() -> None:
    ledger = Ledger()
    ledger.made("PSC", gone(10), NOW, {SITE})  # however few numbers it skips
    with pytest.raises(Violation, match="for nobody"):
        ledger.made("PSC", gone(11), NOW, {guid(4)})
    with pytest.raises(Violation, match="for nobody"):
        ledger.made("PSC", gone(DEFAULTS.restore_jump + 11), NOW)


def test_a_restored_authority_makes_nothing_that_was_never_there() -> None:
    ledger, [change] = Ledger(), made(5)
    with pytest.raises(Violation, match="for nobody"):
        ledger.made("PSC", [change], NOW, {SITE})
    ledger.made("PSC", [replace(change, seen_before=True)], NOW, {SITE})


def test_requests_for_the_same_are_told_apart_as_far_as_that_matters() -> None:
    """The first change may be either's; the second shows whose the first was not."""
    ledger = Ledger()
    ledger.asked(request(1), 0.0)
    ledger.made("PSC", made(5), 1.0)
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(6), 2.0)  # the second request is not yet there
    ledger.asked(request(2), 3.0)
    ledger.made("PSC", made(6), 4.0)
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(7), 5.0)


def test_a_change_of_more_than_was_asked_for() -> None:
    ledger = Ledger()
    ledger.asked(request(1), 0.0)
    with pytest.raises(Violation, match="for nobody"):
        ledger.made("PSC", made(5, quota=9), NOW)


def test_fewest_steps() -> None:
    assert fewest(50, lambda kept: {3, 17} <= set(kept)) == (3, 17)
    assert fewest(8, lambda kept: True) == ()
    assert fewest(4, lambda kept: len(kept) == 4) == (0, 1, 2, 3)


def test_a_site_only_queue_is_compared_under_its_number_too() -> None:
    hidden = {PropId.Q_SCOPE: 0}
    history = known(queue(7, seq=5, others=hidden))
    wrong = queue(7, seq=5, label="x", others=hidden)
    with pytest.raises(Violation, match="replicas equal"):
        look(history, store(wrong), replace(PSC, name="OTHER", id=Guid(bytes(16)), site=guid(9)))
    assert prop(PropId.Q_SCOPE, 0) == wrong.properties[PropId.Q_SCOPE]


# --- completeness, announcements, scopes, answers, memories ---------------------------------------


def test_the_content_of_a_partition_under_a_number() -> None:
    history = known(queue(7, seq=3), queue(8, seq=5), tombstone(9, seq=6))
    content = history.of(SITE).at
    assert content(SequenceNumber(2)) == {}
    assert set(content(SequenceNumber(4))) == {guid(7)}
    assert set(content(SequenceNumber(9))) == {guid(7), guid(8)}
    with store(queue(8, seq=5)).read() as view:
        history.rebase(SITE, view)
    assert set(content(SequenceNumber(10))) == {guid(8)}, "what was lost is not expected"


class _Quiet:
    """A server's memory of which nothing is open."""

    me = BSC
    name = "BSC"
    node = SimpleNamespace(replication=SimpleNamespace(memory=Memory()))


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ((queue(7, seq=3),), "BSC at 10 lacks"),
        ((queue(7, seq=3), queue(8, seq=5), queue(9, seq=6)), "still has"),
    ],
)
def test_a_copy_that_is_not_what_the_authority_had(held: tuple[object, ...], text: str) -> None:
    history = known(queue(7, seq=3), queue(8, seq=5))
    completeness, server = CompletenessCheck(history), cast("SimServer", _Quiet())

    def look_at(*objects: object) -> None:
        at = store(*objects)
        history.moved = [(None, replace(partition(last_seq=10)))]
        with at.read() as view:
            completeness.check(view, server)

    look_at(queue(7, seq=3), queue(8, seq=5))
    with pytest.raises(Violation, match=text):
        look_at(*held)


def test_a_digest_that_the_authority_never_had() -> None:
    """Values, objects and queues of the site alone all count; an unfinished copy does not."""
    check = DigestCheck()

    def commit(me: Server, *objects: object) -> None:
        server = SimpleNamespace(name=me.name, me=me, disk=SimpleNamespace(store=store(*objects)))
        check.committed(cast("SimServer", server))

    hidden = queue(8, seq=6, others={PropId.Q_SCOPE: 0})
    commit(PSC, queue(7, seq=5), hidden)
    commit(BSC, queue(7, seq=5), hidden)
    for number, held in enumerate(
        [(queue(7, seq=5),), (queue(7, seq=5, label="x"), hidden), (hidden,)]
    ):
        with pytest.raises(Violation, match="another digest than the authority had"):
            commit(replace(BSC, name=f"BSC{number}"), *held)


def test_a_digest_that_a_store_did_not_keep() -> None:
    at = store(queue(7, seq=5))
    server = cast("SimServer", SimpleNamespace(name="PSC", disk=SimpleNamespace(store=at)))
    check_digests([server])
    at._root.digests[SITE] = PartitionDigest(1)
    with pytest.raises(Violation, match="has another digest"):
        check_digests([server])


def test_a_change_that_is_announced_and_not_there() -> None:
    history = known(queue(7, seq=5))
    look(history, store(queue(7, seq=5)), BSC)
    check_announced(history, "BSC", SITE, SequenceNumber(10))
    with pytest.raises(Violation, match="announces 11"):
        check_announced(history, "BSC", SITE, SequenceNumber(11))


def test_a_queue_of_one_site_in_a_reply_to_another() -> None:
    hidden = synchronized(queue(7, seq=5, others={PropId.Q_SCOPE: 0}), MIN, MIN)
    reply = encode_message(
        SyncReply(SITE, SITE, MIN, SequenceNumber(5), MIN, Sync0.NONE, (hidden,))
    )

    def request(scope: int) -> bytes:
        last = SequenceNumber.MAX
        return encode_message(SyncRequest(SITE, SITE, MIN, last, MIN, False, scope, "OTHER"))

    other = Server("OTHER", guid(3), guid(4), Role.PSC, "PEC")
    scopes = QueueScopes([PSC, BSC, other])
    scopes.sent("OTHER", "PSC", request(1))
    with pytest.raises(Violation, match="site-only queues stay"):
        scopes.sent("PSC", "OTHER", reply)
    scopes.sent("OTHER", "PSC", request(0))
    scopes.sent("PSC", "OTHER", reply)


def test_a_server_may_get_the_queues_of_its_own_site_from_anyone() -> None:
    """A lying BSC asks another site's PSC; nobody has seen its request."""

    def reply(partition: Guid) -> bytes:
        hidden = queue(7, seq=5, others={PropId.Q_SCOPE: 0})
        changes = (synchronized(replace(hidden, partition=partition), MIN, MIN),)
        last = SequenceNumber(5)
        return encode_message(SyncReply(SITE, partition, MIN, last, MIN, Sync0.NONE, changes))

    scopes = QueueScopes([PSC, BSC, Server("OTHER", guid(3), guid(4), Role.PSC, "PEC")])
    scopes.sent("OTHER", "BSC", reply(SITE))
    with pytest.raises(Violation, match="site-only queues stay"):
        scopes.sent("OTHER", "BSC", reply(guid(4)))


def test_an_error_is_answered_for_a_change_that_was_made() -> None:
    ledger = Ledger()
    for number in (1, 2):
        ledger.asked(request(number), 0.0)
    ledger.made("PSC", made(5), 1.0)
    ledger.answered(request(1), NO_RESPONSE)
    ledger.answered(request(1), HResult.MQ_ERROR_ACCESS_DENIED)  # the other one made it
    with pytest.raises(Violation, match="no change behind a failed answer"):
        ledger.answered(request(2), HResult.MQ_ERROR_ACCESS_DENIED)


def test_a_request_that_failed_makes_no_change_later() -> None:
    ledger = Ledger()
    ledger.asked(request(1), 0.0)
    ledger.answered(request(1), HResult.MQ_ERROR_ACCESS_DENIED)
    with pytest.raises(Violation, match="no request twice"):
        ledger.made("PSC", made(5), 1.0)


RENAMED = queue(7, path="C14\\renamed", seq=4)


def restorable(name: str, me: Server, content: MemoryStore) -> SimpleNamespace:
    return SimpleNamespace(name=name, me=me, restores=1, disk=SimpleNamespace(store=content))


@pytest.mark.parametrize(
    ("later", "found", "lost"),
    [
        ((RENAMED,), (queue(8, path="C14\\orders", seq=5),), False),
        ((), (queue(8, path="C14\\orders", seq=5),), True),
        ((RENAMED,), (queue(8, path="C14\\orders", seq=2),), True),
        ((RENAMED,), (queue(8, path="C14\\other", seq=5),), True),
        ((RENAMED,), (), True),
    ],
)
def test_what_a_restored_authority_had_is_there_unless_a_newer_object_got_its_name(
    later: tuple[object, ...], found: tuple[object, ...], lost: bool
) -> None:
    backup = store(queue(7, path="C14\\orders", seq=3))
    authority = restorable("PSC", PSC, backup)
    restored, witnesses = cast("SimServer", authority), Witnesses()
    witnesses.record(restored, [SITE], [restored])
    authority.disk.store = store(*found)
    with pytest.raises(Violation, match="was restored without") if lost else nullcontext():
        witnesses.check(restored, SITE, set(), known(*later))


@pytest.mark.parametrize(
    ("scope", "kept", "back"),
    [
        (Scope.ENTERPRISE, (), True),
        (Scope.SITE, (), False),
        (Scope.SITE, (tombstone(7, seq=4),), True),
    ],
)
def test_another_site_knows_of_a_deleted_queue_what_it_can_know(
    scope: Scope, kept: tuple[object, ...], back: bool
) -> None:
    """It never had a queue of the site alone, so only the tombstone tells it of the deletion."""
    backup = store(queue(7, others={PropId.Q_SCOPE: scope}, seq=3))
    authority = cast("SimServer", restorable("PSC", PSC, backup))
    abroad = restorable("PEC", replace(PSC, site=guid(99)), store(*kept, last_seq=4))
    witnesses = Witnesses()
    witnesses.record(authority, [SITE], [cast("SimServer", abroad)])
    with pytest.raises(Violation, match="knows that it was deleted") if back else nullcontext():
        witnesses.check(authority, SITE, {"PEC"}, known(tombstone(7, seq=4)))


def test_circles_are_found_and_lines_are_not() -> None:
    def waiting(*pairs: tuple[str, str]) -> dict[str, list[Wait]]:
        edges: dict[str, list[Wait]] = {}
        for server, other in pairs:
            edges.setdefault(server, []).append(Wait(server, other, SITE, "why"))
        return edges

    assert find_circle(waiting(("a", "b"), ("b", "c"), ("a", "c"))) == ()
    circle = find_circle(waiting(("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")))
    assert [wait.server for wait in circle] == ["b", "c", "d"]
    assert describe_circle(circle).endswith("d waits for b (why)")


def test_a_cache_that_forgets_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as kept:
        server = cast(SimServer, SimpleNamespace(name="PSC", disk=SimpleNamespace(store=kept)))
        with kept.write() as tx:
            tx.insert(queue(1))
        check_cached(server)
        monkeypatch.setattr(QueryCache, "_forget", lambda _cache, _commits: None)
        with kept.write() as tx:
            tx.update(queue(1), queue(1, label="another"))
        with pytest.raises(Violation, match="PSC has another queue"):
            check_cached(server)
