"""Path names (MS-MQMQ 2.1.1, MS-MQDS 2.2.9).

A public queue is ``Computer\\Queue``; machines, sites, networks and the enterprise have a plain
name; users and links have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

#: Names other than a queue's are not bounded by the text; this is the length of a DNS name.
MAX_NAME = 256

_COMPUTER = re.compile(r"[\x21-\x5b\x5d-\x7e]{1,256}")
# The MSMQ 1.0 set, the widest of the three: without backslash and semicolon.
_QUEUE = re.compile(r"[\x21-\x3a\x3c-\x5b\x5d-\x7f]{1,124}")


@dataclass(frozen=True, slots=True)
class QueuePath:
    """A public queue's path, in its two parts."""

    computer: str
    queue: str

    @classmethod
    def parse(cls, text: str) -> QueuePath:
        """Of ``Computer\\Queue``; private and system queues are not in the directory."""
        return _parsed(text)

    def __str__(self) -> str:
        return f"{self.computer}\\{self.queue}"


@lru_cache(maxsize=64)
def _parsed(text: str) -> QueuePath:
    """One create asks several times: for the owner, for the name, for the partition."""
    computer, _, queue = text.partition("\\")
    if not _COMPUTER.fullmatch(computer) or not _QUEUE.fullmatch(queue):
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
            f"{text!r} is not the path of a public queue, Computer\\Queue",
        )
    return QueuePath(computer, queue)


def check_path(object_type: ObjectType, path: str) -> str:
    """``path`` if objects of this type can have it; ``DirectoryError`` if not."""
    if object_type is ObjectType.QUEUE:
        return str(QueuePath.parse(path))
    if object_type is ObjectType.MACHINE and not _COMPUTER.fullmatch(path):
        raise _illegal(object_type, path)
    if not 0 < len(path) <= MAX_NAME or "\0" in path:
        raise _illegal(object_type, path)
    return path


def _illegal(object_type: ObjectType, path: str) -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_INVALID_PARAMETER, f"{path!r} is not the name of a {object_type.label}"
    )
