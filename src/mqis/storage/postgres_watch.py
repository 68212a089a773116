"""A thread that asks a PostgreSQL server every half second whether it is there.

It has a session of its own, so that it tells a server that hangs (no answer to anything) from a
statement that takes long. While the server hangs it goes on trying, where nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from mqis.protocol.errors import StorageError
from mqis.storage.condition import UNREACHABLE, StoreCondition
from mqis.storage.postgres_session import NoAnswer
from mqis.storage.session import Session

#: From one question to the next.
PAUSE_S = 0.5
#: How long ``close`` waits for the thread, which may be connecting.
_CLOSE_S = 0.5


class Watch:
    """Asks until it is closed, and tells ``condition`` what comes of it.

    ``connect`` makes a session whose statements fail after a timeout. ``ask`` asks there whether
    the store is as this process left it, and raises ``StorageError`` if it must not be used;
    ``resume`` makes it ready again.
    """

    def __init__(
        self,
        condition: StoreCondition,
        connect: Callable[[], Session],
        ask: Callable[[Session], bool],
        resume: Callable[[], None],
    ) -> None:
        self._condition = condition
        self._connect = connect
        self._ask = ask
        self._resume = resume
        self._session: Session | None = None
        self._woken = Event()
        self._closing = False
        self._thread = Thread(target=self._work, name="mqis-store-watch", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Ask now: somebody had no answer."""
        self._woken.set()

    def close(self) -> None:
        """Stop asking. A thread that waits for a server that hangs is not waited for."""
        self._closing = True
        self._woken.set()
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while not self._closing:
            self._look()
            self._woken.wait(PAUSE_S)
            self._woken.clear()
        self._drop()

    def _look(self) -> None:
        try:
            if self._session is None:
                self._session = self._connect()
            ready = self._ask(self._session)
            if self._condition.outage is not None or not ready:
                self._condition.found()
                self._resume()
        except StorageError as error:
            self._drop()
            if not self._closing:
                self._condition.lost(_for_everybody(error), str(error))

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _for_everybody(error: StorageError) -> str:
    return error.reason if isinstance(error, NoAnswer) else UNREACHABLE
