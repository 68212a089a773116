"""The bytes that all sessions of a process may hold together."""

from __future__ import annotations

from typing import Protocol


class Waiter(Protocol):
    def wake(self) -> None:
        """Reports that there is room again, in one direction at least."""


class ByteBudget:
    """Bytes that wait to be sent and to be read, over all multiplexers that share it.

    When one of them releases room that another waits for, the other gets effects or events that
    its own driver does not know of. Hence, after every call of any multiplexer::

        for multiplexer in budget.woken(): ...  # take its effects and events too
    """

    def __init__(
        self, queued_bytes: int = 64 * 1024 * 1024, unread_bytes: int = 64 * 1024 * 1024
    ) -> None:
        self.queued_bytes = queued_bytes
        self.unread_bytes = unread_bytes
        self.queued = 0
        self.unread = 0
        self._senders: dict[Waiter, None] = {}
        self._readers: dict[Waiter, None] = {}
        self._woken: dict[Waiter, None] = {}

    def wait_to_send(self, waiter: Waiter) -> None:
        self._senders[waiter] = None

    def wait_for_readers(self, waiter: Waiter) -> None:
        self._readers[waiter] = None

    def forget(self, waiter: Waiter) -> None:
        self._senders.pop(waiter, None)
        self._readers.pop(waiter, None)

    def release_queued(self, size: int) -> None:
        self.queued -= size
        if self._senders and self.queued < self.queued_bytes:
            senders, self._senders = self._senders, {}
            self._wake(senders)

    def release_unread(self, size: int) -> None:
        self.unread -= size
        if self._readers and self.unread <= self.unread_bytes:
            readers, self._readers = self._readers, {}
            self._wake(readers)

    def _wake(self, waiters: dict[Waiter, None]) -> None:
        self._woken |= waiters
        for waiter in waiters:
            waiter.wake()

    def woken(self) -> list[Waiter]:
        """The waiters that got room since the last call."""
        woken, self._woken = self._woken, {}
        return list(woken)
