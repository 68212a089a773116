"""Associations kept open for the next call, and opened anew when one has died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.rpc.client import RpcClient


class RpcPool:
    """Up to ``size`` associations made by ``connect``, lent out one user at a time."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[RpcClient]],
        *,
        size: int = 4,
        attempts: int = 3,
        backoff_s: float = 0.1,
    ) -> None:
        self._connect = connect
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._idle: list[RpcClient] = []
        self._turn = asyncio.Semaphore(size)
        self._closed = False

    @asynccontextmanager
    async def client(self) -> AsyncIterator[RpcClient]:
        """An association that is usable now. It returns to the pool if it still is after."""
        async with self._turn:
            client = await self._take()
            try:
                yield client
            finally:
                if client.usable and not self._closed:
                    self._idle.append(client)
                else:
                    await client.close()

    async def _take(self) -> RpcClient:
        if self._closed:
            raise RpcConnectionError("the pool is closed")
        while self._idle:
            client = self._idle.pop()
            if client.usable:
                return client
            await client.close()
        for attempt in range(1, self._attempts + 1):
            try:
                return await self._connect()
            except RpcConnectionError:
                if attempt == self._attempts:
                    raise
                await asyncio.sleep(self._backoff_s * 2 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Close what is idle now; what is lent out is closed when it comes back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()
