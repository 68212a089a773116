"""What failed, in one line: Spark tells it in pages."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

#: What a query raises: Spark's errors that PySpark has a class for, and all others.
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
# Spark hands over what failed in a worker, or in Java, as text alone.
#: The last line of a traceback of ours that a worker sent along.
_OURS = re.compile(r"mqis\.[\w.]*Error: (.+)")
#: The last line of any other.
_THEIRS = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.M)
#: What Java gives as the reason of a reason.
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.M)
_DISK = re.compile(r"No space left on device|Disk quota exceeded")


def explained(error: BaseException) -> str:
    """The first line that says something to whoever ran the job."""
    text = str(error)
    if _DISK.search(text):
        return "no room left on the disk; free some space and run it again"
    if found := _OURS.search(text):
        return found[1].strip()
    _, _, traceback = text.partition("Traceback (most recent call last)")
    if theirs := _THEIRS.findall(traceback):
        return str(theirs[-1]).strip()
    if causes := _CAUSE.findall(text):
        return str(causes[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
