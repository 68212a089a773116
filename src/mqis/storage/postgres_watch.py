"""A thread that asks a PostgreSQL server every half second whether it answers.

It has its own session, so that it can tell a server that hangs (no answer to anything) from a slow
statement. While the server hangs, the thread goes on trying without blocking anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from mqis.protocol.errors import StorageError
from mqis.storage.condition import UNREACHABLE, StoreCondition
from mqis.storage.postgres_session import NoAnswer
from mqis.storage.session import DatabaseSession

#: The time between two checks.
PAUSE_S = 0.5
#: The longest that ``close`` waits for the thread, which may be connecting.
_CLOSE_S = 0.5


class PostgresWatch:
    """Checks the server until closed, and reports the results to ``condition``.

    ``connect`` makes a session whose statements time out. ``check`` returns whether the store is as
    this process left it, and raises ``StorageError`` if it must not be used. ``resume`` makes it
    usable again.
    """

    def __init__(
        self,
        condition: StoreCondition,
        connect: Callable[[], DatabaseSession],
        check: Callable[[DatabaseSession], bool],
        resume: Callable[[], None],
    ) -> None:
        self._condition = condition
        self._connect = connect
        self._check = check
        self._resume = resume
        self._session: DatabaseSession | None = None
        self._woken = Event()
        self._closing = False
        self._thread = Thread(target=self._run, name="mqis-store-watch", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Checks now, because a call got no answer."""
        self._woken.set()

    def close(self) -> None:
        """Stops the thread; does not wait for one that is blocked by a hanging server."""
        self._closing = True
        self._woken.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closing:
            self._check_server()
            self._woken.wait(PAUSE_S)
            self._woken.clear()
        self._close_session()

    def _check_server(self) -> None:
        try:
            if self._session is None:
                self._session = self._connect()
            ready = self._check(self._session)
            if self._condition.outage is not None or not ready:
                self._condition.report_recovery()
                self._resume()
        except StorageError as error:
            self._close_session()
            if not self._closing:
                self._condition.report_outage(_public_reason(error), str(error))

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _public_reason(error: StorageError) -> str:
    return error.reason if isinstance(error, NoAnswer) else UNREACHABLE
