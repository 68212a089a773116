"""Requests to undelete and their answers, as JSON documents.

A client asks for a plan, reads its entries page by page, and has them restored some at a time. The
server keeps a plan for a while; ``token`` names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from mqis.protocol.documents import DocumentReader

#: The longest text in a request, the most bytes of entries on a page, and the most entries in a
#: request to restore.
MAX_TEXT = 1024
MAX_PAGE = 1024 * 1024
MOST_RESTORED = 100
#: The most objects of one plan.
MOST_PLANNED = 50_000

_reader = DocumentReader("undelete")


class Verb(StrEnum):
    """The steps of an undelete."""

    PLAN = "plan"
    PAGE = "page"
    RESTORE = "restore"
    #: Tells which objects are in the directory, and changes nothing.
    LOOK = "look"
    FORGET = "forget"


class EntryState(StrEnum):
    """The state of one object of a plan."""

    #: It can be brought back.
    READY = "ready"
    #: It cannot, and ``reason`` says why.
    CONFLICT = "conflict"
    #: It is in the directory.
    PRESENT = "present"
    RESTORED = "restored"
    FAILED = "failed"
    #: Its authority does not answer.
    UNREACHED = "unreached"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class UndeleteRequest:
    """One request; an empty text or a missing number is no condition."""

    verb: str
    #: For ``plan``: type and name (or identifier) of one object, and conditions on deletions.
    type: str = ""
    name: str = ""
    since_us: int | None = None
    until_us: int | None = None
    by: str = ""
    under: str = ""
    #: For the other verbs: the plan, and the entries from ``first`` on.
    token: str = ""
    first: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class UndeleteEntry:
    """One object of a plan."""

    type: str
    id: str
    path: str | None
    time_us: int
    by: str
    #: The server that decides about the object, and whether that is the one that answers.
    authority: str
    here: bool
    #: True if the site's own servers have it still, and send it once the site is back.
    follows: bool
    state: str
    reason: str = ""
    #: The power over others that it gets back, in words.
    power: str = ""


@dataclass(frozen=True, slots=True)
class EntryResult:
    id: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UndeleteReply:
    """The answer to any request."""

    token: str = ""
    #: False while the server is still searching its journal.
    ready: bool = True
    total: int = 0
    entries: tuple[UndeleteEntry, ...] = ()
    results: tuple[EntryResult, ...] = ()
    error: str = ""


def fitting(entries: Iterable[UndeleteEntry]) -> tuple[UndeleteEntry, ...]:
    """Returns the first entries, as many as one page holds; at least one if there is any."""
    page: list[UndeleteEntry] = []
    size = 0
    for entry in entries:
        size += len(json.dumps(asdict(entry)))
        if page and size > MAX_PAGE:
            break
        page.append(entry)
    return tuple(page)


def decode_request(data: bytes) -> UndeleteRequest:
    """Decodes a request; raises ``DirectoryError`` for one that is none."""
    request = _reader.made(UndeleteRequest, _reader.document(data))
    texts = (request.type, request.name, request.by, request.under, request.token)
    if any(len(text) > MAX_TEXT for text in texts):
        raise _reader.bad(f"a text has at most {MAX_TEXT} characters")
    if request.first < 0 or request.count < 0:
        raise _reader.bad("first and count are not negative")
    return request


def decode_reply(data: bytes) -> UndeleteReply:
    """Decodes an answer; raises ``DirectoryError`` for one that is none."""
    document = _reader.document(data)
    document["entries"] = _reader.listed(UndeleteEntry, document, "entries")
    document["results"] = _reader.listed(EntryResult, document, "results")
    return _reader.made(UndeleteReply, document)
