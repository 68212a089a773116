"""Nodes on real sockets: what one changes the others get, and who may not decide asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.node import driver
from mqis.storage.sqlite import SqliteStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.seqnum import SequenceNumber
from tests.failing_store import FailingStore
from tests.runtime.node.loopback import (
    MACHINE,
    QUEUE,
    SETTINGS,
    SITE,
    Net,
    Running,
    running,
)
from tests.runtime.queueing.proxy import Proxy
from tests.runtime.test_writer import Gate
from tests.waiting import DEADLINE_S, in_time, until


@asynccontextmanager
async def three(net: Net) -> AsyncIterator[tuple[Running, Running, Running]]:
    """A PEC, the PSC of another site, and its BSC, all caught up."""
    async with AsyncExitStack() as stack:
        pec_host = net.pec("pec1", "Delft")
        pec = await stack.enter_async_context(running(net, pec_host))
        psc_host = net.psc("psc2", pec_host)
        await pec.admit(net, psc_host, "Leiden")
        psc = await stack.enter_async_context(running(net, psc_host))
        await psc.sees(MACHINE, "psc2")
        await psc.serves("psc2\\first")
        bsc_host = net.bsc("bsc3", psc_host, pec_host)
        await psc.admit(net, bsc_host)
        bsc = await stack.enter_async_context(running(net, bsc_host))
        await bsc.sees(QUEUE, "psc2\\first")
        await pec.sees(MACHINE, "bsc3")
        yield pec, psc, bsc


def with_three(work: Callable[[Net, Running, Running, Running], Awaitable[None]]) -> None:
    async def run() -> None:
        net = Net()
        async with three(net) as (pec, psc, bsc):
            await work(net, pec, psc, bsc)

    asyncio.run(run())


@pytest.mark.req("MQDSRP-2.1-01")
def test_a_change_at_the_pec_gets_everywhere() -> None:
    async def work(_net: Net, pec: Running, psc: Running, bsc: Running) -> None:
        made = await pec.queue("pec1\\orders", "Orders")
        for server in (psc, bsc):
            copy = await server.sees(QUEUE, "pec1\\orders")
            assert (copy.id, copy.seq, copy.value(PropId.Q_LABEL)) == (made.id, made.seq, "Orders")

    with_three(work)


class TestForwarding:
    def test_through_the_psc_to_the_pec_and_back(self) -> None:
        """A BSC asks its PSC, the PSC the authority; the caller gets the object."""

        async def work(_net: Net, pec: Running, psc: Running, bsc: Running) -> None:
            made = await bsc.create(SITE, {}, "Gouda")
            at_authority = pec.host.find(SITE, "Gouda")
            assert at_authority is not None, "it was acknowledged before it was made"
            assert at_authority.id == made.id
            for server in (psc, bsc):
                assert (await server.sees(SITE, "Gouda")).id == made.id

        with_three(work)

    def test_the_psc_decides_for_its_site(self) -> None:
        async def work(_net: Net, pec: Running, psc: Running, bsc: Running) -> None:
            made = await pec.queue("bsc3\\work")
            found = psc.host.find(QUEUE, "bsc3\\work")
            assert found is not None
            assert found.id == made.id
            assert found.seq != SequenceNumber.MIN
            await bsc.sees(QUEUE, "bsc3\\work")
            await pec.sees(QUEUE, "bsc3\\work")
            assert pec.driver.statistics.forwarded == 1
            assert psc.driver.statistics.forwarded == 0

        with_three(work)

    def test_updates_and_deletions(self) -> None:
        async def work(_net: Net, pec: Running, psc: Running, bsc: Running) -> None:
            path = "psc2\\first"
            found = bsc.host.find(QUEUE, path)
            assert found is not None
            changed = await bsc.driver.change(
                lambda e: e.update(found, props({PropId.Q_LABEL: "2"}))
            )
            assert changed.value(PropId.Q_LABEL) == "2"
            there = psc.host.find(QUEUE, path)
            assert there is not None
            assert there.value(PropId.Q_LABEL) == "2"
            await bsc.driver.change(lambda e: e.delete_directory_object(found))
            assert psc.host.find(QUEUE, path) is None
            await until(lambda: pec.host.find(QUEUE, path) is None, "gone at the PEC")

        with_three(work)

    def test_what_the_authority_refuses_is_refused_here(self) -> None:
        async def work(_net: Net, pec: Running, psc: Running, bsc: Running) -> None:
            """The BSC does not know of the queue that is there already."""
            await psc.queue("psc2\\twice")
            await bsc.sees(QUEUE, "psc2\\twice")
            with bsc.host.store.write() as tx:  # a replica that is behind
                copy = tx.find(QUEUE, "psc2\\twice")
                assert copy is not None
                tx.delete(copy)
            with pytest.raises(DirectoryError) as refused:
                await bsc.queue("psc2\\twice")
            assert refused.value.hresult == HResult.MQ_ERROR_QUEUE_EXISTS

        with_three(work)

    @pytest.mark.req("MQDSRP-3.1.3.3-02", "MQDSRP-3.1.5.1-07")
    def test_many_at_once_each_get_their_own_answer(self) -> None:
        async def work(_net: Net, _pec: Running, psc: Running, bsc: Running) -> None:
            paths = [f"psc2\\q{n}" for n in range(50)]
            made = await asyncio.gather(*(bsc.queue(path) for path in paths))
            assert [obj.path for obj in made] == paths
            for obj in made:
                assert obj.path is not None
                there = psc.host.find(QUEUE, obj.path)
                assert there is not None
                assert there.id == obj.id

        with_three(work)


class EarlyLoop(asyncio.SelectorEventLoop):
    """Calls everything 10 ms before its time."""

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *arguments: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return super().call_at(when - 0.01, callback, *arguments, context=context)


class TestWithoutTheAuthority:
    def test_nobody_answers(self) -> None:
        """No answer within the time: it may have been made or not."""

        async def run() -> None:
            net = Net()
            async with AsyncExitStack() as outer:
                pec, psc, _bsc = await outer.enter_async_context(three(net))
                net.detours["pec1"] = net.detours["psc2"] = 1  # nothing listens there
                psc.driver.node.replication.settings = replace(SETTINGS, reply_wait_s=3.0)
                for link in list(psc.driver.endpoint._connections.values()):
                    link.abort()
                with pytest.raises(DirectoryError) as refused:
                    await psc.create(SITE, {}, "Gouda")
                assert refused.value.hresult == HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER
                assert pec.host.find(SITE, "Gouda") is None
                counted = psc.driver.statistics
                assert (counted.forward_failures, counted.forward_timeouts) == (1, 1)

        asyncio.run(run())

    def test_an_unreachable_authority_is_told_when_the_message_expires(self) -> None:
        """The request lives ten seconds; who waits longer hears that it did not arrive."""

        async def run() -> None:
            net = Net()
            patient = replace(SETTINGS, repeat_s=30.0)
            pec_host = net.pec("pec1", "Delft")
            psc_host = net.psc("psc2", pec_host)
            async with running(net, psc_host, patient) as psc:
                with pytest.raises(DirectoryError) as refused:
                    await psc.create(SITE, {}, "Gouda")
                assert refused.value.hresult == HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE
                counted = psc.driver.statistics
                assert (counted.forward_failures, counted.forward_timeouts) == (1, 0)

        asyncio.run(run())

    def test_a_timer_that_fires_early_is_set_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As those of uvloop do: it counts whole milliseconds."""
        monkeypatch.setattr(driver, "_ANSWER_GRACE_S", 2 * DEADLINE_S)

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(-1)
            writer.close()

        async def run() -> None:
            net = Net()
            soon = replace(SETTINGS, reply_wait_s=1.0)
            psc_host = net.psc("psc2", net.pec("pec1", "Delft"))
            async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
                net.detours["pec1"] = silent.sockets[0].getsockname()[1]
                async with running(net, psc_host, soon) as psc:
                    with pytest.raises(DirectoryError) as refused:
                        await in_time(psc.create(SITE, {}, "Gouda"))
            assert refused.value.hresult == HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER

        with asyncio.Runner(loop_factory=EarlyLoop) as runner:
            runner.run(run())

    def test_a_cut_connection_comes_back(self) -> None:
        async def run() -> None:
            net = Net()
            async with three(net) as (pec, psc, bsc):
                async with Proxy("127.0.0.1", psc.host.port) as proxy:
                    net.detours["psc2"] = proxy.port
                    for link in list(pec.driver.endpoint._connections.values()):
                        link.abort()
                    for number in range(5):
                        await pec.queue(f"pec1\\q{number}")
                        await psc.sees(QUEUE, f"pec1\\q{number}")
                        proxy.cut()
                    await bsc.sees(QUEUE, "pec1\\q4")
                net.detours.clear()

        asyncio.run(run())


