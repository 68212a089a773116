"""Sessions: a random cookie for every browser, and a session for logged-in users.

The CSRF token of forms is computed from the cookie and a secret of this process, so that visitors
take no memory. A login changes the cookie.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from mqis.config.logs import details
from mqis.web.visitor_connection import Visitors

COOKIE = "mqis_console"
_ID = re.compile(r"[A-Za-z0-9_-]{43}")

audit = logging.getLogger("mqis.audit")


@dataclass(slots=True)
class _Session:
    access: Visitors
    peer: str
    begun: float
    used: float


class Sessions:
    def __init__(
        self,
        idle_s: float,
        lifetime_s: float,
        most: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._idle_s = idle_s
        self._lifetime_s = lifetime_s
        self._most = most
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[str, _Session] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @staticmethod
    def new_id() -> str:
        return secrets.token_urlsafe(32)

    @staticmethod
    def is_id(text: str) -> bool:
        return _ID.fullmatch(text) is not None

    def csrf(self, id: str) -> str:  # noqa: A002
        return hmac.new(self._secret, id.encode(), hashlib.sha256).hexdigest()

    def csrf_fits(self, id: str, given: str) -> bool:  # noqa: A002
        return hmac.compare_digest(self.csrf(id), given) if given.isascii() else False

    def access(self, id: str) -> Visitors | None:  # noqa: A002
        """The login of a live session, whose idle time starts again; None if there is none."""
        self._end_expired()
        found = self._sessions.get(id)
        if found is None:
            return None
        found.used = self._clock()
        return found.access

    def is_alive(self, id: str) -> bool:  # noqa: A002
        """Returns whether a session is alive; does not reset its idle time."""
        self._end_expired()
        return id in self._sessions

    def begin(self, access: Visitors, peer: str) -> str:
        """Begins a session under a new identifier; ends the longest unused if there are too many.

        ``peer`` is the address of the browser.
        """
        self._end_expired()
        while len(self._sessions) >= self._most:
            oldest = min(self._sessions, key=lambda key: self._sessions[key].used)
            self._drop(oldest, "too many sessions")
        now = self._clock()
        made = self.new_id()
        self._sessions[made] = _Session(access, peer, now, now)
        return made

    def end(self, id: str, reason: str = "logged out") -> None:  # noqa: A002
        if id in self._sessions:
            self._drop(id, reason)

    async def close(self) -> None:
        for key in list(self._sessions):
            self._drop(key, "the console ended")
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _end_expired(self) -> None:
        now = self._clock()
        for key, session in list(self._sessions.items()):
            if now - session.used > self._idle_s:
                self._drop(key, "idle")
            elif now - session.begun > self._lifetime_s:
                self._drop(key, "too old")

    def _drop(self, key: str, reason: str) -> None:
        session = self._sessions.pop(key)
        user, server = session.access.user, session.access.place
        fields = details(user=user, server=server, peer=session.peer, reason=reason)
        audit.info("console: session ended", extra=fields)
        task = asyncio.ensure_future(session.access.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
