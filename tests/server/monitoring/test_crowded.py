"""Many requests for monitoring at once: what they cost the server is bounded, and each is fresh."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from mqis.server.monitoring import monitoring_endpoint
from mqis.server.monitoring.monitoring_endpoint import LONGEST_REST_S, REST
from mqis.server.monitoring.status import ServerStatus
from mqis.server.monitoring.status_gathering import server_status
from mqis.server.monitoring.status_sources import Sources
from tests.server.monitoring.pair import fetch
from tests.server.monitoring.test_trouble import Ailing, monitored
from tests.waiting import until

REQUESTS = 12


class Made:
    """The documents that were made; each waits until it may end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: list[tuple[float, float]] = []
        self.begun = 0
        self.may_end = threading.Event()
        monkeypatch.setattr(monitoring_endpoint, "server_status", self._status)

    def _status(self, sources: Sources) -> ServerStatus:
        began = time.monotonic()
        self.begun += 1
        status = server_status(sources)
        self.may_end.wait()
        self.times.append((began, time.monotonic()))
        return status


@pytest.mark.req("SEC-17-08")
def test_requests_that_wait_share_an_answer_that_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)

    async def name(port: int) -> str:
        code, body = await fetch(port, "/status")
        assert code == 200
        return str(json.loads(body)["server"])

    async def work(port: int, sources: Sources, _store: Ailing) -> None:
        first = asyncio.create_task(name(port))
        await until(lambda: made.begun == 1)
        sources.name = "renamed"
        others = [asyncio.create_task(name(port)) for _ in range(REQUESTS)]
        await connected(sources, REQUESTS + 1)
        made.may_end.set()
        assert await first == "alone"
        assert set(await asyncio.gather(*others)) == {"renamed"}
        assert made.begun <= 3, "the last of them may have sent its request late"

    monitored(work)


async def connected(sources: Sources, clients: int) -> None:
    """Waits until so many are there."""
    server = sources.monitoring
    assert server is not None
    await until(lambda: len(server._crowd) == clients)


@pytest.mark.req("SEC-17-08")
def test_the_server_works_between_two_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)

    async def work(port: int, _sources: Sources, _store: Ailing) -> None:
        asyncio.get_running_loop().call_later(0.05, made.may_end.set)
        for _ in range(2):
            assert (await fetch(port, "/status"))[0] == 200
        (began, ended), (again, _) = made.times
        assert again - ended >= 0.9 * REST * (ended - began)

    monitored(work)


def test_who_gives_up_takes_the_answer_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)

    async def work(port: int, sources: Sources, _store: Ailing) -> None:
        one = asyncio.create_task(fetch(port, "/status"))
        await until(lambda: made.begun == 1)
        impatient = asyncio.create_task(fetch(port, "/status"))
        other = asyncio.create_task(fetch(port, "/status"))
        await connected(sources, 3)
        impatient.cancel()
        made.may_end.set()
        assert [(await one)[0], (await other)[0]] == [200, 200]

    monitored(work)


def test_after_a_document_that_took_long_the_next_does_not_wait_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited for a store that hangs; /health has to tell that."""
    made = Made(monkeypatch)
    rested: list[float] = []
    slept = asyncio.sleep

    async def sleep(seconds: float) -> None:
        rested.append(seconds)
        await slept(seconds)

    async def work(port: int, _sources: Sources, _store: Ailing) -> None:
        asyncio.get_running_loop().call_later(0.4, made.may_end.set)
        assert (await fetch(port, "/status"))[0] == 200
        monkeypatch.setattr("asyncio.sleep", sleep)
        assert (await fetch(port, "/status"))[0] == 200
        assert min(rested) <= LONGEST_REST_S < REST * 0.4, rested

    monitored(work)
