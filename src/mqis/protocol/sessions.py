"""Requests of administrators about the sessions of a server, and their answers, as documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mqis.protocol.documents import DocumentReader

#: The most sessions in one answer.
MOST_LISTED = 2_000
#: Characters at most of an account in an answer.
MOST_NAME = 200

_reader = DocumentReader("sessions")


class SessionVerb(StrEnum):
    LIST = "list"
    END = "end"


@dataclass(frozen=True, slots=True)
class SessionsRequest:
    """One request: for the list, or for the end of the session ``id``."""

    verb: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One connection to a server."""

    id: int
    address: str
    #: The accounts that have logged on over it; "anonymous" for none.
    account: str
    #: The name of the level that protects its calls.
    level: str
    since_us: int
    calls: int
    handles: int
    #: True for the connection over which the request came.
    own: bool = False


@dataclass(frozen=True, slots=True)
class SessionsReply:
    """The sessions, those with an account first; ``total`` counts also those that are left out."""

    total: int = 0
    sessions: tuple[SessionEntry, ...] = ()
    error: str = ""


def decode_request(data: bytes) -> SessionsRequest:
    """Decodes a request; raises ``DirectoryError`` for one that is none."""
    return _reader.made(SessionsRequest, _reader.document(data))


def decode_reply(data: bytes) -> SessionsReply:
    """Decodes an answer; raises ``DirectoryError`` for one that is none."""
    document = _reader.document(data)
    document["sessions"] = _reader.listed(SessionEntry, document, "sessions")
    return _reader.made(SessionsReply, document)
