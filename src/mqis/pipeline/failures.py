"""One-line reasons for Spark's errors, which are pages long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from mqis.wire.errors import MqisError

#: The exceptions that a query raises: those that PySpark has a class for, and Java's others.
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
_OURS = re.compile(r"mqis\.[\w.]*Error: (.+)")
#: The last line of any other traceback.
_THEIRS = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.M)
#: A cause in a Java stack trace.
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.M)
_DISK = re.compile(r"No space left on device|Disk quota exceeded")


@contextmanager
def raised_as(kind: type[MqisError], before: str = "") -> Iterator[None]:
    """Raises an error of Spark in the block as ``kind``, in one line behind ``before``."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise kind(f"{before}{explained(error)}") from error


def explained(error: BaseException) -> str:
    """Returns the one line of an error that is useful to the user who ran the job."""
    text = str(error)
    if _DISK.search(text):
        return "no room left on the disk; free some space and run the command again"
    if found := _OURS.search(text):
        return found[1].strip()
    _, _, traceback = text.partition("Traceback (most recent call last)")
    if theirs := _THEIRS.findall(traceback):
        return str(theirs[-1]).strip()
    if causes := _CAUSE.findall(text):
        return str(causes[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
