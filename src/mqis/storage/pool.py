"""A pool of database sessions."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Generic, TypeVar

from mqis.protocol.errors import StorageError
from mqis.storage.session import DatabaseSession

T = TypeVar("T")

#: The most idle sessions; others are closed when they return, so that a burst leaves no load.
MAX_IDLE = 16


class Lent(Generic[T]):
    """A session in a transaction, for the duration of a ``with`` block.

    A class, because every read of a server uses it: a generator takes three times as long.
    """

    __slots__ = ("_pool", "_session", "_wrap")

    def __init__(self, pool: Pool, wrap: Callable[[DatabaseSession], T]) -> None:
        self._pool = pool
        self._wrap = wrap

    def __enter__(self) -> T:
        self._session = self._pool.begun()
        try:
            return self._wrap(self._session)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._session.end(failed=kind is not None)
        finally:
            self._pool.keep(self._session)


def _unchanged(session: DatabaseSession) -> DatabaseSession:
    return session


class Pool:
    """A pool that lends each session to one user at a time and closes those that fail."""

    def __init__(
        self, connect: Callable[[], DatabaseSession], begin: str, admit: Callable[[], None]
    ) -> None:
        """``admit`` raises ``StoreUnavailable`` if the store is known to be unusable."""
        self._connect = connect
        self._begin = begin
        self._admit = admit
        self._lock = Lock()
        self.idle: list[DatabaseSession] = []
        self.closed = False

    def transaction(self) -> Lent[DatabaseSession]:
        return self.lend(_unchanged)

    def lend(self, wrap: Callable[[DatabaseSession], T]) -> Lent[T]:
        """Lends a session, wrapped by ``wrap``, for one transaction."""
        return Lent(self, wrap)

    def begun(self) -> DatabaseSession:
        """A session in a new transaction. Sessions that died while idle are skipped."""
        self._admit()
        while (session := self._take()) is not None:
            try:
                session.begin(self._begin)
            except BaseException as error:
                died = isinstance(error, StorageError) and not session.usable
                self.keep(session)
                if not died:
                    raise
                self._admit()
            else:
                return session
        session = self._connect()
        try:
            session.begin(self._begin)
        except BaseException:
            session.close()
            raise
        return session

    def _take(self) -> DatabaseSession | None:
        with self._lock:
            if self.closed:
                raise StorageError("the store is closed")
            return self.idle.pop() if self.idle else None

    def keep(self, session: DatabaseSession) -> None:
        with self._lock:
            keep = session.usable and not self.closed and len(self.idle) < MAX_IDLE
            if keep:
                self.idle.append(session)
        if not keep:
            session.close()

    def close(self) -> None:
        """Closes idle sessions now, and others when they return."""
        with self._lock:
            self.closed = True
            for session in self.idle:
                session.close()
            self.idle.clear()
