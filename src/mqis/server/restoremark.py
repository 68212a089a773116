"""The mark of a store that was put back: its numbers may be behind what others have seen.

It lies in the store itself, so nobody can forget it. ``mqis serve`` heeds it as it does
``--restored``, and takes it away when the last partition serves again; after a crash on the way it
is still there.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Transaction, View

if TYPE_CHECKING:
    from mqis.protocol.replication.memory import Memory
    from mqis.runtime.node.driver import NodeDriver

log = logging.getLogger(__name__)

_FAMILY, _KEY = "restored", b"from"
_LOOK_S = 0.2


def put_mark(tx: Transaction, origin: str) -> None:
    tx.put_state(_FAMILY, _KEY, origin.encode())


def mark_of(view: View) -> str | None:
    """Where the store came from; None: nowhere, it is the server's own."""
    found = view.state(_FAMILY, _KEY)
    return None if found is None else found.decode("utf-8", "replace")


def drop_mark(tx: Transaction) -> None:
    tx.drop_state(_FAMILY, _KEY)


async def forget_when_recovered(driver: NodeDriver) -> None:
    """Take the mark away once nothing of ours waits for the other servers any more."""

    def look(tx: Transaction, memory: Memory) -> bool:
        if memory.recoveries:
            return False
        drop_mark(tx)
        return True

    done = False
    while not done:
        await asyncio.sleep(_LOOK_S)
        with suppress(StorageError):  # the driver tells of it; the mark stays
            done = await driver.inspect(look)
    log.info("the store that was put back is this server's own now")
