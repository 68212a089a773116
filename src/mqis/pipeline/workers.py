"""The Python processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import sys
from functools import cache

from pyspark import TaskContext


def settle() -> None:
    """Lets garbage collection in this worker pass over all that is loaded by now.

    Spark collects garbage after every task. Going through the modules of Spark, Arrow and mqis each
    time took as long as reading the headers of 40,000 records. Only new modules are a reason to do
    this again, because what a task itself leaves must still be collected.
    """
    if TaskContext.get() is not None:
        _freeze(len(sys.modules))


@cache
def _freeze(modules: int) -> None:
    """Does it once for this number of ``modules``."""
    gc.freeze()
