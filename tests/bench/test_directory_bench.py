"""The directory benchmark measures what it says: same queues, checked answers, honest counts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

import pytest

from bench import calls, ldap, serving, slapd, twins
from bench.backends import Unavailable
from bench.calls import RpcPeer
from bench.ldap import LdapPeer
from bench.load import LoadError, Operation, Target, cpu_s, load
from bench.processes import kept_to
from bench.twins import Queue
from mqis.storage.memory_store import MemoryStore
from mqis.storage.sqlite import SqliteStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

ROOT = Path(__file__).resolve().parents[2]
SUCCESS = bytes.fromhex("300c02010165070a010004000400")
NO_SUCH_OBJECT = bytes.fromhex("300c02010165070a012004000400")
ENTRY = ldap.tlv(0x30, b"\x02\x01\x01", ldap.tlv(0x64, b"x" * 300))


def finish(operation: Operation, reply: object) -> None:
    """One request, one reply; a good one ends the operation."""
    next(operation)
    with pytest.raises(StopIteration):
        operation.send(reply)


class TestLdap:
    def test_the_anonymous_bind_is_that_of_ldapsearch(self) -> None:
        assert ldap.anonymous_bind().hex() == "300c020101600702010304008000"

    def test_a_search_with_one_attribute(self) -> None:
        message = ldap.search("o=a", ldap.BASE, ldap.present("cn"), ["cn"])
        parts = ("04036f3d61", "0a0100", "0a0100", "020100", "020100", "010100", "8702636e")
        body = "".join(parts) + "3004" + "0402636e"
        assert message.hex() == "3023" + "020101" + "631e" + body

    def test_long_values_have_long_lengths(self) -> None:
        assert ldap.tlv(4, bytes(127))[:2].hex() == "047f"
        assert ldap.tlv(4, bytes(128))[:3].hex() == "048180"
        assert ldap.tlv(4, bytes(300))[:4].hex() == "0482012c"

    @pytest.mark.parametrize("size", [1, 7, 500])
    def test_replies_end_where_they_end_however_they_come(self, size: int) -> None:
        peer, data = LdapPeer(), 2 * ENTRY + SUCCESS
        for _ in range(2):
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            *early, last = [peer.feed(piece) for piece in pieces]
            assert early == [None] * len(early)
            assert last == ldap.Reply(2, 0, data)

    def test_only_what_was_expected_counts(self) -> None:
        peer = LdapPeer()
        finish(peer.ask(b"", b"xx", entries=2), peer.feed(2 * ENTRY + SUCCESS))
        for data, content, entries in (
            (NO_SUCH_OBJECT, b"", 0),
            (ENTRY + SUCCESS, b"", 2),
            (ENTRY + SUCCESS, b"y", 1),
        ):
            operation = peer.ask(b"", content, entries=entries)
            next(operation)
            with pytest.raises(LoadError):
                operation.send(peer.feed(data))


class TestTwins:
    @pytest.mark.parametrize(
        ("encoding", "message"),
        [
            (
                "utf-16-le",
                lambda q: calls.create_queue(q.path, q.properties(), twins.GIVEN),
            ),
            ("utf-8", lambda q: ldap.add(q.dn, q.attributes())),
        ],
    )
    def test_exchanged_names_give_the_message_of_that_queue(
        self, encoding: str, message: Callable[[Queue], bytes]
    ) -> None:
        made = list(islice(twins.creates(10_000, encoding, message), 321))
        assert made[0] == message(Queue(10_000, late=True))
        assert made[320] == message(Queue(10_320, late=True))
        assert len(set(made)) == 321

    def test_a_queue_has_as_many_properties_here_as_attributes_there(self) -> None:
        store = MemoryStore()
        twins.fill(store, 1, 1)
        with store.read() as view:
            queue = view.find(ObjectType.QUEUE, Queue(0).path)
        assert queue is not None
        named = {name: value for name, value in Queue(0).attributes() if name.startswith("queue")}
        assert len(queue.properties) + 1 == len(named)  # the identifier is no property here
        assert queue.value(PropId.Q_LABEL) == named["queueLabel"].decode()
        assert queue.value(PropId.Q_SECURITY) == named["queueSecurity"]
        assert queue.value(PropId.Q_QUOTA) == int(named["queueQuota"])

    def test_every_attribute_is_declared(self) -> None:
        declared = "\n".join(twins.schema())
        for name, _ in Queue(0).attributes():
            assert name in ("objectClass", "cn") or f"NAME '{name}' EQUALITY" in declared


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target[RpcPeer]]:
    path = tmp_path_factory.mktemp("served") / "directory.db"
    with closing(SqliteStore(path)) as store:
        twins.fill(store, 3, 150)
    with ExitStack() as resources:
        server = serving.start(path, resources)
        yield Target(server.pid, server.port, RpcPeer)


class TestCalls:
    def test_reads_are_counted_and_timed(self, served: Target[RpcPeer]) -> None:
        read = calls.get_props(Queue(7).path, [PropId.Q_LABEL], Queue(7).label)

        done = load(served, lambda peer: peer.call(read), 4, 0.2)

        assert done.sample.operations == len(done.sample.latencies_ns) > 4
        assert done.sample.elapsed_ns >= 200_000_000
        assert done.server_cpu_s >= 0
        assert 0 < done.client_share <= 1.05

    def test_a_read_of_another_queue_is_an_error(self, served: Target[RpcPeer]) -> None:
        wrong = calls.get_props(Queue(7).path, [PropId.Q_LABEL], Queue(8).label)
        with pytest.raises(LoadError, match="returned"):
            load(served, lambda peer: peer.call(wrong), 2, 0.1)

    def test_a_queue_is_created_once(self, served: Target[RpcPeer]) -> None:
        queue = Queue(200, late=True)
        stub = calls.create_queue(queue.path, queue.properties(), twins.GIVEN)
        code = f"0x{HResult.MQ_ERROR_QUEUE_EXISTS:08x}"
        with pytest.raises(LoadError, match=code):
            load(served, lambda peer: peer.create(stub), 1, 5)

    def test_lookups_find_all_or_fail(self, served: Target[RpcPeer]) -> None:
        wanted = twins.type_of(0)
        columns = (PropId.Q_INSTANCE, PropId.Q_PATHNAME)
        all_150 = calls.lookup(PropId.Q_TYPE, prop(PropId.Q_TYPE, wanted), columns, 150)
        done = load(served, lambda peer: peer.look_up(all_150), 1, 0.05)
        assert done.sample.operations >= 1

        too_many = calls.lookup(PropId.Q_TYPE, prop(PropId.Q_TYPE, wanted), columns, 151)
        with pytest.raises(LoadError, match="300 values instead of 302"):
            load(served, lambda peer: peer.look_up(too_many), 1, 0.05)

    def test_a_bare_call_is_answered(self, served: Target[RpcPeer]) -> None:
        bare = calls.listening()
        assert load(served, lambda peer: peer.call(bare), 1, 0.05).sample.operations >= 1


class TestSlapd:
    def test_where_there_is_none_a_line_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(slapd, "_PATH", str(tmp_path))
        with ExitStack() as resources, pytest.raises(Unavailable, match="not installed"):
            slapd.start(tmp_path, resources, suffix="o=a", schema=(), indexed=(), content=())

    @pytest.mark.interop
    def test_slapd_holds_the_twins(self, tmp_path: Path) -> None:
        with ExitStack() as resources:
            try:
                server = slapd.start(
                    tmp_path,
                    resources,
                    suffix=twins.SUFFIX,
                    schema=twins.schema(),
                    indexed=twins.INDEXED,
                    content=twins.ldif(3, 150),
                )
            except Unavailable as reason:
                pytest.skip(str(reason))
            target = Target(server.pid, server.port, LdapPeer)
            label = Queue(7).label.encode()
            search = ldap.search(
                twins.SUFFIX, ldap.SUBTREE, ldap.equality("queueLabel", label), ["queueLabel"]
            )
            add = ldap.add(Queue(200).dn, Queue(200).attributes())

            assert load(target, lambda peer: peer.ask(search, label), 2, 0.05).sample.operations
            with pytest.raises(LoadError, match="LDAP result 68"):  # entryAlreadyExists
                load(target, lambda peer: peer.ask(add, entries=0), 1, 5)


class TestCores:
    def test_cpu_time_is_that_of_the_process(self) -> None:
        before = cpu_s(os.getpid())
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        assert 0.1 < cpu_s(os.getpid()) - before < 0.5

    def test_a_process_is_kept_to_a_core_and_released(self) -> None:
        before = os.sched_getaffinity(0)
        with kept_to({min(before)}):
            assert os.sched_getaffinity(0) == {min(before)}
            told = subprocess.check_output(
                [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], text=True
            )
        assert told.strip() == str({min(before)})
        assert os.sched_getaffinity(0) == before
