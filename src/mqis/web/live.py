"""Live pages: one look at the servers a second, told to every browser that listens.

Nobody looks while nobody listens. A browser that reads slowly gets the latest, not everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

log = logging.getLogger(__name__)

#: Something is sent at least so often, which is how a browser that went away is noticed.
_BEAT_S = 5.0

#: What changed, by the name of the event.
Events = Mapping[str, str]


class Full(Exception):
    """As many listen as may."""


class Live:
    """``look`` runs in a thread of its own, as it waits for servers."""

    def __init__(
        self, look: Callable[[], Events], every_s: float, most: int, most_per_address: int
    ) -> None:
        self._look = look
        self._every_s = every_s
        self._most = most
        self._most_per_address = most_per_address
        #: Each with the address that it comes from.
        self._listeners: dict[asyncio.Event, str] = {}
        self._latest: dict[str, str] = {}
        self._number: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def join(self, address: str) -> asyncio.Event:
        """Take a place, which ``stream`` gives back; ``Full`` if there is none."""
        if self._closed or len(self._listeners) >= self._most:
            raise Full
        if list(self._listeners.values()).count(address) >= self._most_per_address:
            raise Full
        woken = asyncio.Event()
        self._listeners[woken] = address
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        return woken

    async def stream(
        self, woken: asyncio.Event, admitted: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Server-sent events: what is known now, then each change, to who is still ``admitted``."""
        told: dict[str, int] = {}
        try:
            yield "retry: 3000\n\n"
            while not self._closed and admitted():
                woken.clear()
                news = [name for name, number in self._number.items() if told.get(name) != number]
                for name in news:
                    told[name] = self._number[name]
                    yield _event(name, self._latest[name])
                if not news:
                    yield ": still here\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), _BEAT_S)
        finally:
            self._listeners.pop(woken, None)

    async def close(self) -> None:
        self._closed = True
        for woken in self._listeners:
            woken.set()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while self._listeners and not self._closed:
            try:
                self._take(await asyncio.to_thread(self._look))
            except Exception:
                log.exception("the servers could not be looked at")
            await asyncio.sleep(self._every_s)
        # Who comes next starts from a fresh look.
        self._latest.clear()
        self._number.clear()

    def _take(self, events: Events) -> None:
        changed = {name: text for name, text in events.items() if self._latest.get(name) != text}
        for name, text in changed.items():
            self._latest[name] = text
            self._number[name] = self._number.get(name, 0) + 1
        if changed:
            for woken in self._listeners:
                woken.set()


def _event(name: str, text: str) -> str:
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