def test_a_server_that_was_down_catches_up() -> None:
    async def run() -> None:
        net = Net()
        pec_host = net.pec("pec1", "Delft")
        psc_host = net.psc("psc2", pec_host)
        async with running(net, pec_host) as pec:
            await pec.admit(net, psc_host, "Leiden")
            async with running(net, psc_host) as psc:
                await psc.sees(MACHINE, "psc2")
            for number in range(20):
                await pec.queue(f"pec1\\q{number}")
            async with running(net, psc_host) as psc:
                await psc.sees(QUEUE, "pec1\\q19")
                await psc.serves("psc2\\own")
            async with running(net, psc_host) as psc:
                await pec.sees(QUEUE, "psc2\\own")

    asyncio.run(run())


def test_after_a_failed_commit_replication_begins_anew() -> None:
    async def run() -> None:
        net = Net()
        pec_host = net.pec("pec1", "Delft")
        psc_host = net.psc("psc2", pec_host)
        psc_host.store = store = FailingStore()
        async with running(net, pec_host) as pec:
            await pec.admit(net, psc_host, "Leiden")
            async with running(net, psc_host) as psc:
                await psc.serves("psc2\\a")
                await pec.sees(QUEUE, "psc2\\a")
                store.fail = True
                await pec.queue("pec1\\lost")
                await until(lambda: psc.driver.statistics.failures > 0, "a failed commit")
                with pytest.raises(StorageError):
                    await psc.queue("psc2\\refused")
                store.fail = False
                made = await psc.queue("psc2\\b")
                assert psc.driver.statistics.restarts >= 1
                copy = await pec.sees(QUEUE, "psc2\\b")
                assert copy.seq == made.seq
                await psc.sees(QUEUE, "pec1\\lost")
                assert psc.host.find(QUEUE, "psc2\\refused") is None
                assert pec.host.find(QUEUE, "psc2\\refused") is None

    asyncio.run(run())


