"""Local callers that wait for another server's decision."""

from __future__ import annotations

import asyncio
from itertools import count


class PendingAnswers:
    """One future for each request, by its number in this process."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[int]] = {}

    def expect(self) -> tuple[int, asyncio.Future[int]]:
        local = next(self._numbers)
        future = self._waiting[local] = asyncio.get_running_loop().create_future()
        return local, future

    def answered(self, local: int, hresult: int) -> None:
        future = self._waiting.pop(local, None)
        if future is not None and not future.done():
            future.set_result(hresult)

    def forget(self, local: int) -> None:
        self._waiting.pop(local, None)

    def give_up(self, hresult: int) -> None:
        """Completes all waiting requests with an error."""
        for local in list(self._waiting):
            self.answered(local, hresult)
