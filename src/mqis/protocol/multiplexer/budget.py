"""What all sessions of a process may hold together."""

from __future__ import annotations

from typing import Protocol


class Waiter(Protocol):
    def wake(self) -> None:
        """There is room again, in one direction at least."""


class Budget:
    """Bytes that wait to be sent and to be read, over all multiplexers that share it.

    When one of them gives room back that another waits for, the other has effects or events
    which its own driver does not know of. Hence, after every call of any multiplexer::

        for multiplexer in budget.woken(): ...  # take its effects and events too
    """

    def __init__(
        self, queued_bytes: int = 64 * 1024 * 1024, unread_bytes: int = 64 * 1024 * 1024
    ) -> None:
        self.queued_bytes = queued_bytes
        self.unread_bytes = unread_bytes
        self.queued = 0
        self.unread = 0
        self._waiting: dict[Waiter, None] = {}
        self._woken: dict[Waiter, None] = {}

    def wait(self, waiter: Waiter) -> None:
        self._waiting[waiter] = None

    def forget(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)

    def release(self, *, queued: int = 0, unread: int = 0) -> None:
        self.queued -= queued
        self.unread -= unread
        if self._waiting and (self.queued < self.queued_bytes or self.unread < self.unread_bytes):
            waiting, self._waiting = self._waiting, {}
            self._woken |= waiting
            for waiter in waiting:
                waiter.wake()

    def woken(self) -> list[Waiter]:
        """Those who got room since the last call."""
        woken, self._woken = self._woken, {}
        return list(woken)
