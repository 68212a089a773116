"""Progress of jobs for progress bars, polled from Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_EVERY_S = 0.3

#: Called with the (done, total) tasks of the running stages.
OnProgress = Callable[[int, int], None]


@contextmanager
def named_jobs(session: SparkSession, text: str) -> Iterator[None]:
    """Names the jobs of the block, for those who look at them in Spark's pages.

    A Spark Connect session names its jobs by the query alone.
    """
    context = session.sparkContext if hasattr(session, "_jsc") else None
    if context is not None:
        context.setJobDescription(text)
    try:
        yield
    finally:
        if context is not None:
            context.setJobDescription(None)  # type: ignore[arg-type]  # takes it away


@contextmanager
def watched(session: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Calls ``on_progress`` with the progress of jobs while the block runs."""
    if not hasattr(session, "_jsc"):
        with _connected(session, on_progress):
            yield
        return
    ended = Event()
    tracker = session.sparkContext.statusTracker()

    def poll() -> None:
        with suppress(Py4JError):  # the thread that waits for a result tells why Java is silent
            while not ended.wait(_EVERY_S):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                if known:
                    on_progress(
                        sum(stage.numCompletedTasks for stage in known),
                        sum(stage.numTasks for stage in known),
                    )

    thread = Thread(target=poll, name="mqis-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _connected(session: Any, on_progress: OnProgress) -> Iterator[None]:
    """Does the same for a Spark Connect session, which reports progress by itself."""

    def handler(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        known = list(stages or ())
        if known and not done:
            finished = sum(stage.num_completed_tasks for stage in known)
            on_progress(finished, sum(stage.num_tasks for stage in known))

    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)
