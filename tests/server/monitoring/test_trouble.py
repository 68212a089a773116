"""The messages of a server in trouble, and the details that it does not reveal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.config.monitoring import MonitoringSection
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Transaction, View
from mqis.runtime.writer import GroupCommitWriter
from mqis.server.directory_server import DirectoryServer
from mqis.server.monitoring.monitoring_endpoint import start_monitoring
from mqis.server.monitoring.status_sources import Sources
from mqis.storage.memory_store import MemoryStore
from mqis.wire.journal import JournalRecord, RecordKind, RecordState
from tests.server.monitoring.pair import fetch, pec_config, status_of
from tests.waiting import until


class Ailing(MemoryStore):
    """A store that stops working when it is told to."""

    ill = False

    @contextmanager
    def read(self) -> Iterator[View]:
        if self.ill:
            raise StorageError("cannot reach postgresql://mqis:hunter2@db")
        with super().read() as view:
            yield view

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with super().write() as transaction:
            yield transaction
            if self.ill:
                raise StorageError("the disk is full")


def monitored(work: Callable[[int, Sources, Ailing], Awaitable[None]]) -> None:
    async def run() -> None:
        store = Ailing()
        writer = GroupCommitWriter(store)
        sources = Sources(Config(), "alone", store, writer, serving=True)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(writer.close)
            section = replace(MonitoringSection(), enabled=True, port=0)
            service = await start_monitoring(section, sources, stack)
            await work(service.port, sources, store)

    asyncio.run(run())


def test_a_store_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    async def work(port: int, _sources: Sources, store: Ailing) -> None:
        for document in ("/status", "/metrics", "/health"):
            assert (await fetch(port, document))[0] == 200
        store.ill = True
        for document in ("/status", "/metrics", "/health"):
            code, body = await fetch(port, document)
            assert code == 503
            assert b"the store cannot be read; the log says why" in body
            assert b"hunter2" not in body, "an error can name more than everybody should read"
        store.ill = False
        for document in ("/status", "/metrics", "/health"):
            assert (await fetch(port, document))[0] == 200

    monitored(work)
    assert "the store cannot be read: " in caplog.text


def test_a_commit_that_failed() -> None:
    async def work(port: int, sources: Sources, store: Ailing) -> None:
        store.ill = True
        with pytest.raises(StorageError):
            await sources.writer.submit(lambda tx: tx.partitions())
        store.ill = False
        code, body = await fetch(port, "/health")
        assert (code, json.loads(body)["problems"]) == (503, ["the last commit failed"])
        metrics = (await fetch(port, "/metrics"))[1].decode()
        assert "mqis_store_commit_failures_total 1.0" in metrics
        await sources.writer.submit(lambda tx: tx.partitions())
        assert (await fetch(port, "/health"))[0] == 200

    monitored(work)


def test_a_journal_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_journal: object, _records: object) -> None:
        raise StorageError("no room left")

    async def run() -> None:
        config = pec_config(tmp_path / "pec1", [0, 0])
        async with DirectoryServer(config, grace_s=1) as server:
            monkeypatch.setattr("mqis.storage.journal.journal.Journal.append", full)
            assert server._replication is not None
            assert server._replication.journal is not None
            # The records of its start may be written already.
            with (
                closing(open_store(config.store.url, create=True)) as store,
                store.write() as transaction,
            ):
                transaction.append(JournalRecord(1, RecordKind.CHANGE, RecordState.LOCAL))
            server._replication.journal.thread.wake()

            async def told() -> bool:
                port = server.ready.monitoring_port
                problems = json.loads((await fetch(port, "/health"))[1])["problems"]
                metrics = (await fetch(port, "/metrics"))[1].decode()
                failed = "mqis_journal_failed 1.0" in metrics
                return problems == ["the journal is not written; the log says why"] and failed

            await until(told)
            assert (await status_of(server)).server == "pec1"

    asyncio.run(run())
