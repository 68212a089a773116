"""Sessions that wait for their next transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from mqis.protocol.errors import StorageError
from mqis.storage.session import Session

#: More than this are closed when they come back: a burst of readers is not held against the server.
MAX_IDLE = 16


class Pool:
    """Lends each session to one user at a time; one that fails is closed, not lent again."""

    def __init__(self, connect: Callable[[], Session], begin: str) -> None:
        self._connect = connect
        self._begin = begin
        self._lock = Lock()
        self.idle: list[Session] = []
        self.closed = False

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        session = self._begun()
        try:
            with session.ending():
                yield session
        finally:
            self._keep(session)

    def _begun(self) -> Session:
        """A session in a new transaction. Those that died while they were idle are passed over."""
        while (session := self._take()) is not None:
            try:
                session.begin(self._begin)
            except BaseException as error:
                died = isinstance(error, StorageError) and not session.usable
                self._keep(session)
                if not died:
                    raise
            else:
                return session
        session = self._connect()
        try:
            session.begin(self._begin)
        except BaseException:
            session.close()
            raise
        return session

    def _take(self) -> Session | None:
        with self._lock:
            if self.closed:
                raise StorageError("the store is closed")
            return self.idle.pop() if self.idle else None

    def _keep(self, session: Session) -> None:
        with self._lock:
            keep = session.usable and not self.closed and len(self.idle) < MAX_IDLE
            if keep:
                self.idle.append(session)
        if not keep:
            session.close()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        with self._lock:
            self.closed = True
            for session in self.idle:
                session.close()
            self.idle.clear()
