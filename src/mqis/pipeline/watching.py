"""Progress of jobs for progress bars, polled from Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_EVERY_S = 0.3

#: Called with what is computed, and with the (done, total) tasks of the running stages.
OnProgress = Callable[[str, int, int], None]
#: What each session computes now.
_computed: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


@contextmanager
def named_jobs(session: SparkSession, text: str) -> Iterator[None]:
    """Names the jobs of the block, for the progress bar and for Spark's own pages.

    A Spark Connect session names its jobs in these pages by the query alone.
    """
    context = session.sparkContext if hasattr(session, "_jsc") else None
    _computed[session] = text
    if context is not None:
        context.setJobDescription(f"mqis: {text}")
    try:
        yield
    finally:
        del _computed[session]
        if context is not None:
            context.setJobDescription(None)  # type: ignore[arg-type]  # takes it away


def computed_now(session: SparkSession) -> str:
    """What a session computes at this moment: the text of ``named_jobs``, or nothing."""
    return _computed.get(session, "")


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
                        computed_now(session),
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
            total = sum(stage.num_tasks for stage in known)
            on_progress(computed_now(session), finished, total)

    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)
