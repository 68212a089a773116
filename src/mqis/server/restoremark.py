"""The mark of a restored store, whose numbers may be behind those that others have seen.

It is in the store itself, so it cannot be forgotten. ``mqis serve`` treats it like ``--restored``,
and removes it when all own partitions have recovered; until then it survives a crash.
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
    """The backup that the store was restored from; None if it has no mark."""
    found = view.state(_FAMILY, _KEY)
    return None if found is None else found.decode("utf-8", "replace")


def drop_mark(tx: Transaction) -> None:
    tx.drop_state(_FAMILY, _KEY)


async def forget_when_recovered(driver: NodeDriver) -> None:
    """Removes the mark once no own partition is in recovery."""

    def drop_if_recovered(tx: Transaction, memory: Memory) -> bool:
        if memory.recoveries:
            return False
        drop_mark(tx)
        return True

    done = False
    while not done:
        await asyncio.sleep(_LOOK_S)
        with suppress(StorageError):  # the driver reports it; the mark stays
            done = await driver.inspect(drop_if_recovered)
    log.info("the restored store has caught up with the other servers")
