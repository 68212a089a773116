"""Searches on one connection: pages (RFC 2696) and attributes that come in ranges."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mqis.protocol.ldap.errors import LdapRefused, LdapViolation
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.ranges import RangedEntry, has_ranges
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.wire.errors import WireError
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import (
    NOTIFICATION,
    PAGED_RESULTS,
    LdapControl,
    PagedResults,
    find_control,
)
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import SearchDone, SearchEntry, SearchReference

#: Questions for the parts of one entry's attributes; each brings new values or ends it.
_MOST_PARTS = 100_000
#: References that are kept of one search, and their characters; a forest has one for each domain.
MOST_REFERENCES, _MOST_REFERRED = 1_000, 1 << 20


class SearchOutcome:
    """The part of a search's answer that is not entries: references, and controls of the end."""

    def __init__(self) -> None:
        self._references: dict[tuple[str, ...], None] = {}
        self._size = 0
        self.controls: tuple[LdapControl, ...] = ()

    @property
    def references(self) -> list[tuple[str, ...]]:
        return list(self._references)

    def refer(self, uris: tuple[str, ...], where: str) -> None:
        """Keeps a reference, unless it is known; raises ``LdapViolation`` if there are too many."""
        if uris in self._references:
            return
        self._size += sum(map(len, uris))
        if len(self._references) == MOST_REFERENCES or self._size > _MOST_REFERRED:
            raise LdapViolation(f"{where}: a search has more than {MOST_REFERENCES:,} references")
        self._references[uris] = None


async def search(
    connection: LdapConnection,
    query: LdapQuery,
    *,
    timeout_s: float,
    outcome: SearchOutcome | None = None,
) -> AsyncGenerator[SearchEntry, None]:
    """Yields all entries of a search, page after page, with all values of their attributes.

    The next page is asked for as soon as one has arrived, so that the server works on it while the
    entries are taken; two pages are the most that is kept in memory.
    """
    outcome = outcome or SearchOutcome()
    pages = [_ask(connection, query)]
    try:
        while pages:
            if query.page_size:
                last = await connection.last_answer(pages[0], timeout_s)
                if last is not None and (cookie := _next_cookie(connection, last.controls)):
                    pages.append(_ask(connection, query, cookie))
            async with aclosing(_page(connection, query, pages[0], timeout_s, outcome)) as page:
                async for entry in page:
                    whole: SearchEntry | None = entry
                    if has_ranges(entry):
                        whole = await _complete(connection, entry, query, timeout_s)
                    if whole is not None:
                        yield whole
            del pages[0]
            if query.page_size and not pages:  # the page was too large to arrive as a whole
                cookie = _next_cookie(connection, outcome.controls)
                pages += [_ask(connection, query, cookie)] if cookie else []
    finally:
        for number in pages:
            connection.give_up(number)


def _ask(connection: LdapConnection, query: LdapQuery, cookie: bytes = b"") -> int:
    """Sends the request for a page, or for everything; returns its number."""
    controls = query.controls
    if query.page_size:
        controls = (*controls, PagedResults(query.page_size, cookie).control())
    request = SearchRequest(query.base, query.scope, query.filter, query.attributes)
    return connection.send(request, controls)


async def _page(
    connection: LdapConnection,
    query: LdapQuery,
    number: int,
    timeout_s: float,
    outcome: SearchOutcome,
) -> AsyncGenerator[SearchEntry, None]:
    endless = any(control.oid == NOTIFICATION for control in query.controls)
    limit_s = None if endless else timeout_s
    async with aclosing(connection.answers(number, limit_s)) as answers:
        async for message in answers:
            match message.operation:
                case SearchEntry() as entry:
                    yield entry
                case SearchReference(uris):
                    outcome.refer(uris, connection.where)
                case SearchDone() as done:
                    outcome.controls = message.controls
                    _check(done, f"{connection.where}: search in {query.base!r}")


def _check(done: SearchDone, what: str) -> None:
    if done.result.code != ResultCode.SUCCESS:
        raise LdapRefused(what, done.result)


def _next_cookie(connection: LdapConnection, controls: tuple[LdapControl, ...]) -> bytes:
    value = find_control(controls, PAGED_RESULTS)
    if value is None:
        return b""
    try:
        return PagedResults.from_bytes(value).cookie
    except WireError as error:
        raise LdapViolation(f"{connection.where}: the paging control is damaged: {error}") from None


async def _complete(
    connection: LdapConnection, entry: SearchEntry, query: LdapQuery, timeout_s: float
) -> SearchEntry | None:
    """Fetches the missing parts of an entry; None if it was deleted meanwhile."""
    collected = RangedEntry(entry)
    for _ in range(_MOST_PARTS):
        wanted = collected.missing
        if not wanted:
            return collected.entry()
        part = LdapQuery(
            entry.name, SearchScope.BASE, attributes=wanted, controls=query.controls, page_size=0
        )
        found = await read(connection, part, timeout_s=timeout_s)
        if found is None:
            return None
        collected.add(found)
    raise LdapViolation(f"{connection.where}: {entry.name} has attributes without an end")


async def read(
    connection: LdapConnection, query: LdapQuery, *, timeout_s: float
) -> SearchEntry | None:
    """Reads one entry without completing its attributes; None if there is none."""
    found: SearchEntry | None = None
    try:
        number = _ask(connection, query)
        async for entry in _page(connection, query, number, timeout_s, SearchOutcome()):
            found = found or entry
    except LdapRefused as error:
        if error.code != ResultCode.NO_SUCH_OBJECT:
            raise
    return found
