"""The end of a notifier that is at work."""

from __future__ import annotations

import asyncio

import pytest

from mqis.protocol.directory.change_notification import ChangeNotice, LocalQueueManager, Notice
from mqis.runtime.node import notifier as notifying
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.wire.guid import Guid
from tests.builders import queue
from tests.waiting import run, until


def test_a_notifier_ends_while_an_address_is_found() -> None:
    """The address comes in the same turn of the event loop as the end."""

    async def main() -> None:
        asked, found = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def resolve(_machine: str) -> tuple[str, int]:
            asked.set()
            place: tuple[str, int] = await found
            return place

        notifier = ChangeNotifier(LocalQueueManager("c14", Guid.NULL), resolve)
        notifier.notify(ChangeNotice(Notice.QUEUE_CREATION, queue(path="c15\\orders")))
        await asked.wait()
        asyncio.get_running_loop().call_soon(found.set_result, ("127.0.0.1", 9))
        await asyncio.sleep(0)
        await notifier.close()
        assert notifier.statistics.sent == 0

    run(main())


def test_a_notice_beyond_those_that_wait_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "MAX_WAITING", 2)

    async def main() -> None:
        async def resolve(_machine: str) -> tuple[str, int]:
            raise AssertionError("nothing is sent before the first turn")

        notifier = ChangeNotifier(LocalQueueManager("c14", Guid.NULL), resolve)
        for number in range(5):
            notifier.notify(ChangeNotice(Notice.QUEUE_CREATION, queue(number)))
        assert notifier.statistics.failed == 3
        await notifier.close()

    run(main())


def test_a_resolver_that_fails_does_not_end_the_notifying() -> None:
    async def main() -> None:
        async def resolve(_machine: str) -> tuple[str, int]:
            raise ValueError("no name of a computer")

        notifier = ChangeNotifier(LocalQueueManager("c14", Guid.NULL), resolve)
        for number in range(2):
            notifier.notify(ChangeNotice(Notice.QUEUE_CREATION, queue(path=f"c{number}\\orders")))
        await until(lambda: notifier.statistics.failed == 2)
        await notifier.close()

    run(main())
