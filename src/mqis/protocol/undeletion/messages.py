"""Requests to undelete and their answers, as JSON documents.

A client asks for a plan, reads its entries page by page, and has them restored some at a time. The
server keeps a plan for a while; ``token`` names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult

T = TypeVar("T")

#: The longest text in a request, the most bytes of entries on a page, and the most entries in a
#: request to restore.
MAX_TEXT = 1024
MAX_PAGE = 1024 * 1024
MOST_RESTORED = 100
#: The most objects of one plan.
MOST_PLANNED = 50_000


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


def encode(message: UndeleteRequest | UndeleteReply) -> bytes:
    return json.dumps(asdict(message), separators=(",", ":")).encode("ascii")


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
    request = _made(UndeleteRequest, _document(data))
    texts = (request.type, request.name, request.by, request.under, request.token)
    if any(len(text) > MAX_TEXT for text in texts):
        raise _bad(f"a text has at most {MAX_TEXT} characters")
    if request.first < 0 or request.count < 0:
        raise _bad("first and count are not negative")
    return request


def decode_reply(data: bytes) -> UndeleteReply:
    """Decodes an answer; raises ``DirectoryError`` for one that is none."""
    document = _document(data)
    for key, kind in (("entries", UndeleteEntry), ("results", EntryResult)):
        listed = document.get(key, [])
        if not isinstance(listed, list):
            raise _bad(f"{key} is not a list")
        document[key] = tuple(_made(kind, each) for each in listed)
    return _made(UndeleteReply, document)


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad("not a JSON document") from None
    if not isinstance(document, dict):
        raise _bad("not a JSON object")
    return document


def _made(kind: type[T], document: Mapping[str, Any]) -> T:
    """Makes a dataclass from a document, whose keys and types it checks."""
    if not isinstance(document, dict):
        raise _bad("not a JSON object")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key, value in document.items():
        if key not in known:
            raise _bad(f"unknown key {key[:40]!r}")
        if not _fits(str(known[key].type), value):
            raise _bad(f"{key} has a wrong type")
    try:
        return kind(**document)
    except TypeError:
        raise _bad("a key is missing") from None


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
}


def _fits(annotation: str, value: object) -> bool:
    if annotation.startswith("tuple"):
        return isinstance(value, tuple)
    if isinstance(value, bool) and annotation != "bool":
        return False
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return False
    return isinstance(value, _TYPES[annotation])


def _bad(reason: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, f"undelete: {reason}")
