"""An LDAP server for tests: entries in memory, and limits and faults of one's choice.

It answers what a client of Active Directory asks and knows neither schema nor rights:

    async with ScriptedDirectory([entry("CN=a,DC=x", cn=b"a")], page_limit=1000) as server:
        print(server.url)                             # give it to the client

Set ``on_message`` to answer some messages otherwise: it returns operations to send, raw bytes, or a
``Fault``; None leaves the message to the server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Self

from mqis.wire.errors import WireError
from mqis.wire.ldap.attributes import Values
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, ModifyKind, RenameEntry
from mqis.wire.ldap.codes import ResultCode, SearchScope
from mqis.wire.ldap.controls import PAGED_RESULTS, LdapControl, PagedResults, find_control
from mqis.wire.ldap.filters import (
    And,
    Equality,
    Filter,
    GreaterOrEqual,
    LessOrEqual,
    Not,
    Or,
    Present,
)
from mqis.wire.ldap.messages import LdapMessage, LdapOperation, MessageStream
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.ldap.requests import (
    START_TLS,
    ExtendedRequest,
    SaslBind,
    SearchRequest,
    SimpleBind,
    Unbind,
)
from mqis.wire.ldap.responses import (
    AddResponse,
    BindResponse,
    DeleteResponse,
    ExtendedResponse,
    LdapResult,
    ModifyResponse,
    RenameResponse,
    SearchDone,
    SearchEntry,
)


class LdapFault(Enum):
    """Ways in which a server goes wrong."""

    HANG = "says nothing more"
    CLOSE = "closes the connection"
    GARBAGE = "sends what is not LDAP"
    OVERSIZED = "announces a message of 2 GiB"


_FAULTY_BYTES = {
    LdapFault.GARBAGE: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    LdapFault.OVERSIZED: bytes.fromhex("30847fffffff0201"),
}

#: An answer: operations, some of them with controls, and at the end perhaps a fault.
ScriptedAnswer = Sequence[LdapOperation | tuple[LdapOperation, LdapControl] | LdapFault | bytes]


def entry(name: str, **attributes: bytes | Iterable[bytes]) -> SearchEntry:
    """An entry; a value may be one octet string or several."""
    rows = (
        (key, (value,) if isinstance(value, bytes) else tuple(value))
        for key, value in attributes.items()
    )
    return SearchEntry(name, tuple(rows))


@dataclass
class ScriptedDirectory:
    """The server. ``entries`` may be changed between two messages."""

    entries: list[SearchEntry] = field(default_factory=list)
    #: The most entries of one page, and of a search without pages, which then ends with code 4.
    page_limit: int = 1000
    #: The most values of one attribute; longer ones come in ranges.
    range_limit: int = 1500
    users: dict[str, bytes] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    #: Begins TLS at once, as on port 636; else after StartTLS.
    ldaps: bool = False
    on_message: Callable[[LdapMessage], ScriptedAnswer | None] | None = None
    #: All messages that clients have sent.
    received: list[LdapMessage] = field(default_factory=list)
    connections: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        context = self.tls if self.ldaps else None
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self.disconnect()

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the server has not been started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'ldaps' if self.ldaps else 'ldap'}://127.0.0.1:{self.port}"

    def disconnect(self) -> None:
        """Ends all connections without a word."""
        for writer in self._open:
            writer.transport.abort()

    def operations(self, kind: type[LdapOperation]) -> list[LdapOperation]:
        """The operations of a kind that clients have sent."""
        return [m.operation for m in self.received if isinstance(m.operation, kind)]

    # --- connections ------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, WireError, ssl.SSLError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = MessageStream()
        while data := await reader.read(65536):
            stream.feed(data)
            for message, _ in stream.messages():
                self.received.append(message)
                if not await self._answer(message, writer):
                    return

    async def _answer(self, message: LdapMessage, writer: asyncio.StreamWriter) -> bool:
        """Answers one message; returns False if the connection is over."""
        scripted = self.on_message(message) if self.on_message is not None else None
        for item in self._usual(message) if scripted is None else scripted:
            if isinstance(item, LdapFault):
                writer.write(_FAULTY_BYTES.get(item, b""))
                if item is LdapFault.CLOSE:
                    return False
                continue
            writer.write(item if isinstance(item, bytes) else _encoded(message.id, item))
        await writer.drain()
        request = message.operation
        if isinstance(request, ExtendedRequest) and scripted is None and self.tls is not None:
            await writer.start_tls(self.tls)
        return not isinstance(request, Unbind)

    # --- answers ----------------------------------------------------------------------------------

    def _usual(self, message: LdapMessage) -> ScriptedAnswer:
        match message.operation:
            case SimpleBind(name, password):
                good = not self.users or self.users.get(name) == password
                code = ResultCode.SUCCESS if good else ResultCode.INVALID_CREDENTIALS
                return [BindResponse(LdapResult(code, "", "" if good else "data 52e"))]
            case SaslBind():
                code = ResultCode.AUTH_METHOD_NOT_SUPPORTED
                return [BindResponse(LdapResult(code))]
            case ExtendedRequest(name):
                known = name == START_TLS and self.tls is not None
                code = ResultCode.SUCCESS if known else ResultCode.PROTOCOL_ERROR
                return [ExtendedResponse(LdapResult(code), name)]
            case SearchRequest() as request:
                return self._search(request, message.controls)
            case AddEntry() | ModifyEntry() | DeleteEntry() | RenameEntry() as change:
                return [self._change(change, message.controls)]
        return []

    def _search(self, request: SearchRequest, controls: tuple[LdapControl, ...]) -> ScriptedAnswer:
        if request.base and not any(_same(e.name, request.base) for e in self.entries):
            return [SearchDone(LdapResult(ResultCode.NO_SUCH_OBJECT))]
        found = [e for e in self.entries if _in_scope(e, request) and _matches(e, request.filter)]
        shown = [self._shown(e, request.attributes) for e in found]
        return self._paged(shown, find_control(controls, PAGED_RESULTS))

    def _paged(self, shown: list[SearchEntry], paging: bytes | None) -> ScriptedAnswer:
        if paging is None:
            cut = len(shown) > self.page_limit
            code = ResultCode.SIZE_LIMIT_EXCEEDED if cut else ResultCode.SUCCESS
            return [*shown[: self.page_limit], SearchDone(LdapResult(code))]
        asked = PagedResults.from_bytes(paging)
        start = int(asked.cookie or b"0")
        stop = start + min(asked.size, self.page_limit)
        cookie = str(stop).encode() if stop < len(shown) else b""
        return [*shown[start:stop], (SearchDone(), PagedResults(0, cookie).control())]

    def _shown(self, found: SearchEntry, attributes: tuple[str, ...]) -> SearchEntry:
        rows: list[tuple[str, Values]] = []
        wanted = {name.lower().partition(";")[0]: name for name in attributes}
        for name, values in found.attributes:
            if not wanted or "*" in wanted or name.lower() in wanted:
                rows.append(self._part(name, values, wanted.get(name.lower(), name)))
        return SearchEntry(found.name, tuple(rows))

    def _part(self, name: str, values: Values, asked: str) -> tuple[str, Values]:
        _, _, part = asked.lower().partition(";range=")
        low = int(part.partition("-")[0] or 0)
        if not part and len(values) <= self.range_limit:
            return name, values
        high = low + self.range_limit
        end = "*" if high >= len(values) else str(high - 1)
        return f"{name};range={low}-{end}", values[low:high]

    def _change(
        self,
        request: AddEntry | ModifyEntry | DeleteEntry | RenameEntry,
        controls: tuple[LdapControl, ...],
    ) -> LdapOperation:
        at = next((i for i, e in enumerate(self.entries) if _same(e.name, request.name)), None)
        if not isinstance(request, AddEntry):
            return self._change_existing(request, at)
        if at is not None:
            return AddResponse(LdapResult(ResultCode.ENTRY_ALREADY_EXISTS))
        self.entries.append(SearchEntry(request.name, request.attributes))
        return AddResponse()

    def _change_existing(
        self, request: ModifyEntry | DeleteEntry | RenameEntry, at: int | None
    ) -> LdapOperation:
        result = LdapResult(ResultCode.NO_SUCH_OBJECT if at is None else ResultCode.SUCCESS)
        match request:
            case ModifyEntry():
                if at is not None:
                    self.entries[at] = _modified(self.entries[at], request)
                return ModifyResponse(result)
            case DeleteEntry():
                if at is not None:
                    del self.entries[at]
                return DeleteResponse(result)
            case RenameEntry(name, leaf, _, parent):
                if at is not None:
                    above = str(DistinguishedName.parse(name).parent) if parent is None else parent
                    self.entries[at] = SearchEntry(f"{leaf},{above}", self.entries[at].attributes)
                return RenameResponse(result)


def _encoded(number: int, item: LdapOperation | tuple[LdapOperation, LdapControl]) -> bytes:
    if isinstance(item, tuple):
        return LdapMessage(number, item[0], (item[1],)).encode()
    return LdapMessage(number, item).encode()


@lru_cache(maxsize=10_000)
def name_of(text: str) -> DistinguishedName:
    return DistinguishedName.parse(text)


def _same(one: str, other: str) -> bool:
    return name_of(one).key == name_of(other).key


def _in_scope(found: SearchEntry, request: SearchRequest) -> bool:
    name, base = name_of(found.name), name_of(request.base)
    if request.scope is SearchScope.BASE:
        return name.key == base.key
    if request.scope is SearchScope.ONE_LEVEL:
        return name.parent.key == base.key
    return name.is_below(base)


def _matches(found: SearchEntry, node: Filter) -> bool:  # noqa: PLR0911  one for each kind
    match node:
        case And(items):
            return all(_matches(found, item) for item in items)
        case Or(items):
            return any(_matches(found, item) for item in items)
        case Not(item):
            return not _matches(found, item)
        case Equality(attribute, value):
            return value.lower() in (v.lower() for v in found.values(attribute))
        case GreaterOrEqual(attribute, value):
            return any(_number(v) >= _number(value) for v in found.values(attribute))
        case LessOrEqual(attribute, value):
            return any(_number(v) <= _number(value) for v in found.values(attribute))
        case Present(attribute):
            return attribute.lower() == "objectclass" or bool(found.values(attribute))
    raise WireError(f"the server for tests does not know {type(node).__name__}", 0)


def _number(value: bytes) -> tuple[int, bytes]:
    """Orders values: numbers as such, before everything else."""
    return (int(value), b"") if value.lstrip(b"-").isdigit() else (1 << 64, value.lower())


def _modified(found: SearchEntry, request: ModifyEntry) -> SearchEntry:
    rows = {name.lower(): (name, values) for name, values in found.attributes}
    for change in request.changes:
        name, values = rows.get(change.attribute.lower(), (change.attribute, ()))
        match change.kind:
            case ModifyKind.ADD:
                values = (*values, *change.values)
            case ModifyKind.DELETE:
                gone = change.values or values
                values = tuple(v for v in values if v not in gone)
            case ModifyKind.REPLACE:
                values = change.values
        rows[change.attribute.lower()] = (name, values)
    return SearchEntry(found.name, tuple(row for row in rows.values() if row[1]))
