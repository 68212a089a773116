"""Path names (MS-MQMQ 2.1.1, MS-MQDS 2.2.9).

A public queue is ``Computer\\Queue``; machines, sites, networks and the enterprise have a plain
name; users and links have none.

The text's names are ASCII without blanks and semicolons, those of estates are not. So a client
creates names of the text only, or visible Unicode if the server allows it (``check_new_path``);
whatever exists already, in Active Directory, in a file or at another server, is taken and found
as it is (``check_path``, E-MQDSSM-61).
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
#: Of a queue that a client creates; Active Directory keeps 147 (E-MQDSSM-18).
_MAX_QUEUE = 124

_COMPUTER = re.compile(r"[\x21-\x5b\x5d-\x7e]{1,256}")
# The MSMQ 1.0 set, the widest of the three: without backslash and semicolon.
_QUEUE = re.compile(r"[\x21-\x3a\x3c-\x5b\x5d-\x7f]{1,124}")
#: A part of a path that exists. A backslash parts two of them; half of a pair is no character.
_PART = re.compile(r"[^\\\0\ud800-\udfff]{1,256}")


@dataclass(frozen=True, slots=True)
class QueuePath:
    """A public queue's path, in its two parts."""

    computer: str
    queue: str

    @classmethod
    def parse(cls, text: str) -> QueuePath:
        """Of ``Computer\\Queue``; private queues are not in the directory."""
        return _parsed(text)

    def __str__(self) -> str:
        return f"{self.computer}\\{self.queue}"


@lru_cache(maxsize=64)
def _parsed(text: str) -> QueuePath:
    """One create asks several times: for the owner, for the name, for the partition."""
    computer, _, queue = text.partition("\\")
    if not _PART.fullmatch(computer) or not _PART.fullmatch(queue):
        raise _no_queue(text)
    return QueuePath(computer, queue)


def check_path(object_type: ObjectType, path: str) -> str:
    """``path`` if objects of this type can have it; ``DirectoryError`` if not."""
    if object_type is ObjectType.QUEUE:
        return str(QueuePath.parse(path))
    if object_type is ObjectType.MACHINE and not _PART.fullmatch(path):
        raise _illegal(object_type, path)
    if not 0 < len(path) <= MAX_NAME or "\0" in path:
        raise _illegal(object_type, path)
    return path


def check_new_path(object_type: ObjectType, path: str, *, unicode: bool = False) -> None:
    """Refuses a name that clients must not give to a new object.

    With ``unicode``, they may use all visible characters, and blanks inside the name of a queue.
    """
    computer, _, queue = path.partition("\\")
    if object_type is ObjectType.QUEUE:
        if unicode and _is_visible(computer) and _is_visible(queue.replace(" ", "_")):
            if queue != queue.strip() or ";" in queue or len(queue) > _MAX_QUEUE:
                raise _no_queue(path)
            return
        if not _COMPUTER.fullmatch(computer) or not _QUEUE.fullmatch(queue):
            raise _no_queue(path)
    elif object_type is ObjectType.MACHINE and not (
        _COMPUTER.fullmatch(path) or (unicode and _is_visible(path))
    ):
        raise _illegal(object_type, path)


def _is_visible(text: str) -> bool:
    return bool(_PART.fullmatch(text)) and " " not in text and text.isprintable()


def _no_queue(text: str) -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
        f"{text!r} is not the path of a public queue, Computer\\Queue",
    )


def _illegal(object_type: ObjectType, path: str) -> DirectoryError:
    return DirectoryError(
        HResult.MQ_ERROR_INVALID_PARAMETER, f"{path!r} is not the name of a {object_type.label}"
    )
