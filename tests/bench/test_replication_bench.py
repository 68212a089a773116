"""The replication benchmark measures what it says: replicas that are equal, and nothing sooner."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from bench import members, replication, slapd
from bench.backends import Unavailable
from bench.load import Line, LoadError
from bench.members import BSC, PSC, Members
from bench.replication import TooSlow
from bench.syncrepl import Syncrepl
from bench.twins import Queue
from mqis.config.file import load
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.server.identity import identify
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

ROOT = Path(__file__).resolve().parents[2]


class TestPlan:
    def test_every_server_knows_who_it_is(self, tmp_path: Path) -> None:
        planned = members.plan(tmp_path, (PSC, BSC), 1, 5)

        with closing(SqliteStore(planned.authority.store)) as store, store.read() as view:
            assert view.count(ObjectType.QUEUE) == 5
            for home in (planned.authority, *planned.replicas):
                me = identify(load(home.directory / "mqis.toml"), view)
                machine = view.find(ObjectType.MACHINE, home.name)
                assert machine is not None
                assert (me.name, me.id, me.pec) == (home.name, machine.id, members.PEC)
            site = view.find(ObjectType.SITE, members.SITE)
        assert site is not None
        assert planned.partitions == (ENTERPRISE_PARTITION, site.id)
        for home in planned.replicas:
            with closing(SqliteStore(home.store)) as store, store.read() as view:
                assert view.partitions() == []


class TestComparing:
    """The replica is a copy of the authority's file, spoiled a little."""

    @pytest.fixture
    def side(self, tmp_path: Path) -> Iterator[Members]:
        planned = members.plan(tmp_path, (BSC,), 1, 20)
        shutil.copyfile(planned.authority.store, planned.replicas[0].store)
        with ExitStack() as resources:
            yield Members(planned, 20, resources)

    @staticmethod
    def replica(side: Members) -> SqliteStore:
        return SqliteStore(side.homes[1].store, create=False)

    def test_a_copy_is_equal(self, side: Members) -> None:
        assert side.compare() == 25  # enterprise, site, three machines, 20 queues

    def test_a_missing_object_is_seen(self, side: Members) -> None:
        with closing(self.replica(side)) as store, store.write() as tx:
            queue = tx.find(ObjectType.QUEUE, Queue(7).path)
            assert queue is not None
            tx.delete(queue)
        with pytest.raises(LoadError, match="queue0000007 is missing"):
            side.compare()

    def test_another_value_is_seen(self, side: Members) -> None:
        with closing(self.replica(side)) as store, store.write() as tx:
            queue = tx.find(ObjectType.QUEUE, Queue(7).path)
            assert queue is not None
            label = "something else"
            tx.update(queue, queue.with_properties(props({PropId.Q_LABEL: label}), queue.seq))
        with pytest.raises(LoadError, match="queue0000007 differs"):
            side.compare()

    def test_an_object_too_many_is_seen(self, side: Members) -> None:
        authority = SqliteStore(side.homes[0].store, create=False)
        with closing(authority) as store, store.write() as tx:
            queue = tx.find(ObjectType.QUEUE, Queue(7).path)
            assert queue is not None
            tx.delete(queue)
        with pytest.raises(LoadError, match="1 objects too many"):
            side.compare()


class _Never:
    name = "never"

    def equal(self) -> bool:
        return False


def test_replicas_that_never_agree_are_given_up() -> None:
    with pytest.raises(TooSlow, match="never: replicas were not equal"):
        replication._await_equal(_Never(), 0.05)  # type: ignore[arg-type]


@pytest.mark.interop
class TestSyncrepl:
    def test_a_consumer_becomes_equal_to_its_provider(self, tmp_path: Path) -> None:
        with ExitStack() as resources:
            side = Syncrepl(tmp_path / "slapd", 1, 1, 10, resources)
            try:
                side.start_authority()
            except Unavailable as reason:
                pytest.skip(str(reason))
            side.start_replicas()
            replication._await_equal(side, 30)
            assert side.compare() == 12  # the suffix, a machine, 10 queues

            authority, consumer = (Line(target) for target in side.targets)
            with closing(authority), closing(consumer):
                [request] = side.creates(1)
                with pytest.raises(LoadError, match="LDAP result 32"):  # noSuchObject
                    consumer.run(side.read_last(consumer.peer))
                authority.run(side.create(authority.peer, request))
                replication._until_shown(consumer, side.read_last)
                replication._await_equal(side, 30)
                assert side.compare() == 13

            assert slapd.contents(tmp_path / "slapd" / "provider").keys() >= {f"dn: {Queue(10).dn}"}
