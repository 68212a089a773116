"""The end of a notifier that is at work."""

from __future__ import annotations

import asyncio

from mqis.protocol.directory.change_notification import ChangeNotice, LocalQueueManager, Notice
from mqis.runtime.node.notifier import ChangeNotifier
from mqis.wire.guid import Guid
from tests.builders import queue
from tests.waiting import run


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
