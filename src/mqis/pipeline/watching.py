"""How far a job is, for progress bars: Spark's own counts, asked for now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

_EVERY_S = 0.3

#: (done, total) tasks of what runs now.
Tell = Callable[[int, int], None]


@contextmanager
def watched(session: SparkSession, tell: Tell) -> Iterator[None]:
    """Tell how far jobs are while the block runs."""
    if not hasattr(session, "_jsc"):
        with _connected(session, tell):
            yield
        return
    over = Event()
    tracker = session.sparkContext.statusTracker()

    def look() -> None:
        while not over.wait(_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                tell(
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                )

    thread = Thread(target=look, name="mqis-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _connected(session: Any, tell: Tell) -> Iterator[None]:
    """A Spark Connect session tells it by itself."""

    def handler(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        known = list(stages or ())
        if known and not done:
            finished = sum(stage.num_completed_tasks for stage in known)
            tell(finished, sum(stage.num_tasks for stage in known))

    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)
