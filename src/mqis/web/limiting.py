"""Rate limits: of what visitors try, and of the log lines that they can cause."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from time import monotonic
from typing import Any

_MOST_KEYS = 4096


class Limiter:
    """Allows ``most`` attempts by key in any period; remembers only the latest keys."""

    def __init__(
        self, most: int, period_s: float = 60.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._most = most
        self._period_s = period_s
        self._clock = clock
        self._tried: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, key: str) -> float:
        """Counts an attempt; returns 0 if it is allowed, else the seconds to wait."""
        now = self._clock()
        tried = self._tried.setdefault(key, deque())
        self._tried.move_to_end(key)
        while len(self._tried) > _MOST_KEYS:
            self._tried.popitem(last=False)
        while tried and tried[0] <= now - self._period_s:
            tried.popleft()
        if len(tried) >= self._most:
            return tried[0] + self._period_s - now
        tried.append(now)
        return 0.0

    def forget(self, key: str) -> None:
        self._tried.pop(key, None)


#: The log lines a minute about one kind of fault of visitors.
MOST_LINES = 10


class FewLines(logging.LoggerAdapter[logging.Logger]):
    """A logger that writes each text at most ten times a minute: anybody can cause such lines."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(logger, {})
        self._limiter = Limiter(MOST_LINES, clock=clock)

    @property
    def level(self) -> int:
        """That of the logger: uvicorn asks before it traces."""
        return self.logger.level

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if not self._limiter.wait_s(str(msg)):
            super().log(level, msg, *args, **kwargs)
