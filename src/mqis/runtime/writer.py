"""Group commit: the only writer of a store.

Operations of any number of tasks wait in a queue. A thread drains it into one transaction and
acknowledges all of them after the one commit; while that flushes, the next ones gather. So a lone
writer pays for one flush, and sixteen share it.

A savepoint for each operation would take a fifth of the writer's time, and is hardly ever needed:
an operation that refuses does so before it changes anything. So the first attempt has none. If an
operation fails after a change, the transaction is rolled back, and the others run again, now each
in a savepoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import Any, TypeVar

from mqis.protocol.errors import REPORTED, StorageError
from mqis.protocol.ports import Store, Transaction
from mqis.runtime.histogram import FLUSH_SECONDS, SIZES, Histogram

T = TypeVar("T")

#: More than this in one transaction would make its first operation wait for the last.
MAX_BATCH = 256


@dataclass(slots=True)
class _Waiting:
    operation: Callable[[Transaction], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: Exception | None = None

    def run(self, transaction: Transaction) -> None:
        try:
            self.result = self.operation(transaction)
        except StopIteration as error:  # which a future cannot carry
            raise RuntimeError("the operation raised StopIteration") from error

    def settle(self) -> None:
        if self.future.done():  # its task was cancelled; the operation is durable all the same
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class GroupCommitWriter:
    """Runs operations on a store in order, each atomic, acknowledged when durable.

    An operation is a plain function of the transaction. If one raises, only its writes are rolled
    back: the others of its group commit, and its sequence numbers are reused. If the commit itself
    fails, every operation of the group fails with that ``StorageError``.

    An operation may run twice, and then only its second result counts. What it keeps outside of the
    transaction has to allow for that: it starts anew, or compares ``rollbacks``.
    """

    def __init__(self, store: Store, after_commit: Callable[[], None] | None = None) -> None:
        """``after_commit`` is called from the writer's thread and must not block."""
        self._store = store
        self._after_commit = after_commit
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._closed = False
        self._closing = Lock()
        self.commits = 0
        self.operations = 0
        #: Commits that failed.
        self.failures = 0
        #: Transactions whose operations are undone, failed commits included. Operations compare it
        #: to know when to drop what they have cached.
        self.rollbacks = 0
        #: True if the last commit failed with an error that the store does not report itself.
        self.failing = False
        #: The duration of each commit's flush, and the number of operations that shared it.
        self.flush_seconds = Histogram(FLUSH_SECONDS)
        self.batch_sizes = Histogram(SIZES)
        self._thread = Thread(target=self._work, name="mqis-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of operations that no transaction has taken yet."""
        return self._queue.qsize()

    async def submit(self, operation: Callable[[Transaction], T]) -> T:
        """Runs ``operation`` and returns its result once it is committed."""
        return await self.enqueue(operation)

    def enqueue(self, operation: Callable[[Transaction], T]) -> asyncio.Future[T]:
        """Queues ``operation`` at once; the future has its result when it is committed.

        Callbacks of the futures run in the order of the operations.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._closing:  # loops of several threads may submit: none may do so after the end
            if self._closed:
                raise StorageError("the store is closed for writing")
            self._queue.put(_Waiting(operation, future, loop))
        return future

    async def close(self) -> None:
        """Commits the operations submitted so far, then stops."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            last = self._gather(batch)
            self._commit(batch)
            if last:
                return

    def _gather(self, batch: list[_Waiting]) -> bool:
        """Adds the waiting operations to a batch; returns True if ``close`` was called."""
        while len(batch) < MAX_BATCH:
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return False
            if waiting is None:
                return True
            batch.append(waiting)
        return False

    def _commit(self, batch: list[_Waiting]) -> None:
        try:
            try:
                self._transact(_run_together, batch)
            except _UndoneError:
                self.rollbacks += 1
                self._transact(_run_apart, [one for one in batch if one.error is None])
        except Exception as error:
            self.failures += 1
            self.rollbacks += 1
            self.failing = not isinstance(error, REPORTED)
            for waiting in batch:
                waiting.error = waiting.error or error
        else:
            self.failing = False
            if self._after_commit is not None:
                self._after_commit()
        self.commits += 1
        self.operations += len(batch)
        self.batch_sizes.observe(len(batch))
        for loop in {waiting.loop for waiting in batch}:
            mine = [waiting for waiting in batch if waiting.loop is loop]
            try:
                loop.call_soon_threadsafe(_settle, mine)
            except RuntimeError:  # that loop is closed, and its tasks with it
                continue

    def _transact(
        self, run: Callable[[Transaction, list[_Waiting]], None], batch: list[_Waiting]
    ) -> None:
        with self._store.write() as transaction:
            run(transaction, batch)
            began = perf_counter()
        self.flush_seconds.observe(perf_counter() - began)


class _UndoneError(Exception):
    """An operation failed after it had changed something: the transaction has to be rolled back."""


def _run_together(transaction: Transaction, batch: list[_Waiting]) -> None:
    """Runs operations without savepoints, up to one after which the others have to run again."""
    if transaction.writes is None:
        _run_apart(transaction, batch)
        return
    for waiting in batch:
        before = transaction.writes
        try:
            waiting.run(transaction)
        except Exception as error:  # it is raised to the submitter of the operation
            waiting.error = error
            # After an error of its own, PostgreSQL executes nothing more in this transaction.
            if transaction.writes != before or isinstance(error, StorageError):
                raise _UndoneError from error


def _run_apart(transaction: Transaction, batch: list[_Waiting]) -> None:
    """Runs operations in savepoints."""
    for waiting in batch:
        try:
            with transaction.savepoint():
                waiting.run(transaction)
        except Exception as error:
            waiting.error = error


def _settle(batch: list[_Waiting]) -> None:
    for waiting in batch:
        waiting.settle()