def test_changes_that_run_again_are_made_and_announced_once(tmp_path: Path) -> None:
    """One of their group fails after a write: replication's memory is ahead and begins anew."""

    def fail(events: DirectoryEvents) -> None:
        events.create(QUEUE, "psc2\\half", {})
        raise RuntimeError("a mistake in an operation")

    async def run(store: SqliteStore) -> None:
        net = Net()
        pec_host = net.pec("pec1", "Delft")
        psc_host = net.psc("psc2", pec_host)
        psc_host.store = store
        async with running(net, pec_host) as pec:
            await pec.admit(net, psc_host, "Leiden")
            async with running(net, psc_host) as psc:
                await psc.serves("psc2\\first")
                gate, rolled_back = Gate(), psc.writer.rollbacks
                first = await gate.closed(psc.writer)
                observed: list[OwnChange] = []
                names = ["psc2\\a", "psc2\\b", "psc2\\c"]

                def change(operation: Callable[[DirectoryEvents], object]) -> asyncio.Task[object]:
                    return asyncio.create_task(psc.driver.change(operation, observed.append))

                def creation(path: str) -> Callable[[DirectoryEvents], object]:
                    return lambda events: events.create(QUEUE, path, {})

                made = [change(creation(name)) for name in names[:2]]
                failing = change(fail)
                made.append(change(creation(names[2])))
                await asyncio.sleep(0)
                gate.opened.set()
                await first
                with pytest.raises(RuntimeError, match="a mistake"):
                    await failing
                await asyncio.gather(*made)
                assert psc.writer.rollbacks == rolled_back + 1
                assert [change.obj.path for change in observed] == names
                numbers = [change.obj.seq for change in observed]
                assert numbers == [numbers[0], *(seq.increment() for seq in numbers[:-1])]
                for change_made in observed:
                    copy = await pec.sees(QUEUE, change_made.obj.path or "")
                    assert (copy.id, copy.seq) == (change_made.obj.id, change_made.obj.seq)
                await until(lambda: psc.driver.statistics.restarts >= 1, "a restart")
                assert pec.host.find(QUEUE, "psc2\\half") is None

    with closing(SqliteStore(tmp_path / "psc.db")) as store:
        asyncio.run(run(store))


