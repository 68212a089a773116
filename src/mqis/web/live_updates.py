"""Live pages: polls the servers once a second and pushes changes to all listening browsers.

There is no polling while no browser listens. A slow browser gets the latest state, not every
change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

log = logging.getLogger(__name__)

#: The interval of heartbeats, which show that a browser has gone away.
_BEAT_S = 5.0

#: The current content of each event, by its name.
Events = Mapping[str, str]


class Live:
    """The event stream; calls ``poll`` in a thread, as that waits for servers."""

    def __init__(
        self, poll: Callable[[], Events], every_s: float, most: int, most_per_address: int
    ) -> None:
        self._poll = poll
        self._every_s = every_s
        self._most = most
        self._most_per_address = most_per_address
        #: The address of each listener.
        self._listeners: dict[asyncio.Event, str] = {}
        self._latest: dict[str, str] = {}
        self._number: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def join(self, address: str) -> asyncio.Event | None:
        """Reserves a place, which ``stream`` releases; None if too many browsers listen already."""
        if self._closed or len(self._listeners) >= self._most:
            return None
        if list(self._listeners.values()).count(address) >= self._most_per_address:
            return None
        woken = asyncio.Event()
        self._listeners[woken] = address
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        return woken

    async def stream(
        self, woken: asyncio.Event, admitted: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Server-sent events: the current state, then changes, as long as ``admitted`` is true."""
        sent: dict[str, int] = {}
        try:
            yield "retry: 3000\n\n"
            while not self._closed and admitted():
                woken.clear()
                news = [name for name, number in self._number.items() if sent.get(name) != number]
                for name in news:
                    sent[name] = self._number[name]
                    yield _event(name, self._latest[name])
                if not news:
                    yield ": still here\n\n"
                with suppress(TimeoutError):
                    async with asyncio.timeout(_BEAT_S):
                        await woken.wait()
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
                self._publish(await asyncio.to_thread(self._poll))
            except Exception:
                log.exception("the console could not poll the servers; it tries again")
            await asyncio.sleep(self._every_s)
        # The next listener gets a fresh state.
        self._latest.clear()
        self._number.clear()

    def _publish(self, events: Events) -> None:
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
