"""Waits of the tests: each ends with the event it waits for, and fails after minutes without it.

A deadline only says that an event never came, so it is far longer than any event takes, even on a
machine that does much else. ``MQIS_TEST_PATIENCE=4`` multiplies every deadline by four, for a
machine on which minutes do not suffice.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from inspect import isawaitable
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE = float(os.environ.get("MQIS_TEST_PATIENCE", "1"))
#: Seconds after which a test gives up waiting for anything.
DEADLINE_S = 180 * PATIENCE
_PAUSE_S = 0.01


@overload
async def until(look: Callable[[], Awaitable[T | None]], what: str = "") -> T: ...
@overload
async def until(look: Callable[[], T | None], what: str = "") -> T: ...
async def until(look: Callable[[], Any], what: str = "") -> Any:
    """Returns the first value of ``look`` that is true."""
    end = time.monotonic() + DEADLINE_S
    while not (found := await _value(look())):
        assert time.monotonic() < end, f"never: {what}"
        await asyncio.sleep(_PAUSE_S)
    return found


async def _value(found: Any) -> Any:
    return await found if isawaitable(found) else found


def wait_until(look: Callable[[], T | None], what: str = "") -> T:
    """The twin of ``until`` for tests without an event loop."""
    end = time.monotonic() + DEADLINE_S
    while not (found := look()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(_PAUSE_S)
    return found


async def in_time(work: Awaitable[T]) -> T:
    """Returns the result of ``work``, or fails with ``TimeoutError`` after the deadline."""
    return await asyncio.wait_for(work, DEADLINE_S)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs ``work`` on a new event loop, for no longer than the deadline."""
    return asyncio.run(in_time(work))