def test_a_restart_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        net = Net()
        host = net.pec("pec1", "Delft")
        host.store = store = FailingStore(host.store)
        async with running(net, host) as pec:
            store.fail = True
            with pytest.raises(StorageError):
                await pec.queue("pec1\\refused")
            store.fail = False
            node, attempts = pec.driver.node, []
            start = node.start

            def failing(at: Any) -> Any:
                attempts.append(at)
                if len(attempts) > 1:
                    return start(at)

                def broken(_tx: Transaction) -> None:
                    raise StorageError("cannot be read")

                return broken

            monkeypatch.setattr(node, "start", failing)
            with pytest.raises(StorageError, match="cannot be read"):
                await pec.queue("pec1\\first")
            await pec.queue("pec1\\second")
            assert len(attempts) == 2
            assert pec.driver.statistics.restarts == 1

    asyncio.run(run())


@pytest.mark.req("MQDS-3.1.6.4-03")
def test_a_change_whose_commit_fails_is_announced_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The operation succeeds and numbers its change; only then the commit fails."""
    caplog.set_level(logging.INFO, "mqis.change")

    async def run() -> None:
        net = Net()
        pec_host = net.pec("pec1", "Delft")
        pec_host.store = store = FailingStore(pec_host.store)
        made: list[DirectoryObject] = []
        observed: list[OwnChange] = []

        def operation(events: DirectoryEvents) -> None:
            made.append(events.create(QUEUE, "pec1\\half", props({PropId.Q_LABEL: "x"})))

        psc_host = net.psc("psc2", pec_host)
        async with running(net, pec_host) as pec:
            await pec.admit(net, psc_host, "Leiden")
            async with running(net, psc_host) as psc:
                await psc.sees(MACHINE, "psc2")
                store.fail = True
                with pytest.raises(StorageError):
                    await pec.driver.change(operation, observed.append)
                assert made
                store.fail = False
                await pec.queue("pec1\\whole")
                await psc.sees(QUEUE, "pec1\\whole")
                assert observed == []
                assert psc.host.find(QUEUE, "pec1\\half") is None
        logged = " ".join(str(vars(record)) for record in caplog.records)
        assert "half" not in logged
        assert "whole" in logged
        assert "change applied" in logged  # by the PSC

    asyncio.run(run())


def test_a_caller_who_goes_away_does_not_take_the_change_with_him() -> None:
    async def work(_net: Net, pec: Running, psc: Running, _bsc: Running) -> None:
        call = asyncio.create_task(pec.queue("pec1\\half"))
        await asyncio.sleep(0)
        call.cancel()
        await psc.sees(QUEUE, "pec1\\half")

    with_three(work)


class FailsAt(FailingStore):
    """Of its commits the one with this number fails."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._left = number

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        self._left -= 1
        self.fail = not self._left
        with super().write() as transaction:
            yield transaction


class TestParts:
    """A synchronisation in parts of five changes, over sockets."""

    SMALL = replace(SETTINGS, max_changes=5)

    def synchronised(self, store: Store) -> Running:
        """A PSC that came to a PEC with 40 queues and has them all."""

        async def run() -> Running:
            net = Net()
            pec_host = net.pec("pec1", "Delft")
            psc_host = net.psc("psc2", pec_host)
            psc_host.store = store
            async with running(net, pec_host, self.SMALL) as pec:
                for number in range(40):
                    await pec.queue(f"pec1\\q{number}")
                await pec.admit(net, psc_host, "Leiden")
                async with running(net, psc_host, self.SMALL) as psc:
                    for number in range(40):
                        copy = await psc.sees(QUEUE, f"pec1\\q{number}")
                        original = pec.host.find(QUEUE, f"pec1\\q{number}")
                        assert original is not None
                        assert (copy.id, copy.seq) == (original.id, original.seq)
                    return psc

        return asyncio.run(run())

    def test_all_of_them_come_and_none_is_asked_for_twice(self, tmp_path: Path) -> None:
        with closing(SqliteStore(tmp_path / "psc.db")) as store:
            psc = self.synchronised(store)
        counters = psc.driver.node.replication.counters
        assert counters.sync_replies >= 8
        assert "a reply to an earlier request" not in psc.host.refusals()
        assert psc.driver.statistics.restarts == 0

    @pytest.mark.parametrize("number", [6, 7, 8, 9])
    def test_a_part_whose_commit_fails_comes_again(self, number: int) -> None:
        """The commit that asks for the next part, or the one that applies the part at hand."""
        psc = self.synchronised(FailsAt(number))
        assert psc.driver.statistics.failures >= 1
        assert psc.driver.statistics.restarts >= 1
